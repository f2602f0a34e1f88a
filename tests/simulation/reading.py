"""What an auditor reads of a simulated world: two readings of every visible server.

1. A reading is a sequence of looks in the order of the live adapter (topology/adapters/mysql.py):
   gtid_owned, gtid_purged, gtid_executed, SHOW REPLICA STATUS, workers, end of the log. The world
   may move before every look. Only the barrier between the phases is certain.
2. As topology/adapters/collect.py does, the second reading is repeated while it shows a severe
   difference that the one before did not.
3. The sets of consumers are read before the first look and after the last one.
4. Some servers may be invisible, and some facts unreadable: each one that a privilege, a failed
   statement or an answer of another kind takes from the live adapter, in both readings or in one
   (`b.settings@2`: in the second).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from binlog.log_times import EPOCH
from gtid import GtidSet, Tsid
from tests.simulation import replication as act
from tests.simulation.membership import is_member
from tests.simulation.state import SECOND, Channel, Consumer, Gtid, Place, Server, World, uuid_of
from topology.facts.cluster_facts import gather_facts, severe_differences
from topology.policy import Policy
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.dialect import CHANGED_SINCE_START, GTID_MODE_SOURCE, SERVER_ID_SOURCE
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CLUSTER = "world"
REPEATS_MAX = 5
_MEMO_MAX = 100_000

_sets: dict[frozenset[Gtid], GtidSet] = {}
_tsids: dict[tuple[str, str], Tsid] = {}

IDLE = {
    True: "Replica has read all relay log; waiting for more updates",
    False: "Slave has read all relay log; waiting for the slave I/O thread to update it",
}
WAITING = {"table": "Waiting for table metadata lock", "global": "Waiting for global read lock"}
OWNED_ELSEWHERE = "Waiting for GTID to be committed"
_AT_WORK = "Applying batch of row changes (update)"
_AT_ITSELF = "System lock"
_BUSY = "Waiting for dependent transaction to commit"
_DELAYED = "Waiting until SOURCE_DELAY seconds after source executed event"


def gtids(members: Iterable[Gtid]) -> GtidSet:
    """Return the product's set of these GTIDs."""
    key = frozenset(members)
    found = _sets.get(key)
    if found is None:
        if len(_sets) > _MEMO_MAX:
            _sets.clear()
        found = _sets[key] = GtidSet.from_intervals(_intervals(key))
    return found


def _intervals(members: frozenset[Gtid]) -> Iterator[tuple[Tsid, int, int]]:
    numbers: dict[tuple[str, str], list[int]] = {}
    for uuid, tag, number in members:
        numbers.setdefault((uuid, tag), []).append(number)
    for key, found in numbers.items():
        tsid = _tsid_of(*key)
        found.sort()
        start = last = found[0]
        for number in found[1:]:
            if number != last + 1:
                yield tsid, start, last + 1
                start = number
            last = number
        yield tsid, start, last + 1


def _tsid_of(uuid: str, tag: str) -> Tsid:
    if (uuid, tag) not in _tsids:
        _tsids[uuid, tag] = Tsid(uuid_of(uuid), tag)
    return _tsids[uuid, tag]


def members_of(gtid_set: GtidSet, world: World) -> set[Gtid]:
    """Return the GTIDs of a set of the product, of those that this world knows."""
    known: set[Gtid] = set()
    for server in world.servers.values():
        known |= server.executed | server.owned
        for channel in server.channels:
            known |= channel.retrieved
        if server.group_applier is not None:
            known |= server.group_applier.retrieved
    known |= {each.transaction.gtid for each in world.acknowledged}
    if not gtid_set:
        return set()
    held: dict[Tsid, list[range]] = {}
    for tsid, start, end in gtid_set.intervals():
        held.setdefault(tsid, []).append(range(start, end))
    of_key = {key: held.get(_tsid_of(*key), []) for key in {each[:2] for each in known}}
    return {each for each in known if any(each[2] in part for part in of_key[each[:2]])}


@dataclass(frozen=True, slots=True)
class Reading:
    """How the auditor reads: what it sees, and what happens meanwhile."""

    visible: tuple[str, ...]
    seed: int = 0
    moving: bool = False
    unread: tuple[tuple[str, str], ...] = ()  # (server, fact of UNREADABLE, perhaps @1 or @2)
    contents: str = "none"  # none, starts, everywhere
    between: tuple[str | int, ...] = ()  # a step that is done between the two readings
    definitions: bool = False  # they are compared as well (definitions.py)


