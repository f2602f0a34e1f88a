"""Reads from binary logs what tells a crash from a reset, and a purge from a declaration.

1. Only where sets show a loss, or a purged GTID above a logged one (topology/unlogged.py).
2. Of the server that lost transactions: the start of its first log, and the oldest own transaction
   that both logs hold. Of the server that holds them: that one too, and the first and last of each
   lost interval. Of a server that may not have logged what it purged: the start of its first log.
   Some packets each; the servers send only what is asked for.
3. What cannot be read (a privilege, a purged log, a time limit) is named in the evidence, and the
   finding is then `likely` at most. Nothing is raised.
4. The binlog reader is imported here, and here alone in this package: collect.py imports this file
   only when it is needed.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pymysql

from binlog.adapters.compare_server import ServerCompared, ServerState
from binlog.adapters.stream import FromPlace
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Bounds
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError
from binlog.events import FormatDescription, PreviousGtids
from binlog.transactions import Transaction
from gtid import GtidSet
from topology.adapters.connection import Connection, connect
from topology.facts import gather_facts
from topology.history_evidence import CommitRecord, HistoryEvidence, LogStart
from topology.lost import neighbours_of, samples_of
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot, ServerSnapshot
from topology.target import ServerTarget
from topology.unlogged import candidates

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HEAD_BYTES_MAX: Final = 64 * 1024**2  # a format description, and previous GTIDs of any size


def with_history_evidence(
    snapshot: ClusterSnapshot,
    targets: Mapping[str, ServerTarget],
    *,
    policy: Policy,
    seconds_max: float,
) -> ClusterSnapshot:
    """Return the snapshot with what the logs show of each loss in it, in the last readings."""
    facts = gather_facts(snapshot, policy)
    wanted: dict[str, list[GtidSet]] = {}
    first_logs = {server.name for server in snapshot.last if candidates(server)}
    for lost in facts.lost:
        if lost.lost:
            first_logs.add(lost.origin)
            neighbours = neighbours_of(facts, lost)
            wanted.setdefault(lost.origin, []).append(neighbours)
            wanted.setdefault(lost.holder, []).extend((neighbours, samples_of(lost)))
    last = tuple(
        replace(
            server,
            history_evidence=_read(
                server,
                targets[server.name],
                wanted.get(server.name, ()),
                has_first_log=server.name in first_logs,
                seconds_max=seconds_max,
            ),
        )
        if server.name in wanted.keys() | first_logs and server.name in targets
        else server
        for server in snapshot.last
    )
    return ClusterSnapshot(snapshot.cluster, snapshot.first, last)


def _read(
    server: ServerSnapshot,
    target: ServerTarget,
    wanted: Sequence[GtidSet],
    *,
    has_first_log: bool,
    seconds_max: float,
) -> HistoryEvidence:
    """Read what is wanted, one question for each set: a dump ends once it has given its set."""
    logs = _logs_of(server, target, seconds_max)
    first_log, commits, unread = None, {}, []
    try:
        if has_first_log and server.binary_logs:
            first_log = _first_log(logs, server.binary_logs[0].name)
    except (BinlogError, pymysql.MySQLError, OSError) as error:
        unread.append(f"the first binary log: {error}")
    try:
        for gtids in wanted:
            for group in logs.groups_of(gtids):
                record = _record(group.transaction)
                commits[str(record.gtid)] = record
    except (BinlogError, pymysql.MySQLError, OSError) as error:
        unread.append(f"commits: {error}")
    return HistoryEvidence(
        first_log=first_log,
        commits=tuple(commits[gtid] for gtid in sorted(commits)),
        unread="; ".join(unread),
    )


def _logs_of(server: ServerSnapshot, target: ServerTarget, seconds_max: float) -> ServerCompared:
    assert server.server_uuid is not None, "only judgeable servers have lost, or hold, anything"
    state = ServerState(
        name=server.name,
        server_uuid=server.server_uuid,
        executed=server.gtid_executed or GtidSet(),
        purged=server.gtid_purged or GtidSet(),
        log_names=tuple(log.name for log in server.binary_logs or ()),
    )

    def way() -> Connection:
        return connect(target, timeout_seconds_max=seconds_max)

    return ServerCompared(state, way, seconds_max)


def _first_log(logs: ServerCompared, file: str) -> LogStart | None:
    bounds = Bounds.start(timeout_seconds_max=logs.timeout_seconds_max, bytes_max=_HEAD_BYTES_MAX)
    begun_at = None
    with closing(dump_events(logs.connect, FromPlace(file, FIRST_POSITION), bounds)) as events:
        for event in events:
            if isinstance(event.body, FormatDescription):
                begun_at = _EPOCH + timedelta(seconds=event.header.timestamp_seconds)
            elif isinstance(event.body, PreviousGtids) and begun_at is not None:
                return LogStart(file, begun_at, event.body.gtids)
            elif not event.header.is_artificial:
                break
    return None


def _record(transaction: Transaction) -> CommitRecord:
    assert transaction.gtid is not None, "a wanted one has a GTID"
    exact = transaction.original_commit_timestamp or None
    since = (
        timedelta(seconds=transaction.timestamp_seconds)
        if exact is None
        else timedelta(microseconds=exact)
    )
    return CommitRecord(
        gtid=GtidSet.of(transaction.gtid),
        server_id=transaction.server_id,
        committed_at=_EPOCH + since,
        is_exact=exact is not None,
    )
