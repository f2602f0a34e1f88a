"""Settings that make faults possible, and healthy servers that only look as if they had one."""

import time
from dataclasses import replace

from compose import faults, faults_applier, faults_configuration, faults_filters, faults_identity
from compose.faults import await_status
from compose.native.shapes import Pair, follow, wait_for
from tests.random_faults.expectations import Expected, Extent
from tests.random_faults.kind import ALL, MODERN, ONE_WAY, PAIRS, Injected, Kind
from tests.random_faults.scene import Scene, by_hand, delay, executed


def _setting(
    code: str, replica: str, *, companions: str = "", is_above_info: bool = True
) -> Expected:
    return Expected(
        codes=frozenset({code}),
        replica=replica,
        extent=Extent.ANY,
        companions=frozenset(companions.split()),
        is_above_info=is_above_info,
        stays=False,
    )


_HEALTHY = Expected(codes=frozenset(), stays=False)


def durability(scene: Scene) -> Injected:
    """Let a server lose commits if its machine fails."""
    here = scene.here
    faults_configuration.relaxed_durability(here)
    return Injected(_setting("C5", here.name, is_above_info=False))


def retention(scene: Scene) -> Injected:
    """Keep binary logs for an hour."""
    here = scene.here
    faults_configuration.short_retention(here)
    return Injected(
        _setting("C8", here.name, companions="P3"),
        lambda: here.execute("SET GLOBAL binlog_expire_logs_seconds = 2592000"),
    )


def same_keys(scene: Scene) -> Injected:
    """Let both servers of a pair generate equal keys."""
    scene.hold(scene.here)
    scene.hold(scene.there)
    scene.settle()
    faults_configuration.same_keys(Pair(scene.topology.servers, scene.topology.links))
    return Injected(
        Expected(codes=frozenset({"C12"}), extent=Extent.ANY, is_above_info=False, stays=False)
    )


def by_position(scene: Scene) -> Injected:
    """Switch auto-position off, at the position that was reached."""
    there = scene.there
    faults.await_uptime(there)
    if scene.case.workers > 1:
        with scene.quiet():
            faults_applier.by_position(there)
    else:
        faults_applier.by_position(there)

    def undo() -> None:
        there.execute(
            there.dialect.stop_replica,
            there.dialect.change_source_to(auto_position=1),
            there.dialect.start_replica,
        )

    return Injected(_setting("C3", there.name), undo)


def permissive(scene: Scene) -> Injected:
    """Set gtid_mode of a source to ON_PERMISSIVE."""
    server = scene.here
    server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    return Injected(
        Expected(codes=frozenset({"C4"}), extent=Extent.ANY, stays=False),
        lambda: server.execute("SET GLOBAL gtid_mode = ON"),
    )


def hidden_errors(scene: Scene) -> Injected:
    """Let a replica pass errors."""
    there = scene.there
    prefix = there.dialect.words.replica_variable_prefix
    there.execute(
        there.dialect.stop_replica,
        f"SET GLOBAL {prefix}exec_mode = 'IDEMPOTENT'",
        there.dialect.start_replica,
    )
    return Injected(
        _setting("C15", there.name),
        lambda: there.execute(
            there.dialect.stop_replica,
            f"SET GLOBAL {prefix}exec_mode = 'STRICT'",
            there.dialect.start_replica,
        ),
    )


def log_filter(scene: Scene) -> Injected:
    """Restart the middle of a chain with --binlog-ignore-db."""
    with scene.quiet():
        faults_filters.binary_log_filter(scene.topology)
    return Injected(Expected(codes=frozenset({"C11"}), source="middle", extent=Extent.ANY))


def replica_filter(scene: Scene) -> Injected:
    """Let an applier ignore a schema: the operator's choice for that replica, and no finding."""
    there = scene.there
    there.execute(
        there.dialect.stop_applier,
        "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (work)",
        there.dialect.start_applier,
    )
    return Injected(_HEALTHY)


