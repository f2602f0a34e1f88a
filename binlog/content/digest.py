"""What of a transaction counts as its content, and a 64-bit digest of that.

The digest is the same for the same transaction in the binary logs of its source and its replicas.

1. What counts: of rows the schema, the table, what was done, the types of the columns with their
   metadata, the bitmaps of logged columns, and the row images; of statements the text, the schema,
   the error code, what else decides their result, and the insert ids, random seeds, user variables
   and file contents logged for it.
2. What does not, because a replica writes its own: positions, lengths, checksums, table ids,
   thread ids, times of rows and of commits, XIDs, XA PREPARE events (the statements say it all),
   ROWS_QUERY, compression, optional table metadata, BEGIN and COMMIT, how rows are cut into
   events, and the session of what only frames others (XA, savepoints).
3. Rows of one run (one table, one kind, one form, one after another) count in any order: a
   replica that finds rows of a table without a key by a hash of them changes them in the order of
   its own table (Rows_log_event::do_hash_scan_and_update, sql/log_event.cc).
4. Two digests that differ are a question, not yet an answer: the two servers may have logged the
   same work in different forms. binlog/content/compare.py looks closer.
5. Plain Python; kernels/digest.py is its compiled twin, and tests hold the two together.

What decides the result of a statement
--------------------------------------
One text has two results if it runs at two times (NOW(), DEFAULT CURRENT_TIMESTAMP) or in two
sessions (foreign_key_checks, time_zone). A source logs what decides it; a replica runs the
statement under that, and logs it again, unchanged. So 5.6.24 and 9.7.4 do, with replicas of other
time zones, character sets, sql_mode and auto_increment settings. Three kinds:

    always logged, and in the digest     the event's timestamp; sql_mode; the three character sets;
                                         sql_auto_is_null, foreign_key_checks and unique_checks
    logged unless they are the default,  auto_increment_increment and _offset; lc_time_names
      and in the digest
    logged where they were used, and     time zone; microseconds; collation of the schema;
      not in the digest (`used`)         explicit_defaults_for_timestamp; the default of utf8mb4

Of the last kind a healthy replica may log less: within a routine each statement logs what any
statement before it used, and the replica runs them one by one. An older source logs none of them.
So they are compared where both servers logged them, and only where two versions are looked at one
by one: whenever their moments differ.

Left out: autocommit, the tables of a multi-table UPDATE, the schemas that a parallel applier needs,
the invoker (he becomes the DEFINER), sql_require_primary_key and default_table_encryption, which a
channel or a replica sets its own way, and XIDs.
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

# Parts of one transaction kept for a closer look; the digest covers all of them.
PARTS_MAX: Final = 1_000

NOTHING: Final = (1 << 64) - 1  # stands for a status variable that was not logged

# Status variables of a statement (Query_event_status_vars, statement_events.h), by their codes.
FLAGS2, SQL_MODE, AUTO_INCREMENT, CHARSETS, LC_TIME_NAMES = 0, 1, 3, 4, 7
# Microseconds, collation_database, explicit_defaults_for_timestamp, the collation of utf8mb4.
USED: Final = (13, 8, 16, 18)
# sql_auto_is_null, foreign_key_checks = 0, unique_checks = 0 (OPTION_…, sql/query_options.h).
DECISIVE_FLAGS: Final = 1 << 14 | 1 << 26 | 1 << 27
AUTO_INCREMENT_DEFAULT: Final = 1 | 1 << 16  # is not logged

# What a part begins with. A row event's is ROWS plus its kind.
STATEMENT, CONTEXT, INCIDENT, FILE, ROWS = 1, 2, 3, 4, 16
KINDS: Final = {RowKind.WRITE: 0, RowKind.UPDATE: 1, RowKind.DELETE: 2}

# The server writes these itself, and exactly so. A group that one server ends with COMMIT another
# ends with an XID, if its table has another engine there.
GROUP_WORDS: Final = frozenset({b"BEGIN", b"COMMIT", b"ROLLBACK"})
# Statements that only frame others, as the server writes them anew: XA START, END, COMMIT, ROLLBACK
# (5.7.7 and later), and savepoints (binlog_savepoint_set, sql/binlog.cc). The settings and the
# database of the session change nothing of what they do.
FRAME_WORDS: Final = (b"XA ", b"SAVEPOINT ", b"ROLLBACK TO ")
_CONTEXT = frozenset({EventType.INTVAR, EventType.RAND, EventType.USER_VAR})
_FILE_BLOCKS = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK})
_FILE_ID_BYTES = 4
# LOAD DATA from a file names another temporary file on each server (EXECUTE_LOAD_QUERY).
_FILE_NAME = re.compile(rb"(INFILE\s+)'(?:[^'\\]|\\.|'')*'", re.IGNORECASE | re.DOTALL)
_OF_EACH_MEMBER = frozenset({EventType.VIEW_CHANGE})
_WITHOUT_CONTENT = frozenset(
    {
        EventType.XID,
        EventType.XA_PREPARE,
        EventType.ROWS_QUERY,
        EventType.IGNORABLE,
        # What group replication certifies by, sent to the members.
        EventType.TRANSACTION_CONTEXT,
    }
)
_HEADS = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED})


@dataclass(frozen=True, slots=True)
class Session:
    """What else decides the result of a statement: see the module's text.

    `numbers`: sql_mode, character sets, flags and auto_increment_*, lc_time_names. `used` are time
    zone, microseconds, collation of the schema, explicit_defaults_for_timestamp, the collation of
    utf8mb4; None for what was not logged.
    """

    numbers: tuple[int, int, int, int]
    used: tuple[str | int | None, ...] = (None,) * (1 + len(USED))

    @classmethod
    def of(cls, query: Query) -> "Session":
        """Take it from the statement's event."""
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
    """One statement and what was logged for it: INTVAR, RAND, USER_VAR bodies, in order."""

    schema: str
    sql: bytes
    error_code: int
    began_at_seconds: int  # since 1970: the clock that its functions see
    session: Session
    context: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class RowsPart:
    """One run of rows: all of one kind, in one form, of one table.

    `row_count` leaves out rows of which no column was logged: they take no bytes.
    """

    schema: str
    table: str
    kind: RowKind
    # A hash of types, metadata, bitmaps and partiality, without names: rows compare only within
    # one shape. Names are compared apart, because servers may store them in another letter case.
    shape: int
    row_count: int
    rows: int  # the sum of the rows' hashes
    # When the statement began that changed the first of them, since 1970. It is no content, but a
    # replica logs it unchanged: 5.6 has no other time of a commit that stays (its GTID and XID
    # events have the times of each server).
    began_at_seconds: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IncidentPart:
    """The source's own word that its log has a hole here."""

    number: int
    message: str