Between = Callable[[], None]

# What one statement of the live adapter reads; "logs" are asked for afterwards (log_answers.py).
UNREADABLE: dict[str, tuple[str, ...]] = {
    "version": ("vendor", "version_text"),  # a text that is no version
    "identity": ("gtid_executed", "gtid_purged", "gtid_owned", "server_uuid", "server_id"),
    "server_uuid": ("server_uuid",),
    "gtid_executed": ("gtid_executed",),
    "gtid_purged": ("gtid_purged",),
    "gtid_owned": ("gtid_owned",),
    "channels": ("channels",),
    "workers": (),
    "log_end": ("log_end",),
    "uptime_seconds": ("uptime_seconds",),
    "binary_logs": ("binary_logs",),
    "settings": ("settings", "group"),  # the group's name is a setting: without it nothing is asked
    "group": ("group",),
    "logs": (),
}
_IN_FIRST = ("version", "identity")  # nothing else is read then


def hidden_facts(server: str, reading: Reading, phase: int) -> frozenset[str]:
    """Return the facts that cannot be read of a server in one of the two readings."""
    facts = (fact.partition("@") for name, fact in reading.unread if name == server)
    return frozenset(fact for fact, _, when in facts if when in ("", str(phase)))


def read(world: World, reading: Reading) -> ClusterSnapshot:
    """Read all visible servers, wait for the last, read all again; consumers around that."""
    if not world.consumers:
        return _read_servers(world, reading)
    from tests.simulation.consumers import read_on

    first, begun = {each.name: gtids(each.stored) for each in _consumers(world)}, world.clock
    snapshot = _read_servers(world, reading)
    if reading.moving:
        read_on(world, random.Random(f"consumers {reading.seed}"))
    found = (_consumer(world, reading, each, first[each.name], begun) for each in _consumers(world))
    return replace(snapshot, consumers=tuple(found))


def _consumers(world: World) -> list[Consumer]:
    return [world.consumers[name] for name in sorted(world.consumers)]


def _consumer(
    world: World, reading: Reading, one: Consumer, first: GtidSet, begun: int
) -> ConsumerReading:
    """Return both readings of a consumer. The fleet file has no server outside of the audit."""
    server = one.server if one.server in reading.visible else None
    last = OfferedReading(moment(world.clock), gtids(one.stored))
    return ConsumerReading(
        one.name,
        server,
        "/var/lib/offsets.dat",
        one.is_fixed,
        OfferedReading(moment(begun), first),
        last,
    )


def _read_servers(world: World, reading: Reading) -> ClusterSnapshot:
    dice = random.Random(reading.seed)
    between = _between(world, dice) if reading.moving else lambda: None
    first = _phase(world, 1, reading, dice, between)
    if reading.between:
        from tests.simulation.steps import perform

        perform(world, reading.between)
    snapshot = ClusterSnapshot(CLUSTER, first, _phase(world, 2, reading, dice, between))
    if not reading.moving:
        return snapshot
    before = severe_differences(gather_facts(snapshot, Policy()))
    for _ in range(REPEATS_MAX - 1):
        if not before:
            break
        for _ in range(10):
            between()
        snapshot = ClusterSnapshot(CLUSTER, first, _phase(world, 2, reading, dice, between))
        now = severe_differences(gather_facts(snapshot, Policy()))
        if now == before:
            break
        before = now
    return snapshot


def _between(world: World, dice: random.Random) -> Between:
    from tests.simulation.steps import perform

    def move() -> None:
        count = dice.choice((0, 0, 1, 1, 2, 5, 20))
        if count:
            done = world.steps_done
            perform(world, ("load", count, dice.randrange(10**6)))
            world.steps_done = done

    return move


def _phase(
    world: World, phase: int, reading: Reading, dice: random.Random, between: Between
) -> tuple[ServerSnapshot, ...]:
    world.clock += 1
    names = [name for name in sorted(world.servers) if name in reading.visible]
    looks = {
        name: _looks(world, world[name], phase, hidden_facts(name, reading, phase))
        for name in names
    }
    done: dict[str, ServerSnapshot] = {}
    while looks:
        between()
        name = dice.choice(sorted(looks)) if len(looks) > 1 else next(iter(looks))
        finished = next(looks[name])
        if finished is not None:
            done[name] = finished
            del looks[name]
    return tuple(done[name] for name in names)


def moment(ticks: int) -> datetime:
    """Return a moment of the world's clock."""
    return NOON + timedelta(milliseconds=ticks)