def no_logged_updates(scene: Scene) -> Injected:
    """Restart the middle of a chain with log_replica_updates = OFF."""
    with scene.quiet():
        faults_filters.without_logged_updates(scene.topology)
        scene.hold(scene.primary)
    return Injected(Expected(codes=frozenset({"C6"}), extent=Extent.ANY, stays=False))


def copied_uuid(scene: Scene) -> Injected:
    """Copy the server_uuid of a source to its replica."""
    scene.hold(scene.here)
    scene.hold(scene.there)
    faults_identity.duplicate_server_uuid(
        scene.topology, copied_from=scene.here.name, copied_to=scene.there.name
    )
    return Injected(Expected(codes=frozenset({"C1"}), extent=Extent.ANY, stays=False))


def writable(scene: Scene) -> Injected:
    """Switch read_only off on a replica."""
    scene.there.execute("SET GLOBAL read_only = OFF")
    return Injected(_setting("C9", scene.there.name, is_above_info=False))


def fragmented(scene: Scene) -> Injected:
    """Commit every second GTID of a UUID that no server has."""
    here = scene.here
    other = "6d1f0000-0000-4000-8000-0000000000ff"
    with here.connect() as session, session.cursor() as cursor:
        for number in range(1_010):
            for statement in (f"SET gtid_next = '{other}:{2 * number + 1}'", "BEGIN", "COMMIT"):
                cursor.execute(statement)
    scene.settle()
    return Injected(
        Expected(codes=frozenset({"F1"}), extent=Extent.ANY, is_above_info=False, stays=False)
    )


# -- healthy ---------------------------------------------------------------------------------------


def tail_gap(scene: Scene) -> Injected:
    """Hold back one worker of a parallel applier while the others commit."""
    scene.hold(scene.there)
    with scene.quiet():
        scene.stack.enter_context(faults.tail_gap(scene.topology, **scene.ends))
    return Injected(
        Expected(codes=frozenset(), stays=False, lock_seconds_max=3600, stall_seconds_max=3600)
    )


def delayed(scene: Scene) -> Injected:
    """Set SOURCE_DELAY on a replica, and commit on."""
    with scene.quiet():
        delay(scene.there)
        text = scene.work(scene.here)
        faults_applier.await_received(scene.there, text)
    return Injected(_HEALTHY)


def busy(scene: Scene) -> Injected:
    """Commit large transactions, and audit while they arrive."""
    for _ in range(3):
        scene.happen("large transaction")
    scene.work(scene.primary)
    return Injected(_HEALTHY)


def restarted(scene: Scene) -> Injected:
    """Restart or kill a server that loses nothing, and audit at once."""
    server = scene.dice.choice((scene.here, scene.there))
    with scene.writers.held(server.name):
        if scene.dice.random() < 0.7:
            server.kill()
            server.start()
        else:
            server.restart()
    for link in scene.topology.links:
        if server.name in (link.source, link.replica):
            await_status(
                scene.topology[link.replica],
                lambda status: status["Replica_IO_Running"] == "Yes",
            )
    return Injected(_HEALTHY)


def purged_by_plan(scene: Scene) -> Injected:
    """Rotate and purge what every server has, on every server."""
    scene.purge_what_all_have()
    scene.work(scene.primary)
    return Injected(_HEALTHY)


def switched(scene: Scene) -> Injected:
    """Stop and start every thread of the replica, with work in between, and audit at once."""
    for _ in range(scene.dice.randint(1, 4)):
        scene.happen("stop and start")
    there = scene.there
    await_status(there, lambda status: status["Replica_IO_Running"] == "Yes")
    return Injected(_HEALTHY)


def by_hand_everywhere(scene: Scene) -> Injected:
    """Commit GTIDs of a former server on the source, from where they reach every server."""
    here = scene.primary
    other = "6d1f0000-0000-4000-8000-0000000000fe"
    with scene.writers.held(here.name):
        for number in range(1, scene.case.count + 1):
            here.execute(f"SET gtid_next = '{other}:{number}'", "BEGIN", "COMMIT")
    wait_for(scene.here, executed(here))
    return Injected(_HEALTHY)


