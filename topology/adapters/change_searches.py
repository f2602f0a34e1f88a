"""Searches the binary logs of a server for changes of some tables' definitions.

1. The last logs are read, up to a limit in bytes: a whole file at a time, and always at least the
   last one. The server sends everything in them; of rows, only the headers are looked at
   (schema_defining.py).
2. The search ends at a position (the failing transaction), at the end of the logs, or when its time
   is up. What was found by then is returned, with the reason.
3. A transaction is a GTID event, and the statements after it. Rows are not counted here.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from binlog.adapters.schema_defining import DefiningEvents
from binlog.events import Event, GtidLog, Query
from binlog.log_times import moment
from binlog.schema.table_history import Place, TableKey
from binlog.transactions import TransactionKind, statement_text
from gtid import GtidSet
from topology.adapters.traced_reads import TracedReads
from topology.adapters.transaction_summary import shortened_statement
from topology.adapters.unread_logs import FAILED, SearchTimeUp
from topology.readings.snapshot import BinaryLog, LogPosition
from topology.tracing.table_effects import effects_of
from topology.tracing.trace_values import ChangeSearch, TracedTransaction

CHANGES_MAX: Final = 20  # the last ones are kept
_NO_LOGS: Final = "its binary logs were not read"


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far one search goes. 0 bytes: no search."""

    bytes_max: int
    seconds_max: float


def changes_on(
    server: TracedReads,
    tables: tuple[TableKey, ...],
    limits: SearchLimits,
    *,
    until: LogPosition | None = None,
) -> ChangeSearch:
    """Return the changes of the tables in a server's last logs, up to a position of them.

    `until` is where the failing transaction begins: what follows it does not explain the failure.
    """
    has_purged = bool(server.reading.gtid_purged)
    empty = ChangeSearch(server.name, has_purged=has_purged)
    logs = server.reading.binary_logs
    if logs is None or not server.is_read:
        return replace(empty, why=_NO_LOGS)
    if until is not None:
        logs = tuple(each for each in logs if _number(each) <= until.sequence)
    if not logs:
        return replace(empty, why="it has no binary logs" if until is None else "purged")
    if not limits.bytes_max:
        return replace(empty, why="not requested (--search 0)")
    chosen = _last(logs, limits.bytes_max)
    search = replace(empty, first_file=chosen[0].name, is_from_first_log=len(chosen) == len(logs))
    found: list[TracedTransaction] = []
    count, why = 0, ""
    try:
        for each in _changes(server, tables, chosen, limits, until):
            count += 1
            found.append(each)
            del found[:-CHANGES_MAX]
    except FAILED as error:
        why = server.note("the search of its binary logs", error)
    return replace(search, changes=tuple(found), count=count, why=why)


def _last(logs: tuple[BinaryLog, ...], bytes_max: int) -> tuple[BinaryLog, ...]:
    first, total = len(logs) - 1, logs[-1].size_bytes
    while first and total + logs[first - 1].size_bytes <= bytes_max:
        first -= 1
        total += logs[first].size_bytes
    return logs[first:]


def _changes(
    server: TracedReads,
    tables: tuple[TableKey, ...],
    logs: tuple[BinaryLog, ...],
    limits: SearchLimits,
    until: LogPosition | None,
) -> Iterator[TracedTransaction]:
    deadline = time.monotonic() + limits.seconds_max
    events = DefiningEvents().of_server(
        server.way,
        Place(logs[0].name, 0),
        bytes_ahead=sum(each.size_bytes for each in logs),
        timeout_seconds_max=server.seconds_max,
    )
    head: Event | None = None
    for event in events:
        if time.monotonic() > deadline:
            raise SearchTimeUp(seconds_max=limits.seconds_max)
        if until is not None and _is_at(event, until):
            return
        if isinstance(event.body, GtidLog):
            head = event
        elif isinstance(event.body, Query) and head is not None:
            found = _change(server.name, head, event, event.body)
            if found.touches(tables):
                yield found


def _change(server: str, head: Event, event: Event, query: Query) -> TracedTransaction:
    assert isinstance(head.body, GtidLog), "the caller keeps only these"
    sql, _ = statement_text(query.sql)
    committed, logged = (
        head.body.original_commit_timestamp,
        head.body.immediate_commit_timestamp,
    )
    return TracedTransaction(
        server=server,
        gtid=GtidSet() if head.body.gtid is None else GtidSet.of(head.body.gtid),
        file=head.file,
        start=head.start,
        end=event.end,
        committed_at=moment(committed or head.header.timestamp_seconds * 1_000_000),
        logged_at=moment(logged) if logged else None,
        server_id=head.header.server_id,
        kind=TransactionKind.DDL.value,
        tables=(),
        statements=(shortened_statement(sql),),
        rows=(),
        effects=effects_of(sql, schema=query.schema),
        error_code=query.error_code,
    )


def _is_at(event: Event, until: LogPosition) -> bool:
    place = LogPosition.of(file=event.file, position=event.start)
    return place is not None and place >= until and event.start < event.end


def _number(log: BinaryLog) -> int:
    place = LogPosition.of(file=log.name, position=0)
    return place.sequence if place is not None else 0
