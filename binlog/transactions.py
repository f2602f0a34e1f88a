"""Folds events into transactions.

1. A transaction is a group of events: from its GTID event (or, on a server without GTIDs, from its
   BEGIN or its only statement) to the event that ends it.
2. The rules are those of Transaction_boundary_parser (trx_boundary_parser.cpp, with the events of
   mysql-server), written as a table. Only the first words of a statement are parsed.
3. This module reads neither bytes nor files; it receives events in order and returns transactions.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from binlog.cursor import MalformedBody
from binlog.decode import Decompress, events_in_payload
from binlog.errors import CorruptBinlog
from binlog.event_types import OPENING_EVENTS, EventType, RowKind
from binlog.events import (
    Event,
    FormatDescription,
    GtidLog,
    Heartbeat,
    Incident,
    PreviousGtids,
    Query,
    Rotate,
    Rows,
    Stop,
    TableMap,
    TransactionPayload,
    XaPrepare,
    Xid,
)
from binlog.rows.images import count_rows
from gtid import Gtid

# How many characters of a statement are kept: enough for any DDL. The event has the whole text.
STATEMENT_CHARACTERS_MAX = 16_384
# How many statements and tables of a transaction are kept. If there are more, `is_cut` is set.
STATEMENTS_MAX = 1_000


class TransactionKind(Enum):
    """The kind of a transaction, determined by the events of its group."""

    EMPTY = "empty"  # only BEGIN and COMMIT: injected, or filtered by a replica
    DDL = "ddl"  # one statement outside BEGIN: DDL, account management, FLUSH, ANALYZE
    DML = "dml"  # rows or statements between BEGIN and its end
    XA = "xa"  # XA START … XA PREPARE, or XA COMMIT, or XA ROLLBACK
    INCIDENT = "incident"  # the source reports that events are missing in its log here
    OTHER = "other"  # a view change, or a payload that could not be decompressed


@dataclass(frozen=True, slots=True)
class Statement:
    """One logged statement. Bytes that are not UTF-8 are shown in hexadecimal, after `x`."""

    schema: str
    sql: str
    error_code: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True, order=True)
class TableChange:
    """The number of rows of one table that a transaction changed."""

    schema: str
    table: str
    rows_written: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction in one log. Positions count bytes; `end` is exclusive."""

    gtid: Gtid | None
    file: str
    start: int
    end: int
    # The server that committed the transaction first: replicas log the origin's server_id.
    server_id: int
    kind: TransactionKind
    # The time of the first event, in seconds since 1970 (UTC), by the origin's clock.
    timestamp_seconds: int
    # Microseconds since 1970 (UTC); None before 8.0.1. Both are equal on the origin.
    original_commit_timestamp: int | None
    immediate_commit_timestamp: int | None
    logical_last_committed: int | None
    logical_sequence_number: int | None
    original_server_version: int | None
    statements: tuple[Statement, ...]
    tables: tuple[TableChange, ...]
    # The first error of a statement on the source; 0 if there was none.
    error_code: int
    # Whether the group's end was read. False at the end of a truncated log.
    is_complete: bool = True
    # Whether there are more statements or tables than STATEMENTS_MAX; the rest is omitted.
    is_cut: bool = False

    def __post_init__(self) -> None:
        assert self.start < self.end


# The effect of a statement's first words on the group. The server itself writes BEGIN, COMMIT and
# ROLLBACK and, from 5.7.7 on, XA statements.
class _Word(Enum):
    BEGIN = "begin"
    END = "end"
    XA_BEGIN = "xa begin"
    XA_INNER = "xa inner"
    XA_END = "xa end"
    PLAIN = "plain"