def restarted_meanwhile(scene: Scene) -> Injected:
    """Kill and start a server, or rotate and purge, while the audit reads."""
    server = scene.dice.choice((scene.here, scene.there))
    wait_seconds = scene.dice.uniform(0, 0.8)
    is_killed = scene.dice.random() < 0.7

    def during() -> None:
        time.sleep(wait_seconds)
        if is_killed:
            server.kill()
            server.start()
        else:
            server.execute(server.dialect.stop_replica, server.dialect.start_replica)

    # What the audit may see of it: a connection that ended, a receiver that connects again.
    seen = frozenset({"U", "U1", "U2", "A4", "A7", "J4"})
    return Injected(replace(_HEALTHY, companions=seen), during=during)


def switched_over(scene: Scene) -> Injected:
    """Promote a replica as planned: nothing is lost, and the former source follows it."""
    former, promoted = scene.here, scene.there
    scene.hold(former)
    scene.settle()
    for link in scene.topology.links:
        replica = scene.topology[link.replica]
        replica.execute(replica.dialect.stop_replica, replica.dialect.reset_replica)
    for server in scene.topology.servers.values():
        is_promoted = server is promoted
        server.execute(f"SET GLOBAL read_only = {'OFF' if is_promoted else 'ON'}")
        if not is_promoted:
            follow(server, promoted)
    text = scene.work(promoted)
    if scene.dice.random() < 0.5:
        wait_for(former, text)
    return Injected(_HEALTHY)


def own_gap(scene: Scene) -> Injected:
    """Leave a gap in the own GTIDs of a server: no server has them, so none skips them."""
    here = scene.here
    with scene.writers.held(here.name):
        last = int(scene.work(here, 1, tag=False).rpartition(":")[2])
        above = scene.dice.choice((2, 5, 50, 30_000))
        by_hand(here, [f"{here.value('@@GLOBAL.server_uuid')}:{last + above}"])
    return Injected(_HEALTHY)


def _nothing(scene: Scene) -> Injected:
    """Wait for a moment."""
    time.sleep(scene.dice.uniform(0, 1))
    return Injected(_HEALTHY)


KINDS = {
    "durability": Kind(durability, ALL),
    "retention": Kind(retention, MODERN),
    "same keys": Kind(same_keys, PAIRS),
    "by position": Kind(by_position, ALL, at_writers=False),
    "permissive": Kind(permissive, MODERN, at_writers=False),
    "hidden errors": Kind(hidden_errors, ALL, at_writers=False),
    "log filter": Kind(log_filter, ("chain",)),
    "healthy: replica filter": Kind(replica_filter, ("star",)),
    "no logged updates": Kind(no_logged_updates, ("chain",)),
    "copied uuid": Kind(copied_uuid, ALL),
    "writable": Kind(writable, ONE_WAY),
    "fragmented": Kind(fragmented, ("pair", "star")),
    "healthy: tail gap": Kind(tail_gap, MODERN),
    "healthy: delayed": Kind(delayed, ALL),
    "healthy: busy": Kind(busy, ALL, at_writers=False),
    "healthy: restarted": Kind(restarted, ALL, at_writers=False),
    "healthy: purged": Kind(purged_by_plan, ALL, at_writers=False),
    "healthy: switched": Kind(switched, ALL, at_writers=False),
    "healthy: by hand": Kind(by_hand_everywhere, ALL, at_writers=False),
    "healthy: restarted meanwhile": Kind(restarted_meanwhile, ALL, at_writers=False),
    "healthy: switched over": Kind(switched_over, ("star",), permits_lag=False),
    "healthy: own gap": Kind(own_gap, ALL),
    "healthy: nothing": Kind(_nothing, ALL, at_writers=False),
}
