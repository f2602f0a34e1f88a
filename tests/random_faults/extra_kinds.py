"""Faults that leave a server with transactions that its source does not have, or has otherwise."""

import uuid

from compose import faults, faults_content, faults_history
from compose.faults import purge_until_gone
from compose.native.server import Server
from compose.native.shapes import wait_for
from tests.random_faults.expectations import Expected, Extent
from tests.random_faults.kind import ALL, ONE_WAY, Injected, Kind
from tests.random_faults.scene import Scene, by_hand, gtids


def _extra(scene: Scene, codes: str, text: str, companions: str = "") -> Expected:
    return Expected(
        codes=frozenset(codes.split()),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(text),
        companions=frozenset(companions.split()),
    )


def errant(scene: Scene) -> Injected:
    """Write on a replica; purge the log afterwards, or not."""
    there = scene.there
    made = scene.work(there)
    for link in scene.topology.links:
        if link.source == there.name:
            wait_for(scene.topology[link.replica], made)
    is_purged = scene.dice.random() < 0.35
    if is_purged:
        _purge(there, made)
    return Injected(_extra(scene, "E2" if is_purged else "E1", made))


def _purge(server: Server, made: str) -> None:
    server.execute("FLUSH BINARY LOGS")
    purge_until_gone(server, made)


def typed_uuid(scene: Scene) -> Injected:
    """Commit on a replica under a UUID that no server has."""
    there = scene.there
    other = uuid.UUID(int=scene.dice.getrandbits(128), version=4)
    last = scene.dice.randint(1, 9)
    made = [f"{other}:{gno}" for gno in range(last, last + scene.case.count)]
    scene.key += 1
    by_hand(there, made[:1], f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'typed')")
    by_hand(there, made[1:])
    return Injected(_extra(scene, "E1", ",".join(made)))


def declared(scene: Scene) -> Injected:
    """Add GTIDs of an unknown server to gtid_purged of a replica."""
    there = scene.there
    other = uuid.UUID(int=scene.dice.getrandbits(128), version=4)
    made = f"{other}:1-{scene.case.count}"
    there.execute(f"SET GLOBAL gtid_purged = '+{made}'")
    return Injected(_extra(scene, "E2", made))


def lost_tail(scene: Scene) -> Injected:
    """Let a source crash and lose transactions that its replica has."""
    with scene.quiet():
        statements = scene.statements(scene.here)
        fault = faults.lost_tail_crash(
            scene.topology, source=scene.here.name, replica=scene.there.name, statements=statements
        )
        # What the source loses was its own; its clients come back later.
        scene.hold(scene.here)
    return Injected(_extra(scene, "E3", fault.lost))


def reused(scene: Scene) -> Injected:
    """Let a source lose transactions and reuse their GTIDs: the sets are equal."""
    with scene.quiet():
        fault = faults.reused_numbers(scene.topology, **scene.ends, lost_count=scene.case.count)
    # Another replica of the source has them as well, and is refused until it is restarted.
    return Injected(_extra(scene, "E4", fault.reused, "E4 A4"))


def reset_source(scene: Scene) -> Injected:
    """Reset the binary logs and GTIDs of a source."""
    with scene.quiet():
        fault = faults_history.reset_history(
            scene.topology, **scene.ends, new_count=scene.dice.choice((0, 1, 2, 4))
        )
        scene.hold(scene.here)
    # E4: what the source commits afterwards has GTIDs that the replica has with other contents.
    return Injected(_extra(scene, "E6", fault.forgotten, "A4 E4"))


def returned_primary(scene: Scene) -> Injected:
    """Fail over from a primary with a tail, which the new primary has only as empty ones."""
    with scene.quiet():
        fault = faults_content.returned_primary(
            scene.topology, old=scene.here.name, new=scene.there.name, tail_count=scene.case.count
        )
    expected = Expected(codes=frozenset({"E4"}), injected=gtids(fault.tail))
    return Injected(expected)


def failover_with_tail(scene: Scene) -> Injected:
    """Promote a replica while the source goes on writing."""
    scene.hold(scene.here)
    scene.settle()
    (other,) = {"replica1", "replica2"} - {scene.there.name}
    fault = faults_history.failover_with_tail(
        scene.topology,
        old=scene.here.name,
        promoted=scene.there.name,
        other=other,
        tail_count=scene.case.count,
    )
    expected = Expected(
        codes=frozenset({"J3"}),
        replica=scene.here.name,
        injected=gtids(fault.tail),
    )
    return Injected(expected)


def declared_too_much(scene: Scene) -> Injected:
    """Set a gtid_purged of a replica that has GTIDs which its source has not reached."""
    with scene.quiet():
        fault = faults_history.declared_too_much(
            scene.topology, **scene.ends, count=scene.dice.randint(1, 6)
        )
        scene.hold(scene.here)
    return Injected(_extra(scene, "E3 E6 H7", fault.gtid, "A4"))


def declared_on_source(scene: Scene) -> Injected:
    """Declare on a source what was written on its replica."""
    with scene.quiet():
        fault = faults_history.declared_on_source(scene.topology, **scene.ends)
    expected = Expected(codes=frozenset({"E4"}), injected=gtids(fault.gtid), extent=Extent.ANY)
    return Injected(expected)


def empty_injected(scene: Scene) -> Injected:
    """Write on a replica, and commit empty transactions under its GTIDs on the source.

    The sets are equal. Only a comparison of contents shows it, which the operator asks for.
    """
    there = scene.there
    with scene.quiet():
        scene.key += 1
        made = faults.commit(
            there, f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'on the replica')"
        )
        by_hand(scene.primary, [made])
        scene.settle()
    expected = Expected(codes=frozenset({"E4"}), injected=gtids(made), compares_content=True)
    return Injected(expected)


KINDS = {
    "errant": Kind(errant, ONE_WAY),
    "typed uuid": Kind(typed_uuid, ONE_WAY),
    "declared": Kind(declared, ("star",)),
    "lost tail": Kind(lost_tail, ALL),
    "reused": Kind(reused, ("pair", "star", "chain")),
    "reset source": Kind(reset_source, ("star", "chain")),
    "returned primary": Kind(returned_primary, ("pair",)),
    "failover with tail": Kind(failover_with_tail, ("star",), permits_lag=False),
    "declared too much": Kind(declared_too_much, ("star",)),
    "declared on source": Kind(declared_on_source, ("star",)),
    "empty injected": Kind(empty_injected, ("star",)),
}