_WORDS: tuple[tuple[re.Pattern[bytes], _Word], ...] = (
    (re.compile(rb"BEGIN\s*\Z", re.IGNORECASE), _Word.BEGIN),
    (re.compile(rb"COMMIT\s*\Z", re.IGNORECASE), _Word.END),
    # ROLLBACK ends a group, ROLLBACK TO a savepoint does not.
    (re.compile(rb"ROLLBACK\s*\Z", re.IGNORECASE), _Word.END),
    (re.compile(rb"XA\s+(START|BEGIN)\b", re.IGNORECASE), _Word.XA_BEGIN),
    (re.compile(rb"XA\s+END\b", re.IGNORECASE), _Word.XA_INNER),
    (re.compile(rb"XA\s+(COMMIT|ROLLBACK)\b", re.IGNORECASE), _Word.XA_END),
)
_ROW_COUNTER = {RowKind.WRITE: 0, RowKind.UPDATE: 1, RowKind.DELETE: 2}
# Events of the file or of the connection. They do not belong to a group, even inside one.
BETWEEN_GROUPS = (FormatDescription, PreviousGtids, Rotate, Stop, Heartbeat)
# Only a VIEW_CHANGE forms a group that is neither empty nor a change of data.
_GROUP_REPLICATION_EVENTS = frozenset({EventType.VIEW_CHANGE})


def statement_text(sql: bytes | memoryview) -> tuple[str, bool]:
    """Return the text that is kept of a statement, and whether it is truncated."""
    # A character has at most four bytes, so this many bytes are enough.
    bytes_max = 4 * STATEMENT_CHARACTERS_MAX
    text = str(sql[:bytes_max], "utf-8", errors="backslashreplace")
    is_cut = len(text) > STATEMENT_CHARACTERS_MAX or len(sql) > bytes_max
    return text[:STATEMENT_CHARACTERS_MAX], is_cut


def _word(sql: bytes) -> _Word:
    return next((word for pattern, word in _WORDS if pattern.match(sql)), _Word.PLAIN)


@dataclass(slots=True)
class _Group:
    """A transaction under construction."""

    first: Event
    head: GtidLog
    end: int = 0
    kind: TransactionKind = TransactionKind.EMPTY
    is_open: bool = False  # BEGIN or XA START was read
    is_cut: bool = False
    statements: list[Statement] = field(default_factory=list)
    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    maps: dict[int, TableMap] = field(default_factory=dict)
    error_code: int = 0

    def note(self, kind: TransactionKind) -> None:
        """Set the kind of the group, unless it already has one other than EMPTY."""
        if self.kind is TransactionKind.EMPTY:
            self.kind = kind

    def add_statement(self, query: Query) -> None:
        """Add a statement, up to the limits."""
        self.error_code = self.error_code or query.error_code
        if len(self.statements) >= STATEMENTS_MAX:
            self.is_cut = True
            return
        sql, is_cut = statement_text(query.sql)
        self.statements.append(Statement(query.schema, sql, query.error_code, is_cut))

    def add_rows(self, event: Event, rows: Rows) -> None:
        """Count the rows of one event under their table."""
        table = self.maps.get(rows.table_id)
        if table is None:
            if not rows.images:
                return  # an event without rows only ends the statement (sql/log_event.cc)
            raise CorruptBinlog(
                file=event.file,
                position=event.start,
                what=f"rows of table id {rows.table_id} without a TABLE_MAP event before them",
            )
        try:
            count = count_rows(rows, table)
        except MalformedBody as error:
            raise CorruptBinlog(
                file=event.file,
                position=event.start,
                what=f"rows of {table.schema}.{table.table}: {error.what}",
            ) from error
        key = (table.schema, table.table)
        if key not in self.counts and len(self.counts) >= STATEMENTS_MAX:
            self.is_cut = True
            return
        self.counts.setdefault(key, [0, 0, 0])[_ROW_COUNTER[rows.kind]] += count

    def close(self, *, is_complete: bool) -> Transaction:
        """Return the transaction."""
        return Transaction(
            gtid=self.head.gtid,
            file=self.first.file,
            start=self.first.start,
            end=self.end,
            server_id=self.first.header.server_id,
            kind=self.kind,
            timestamp_seconds=self.first.header.timestamp_seconds,
            original_commit_timestamp=self.head.original_commit_timestamp,
            immediate_commit_timestamp=self.head.immediate_commit_timestamp,
            logical_last_committed=self.head.logical_last_committed,
            logical_sequence_number=self.head.logical_sequence_number,
            original_server_version=self.head.original_server_version,
            statements=tuple(self.statements),
            tables=tuple(TableChange(*key, *n) for key, n in sorted(self.counts.items())),
            error_code=self.error_code,
            is_complete=is_complete,
            is_cut=self.is_cut,
        )