def _looks(
    world: World, server: Server, phase: int, unread: frozenset[str]
) -> Iterator[ServerSnapshot | None]:
    """Look at one server in the order of the live adapter; None while it is not done."""
    started = moment(world.clock)
    yield None
    if "connection" in unread:
        yield ServerSnapshot(
            CLUSTER,
            server.name,
            server.name,
            3306,
            phase,
            started,
            moment(world.clock),
            unread=(UnreadFact("connection", UnreadReason.UNREACHABLE, "no answer"),),
        )
        return
    owned = gtids(server.owned)
    yield None
    purged = gtids(server.purged)
    yield None
    executed, clock = gtids(server.executed), world.clock
    yield None
    rows = [(channel, _status(world, server, channel)) for channel in server.channels]
    yield None
    channels = [
        _channel_without_workers(facts)
        if "workers" in unread
        else ChannelSnapshot(**facts, workers=_workers(world, server, channel))
        for channel, facts in rows
    ]
    yield None
    log_end = position(server.end) if server.log_bin else None
    read_all = ServerSnapshot(
        cluster=CLUSTER,
        name=server.name,
        host=server.name,
        port=3306,
        phase=phase,
        read_started=started,
        read_ended=moment(world.clock),
        server_clock=moment(clock),
        server_uuid=uuid_of(server.uuid),
        server_id=server.server_id,
        version=ServerVersion(*server.version),
        version_text=".".join(map(str, server.version)),
        vendor=Vendor.MYSQL,
        uptime_seconds=(world.clock - server.started_at) // SECOND,
        gtid_executed=executed,
        gtid_purged=purged,
        gtid_owned=owned,
        log_end=log_end,
        channels=tuple(sorted(channels, key=lambda channel: channel.name)),
        binary_logs=tuple(
            BinaryLog(f"binlog.{log.number:06}", 200 + 100 * len(log.entries))
            for log in server.listed
            if server.log_bin
        ),
        settings=_settings(world, server),
        group=_group(world, server),
    )
    yield _without(read_all, unread - {"logs"}) if unread else read_all


def _channel_without_workers(facts: dict[str, Any]) -> ChannelSnapshot:
    """Return a channel of which performance_schema shows nothing."""
    times = dict.fromkeys(("last_queued_committed_at", "last_applied_at"))
    return ChannelSnapshot(
        **{**facts, **times, "last_queued": GtidSet(), "last_applied": GtidSet()}
    )


def _without(server: ServerSnapshot, unread: frozenset[str]) -> ServerSnapshot:
    """Return a reading without what could not be read; each is named in `unread`."""
    facts = tuple(
        UnreadFact(
            "gtid_executed" if fact == "identity" else fact, UnreadReason.PRIVILEGE, "not allowed"
        )
        for fact in sorted(unread)
    )
    if any(fact in unread for fact in _IN_FIRST):
        known: dict[str, Any] = (
            {} if "version" in unread else {"version": server.version, "vendor": server.vendor}
        )
        return ServerSnapshot(
            CLUSTER,
            server.name,
            server.host,
            server.port,
            server.phase,
            server.read_started,
            server.read_ended,
            unread=facts,
            **known,
        )
    nothing: dict[str, Any] = {name: None for fact in unread for name in UNREADABLE[fact]}
    if "settings" in unread:
        nothing["notable_settings"] = None
    return replace(server, **nothing, unread=facts)


def _group(world: World, server: Server) -> GroupSnapshot | None:
    """Return a member's view of its group; a member that left it has none."""
    group, queue = world.group, server.group_applier
    if group is None or not is_member(world, server.name):
        return None
    role = "PRIMARY" if server.name == group.primary else "SECONDARY"
    return GroupSnapshot(
        group_name=str(uuid_of(group.uuid)),
        member_state="ERROR" if server.name in group.expelled else "ONLINE",
        member_role="" if server.name in group.expelled else role,
        received=gtids(queue.retrieved) if queue is not None else GtidSet(),
        members=_members(world, server),
        view_id=f"{_in_100_ns(moment(group.bootstrapped_at))}:{len(group.online)}",
        workers=_group_workers(world, server, queue) if queue is not None else (),
    )


def _group_workers(world: World, server: Server, queue: Channel) -> tuple[WorkerSnapshot, ...]:
    """Return the workers of a member: on a server, one has what comes next within microseconds."""
    workers = _workers(world, server, queue)
    if queue.working or queue.relay_at >= len(queue.relay):
        return workers
    due = gtids([queue.relay[queue.relay_at].transaction.gtid])
    return (replace(workers[0], applying=due, state=_AT_WORK, applying_seconds=0), *workers[1:])