_OF_FRAMES: Final = Session((NOTHING, NOTHING, AUTO_INCREMENT_DEFAULT, 0))

Part = StatementPart | RowsPart | IncidentPart


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one transaction. `parts` are the first PARTS_MAX; `digest` covers all."""

    # None if the content cannot be read; `unreadable` then has the reason.
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
        """Return whether nothing was done: injected, or filtered away."""
        return self.digest is not None and not self.parts


def content_of(events: Iterable[Event]) -> Content:
    """Read the content of one whole transaction, given its events, with its payload opened."""
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
    """Takes a transaction's events in order, with its payload opened."""

    def __init__(self) -> None:
        self._state = SEED
        self._parts: list[Part] = []
        self._part_count = 0
        self._maps: dict[int, TableMap] = {}
        self._run: _Run | None = None
        self._context: list[bytes] = []
        self._file = bytearray()

    def add(self, event: Event) -> str | None:
        """Take one event; keep the reason if the content cannot be read."""
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
        """End the digest: this was the last event."""
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
        # A replica writes the frame of an XA transaction under settings of its own, and a session
        # that does a transaction again has another database than the one that did it first.
        is_frame = sql.startswith(FRAME_WORDS)
        part = StatementPart(
            schema="" if is_frame else query.schema,
            sql=sql,
            error_code=query.error_code,
            began_at_seconds=0 if is_frame else began_at_seconds,
            session=_OF_FRAMES if is_frame else Session.of(query),
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
            # An event without rows only ends a statement (sql/log_event.cc).
            return f"rows of table id {rows.table_id}, which has no name" if rows.images else None
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
    """Hash what must be equal for row images to compare: the table, its columns, which are logged.

    The bits of a bitmap beyond the last column are not looked at.
    """
    return _mixed(
        mix_bytes(mix_bytes(SEED, table.schema.encode()), table.table.encode()), rows, table
    )


def shape_of(rows: Rows, table: TableMap) -> int:
    """Hash the same without the names of the table and its schema."""
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
