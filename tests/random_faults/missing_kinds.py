"""Faults that leave a replica without transactions: holes, purged logs, passed work."""

from compose import (
    faults,
    faults_absent,
    faults_applier,
    faults_filters,
    faults_history,
    faults_identity,
)
from compose.faults import await_status, purge_until_gone
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import wait_for
from tests.random_faults.expectations import Expected, Extent
from tests.random_faults.kind import ALL, MODERN, ONE_WAY, PAIRS, Injected, Kind
from tests.random_faults.scene import Scene, by_hand, executed, gtids


def _expected(scene: Scene, codes: str, text: str, companions: str = "") -> Expected:
    """Return what is expected of the edge, about exactly these GTIDs."""
    return Expected(
        codes=frozenset(codes.split()),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(text),
        companions=frozenset(companions.split()),
    )


def _subtracted(server: Server, left: str, right: str) -> str:
    text = server.query("SELECT GTID_SUBTRACT(%s, %s)", [left, right])[0][0]
    return str(text).replace("\n", "")


def bypass(scene: Scene) -> Injected:
    """Set a file position past some transactions; with load, past those of clients as well."""
    here, there = scene.here, scene.there
    faults.await_uptime(there)
    scene.writers.insert_only()
    scene.settle()
    there.execute(there.dialect.stop_replica)
    scene.work(scene.primary)
    if scene.primary is not here:
        wait_for(here, executed(scene.primary))
    if scene.dice.random() < 0.3:
        here.execute("FLUSH BINARY LOGS")
    with here.connect() as session, session.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")  # as mysqldump --source-data does
        file, position = here.binary_log_position()
        # The replica is stopped: since then it has only got what its own clients commit.
        skipped = _subtracted(here, executed(here), executed(there))
    there.execute(
        there.dialect.change_source_to(auto_position=0, log_file=file, log_pos=position),
        there.dialect.start_replica,
    )
    later = scene.work(scene.primary, 2)
    wait_for(there, later)

    def undo() -> None:
        there.execute(
            there.dialect.stop_replica,
            there.dialect.change_source_to(auto_position=1),
            there.dialect.start_replica,
        )

    return Injected(_expected(scene, "H1", skipped, "C3"), undo)


def dump_without_sets(scene: Scene) -> Injected:
    """Load rows as a dump without gtid_purged does, and set the position of the dump."""
    with scene.quiet():
        fault = faults_absent.dump_loaded_at_its_place(scene.topology, **scene.ends)
    return Injected(_expected(scene, "H1", fault.absent, "C3"))


def purged_before_position(scene: Scene) -> Injected:
    """Set a position at the end of the log of the source, which then purges the rest."""
    with scene.quiet():
        fault = faults_identity.purged_before_position(scene.topology, **scene.ends)
    return Injected(_expected(scene, "P1 H3 H4", fault.missing, "C3"))


def purged_under_replica(scene: Scene) -> Injected:
    """Purge logs that a stopped replica needs; start it or not."""
    here, there = scene.here, scene.there
    with scene.writers.held():
        scene.settle()
        there.execute(there.dialect.stop_replica)
        purged = scene.work(scene.primary)
        if scene.primary is not here:
            wait_for(here, purged)
        here.execute("FLUSH BINARY LOGS")
        purge_until_gone(here, purged)
    if is_started := scene.dice.random() < 0.6:
        there.execute(there.dialect.start_replica)
        await_status(there, faults._source_refused)
    expected = Expected(
        codes=frozenset({"P1"}),
        source=here.name,
        replica=there.name,
        injected=gtids(purged),
        extent=Extent.BACKLOG,
        companions=frozenset() if is_started else frozenset({"A7"}),
    )
    return Injected(expected)


def purged_under_applier(scene: Scene) -> Injected:
    """Purge what a stopped applier has only in its relay log."""
    here, there = scene.here, scene.there
    with scene.quiet():
        there.execute(there.dialect.stop_applier)
        waiting = scene.work(scene.primary)
        if scene.primary is not here:
            wait_for(here, waiting)
        faults_applier.await_received(there, waiting)
        here.execute("FLUSH BINARY LOGS")
        purge_until_gone(here, waiting)
    expected = Expected(
        codes=frozenset({"P2"}),
        source=here.name,
        replica=there.name,
        injected=gtids(waiting),
        companions=frozenset({"A7"}),
        stays=False,
    )
    return Injected(expected, lambda: there.execute(there.dialect.start_replica))