def _in_100_ns(time: datetime) -> int:
    return int((time - EPOCH) / timedelta(microseconds=1)) * 10


def _members(world: World, server: Server) -> tuple[GroupMember, ...]:
    """Return the members as one of them sees them; an expelled one sees only itself."""
    group = world.group
    assert group is not None, "the caller has looked"
    if server.name in group.expelled:
        seen, state = {server.name}, "ERROR"
    else:
        seen, state = set(group.online), "ONLINE"
    return tuple(
        sorted(
            GroupMember(
                uuid_of(world[name].uuid),
                name,
                3306,
                state,
                "PRIMARY" if name == group.primary else "SECONDARY",
            )
            for name in seen
        )
    )


def _settings(world: World, server: Server) -> tuple[tuple[str, str], ...]:
    channel = server.channels[0] if server.channels else None
    name = str(uuid_of(world.group.uuid)) if world.group is not None else ""
    of_group = (("group_replication_group_name", name),)
    return (
        ("datadir", f"/{server.name}/"),
        ("enforce_gtid_consistency", "ON"),
        ("gtid_mode", "ON_PERMISSIVE" if server.permissive else "ON"),
        *(of_group if world.group is not None and server.name in world.group.names else ()),
        ("hostname", server.name),
        ("log_bin", "ON" if server.log_bin else "OFF"),
        ("log_replica_updates", "ON" if server.log_replica_updates else "OFF"),
        ("port", "3306"),
        ("relay_log_recovery", "ON" if server.relay_log_recovery else "OFF"),
        ("replica_exec_mode", "IDEMPOTENT" if server.idempotent else "STRICT"),
        ("replica_parallel_workers", str(channel.workers if channel else 4)),
        ("replica_preserve_commit_order", "ON" if channel and channel.commit_order else "OFF"),
        ("replica_skip_errors", "ALL" if server.skips_errors else "OFF"),
        *(_sources_of_values(server) if server.version >= (8, 0, 0) else ()),
        ("sync_binlog", "1"),
    )


def _sources_of_values(server: Server) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, CHANGED_SINCE_START if set_at >= server.started_at else "EXPLICIT")
        for name, set_at in (
            (GTID_MODE_SOURCE, server.gtid_mode_set_at),
            (SERVER_ID_SOURCE, server.server_id_set_at),
        )
    )


@lru_cache(maxsize=_MEMO_MAX)
def position(place: Place | None, base: str = "binlog") -> LogPosition | None:
    """Return a place as the server reports it."""
    if place is None:
        return None
    return LogPosition.of(file=f"{base}.{place.file:06}", position=200 + 100 * place.entries)


def is_delayed(world: World, channel: Channel) -> int:
    """Return for how many ticks the applier still waits because of SOURCE_DELAY."""
    if not channel.delay or channel.applier != "Yes" or channel.relay_at >= len(channel.relay):
        return 0
    due = channel.relay[channel.relay_at].transaction.at + channel.delay
    return max(0, due - world.clock)


