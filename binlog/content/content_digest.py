"""Defines the content of a transaction, and a 64-bit digest of it.

The same transaction has the same digest in the binary logs of its source and of its replicas.

1. Part of the content are, for rows: schema, table, kind of change, column types with their
   metadata, bitmaps of logged columns, and row images. For statements: text, schema, error code,
   everything else that affects the result, and the insert ids, random seeds, user variables and
   file contents that were logged for them.
2. Not part of it, because each replica writes its own: positions, lengths, checksums, table ids,
   thread ids, times of rows and of commits, XIDs, XA PREPARE events (the statements contain the
   same information), ROWS_QUERY, compression, optional table metadata, BEGIN and COMMIT, how rows
   are divided into events, and the session of statements that only frame others (XA, savepoints).
3. The order of the rows within a run (consecutive rows of one table, kind and form) does not count.
   A replica that finds rows of a table without a key by hashing changes them in the order of its
   own table (Rows_log_event::do_hash_scan_and_update, sql/log_event.cc).
4. Different digests do not prove different work: two servers may have logged the same work in
   different forms. binlog/content/compare.py then compares the contents in detail.
5. This is plain Python; kernels/digest.py is the compiled version, and tests compare the two.

Example: a source logs one event with the rows (1, 'a') and (2, 'b') written to d.t. A replica with
smaller events logs two, with other table ids, positions, checksums and times. Both digests are that
of one run: d.t, WRITE, the types of both columns, both columns logged, and the sum of what the two
rows give. A sum has no order (rule 3), and a run has no borders of events (rule 2).

Simpler ways fail. A checksum of the events has everything that each server writes by itself. A
digest of the rows without the types is equal for a CHAR and a VARCHAR with the same bytes. One
over the text of statements alone is equal for NOW() at two times.

What affects the result of a statement
--------------------------------------
The same text has different results at different times (NOW(), DEFAULT CURRENT_TIMESTAMP) or in
different sessions (foreign_key_checks, time_zone). A source logs these settings. A replica runs the
statement with them, and logs them unchanged. This was verified on 5.6.24 and 9.7.4, with replicas
of other time zones, character sets, sql_mode and auto_increment settings. There are three kinds:

    always logged, and in the digest     the event's timestamp; sql_mode; the three character sets;
                                         sql_auto_is_null, foreign_key_checks and unique_checks
    logged unless they are the default,  auto_increment_increment and _offset; lc_time_names
      and in the digest
    logged where they were used, and     time zone; microseconds; collation of the schema;
      not in the digest (`used`)         explicit_defaults_for_timestamp; the default of utf8mb4

A healthy replica may log fewer settings of the last kind. In a routine, each statement logs what
any statement before it used, but the replica runs the statements one by one. An older source logs
none of them. So they are compared only if both servers logged them, and only when two versions are
compared in detail, that is, whenever their commit times differ.

Not compared: autocommit, the tables of a multi-table UPDATE, the schemas for a parallel applier,
the invoker (it becomes the DEFINER), XIDs, and sql_require_primary_key and
default_table_encryption, which a channel or a replica may set differently.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from binlog.cursor import MalformedBody
from binlog.event_types import EventType, RowKind
from binlog.events import (
    Event,
    Incident,
    Opaque,
    Query,
    Rows,
    TableMap,
    TransactionPayload,
)
from binlog.header import FLAG_IGNORABLE
from binlog.rows.images import row_spans
from gtid.hashing import SEED, add, finish, mix, mix_bytes

# The parts of one transaction that are kept for a detailed comparison; the digest covers all.
PARTS_MAX: Final = 1_000

NOTHING: Final = (1 << 64) - 1  # stands for a status variable that was not logged

# Status variables of a statement (Query_event_status_vars, statement_events.h), by their codes.
FLAGS2, SQL_MODE, AUTO_INCREMENT, CHARSETS, LC_TIME_NAMES = 0, 1, 3, 4, 7
# Microseconds, collation_database, explicit_defaults_for_timestamp, the collation of utf8mb4.
USED: Final = (13, 8, 16, 18)
# sql_auto_is_null, foreign_key_checks = 0, unique_checks = 0 (OPTION_…, sql/query_options.h).
DECISIVE_FLAGS: Final = 1 << 14 | 1 << 26 | 1 << 27
AUTO_INCREMENT_DEFAULT: Final = 1 | 1 << 16  # is not logged

# The first word of each part in the digest. For a run of rows it is ROWS plus the kind.
STATEMENT, CONTEXT, INCIDENT, FILE, ROWS = 1, 2, 3, 4, 16
KINDS: Final = {RowKind.WRITE: 0, RowKind.UPDATE: 1, RowKind.DELETE: 2}

# The server itself writes these exact texts. A group that ends with COMMIT on one server may end
# with an XID on another, if the table has another engine there.
GROUP_WORDS: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK"})
# Statements that only frame others, in the server's own wording: XA START, END, COMMIT, ROLLBACK
# (5.7.7 and later), and savepoints (binlog_savepoint_set, sql/binlog.cc). The settings and the
# database of the session do not affect their result.
FRAME_WORDS: Final = (b"XA ", b"SAVEPOINT ", b"ROLLBACK TO ")
_CONTEXT = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_FILE_BLOCKS = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK})
_FILE_ID_BYTES = 4
# LOAD DATA contains a different temporary file name on each server (EXECUTE_LOAD_QUERY).
_FILE_NAME = re.compile(rb"(INFILE\s+)'(?:[^'\\]|\\.|'')*'", re.IGNORECASE | re.DOTALL)
_OF_EACH_MEMBER = frozenset({EventType.VIEW_CHANGE})
_WITHOUT_CONTENT = frozenset(
    {
        EventType.XID,
        EventType.XA_PREPARE,
        EventType.ROWS_QUERY,
        EventType.IGNORABLE,
        # The certification data that Group Replication sends to the members.
        EventType.TRANSACTION_CONTEXT,
    }
)
_HEADS = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED})


@dataclass(frozen=True, slots=True)
class StatementSession:
    """The settings that affect the result of a statement: see the module's docstring.

    `numbers`: sql_mode, character sets, flags and auto_increment_*, lc_time_names. `used`: time
    zone, microseconds, collation of the schema, explicit_defaults_for_timestamp, the collation of
    utf8mb4; None for a setting that was not logged.
    """

    numbers: tuple[int, int, int, int]
    used: tuple[str | int | None, ...] = (None,) * (1 + len(USED))

    @classmethod
    def of(cls, query: Query) -> "StatementSession":
        """Read the settings from the statement's event."""
        logged = dict(query.status)
        flags = logged.get(FLAGS2, 0) & DECISIVE_FLAGS
        numbers = (
            logged.get(SQL_MODE, NOTHING),
            logged.get(CHARSETS, NOTHING),
            logged.get(AUTO_INCREMENT, AUTO_INCREMENT_DEFAULT) | flags << 32,
            logged.get(LC_TIME_NAMES, 0),
        )
        return cls(numbers, (query.time_zone, *(logged.get(code) for code in USED)))