def purged_on_sibling(scene: Scene) -> Injected:
    """Let a sibling purge what a stopped replica does not have: a failover would break it."""
    here, there = scene.here, scene.there
    (sibling,) = [
        scene.topology[link.replica] for link in scene.topology.links if link.replica != there.name
    ]
    with scene.writers.held():
        scene.settle()
        there.execute(there.dialect.stop_replica)
        waiting = scene.work(here)
        if scene.delayed:
            expected = frozenset({"A7"})
            names = (here.name, there.name)
        else:
            wait_for(sibling, waiting)
            sibling.execute("FLUSH BINARY LOGS")
            purge_until_gone(sibling, waiting)
            expected = frozenset({"P5"})
            names = (sibling.name, there.name)
    return Injected(
        Expected(
            codes=expected,
            source=names[0],
            replica=names[1],
            injected=gtids(waiting),
            extent=Extent.BACKLOG,
            companions=frozenset({"A7"}),
            stays=False,
        ),
        lambda: there.execute(there.dialect.start_replica),
    )


def reset_on_replica(scene: Scene) -> Injected:
    """Run RESET BINARY LOGS AND GTIDS on a replica while its channel runs."""
    again = scene.dice.random() < 0.6
    scene.hold(scene.there)  # its own clients would reuse GTIDs, which is another fault
    with scene.quiet():
        fault = faults_applier.reset_on_replica(scene.topology, **scene.ends, received_again=again)
    if not scene.is_mutual():
        return Injected(_expected(scene, "H8", fault.passed))
    # Its own transactions were never received: for its source, this is a history that was reset.
    uuid = scene.there.value("@@GLOBAL.server_uuid")
    parts = fault.passed.replace("\n", "").split(",")
    own = ",".join(part for part in parts if part.startswith(uuid))
    received = ",".join(part for part in parts if not part.startswith(uuid))
    of_own = Expected(
        codes=frozenset({"E3", "E6"}),
        source=scene.there.name,
        replica=scene.here.name,
        injected=gtids(own),
        words=("RESET",),
    )
    return Injected(_expected(scene, "H8", received, "A4 P1"), also=(of_own,) if own else ())


def relay_position(scene: Scene) -> Injected:
    """Move an applier to the end of its relay log, past what it has not applied."""
    later = scene.dice.choice((0, 1, 3))
    with scene.quiet():
        fault = faults_applier.relay_position_moved(scene.topology, **scene.ends, later_count=later)
    return Injected(_expected(scene, "H8", fault.passed, "C3"))


def skip_counter(scene: Scene) -> Injected:
    """Let sql_replica_skip_counter skip a transaction."""
    later = scene.dice.choice((0, 1, 3))
    with scene.quiet():
        fault = faults_applier.skipped_by_counter(scene.topology, **scene.ends, later_count=later)
    # With ON_PERMISSIVE there, the other server refuses to receive from it.
    return Injected(_expected(scene, "H8", fault.passed, "C3 C4 A4"))


def old_purged(scene: Scene) -> Injected:
    """Reset a replica, and set a gtid_purged that is too small by two transactions."""
    later = scene.dice.choice((0, 2))
    scene.hold(scene.there)
    with scene.quiet():
        fault = faults_applier.reset_with_old_purged(
            scene.topology, **scene.ends, later_count=later
        )
    expected = Expected(
        codes=frozenset({"H8", "A7"}),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(fault.passed),
        extent=Extent.BACKLOG,
        companions=frozenset({"A4", "P1"}),
    )
    return Injected(expected)


def equal_id_for_a_while(scene: Scene) -> Injected:
    """Set the server_id of a replica to that of its source for some transactions."""
    with scene.quiet():
        fault = faults_absent.equal_id_for_a_while(scene.topology, **scene.ends)
    return Injected(_expected(scene, "H8", fault.absent))


def both_reset(scene: Scene) -> Injected:
    """Reset a source and its replica, whose Retrieved_Gtid_Set keeps the former history."""
    with scene.writers.held():
        scene.settle()
        fault = faults_absent.both_reset(scene.topology, **scene.ends)
    # The sibling and the other direction of a pair still have the former history.
    return Injected(_expected(scene, "H8", fault.absent, "E6 A4 P1 E1 E3 E4"))


def ignored(scene: Scene) -> Injected:
    """Let a receiver drop transactions by IGNORE_SERVER_IDS."""
    with scene.quiet():
        fault = faults_filters.ignored_transaction(
            scene.topology, source=scene.here.name, replica=scene.there.name
        )
    # RESET SLAVE ALL of 5.6 keeps the list, for the next case as well (seen on 5.6.24).
    scene.stack.callback(faults_filters.ignore_server, scene.there)
    expected = Expected(
        codes=frozenset({"C11"}),
        source=scene.here.name,
        replica=scene.there.name,
        injected=gtids(fault.gtids),
        extent=Extent.BACKLOG,
    )
    return Injected(expected)