def _status(world: World, server: Server, channel: Channel) -> dict[str, Any]:
    modern = server.version >= (8, 0, 0)
    errno, error = channel.receiver_error
    applier_errno, applier_error = channel.applier_error
    low = channel.low_water
    if low >= len(channel.relay):
        applied_to = channel.read_to
    elif low:
        applied_to = channel.relay[low - 1].end
    else:
        end = channel.relay[0].end
        applied_to = end._replace(entries=end.entries - 1)
    # An applier that is behind shows its lag whatever its receiver does (seen on 5.6.24 and 9.7.4).
    lag: int | None = None
    if channel.applier == "Yes" and low < len(channel.relay):
        lag = (world.clock - channel.relay[low].transaction.at) // SECOND
    elif channel.applier == "Yes" and channel.receiver == "Yes":
        lag = 0
    queued, applied = channel.last_queued, gtids(each.gtid for each in channel.done_by.values())
    remaining = is_delayed(world, channel)
    return {
        "name": channel.name,
        "source_host": channel.source,
        "source_port": 3306,
        "source_uuid": None if channel.source_uuid is None else uuid_of(channel.source_uuid),
        "auto_position": channel.auto_position,
        "gtid_retrieved": gtids(channel.retrieved),
        "receiver": ThreadState(channel.receiver),
        "receiver_errno": errno,
        "receiver_error": error,
        "receiver_error_at": "",
        "applier": ThreadState(channel.applier),
        "applier_errno": _applier_errno(server, channel, applier_errno),
        "applier_error": applier_error,
        "applier_error_at": "",
        "received_to": position(channel.read_to),
        "applied_to": position(applied_to),
        "lag_seconds": lag,
        "filters": tuple(sorted(channel.ignored_keys)),
        "applier_state": _applier_state(server, channel, modern=modern, delayed=remaining > 0),
        "receiver_state": "Waiting for source to send event" if channel.receiver == "Yes" else "",
        "relay_applied_to": position(Place(channel.relay_number, low), "relay"),
        "delay_seconds": channel.delay // SECOND,
        "delay_remaining_seconds": remaining // SECOND if remaining else None,
        "source_server_id": channel.source_server_id or None,
        "skip_counter": channel.skip_counter,  # the variable is 0 again once the applier has started
        "last_queued": gtids([queued.gtid]) if modern and queued else GtidSet(),
        "last_queued_committed_at": moment(queued.at) if modern and queued else None,
        "last_applied": applied if modern else GtidSet(),  # of all workers
        "last_applied_at": moment(channel.last_applied_at) if modern and applied else None,
    }


def _applier_errno(server: Server, channel: Channel, errno: int) -> int:
    """Return Last_SQL_Errno: with workers 5.6 reports only that a worker failed."""
    return 1756 if errno and channel.workers > 1 and server.version < (5, 7, 0) else errno


def _waits_for_session(server: Server, channel: Channel) -> bool:
    return (
        channel.applier == "Yes"
        and server.session_owns is not None
        and channel.relay_at < len(channel.relay)
        and channel.relay[channel.relay_at].transaction.gtid == server.session_owns
    )


def _applier_state(server: Server, channel: Channel, *, modern: bool, delayed: bool) -> str:
    if channel.applier != "Yes":
        return ""
    if delayed:
        return _DELAYED
    if channel.workers == 1 or not modern:
        if channel.working and act.blocked(server, channel.working[0]):
            return WAITING[server.lock]
        if _waits_for_session(server, channel):
            return OWNED_ELSEWHERE
    if not modern and channel.workers == 1 and channel.working:
        return _AT_ITSELF  # an applier without workers
    if channel.relay_at >= len(channel.relay) or _waits_for_session(server, channel):
        return IDLE[modern]
    return _BUSY


def _workers(world: World, server: Server, channel: Channel) -> tuple[WorkerSnapshot, ...]:
    if server.version < (5, 7, 0):
        return ()
    # Those of an applier that was stopped stay, without a thread (seen on 9.7.4).
    if channel.applier != "Yes" and not (channel.applier_error[0] or channel.done_by):
        return ()
    found = []
    without_work = "Waiting for an event from Coordinator" if channel.applier == "Yes" else ""
    busy = {work.worker: work for work in channel.working}
    for number in range(1, channel.workers + 1):
        last = channel.done_by.get(number)
        applied = gtids([last.gtid]) if last is not None else GtidSet()
        work = busy.get(number)
        if work is None:
            found.append(
                WorkerSnapshot(number, GtidSet(), 0, "", state=without_work, last_applied=applied)
            )
            continue
        waits = WAITING[server.lock] if not work.logged and act.blocked(server, work) else _AT_WORK
        found.append(
            WorkerSnapshot(
                number,
                gtids([work.transaction.gtid]),
                0,
                "",
                state=waits,
                applying_seconds=(world.clock - work.since) // SECOND,
                last_applied=applied,
            )
        )
    waiting: WorkerSnapshot | None = None
    if _waits_for_session(server, channel):
        assert server.session_owns is not None, "the function before has looked"
        waiting = WorkerSnapshot(
            0,
            gtids([server.session_owns]),
            0,
            "",
            state=OWNED_ELSEWHERE,
            applying_seconds=(world.clock - server.lock_since) // SECOND,
        )
    elif channel.failed is not None and channel.applier_error[0]:
        errno, error = channel.applier_error
        waiting = WorkerSnapshot(0, gtids([channel.failed.gtid]), errno, error)
    if waiting is not None:
        at = next((at for at in range(channel.workers) if at + 1 not in busy), 0)
        found[at] = replace(waiting, worker_id=at + 1, last_applied=found[at].last_applied)
    return tuple(found)