@dataclass(frozen=True, slots=True)
class StatementPart:
    """One statement and the INTVAR, RAND and USER_VAR bodies logged for it, in order."""

    schema: str
    sql: bytes
    error_code: int
    began_at_seconds: int  # since 1970: the clock that its functions see
    session: StatementSession
    context: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class RowsPart:
    """A run of consecutive rows of one kind, form and table.

    `row_count` omits rows without any logged column, because they take no bytes.
    """

    schema: str
    table: str
    kind: RowKind
    # A hash of types, metadata, bitmaps and partiality, without names: rows are comparable only if
    # the shapes are equal. Names are compared separately, as servers may differ in letter case.
    shape: int
    row_count: int
    rows: int  # the sum of the rows' hashes
    # When the statement that changed the first row began, since 1970. It is not content, but a
    # replica logs it unchanged. 5.6 has no other time of a commit that all servers share: its GTID
    # and XID events have the times of each server.
    began_at_seconds: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IncidentPart:
    """The source's own report that events are missing in its log here."""

    number: int
    message: str


_OF_FRAMES: Final = StatementSession((NOTHING, NOTHING, AUTO_INCREMENT_DEFAULT, 0))

Part = StatementPart | RowsPart | IncidentPart


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one transaction. `parts` are the first PARTS_MAX; `digest` covers all."""

    # None if the content cannot be read; then `unreadable` is the reason.
    digest: int | None
    parts: tuple[Part, ...] = ()
    is_cut: bool = False
    unreadable: str = ""
    # A view change of group replication: every member writes its own under the same GTID.
    is_of_each_member: bool = False

    def __post_init__(self) -> None:
        assert (self.digest is None) == bool(self.unreadable)

    @property
    def is_empty(self) -> bool:
        """Return whether the transaction did nothing: it was injected, or filtered."""
        return self.digest is not None and not self.parts


def content_of(events: Iterable[Event]) -> Content:
    """Read the content of one whole transaction from its events; its payload is decompressed."""
    folder = ContentFolder()
    for event in events:
        if event.header.type_code in _OF_EACH_MEMBER:
            return Content(None, unreadable="a view change", is_of_each_member=True)
        if (reason := folder.add(event)) is not None:
            return Content(None, unreadable=reason)
    return folder.close()


def digest_of(events: Iterable[Event]) -> int | None:
    """Return the digest of one whole transaction; None if its content cannot be read."""
    return content_of(events).digest


@dataclass(slots=True)
class _Run:
    table: TableMap
    kind: RowKind
    form: int
    shape: int
    began_at_seconds: int
    row_count: int = 0
    rows: int = 0


class ContentFolder:
    """Builds a content from a transaction's events in order; its payload is decompressed."""

    def __init__(self) -> None:
        self._state = SEED
        self._parts: list[Part] = []
        self._part_count = 0
        self._maps: dict[int, TableMap] = {}
        self._run: _Run | None = None
        self._context: list[bytes] = []
        self._file = bytearray()

    def add(self, event: Event) -> str | None:
        """Add one event; return the reason if its content cannot be read."""
        body, kind = event.body, event.header.type_code
        match body:
            case TableMap():
                self._maps[body.table_id] = body
            case Rows():
                return self._add_rows(body, event.header.timestamp_seconds)
            case Query():
                self._add_query(body, event.header.timestamp_seconds)
            case Incident():
                self._end_run()
                state = mix(mix(self._state, INCIDENT), body.number)
                self._state = mix_bytes(state, body.message.encode())
                self._keep(IncidentPart(body.number, body.message))
            case Opaque() if kind in _CONTEXT:
                self._end_run()
                self._state = mix_bytes(mix(self._state, CONTEXT + (kind << 8)), body.body)
                self._context.append(body.body)
            case Opaque() if kind in _FILE_BLOCKS:
                self._file += body.body[_FILE_ID_BYTES:]
            case TransactionPayload():
                return "compressed in a way that cannot be opened here"
            case _ if kind in _HEADS or kind in _WITHOUT_CONTENT:
                return None
            case Opaque() if not event.header.flags & FLAG_IGNORABLE:
                return f"an event of type {kind}, whose content is not read"
        return None

    def close(self) -> Content:
        """Return the content after the last event."""
        self._end_run()
        is_cut = self._part_count > len(self._parts)
        return Content(finish(self._state), tuple(self._parts), is_cut=is_cut)

    def _add_query(self, query: Query, began_at_seconds: int) -> None:
        if query.sql in GROUP_WORDS:
            return
        self._end_run()
        sql = query.sql
        if self._file:
            sql = _FILE_NAME.sub(rb"\1'a file'", sql)
            self._state = mix_bytes(mix(self._state, FILE), bytes(self._file))
            self._context.append(bytes(self._file))
            self._file.clear()
        # A replica writes the frame of an XA transaction with its own settings, and a session that
        # repeats a transaction may have another default database than the first one.
        is_frame = sql.startswith(FRAME_WORDS)
        part = StatementPart(
            schema="" if is_frame else query.schema,
            sql=sql,
            error_code=query.error_code,
            began_at_seconds=0 if is_frame else began_at_seconds,
            session=_OF_FRAMES if is_frame else StatementSession.of(query),
            context=tuple(self._context),
        )
        self._context.clear()
        sql_mode, charsets, flags, lc_time_names = part.session.numbers
        word = part.error_code | lc_time_names << 16 | part.began_at_seconds << 32
        state = mix(mix(self._state, STATEMENT), word)
        state = mix(mix(mix(state, sql_mode), charsets), flags)
        self._state = mix_bytes(mix_bytes(state, part.schema.encode()), sql)
        self._keep(part)

    def _add_rows(self, rows: Rows, began_at_seconds: int) -> str | None:
        table = self._maps.get(rows.table_id)
        if table is None:
            # A row event without rows only ends a statement (sql/log_event.cc).
            return (
                f"rows of table id {rows.table_id} without a TABLE_MAP event"
                if rows.images
                else None
            )
        form = form_of(rows, table)
        run = self._run
        if run is None or (run.kind, run.form) != (rows.kind, form):
            self._end_run()
            shape = shape_of(rows, table)
            self._run = run = _Run(table, rows.kind, form, shape, began_at_seconds)
        try:
            for start, end in row_spans(rows, table):
                run.rows = add(run.rows, finish(mix_bytes(SEED, rows.images[start:end])))
                run.row_count += 1
        except MalformedBody as error:
            return f"rows of {table.schema}.{table.table}: {error.what}"
        return None

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        state = mix(mix(self._state, ROWS + KINDS[run.kind]), run.form)
        self._state = mix(mix(state, run.row_count), run.rows)
        name = (run.table.schema, run.table.table)
        self._keep(
            RowsPart(*name, run.kind, run.shape, run.row_count, run.rows, run.began_at_seconds)
        )

    def _keep(self, part: Part) -> None:
        self._part_count += 1
        if len(self._parts) < PARTS_MAX:
            self._parts.append(part)


def form_of(rows: Rows, table: TableMap) -> int:
    """Hash what comparable row images share: the table, its columns, and which are logged.

    Bits of a bitmap after the last column are ignored.
    """
    return _mixed(
        mix_bytes(mix_bytes(SEED, table.schema.encode()), table.table.encode()), rows, table
    )


def shape_of(rows: Rows, table: TableMap) -> int:
    """Hash the form without the names of the table and its schema."""
    return _mixed(SEED, rows, table)


def _mixed(state: int, rows: Rows, table: TableMap) -> int:
    state = mix_bytes(state, table.column_types)
    for number in table.column_metadata:
        state = mix(state, number)
    for bitmap in (rows.columns_before, rows.columns_after):
        state = mix_bytes(state, _masked(bitmap, rows.column_count))
    return mix(state, int(rows.is_partial))


def _masked(bitmap: bytes, columns: int) -> bytes:
    used = columns & 7
    if not bitmap or not used:
        return bitmap
    return bitmap[:-1] + bytes([bitmap[-1] & ((1 << used) - 1)])