def equal_ids(scene: Scene) -> Injected:
    """Set the server_id of the last server of a chain to that of the first one."""
    with scene.quiet():
        fault = faults_history.equal_server_ids(scene.topology)
    expected = Expected(
        codes=frozenset({"C2"}),
        source="first",
        replica="last",
        injected=gtids(fault.dropped),
        extent=Extent.BACKLOG,
    )
    return Injected(expected)


def future_gtid(scene: Scene) -> Injected:
    """Commit a row under a GTID that the source has not reached, and does not receive.

    In a pair or a ring the source receives it, and then no server skips what it commits later.
    """
    here, there = scene.here, scene.there
    uuid = here.value("@@GLOBAL.server_uuid")
    with scene.quiet():
        own = gtids(executed(here))
        gno = own.gtid_count + scene.dice.choice((20_000, 1_000_000, 10**12))
        made = f"{uuid}:{gno}"
        scene.key += 1
        by_hand(there, [made], f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'by hand')")
    return Injected(Expected(codes=frozenset({"H7"}), injected=gtids(made)))


def filled_gap(scene: Scene) -> Injected:
    """Leave a gap in the own GTIDs of the source, and commit one of them on its replica."""
    here, there = scene.here, scene.there
    with scene.quiet():
        above = scene.dice.choice((4, 50, 30_000))
        uuid = here.value("@@GLOBAL.server_uuid")
        last = int(scene.work(here, 1, tag=False).rpartition(":")[2])
        by_hand(here, [f"{uuid}:{last + above}"])
        made = f"{uuid}:{last + above // 2}"
        scene.settle()
        scene.key += 1
        by_hand(there, [made], f"INSERT INTO work.t (id, note) VALUES ({scene.key}, 'by hand')")
        if above < 1_000:
            scene.hold(here)  # its clients would reach it at once
    return Injected(Expected(codes=frozenset({"H7"}), injected=gtids(made)))


def unlinked(scene: Scene) -> Injected:
    """Remove the channel of a replica, and commit on its source; purge there, or not."""
    here, there = scene.here, scene.there
    with scene.quiet():
        there.execute(there.dialect.stop_replica, there.dialect.reset_replica)
        missing = scene.work(scene.primary)
        if scene.primary is not here:
            wait_for(here, missing)
        is_purged = scene.dice.random() < 0.5
        if is_purged:
            for server in scene.topology.servers.values():
                if server is not there and server.name not in scene.delayed:
                    wait_for(server, missing)
                    server.execute("FLUSH BINARY LOGS")
                    purge_until_gone(server, missing)
    is_served = not is_purged or scene.delayed

    def undo() -> None:
        there.execute(
            there.dialect.change_source_to(
                host=here.host, port=here.port, user=REPLICATION_USER, auto_position=1
            ),
            there.dialect.start_replica,
        )

    expected = Expected(
        codes=frozenset({"J1", "J2"} if scene.delayed else {"J1"} if is_served else {"J2"}),
        replica=there.name,
        extent=Extent.ANY,
        companions=frozenset({"J1", "J2"}),
    )
    return Injected(expected, None if is_purged else undo)


KINDS = {
    "bypass": Kind(bypass, ALL, at_writers=False),
    "dump without sets": Kind(dump_without_sets, ALL),
    "purged before position": Kind(purged_before_position, ALL),
    "purged under replica": Kind(purged_under_replica, ALL, at_writers=False),
    "purged under applier": Kind(purged_under_applier, ALL, at_writers=False),
    "purged on sibling": Kind(purged_on_sibling, ("star",)),
    "reset on replica": Kind(reset_on_replica, (*PAIRS, "star"), at_leaves=False),
    "relay position": Kind(relay_position, ALL),
    "skip counter": Kind(skip_counter, ("pair", "star")),
    "old purged": Kind(old_purged, (*PAIRS, "star")),
    "equal id for a while": Kind(equal_id_for_a_while, (*MODERN,)),
    "both reset": Kind(both_reset, ("star",)),
    "ignored": Kind(ignored, ("pair56",)),
    "equal ids": Kind(equal_ids, ("chain",)),
    "future gtid": Kind(future_gtid, ONE_WAY),
    "filled gap": Kind(filled_gap, ONE_WAY),
    "unlinked": Kind(unlinked, ONE_WAY, at_writers=False, at_leaves=True),
}