class TransactionFolder:
    """Receives events in order; `fold` returns each transaction at its end.

    `description` is valid at the first event, unless that is a format description itself.
    `decompress` decompresses payloads; without it, their transactions are OTHER, without statements
    and tables. Without `counts_rows`, no transaction has tables: counting takes longer than all the
    rest, and a caller that reads the rows does not need it.
    """

    def __init__(
        self,
        *,
        description: FormatDescription | None = None,
        decompress: Decompress | None = None,
        counts_rows: bool = True,
    ) -> None:
        self._decompress = decompress
        self._description = description
        self._counts_rows = counts_rows
        self._group: _Group | None = None

    def fold(self, event: Event) -> tuple[Transaction, ...]:
        """Process one event; return the transaction that it ends or cuts off, if any."""
        if isinstance(event.body, FormatDescription):
            self._description = event.body
        if event.header.is_artificial or isinstance(event.body, BETWEEN_GROUPS):
            return ()
        if isinstance(event.body, GtidLog):
            cut_off = self.finish()
            self._group = _Group(event, event.body, end=event.end)
            return cut_off
        if self._group is None:
            if not _opens_group(event):
                return ()
            self._group = _Group(event, GtidLog(None))
        # In relay logs, a group may begin in one file and end in the next.
        if event.file == self._group.first.file:
            self._group.end = max(self._group.end, event.end)
        if not self._add(self._group, event):
            return ()
        return self._close(is_complete=True)

    def finish(self) -> tuple[Transaction, ...]:
        """Return an open group at the end of the log, with is_complete False."""
        return self._close(is_complete=False)

    def _close(self, *, is_complete: bool) -> tuple[Transaction, ...]:
        if self._group is None:
            return ()
        closed = self._group.close(is_complete=is_complete)
        self._group = None
        return (closed,)

    def _add(self, group: _Group, event: Event) -> bool:
        """Add one event to the group; return whether it ends the group."""
        match event.body:
            case Query() as query:
                return _add_query(group, query)
            case TableMap() as table:
                group.maps[table.table_id] = table
            case Rows() as rows:
                group.note(TransactionKind.DML)
                if self._counts_rows:
                    group.add_rows(event, rows)
            case Xid():
                return True
            case XaPrepare():
                group.note(TransactionKind.XA)
                return True
            case Incident():
                group.kind = TransactionKind.INCIDENT
                return True
            case TransactionPayload():
                self._add_payload(group, event)
                return True
            case _:
                if event.header.type_code in _GROUP_REPLICATION_EVENTS:
                    group.note(TransactionKind.OTHER)
        return False

    def _add_payload(self, group: _Group, event: Event) -> None:
        inner = events_in_payload(event, description=self._description, decompress=self._decompress)
        if inner is None:
            group.note(TransactionKind.OTHER)
            return
        for each in inner:
            if isinstance(each.body, TransactionPayload):
                raise CorruptBinlog(
                    file=event.file, position=event.start, what="a payload inside a payload"
                )
            self._add(group, each)


def _opens_group(event: Event) -> bool:
    """Return whether an event begins a group without GTIDs."""
    return (
        isinstance(event.body, Query | TableMap | Incident | TransactionPayload)
        or event.header.type_code in OPENING_EVENTS
    )


def _add_query(group: _Group, query: Query) -> bool:
    """Add one statement to the group; return whether it ends the group."""
    word = _word(query.sql)
    group.error_code = group.error_code or query.error_code
    match word:
        case _Word.BEGIN:
            group.is_open = True
            return False
        case _Word.END:
            return True
        case _Word.XA_BEGIN:
            group.is_open = True
            group.note(TransactionKind.XA)
        case _Word.XA_INNER | _Word.XA_END:
            group.note(TransactionKind.XA)
        case _:
            group.note(TransactionKind.DML if group.is_open else TransactionKind.DDL)
    group.add_statement(query)
    return word is _Word.XA_END or not group.is_open


def fold_transactions(
    events: Iterable[Event],
    *,
    description: FormatDescription | None = None,
    decompress: Decompress | None = None,
) -> Iterator[Transaction]:
    """Yield the transactions of a sequence of events, in order; the last may be incomplete."""
    folder = TransactionFolder(description=description, decompress=decompress)
    for event in events:
        yield from folder.fold(event)
    yield from folder.finish()
