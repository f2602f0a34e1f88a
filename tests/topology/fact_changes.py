"""Changes of one fact of one reading of a server, by name: what changed_facts.py tries.

Each is a function of the server and of all that was read in the same reading. A change that has
nothing to change returns the server as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from gtid import GtidSet
from tests.snapshots import with_facts
from topology.readings.group_view import GroupSnapshot
from topology.readings.history_evidence import (
    CommitRecord,
    HistoryEvidence,
    LogSearch,
    LogStart,
    PurgedChange,
)
from topology.readings.snapshot import (
    BinaryLog,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    UnreadFact,
    UnreadReason,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion

STRANGER = UUID(int=0x78)
_HOUR = timedelta(hours=1)
_GROUP = "aaaaaaaa-0000-0000-0000-00000000000a"


@dataclass(frozen=True, slots=True)
class Seen:
    """All servers as one reading has them, and the snapshot before the change."""

    servers: Mapping[str, ServerSnapshot]
    snapshot: ClusterSnapshot

    def next_of(self, server: ServerSnapshot) -> ServerSnapshot:
        """Return the server after this one, in order of name; the last is followed by the first."""
        names = sorted(self.servers)
        return self.servers[names[(names.index(server.name) + 1) % len(names)]]

    @property
    def everything(self) -> GtidSet:
        """Return what any server has executed."""
        return GtidSet.union_of(each.gtid_executed or GtidSet() for each in self.servers.values())


Change = Callable[[ServerSnapshot, Seen], ServerSnapshot]


# -- facts of a server ----------------------------------------------------------------------------


def executed_by(server: ServerSnapshot) -> GtidSet:
    """Return what a server has executed; nothing where it was not read."""
    return server.gtid_executed or GtidSet()


def _without(name: str) -> Change:
    def change(server: ServerSnapshot, _seen: Seen) -> ServerSnapshot:
        absent: dict[str, Any] = {name: None}
        if name == "settings":
            absent["notable_settings"] = None
        why = UnreadFact(name, UnreadReason.TIMEOUT, "")
        return with_facts(server, **absent, unread=(*server.unread, why))

    return change


def _server(make: Callable[[ServerSnapshot, Seen], Mapping[str, Any]]) -> Change:
    return lambda server, seen: replace(server, **make(server, seen))


def _setting(name: str, value: str) -> Change:
    def change(server: ServerSnapshot, _seen: Seen) -> ServerSnapshot:
        kept = dict(server.settings or ())
        return replace(server, settings=tuple(sorted({**kept, name: value}.items())))

    return change


def _version(version: ServerVersion) -> Change:
    return lambda server, _seen: replace(server, version=version)


def highest_of(gtid_set: GtidSet) -> GtidSet:
    """Return the highest GTID of each interval."""
    return GtidSet.from_intervals((tsid, end - 1, end) for tsid, _, end in gtid_set.intervals())


def _following(server: ServerSnapshot) -> GtidSet:
    """Return the next own transaction of a server."""
    uuid = server.server_uuid or STRANGER
    own = executed_by(server).from_uuid(uuid)
    highest = max((end for _, _, end in own.intervals()), default=1)
    return GtidSet.parse(f"{uuid}:{highest}")


def _lowest(gtid_set: GtidSet) -> GtidSet:
    return gtid_set.first(max(1, gtid_set.gtid_count // 2))


def _clock(server: ServerSnapshot, seconds: int) -> Mapping[str, Any]:
    at = server.server_clock or server.read_ended
    return {"server_clock": at + timedelta(seconds=seconds)}


def _group(state: str) -> Change:
    return _server(
        lambda server, seen: {
            "group": GroupSnapshot(
                _GROUP, state, "SECONDARY", seen.everything - executed_by(server)
            )
        }
    )


OF_A_SERVER: Mapping[str, Change] = {
    **{
        f"without {name}": _without(name)
        for name in (
            *("server_uuid", "server_id", "version", "vendor", "uptime_seconds", "server_clock"),
            *("gtid_executed", "gtid_purged", "gtid_owned", "channels", "log_end", "settings"),
            "history_evidence",
        )
    },
    "absent and unexplained uptime": _server(lambda _s, _seen: {"uptime_seconds": None}),
    "uptime 0": _server(lambda _s, _seen: {"uptime_seconds": 0}),
    "uptime a year": _server(lambda _s, _seen: {"uptime_seconds": 31_536_000}),
    "clock a second on": _server(lambda server, _seen: _clock(server, 1)),
    "clock an hour on": _server(lambda server, _seen: _clock(server, 3600)),
    "clock an hour back": _server(lambda server, _seen: _clock(server, -3600)),
    "server_id of the next": _server(lambda s, seen: {"server_id": seen.next_of(s).server_id}),
    "server_id 0": _server(lambda _s, _seen: {"server_id": 0}),
    "server_id 77": _server(lambda _s, _seen: {"server_id": 77}),
    "server_uuid of the next": _server(
        lambda s, seen: {"server_uuid": seen.next_of(s).server_uuid}
    ),
    "server_uuid of a stranger": _server(lambda _s, _seen: {"server_uuid": STRANGER}),
    "host of the next": _server(lambda s, seen: {"host": seen.next_of(s).host}),
    **{
        f"version {version}": _version(version)
        for version in map(ServerVersion.parse, ("5.6.24", "5.7.44", "8.0.20", "8.4.0", "9.7.4"))
    },
    "MariaDB": _server(lambda _s, _seen: {"vendor": Vendor.MARIADB}),
    "Galera": _server(lambda _s, _seen: {"vendor": Vendor.GALERA}),
    "owned: the next own": _server(lambda s, _seen: {"gtid_owned": _following(s)}),
    "owned: all missing": _server(lambda s, seen: {"gtid_owned": seen.everything - executed_by(s)}),
    "owned: nothing": _server(lambda _s, _seen: {"gtid_owned": GtidSet()}),
    "purged: all": _server(lambda s, _seen: {"gtid_purged": executed_by(s)}),
    "purged: nothing": _server(lambda _s, _seen: {"gtid_purged": GtidSet()}),
    "purged: the lower half": _server(lambda s, _seen: {"gtid_purged": _lowest(executed_by(s))}),
    "purged: the highest": _server(lambda s, _seen: {"gtid_purged": highest_of(executed_by(s))}),
    "purged: too much": _server(lambda s, _seen: {"gtid_purged": executed_by(s) | _following(s)}),
    "executed: nothing": _server(
        lambda _s, _seen: {"gtid_executed": GtidSet(), "gtid_purged": GtidSet()}
    ),
    "executed: without the highest": _server(
        lambda s, _seen: {"gtid_executed": executed_by(s) - highest_of(executed_by(s))}
    ),
    "executed: the next own too": _server(
        lambda s, _seen: {"gtid_executed": executed_by(s) | _following(s)}
    ),
    "executed: a stranger's too": _server(
        lambda s, _seen: {"gtid_executed": executed_by(s) | GtidSet.parse(f"{STRANGER}:1-2")}
    ),
    "executed: everything": _server(lambda _s, seen: {"gtid_executed": seen.everything}),
    "executed: an isolated one too": _server(
        lambda s, _seen: {
            "gtid_executed": executed_by(s) | GtidSet.parse(f"{s.server_uuid or STRANGER}:900")
        }
    ),
    "executed: an isolated one of the next too": _server(
        lambda s, seen: {
            "gtid_executed": executed_by(s)
            | GtidSet.parse(f"{seen.next_of(s).server_uuid or STRANGER}:900")
        }
    ),
    "log ends early": _server(
        lambda _s, _seen: {"log_end": LogPosition.of(file="binlog.000001", position=4)}
    ),
    "log ends late": _server(
        lambda _s, _seen: {"log_end": LogPosition.of(file="binlog.000009", position=4)}
    ),
    "binary logs": _server(lambda _s, _seen: {"binary_logs": (BinaryLog("binlog.000001", 1000),)}),
    "no channels": _server(lambda _s, _seen: {"channels": ()}),
    "in a group": _group("ONLINE"),
    "in a group, in error": _group("ERROR"),
    **{
        f"{name}={value}": _setting(name, value)
        for name, value in (
            *(("gtid_mode", "ON_PERMISSIVE"), ("gtid_mode", "OFF"), ("log_bin", "OFF")),
            ("binary_log", "CLOSED"),
            *(("log_replica_updates", "OFF"), ("replica_skip_errors", "1062")),
            *(("replica_exec_mode", "IDEMPOTENT"), ("replica_type_conversions", "ALL_LOSSY")),
            *(("replica_preserve_commit_order", "ON"), ("replica_preserve_commit_order", "OFF")),
            *(("replica_parallel_workers", "1"), ("replica_parallel_workers", "4")),
            *(("wsrep_on", "ON"), ("binlog_do_db", "d"), ("sql_replica_skip_counter", "1")),
            *(("group_replication_group_name", _GROUP), ("group_replication_group_name", "g")),
        )
    },
}


# -- what the binary logs showed ------------------------------------------------------------------


def _evidence(
    make: Callable[[HistoryEvidence, ServerSnapshot, Seen], Mapping[str, Any]],
) -> Change:
    def change(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
        before = server.history_evidence or HistoryEvidence(None, ())
        made = replace(before, **make(before, server, seen))
        return replace(server, history_evidence=made)

    return change


def _first_log(
    server: ServerSnapshot, *, seconds: int, previous: GtidSet, number: int = 1
) -> Mapping[str, Any]:
    at = server.read_ended + timedelta(seconds=seconds)
    return {"first_log": LogStart(f"binlog.{number:06}", at, previous)}


def _first_log_of(
    _e: HistoryEvidence, server: ServerSnapshot, _seen: Seen, *, seconds: int, some: bool
) -> Mapping[str, Any]:
    previous = executed_by(server) if some else GtidSet()
    return _first_log(server, seconds=seconds, previous=previous)


def _commits(
    _e: HistoryEvidence, server: ServerSnapshot, seen: Seen, *, who: str, seconds: int, exact: bool
) -> Mapping[str, Any]:
    writers = {"itself": server.server_id, "the next": seen.next_of(server).server_id}
    server_id = writers.get(who, 4711) or 0
    at = server.read_ended + timedelta(seconds=seconds)
    ends = highest_of(executed_by(server)) | executed_by(server).first(1)
    return {
        "commits": tuple(
            CommitRecord(GtidSet.of(gtid), server_id, at, exact, at if exact else None)
            for gtid in ends.gtids()
        )
    }


def _searched(server: ServerSnapshot, seen: Seen, *, before: bool) -> Mapping[str, Any]:
    """Return a search for all that each replica of the server does not have."""
    searches = [
        LogSearch(
            replica.name,
            channel.name,
            str(channel.received_to),
            wanted := executed_by(server) - executed_by(replica),
            wanted if before else GtidSet(),
        )
        for replica in seen.servers.values()
        for channel in replica.channels or ()
    ]
    return {"searches": tuple(searches)}


OF_LOGS: Mapping[str, Change] = {
    **{
        f"log 1 begun {seconds} s ago, previous {'some' if some else 'empty'}": _evidence(
            partial(_first_log_of, seconds=-seconds, some=some)
        )
        for seconds in (0, 1, 30, 90, 7200)
        for some in (False, True)
    },
    "log 7 begun now": _evidence(
        lambda _e, server, _seen: _first_log(server, seconds=0, previous=GtidSet(), number=7)
    ),
    **{
        f"commits {ago} s ago{'' if exact else ', to the second'} by {who}": _evidence(
            partial(_commits, who=who, seconds=-ago, exact=exact)
        )
        for ago in (1, 61, 7200)
        for exact in (True, False)
        for who in ("itself", "the next", "a stranger")
    },
    "all missing lie before the places": _evidence(
        lambda _e, s, seen: _searched(s, seen, before=True)
    ),
    "all missing lie behind the places": _evidence(
        lambda _e, s, seen: _searched(s, seen, before=False)
    ),
    "gtid_purged set an hour ago": _evidence(
        lambda _e, s, _seen: {
            "purged_changes": (PurgedChange(s.read_ended - _HOUR, executed_by(s)),)
        }
    ),
    "gtid_purged set now": _evidence(
        lambda _e, s, _seen: {"purged_changes": (PurgedChange(s.read_ended, executed_by(s)),)}
    ),
    "logs unread": _evidence(lambda _e, _s, _seen: {"unread": "denied"}),
    "no schemas": _evidence(lambda _e, _s, _seen: {"schemas_count": 0}),
    "schemas": _evidence(lambda _e, _s, _seen: {"schemas_count": 2}),
}
