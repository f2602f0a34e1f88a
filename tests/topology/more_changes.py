"""More changes of facts of a server, by name: settings, logs, groups, several workers.

See fact_changes.py. These are facts that few scenarios have, so that a change of one fact of them
reaches decisions that no other change reaches.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from gtid import GtidSet
from tests.topology.fact_changes import STRANGER, Change, Seen, executed_by, highest_of
from topology.readings.group_view import GROUP_APPLIER, GroupMember, GroupSnapshot
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogReach, LogStart
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.worker import WorkerSnapshot

_GROUP = "aaaaaaaa-0000-0000-0000-00000000000a"
_SECOND = timedelta(seconds=1)
_IDLE = "Waiting for an event from Coordinator"
_GTID_WAIT = "Waiting for GTID to be committed"
_PURGED = (
    "Got fatal error 1236 from source when reading data from binary log: 'Cannot replicate because"
    " the source purged required binary logs.'"
)
_MORE = (
    "Got fatal error 1236 from source when reading data from binary log: 'Replica has more GTIDs"
    " than the source has, using the source's SERVER_UUID.'"
)


def _missing(server: ServerSnapshot, seen: Seen) -> GtidSet:
    return seen.everything - executed_by(server)


def _setting(name: str, value: str | None) -> Change:
    def change(server: ServerSnapshot, _seen: Seen) -> ServerSnapshot:
        kept = {key: each for key, each in server.settings or () if key != name}
        added = {} if value is None else {name: value}
        return replace(server, settings=tuple(sorted({**kept, **added}.items())))

    return change


# -- channels -------------------------------------------------------------------------------------


def _channels(make: Callable[[ChannelSnapshot, ServerSnapshot, Seen], Mapping[str, Any]]) -> Change:
    def change(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
        made = (replace(each, **make(each, server, seen)) for each in server.channels or ())
        return server if server.channels is None else replace(server, channels=tuple(made))

    return change


def _always(**facts: Any) -> Change:
    return _channels(lambda _channel, _server, _seen: facts)


def _part(server: ServerSnapshot, seen: Seen, at: int) -> GtidSet:
    """Return one of the missing transactions; none if there are fewer."""
    missing = _missing(server, seen)
    return missing.first(at + 1) - missing.first(at)


def _workers(
    _channel: ChannelSnapshot,
    server: ServerSnapshot,
    seen: Seen,
    *,
    at: tuple[int, ...],
    **facts: Any,
) -> Mapping[str, Any]:
    """Return workers, each at one of the missing transactions; the last has the given facts."""
    made = [
        WorkerSnapshot(number, _part(server, seen, each), 0, "", state="Executing event")
        for number, each in enumerate(at, start=1)
    ]
    return {"workers": (*made[:-1], replace(made[-1], **facts))}


def _last(
    _channel: ChannelSnapshot,
    server: ServerSnapshot,
    seen: Seen,
    *,
    name: str,
    at: int,
    seconds: int | None,
) -> Mapping[str, Any]:
    moment = None if seconds is None else server.read_ended - seconds * _SECOND
    of_time = {"last_queued": "last_queued_committed_at", "last_applied": "last_applied_at"}
    gtids = _part(server, seen, at) if at >= 0 else highest_of(executed_by(server)).first(1)
    return {name: gtids, of_time[name]: moment}


def _each_other(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
    """Have a worker of the second channel hold what one of the first waits for."""
    channels = list(server.channels or ())
    if not channels:
        return server
    part = _missing(server, seen).first(1)
    wait = WorkerSnapshot(1, part, 0, "", state=_GTID_WAIT, applying_seconds=99)
    work = WorkerSnapshot(1, part, 0, "", state="Executing event", applying_seconds=99)
    first = replace(channels[0], workers=(wait,))
    second = channels[1] if len(channels) > 1 else replace(channels[0], name="other")
    return replace(server, channels=(first, replace(second, workers=(work,)), *channels[2:]))


OF_MORE_CHANNELS: Mapping[str, Change] = {
    "two workers at the first two": _channels(partial(_workers, at=(0, 1))),
    "two workers, the second has failed": _channels(
        partial(_workers, at=(0, 1), errno=1062, error="duplicate")
    ),
    "two workers, the first is behind": _channels(partial(_workers, at=(1, 0))),
    "two workers, one is idle": _channels(
        partial(_workers, at=(0, 1), applying=GtidSet(), state=_IDLE)
    ),
    "a worker at the second missing": _channels(partial(_workers, at=(1,))),
    "a worker waits for the GTID that it has": _channels(
        partial(_workers, at=(0,), state=_GTID_WAIT, applying_seconds=99)
    ),
    "a worker at what it has executed": _channels(
        lambda _c, s, _seen: {
            "workers": (
                WorkerSnapshot(1, highest_of(executed_by(s)).first(1), 0, "", "Executing event"),
            )
        }
    ),
    "workers of two channels wait for each other": _each_other,
    **{
        f"{name} {which}{'' if seconds is None else f' {seconds} s ago'}": _channels(
            partial(_last, name=name, at=at, seconds=seconds)
        )
        for name in ("last_queued", "last_applied")
        for at, which in ((-1, "of the executed"), (0, "the first missing"), (1, "the second"))
        for seconds in (None, 1, 300)
    },
    "receiver refused: purged": _always(
        receiver=ThreadState.STOPPED, receiver_errno=13114, receiver_error=_PURGED
    ),
    "receiver refused: more GTIDs": _always(
        receiver=ThreadState.STOPPED, receiver_errno=13114, receiver_error=_MORE
    ),
    "receiver waits for relay log space": _always(
        receiver_state="Waiting for the replica SQL thread to free enough relay log space"
    ),
    "receiver state connecting": _always(receiver_state="Connecting to source"),
    "filters": _always(filters=("Replicate_Do_DB: d",)),
    "ignores 4711": _always(ignored_server_ids=(4711,)),
    "relay log applied to the end": _always(
        relay_applied_to=LogPosition.of(file="relay.000099", position=4)
    ),
    "applied as far as received": _channels(lambda c, _s, _seen: {"applied_to": c.received_to}),
    "received as far as applied": _channels(lambda c, _s, _seen: {"received_to": c.applied_to}),
    "of the group": _always(name=GROUP_APPLIER, source_host="", source_port=0, source_uuid=None),
    "applier stopped without an error": _always(
        applier=ThreadState.STOPPED, applier_errno=0, applier_error="", workers=()
    ),
    "retrieved: what it executed": _channels(
        lambda _c, s, _seen: {"gtid_retrieved": executed_by(s)}
    ),
    "retrieved: the first missing": _channels(
        lambda c, s, seen: {"gtid_retrieved": c.gtid_retrieved | _missing(s, seen).first(1)}
    ),
    "retrieved: all but the first missing": _channels(
        lambda c, s, seen: {
            "gtid_retrieved": c.gtid_retrieved | (_missing(s, seen) - _missing(s, seen).first(1))
        }
    ),
}


# -- what a server has ----------------------------------------------------------------------------


def _members(
    server: ServerSnapshot, seen: Seen, *, state: str, other: str, **facts: Any
) -> Mapping[str, Any]:
    """Return a group of the server and the next one."""
    members = tuple(
        GroupMember(each.server_uuid, each.host, each.port, state_of, role)
        for each, state_of, role in (
            (server, state, "SECONDARY"),
            (seen.next_of(server), other, "PRIMARY"),
        )
        if each.server_uuid is not None
    )
    received = _missing(server, seen)
    group = GroupSnapshot(_GROUP, state, "SECONDARY", received, tuple(sorted(members)))
    return {"group": replace(group, **facts)}


def _group(state: str, other: str, **facts: Any) -> Change:
    return lambda server, seen: replace(
        server, **_members(server, seen, state=state, other=other, **facts)
    )


def _in_recovery(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
    worker = WorkerSnapshot(1, _missing(server, seen).first(1), 0, "", state="Executing event")
    made = _members(server, seen, state="RECOVERING", other="ONLINE", recovery_workers=(worker,))
    return replace(server, **made)


def _applies_for_the_group(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
    worker = WorkerSnapshot(
        1, _missing(server, seen).first(1), 0, "", state=_GTID_WAIT, applying_seconds=99
    )
    return replace(
        server, **_members(server, seen, state="ONLINE", other="ONLINE", workers=(worker,))
    )


_VIEWS = ("16094592000000000:3", "99999999999999999999:1", "")

OF_MORE: Mapping[str, Change] = {
    **{
        f"in a group as {state}, the next is {other}": _group(state, other)
        for state in ("ONLINE", "RECOVERING", "ERROR")
        for other in ("ONLINE", "UNREACHABLE", "ERROR")
    },
    **{f"in a group of view {view!r}": _group("ONLINE", "ONLINE", view_id=view) for view in _VIEWS},
    "in a group, all delivered": _group("ONLINE", "ONLINE", received=GtidSet()),
    "in a group, recovery failed": _group(
        "RECOVERING", "ONLINE", recovery_errno=13114, recovery_error=_PURGED
    ),
    "in a group, a worker in recovery": _in_recovery,
    "in a group, a worker waits": _applies_for_the_group,
    **{
        f"{name}={value}": _setting(name, value)
        for name, value in (
            *(("relay_log_recovery", "ON"), ("relay_log_recovery", "OFF")),
            *(("sync_binlog", "0"), ("innodb_flush_log_at_trx_commit", "2")),
            *(("binlog_ignore_db", "d"), ("read_only", "ON"), ("read_only", "OFF")),
            *(("super_read_only", "ON"), ("replica_type_conversions", "ALL_NON_LOSSY")),
            *(("binlog_expire_logs_seconds", "60"), ("log_bin", "ON"), ("gtid_mode", "ON")),
            *(("log_replica_updates", "ON"), ("replica_parallel_workers", "0")),
            *(("port", "3306"), ("port", "1"), ("relay_log_info_repository", "FILE")),
            *(("group_replication_gtid_assignment_block_size", "1"), ("server_id_bits", "32")),
            *(("group_replication_gtid_assignment_block_size", "1000000"), ("wsrep_on", "OFF")),
        )
    },
    **{
        f"without the setting {name}": _setting(name, None)
        for name in (
            *("gtid_mode", "log_bin", "log_replica_updates", "relay_log_recovery"),
            *("replica_parallel_workers", "replica_preserve_commit_order"),
        )
    },
    "binary logs, the last of 0 bytes": lambda server, _seen: replace(
        server, binary_logs=(BinaryLog("binlog.000001", 1000), BinaryLog("binlog.000002", 0))
    ),
    "binary logs with a gap": lambda server, _seen: replace(
        server, binary_logs=(BinaryLog("binlog.000001", 1000), BinaryLog("binlog.000004", 1000))
    ),
    "no binary logs": lambda server, _seen: replace(server, binary_logs=()),
    "another port": lambda server, _seen: replace(server, port=3399),
    "executed: without the lowest": lambda server, _seen: replace(
        server, gtid_executed=executed_by(server) - executed_by(server).first(1)
    ),
    "executed: only its own": lambda server, _seen: replace(
        server, gtid_executed=executed_by(server).from_uuid(server.server_uuid or STRANGER)
    ),
    "executed: without its own": lambda server, _seen: replace(
        server, gtid_executed=executed_by(server).without_uuid(server.server_uuid or STRANGER)
    ),
    "executed: what the next has": lambda server, seen: replace(
        server, gtid_executed=executed_by(seen.next_of(server))
    ),
    "executed: a part with a tag too": lambda server, _seen: replace(
        server,
        gtid_executed=executed_by(server)
        | GtidSet.parse(f"{server.server_uuid or STRANGER}:tagged:1-3"),
    ),
    "owned: the first missing": lambda server, seen: replace(
        server, gtid_owned=_missing(server, seen).first(1)
    ),
    "purged: its own": lambda server, _seen: replace(
        server, gtid_purged=executed_by(server).from_uuid(server.server_uuid or STRANGER)
    ),
    "purged: of others": lambda server, _seen: replace(
        server, gtid_purged=executed_by(server).without_uuid(server.server_uuid or STRANGER)
    ),
}


# -- what the binary logs showed ------------------------------------------------------------------


def _evidence(make: Callable[[ServerSnapshot, Seen], Mapping[str, Any]]) -> Change:
    def change(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
        before = server.history_evidence or HistoryEvidence(None, ())
        return replace(server, history_evidence=replace(before, **make(server, seen)))

    return change


def _commits_of_all(
    server: ServerSnapshot, seen: Seen, *, seconds: int, who: str, logged: bool
) -> Mapping[str, Any]:
    """Return a record of each of a few transactions, the later the higher its number."""
    ids = {"itself": server.server_id, "the next": seen.next_of(server).server_id}
    at = server.read_ended - seconds * _SECOND
    executed = executed_by(server)
    lacking = GtidSet.union_of(executed - executed_by(each) for each in seen.servers.values())
    some = lacking.first(5) | highest_of(executed).first(3)
    return {
        "commits": tuple(
            CommitRecord(
                GtidSet.of(gtid),
                ids.get(who) or 4711,
                at + number * _SECOND,
                True,
                at + number * _SECOND if logged else None,
            )
            for number, gtid in enumerate(some.gtids())
        )
    }


def _reaches(server: ServerSnapshot, seen: Seen, *, seconds: int | None) -> Mapping[str, Any]:
    lacking = GtidSet.union_of(
        executed_by(server) - executed_by(each) for each in seen.servers.values()
    )
    closed = None if seconds is None else server.read_ended - seconds * _SECOND
    return {"reaches": (LogReach(lacking, "binlog.000001", closed),)}


def _first_log(
    server: ServerSnapshot, _seen: Seen, *, number: int, seconds: int
) -> Mapping[str, Any]:
    begun_at = server.read_ended - seconds * _SECOND
    purged = server.gtid_purged or GtidSet()
    return {"first_log": LogStart(f"binlog.{number:06}", begun_at, purged)}


def _absent(server: ServerSnapshot, seen: Seen, *, of_all: bool) -> Mapping[str, Any]:
    executed = executed_by(server)
    lacking = [executed - executed_by(each) for each in seen.servers.values()]
    return {"absent": executed if of_all else GtidSet.union_of(lacking)}


OF_MORE_LOGS: Mapping[str, Change] = {
    **{
        f"all commits {seconds} s ago by {who}{'' if logged else ', not when logged'}": _evidence(
            partial(_commits_of_all, seconds=seconds, who=who, logged=logged)
        )
        for seconds in (5, 100, 7200)
        for who in ("itself", "the next", "a stranger")
        for logged in (True, False)
    },
    **{
        f"first log closed {'never' if seconds is None else f'{seconds} s ago'}": _evidence(
            partial(_reaches, seconds=seconds)
        )
        for seconds in (None, 60, 86_000, 8_640_000)
    },
    "what others miss is in no log": _evidence(partial(_absent, of_all=False)),
    "all is in no log": _evidence(partial(_absent, of_all=True)),
    "no changes of gtid_purged known": _evidence(lambda _s, _seen: {"purged_changes": None}),
    "first log unknown": _evidence(lambda _s, _seen: {"first_log": None}),
    **{
        f"log {number} begun {seconds} s ago, after the purged": _evidence(
            partial(_first_log, number=number, seconds=seconds)
        )
        for number in (1, 2)
        for seconds in (1, 3000, 90_000)
    },
}
