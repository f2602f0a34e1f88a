"""Answers the questions of log_questions.py from binary logs, if the sets leave any.

1. Each question takes a few packets; the servers send only the requested transactions.
2. The evidence lists what cannot be read (a privilege, a purged log, a time limit). The finding is
   then `likely` at most. No exception is raised.
3. Only this module of the package imports the binlog reader. collect.py imports this module only
   when it is needed.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pymysql

from binlog.adapters.compare_server import ComparedServer, ServerCompared
from binlog.errors import BinlogError, DumpRefused
from binlog.log_times import EPOCH
from binlog.transactions import TableChange, Transaction
from gtid import GtidError, GtidSet
from topology.adapters.connection import Connection, connect
from topology.adapters.counted_schemas import schemas_count_of
from topology.adapters.history_reads import (
    first_log_of,
    purged_changes_of,
    reach_of,
)
from topology.questions.log_questions import LogQuestions
from topology.questions.log_searches import Search
from topology.readings.history_evidence import (
    TABLES_MAX,
    ChangedRows,
    CommitRecord,
    ExtraTransaction,
    HistoryEvidence,
    LogReach,
    LogSearch,
    PurgedChange,
)
from topology.readings.snapshot import ClusterSnapshot, LogPosition, ServerSnapshot
from topology.readings.target import ServerTarget
from topology.readings.transaction_parts import class_of

_FAILED: Final = (BinlogError, GtidError, pymysql.MySQLError, OSError)
_FOUND_MAX: Final = 10_000  # transactions before a position: far more than are lost in practice


def with_history_evidence(
    snapshot: ClusterSnapshot,
    targets: Mapping[str, ServerTarget],
    questions: Mapping[str, LogQuestions],
    *,
    seconds_max: float,
) -> ClusterSnapshot:
    """Return the snapshot with the answers from the logs in the last readings."""
    last = tuple(
        replace(
            server,
            history_evidence=_answered(
                server, targets[server.name], questions[server.name], seconds_max=seconds_max
            ),
        )
        if server.name in questions and server.name in targets
        else server
        for server in snapshot.last
    )
    return replace(snapshot, last=last)


def _answered(
    server: ServerSnapshot, target: ServerTarget, questions: LogQuestions, *, seconds_max: float
) -> HistoryEvidence:
    """Query one server, once for each set: a dump ends when it has sent its set."""
    logs = _logs_of(server, target, seconds_max)
    first_log, schemas_count = None, None
    changes: tuple[PurgedChange, ...] | None = ()
    commits: dict[str, CommitRecord] = {}
    searches: list[LogSearch] = []
    reaches: list[LogReach] = []
    searched = GtidSet()
    unread: list[str] = []
    try:
        if questions.first_log and server.binary_logs:
            first_log = first_log_of(logs, server.binary_logs[0].name)
    except _FAILED as error:
        unread.append(f"the first binary log: {error}")
    try:
        if questions.purged_changes and server.version is not None:
            changes = purged_changes_of(server.version, target, seconds_max)
    except _FAILED as error:
        changes = None
        unread.append(f"changes of gtid_purged: {error}")
    try:
        for gtids in questions.commits:
            try:
                for group in logs.groups_of(gtids):
                    record = _record(group.transaction)
                    commits[str(record.gtid)] = record
                searched |= gtids
            except DumpRefused as error:  # its log is gone: that of another question may not be
                unread.append(f"commits: {error}")
    except _FAILED as error:
        unread.append(f"commits: {error}")
    try:
        searches.extend(_found(logs, search) for search in questions.searches)
    except _FAILED as error:
        unread.append(f"places of transactions: {error}")
    try:
        if questions.schemas:
            schemas_count = schemas_count_of(server, target, seconds_max)
    except _FAILED as error:
        unread.append(f"schemas: {error}")
    try:
        for wanted in questions.reaches:
            try:
                reach = reach_of(logs, server, wanted)
            except DumpRefused as error:
                unread.append(f"the times of binary logs: {error}")
            else:
                reaches.extend([reach] if reach is not None else [])
    except _FAILED as error:
        unread.append(f"the times of binary logs: {error}")
    extras, extras_unread = _extras(logs, questions.extras)
    found = GtidSet.union_of(record.gtid for record in commits.values())
    return HistoryEvidence(
        first_log=first_log,
        commits=tuple(commits[gtid] for gtid in sorted(commits)),
        unread="; ".join(dict.fromkeys(unread)),
        searches=tuple(searches),
        purged_changes=changes,
        schemas_count=schemas_count,
        reaches=tuple(reaches),
        absent=(searched & server.logged) - found,
        extras=extras,
        extras_unread=extras_unread,
    )


def _extras(logs: ServerCompared, wanted: GtidSet) -> tuple[tuple[ExtraTransaction, ...], str]:
    """Return what transactions would change, and why some were not read; "" if all were."""
    found: dict[str, ExtraTransaction] = {}
    try:
        for group in logs.groups_of(wanted) if wanted else ():
            record = _record(group.transaction)
            found[str(record.gtid)] = ExtraTransaction(
                gtid=record.gtid,
                content=class_of(group.transaction),
                committed_at=record.committed_at,
                rows=tuple(
                    ChangedRows(f"{each.schema}.{each.table}", _rows_of(each))
                    for each in group.transaction.tables[:TABLES_MAX]
                ),
            )
    except _FAILED as error:
        return tuple(found[gtid] for gtid in sorted(found)), str(error)
    return tuple(found[gtid] for gtid in sorted(found)), ""


def _rows_of(table: TableChange) -> int:
    return table.rows_written + table.rows_updated + table.rows_deleted


def _found(logs: ServerCompared, search: Search) -> LogSearch:
    """Read the wanted transactions in log order, until one ends after the position."""
    before, wanted = [], search.wanted & logs.known() - logs.unheld(search.wanted)
    for group in logs.groups_of(search.wanted):
        transaction = group.transaction
        end = LogPosition.of(file=transaction.file, position=transaction.end)
        if end is None or end > search.place or transaction.gtid is None:
            break
        before.append(transaction.gtid)
        if len(before) == _FOUND_MAX:
            wanted = GtidSet.of(before)  # the rest is not known
            break
    return LogSearch(
        replica=search.replica,
        channel=search.channel,
        place=str(search.place),
        wanted=wanted,
        before=GtidSet.of(before),
    )


def _logs_of(server: ServerSnapshot, target: ServerTarget, seconds_max: float) -> ServerCompared:
    assert server.server_uuid is not None, "only fully read servers have lost, or hold, anything"
    state = ComparedServer(
        name=server.name,
        server_uuid=server.server_uuid,
        executed=server.gtid_executed or GtidSet(),
        purged=server.gtid_purged or GtidSet(),
        log_names=tuple(log.name for log in server.binary_logs or ()),
    )

    def way() -> Connection:
        return connect(target, timeout_seconds_max=seconds_max)

    return ServerCompared(state, way, seconds_max)


def _record(transaction: Transaction) -> CommitRecord:
    assert transaction.gtid is not None, "a wanted one has a GTID"
    exact = transaction.original_commit_timestamp or None
    logged = transaction.immediate_commit_timestamp
    since = (
        timedelta(seconds=transaction.timestamp_seconds)
        if exact is None
        else timedelta(microseconds=exact)
    )
    return CommitRecord(
        gtid=GtidSet.of(transaction.gtid),
        server_id=transaction.server_id,
        committed_at=EPOCH + since,
        is_exact=exact is not None,
        logged_at=EPOCH + timedelta(microseconds=logged) if logged else None,
    )
