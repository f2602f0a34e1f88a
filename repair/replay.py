"""Writes one transaction as SQL again (redo), or its opposite (undo).

1. A transaction becomes one transaction. Before it commits, a guard counts its rows: each statement
   must have found exactly one. Otherwise the client stops and the server rolls back, or, if the
   client does not stop at errors, the script rolls back.
2. Redo restores the session settings of the rows (foreign key and unique checks) and of the
   statements (everything: see `statement_sql`).
3. Undo goes backwards, row by row. Foreign key checks are off: a return through former states must
   not fail, and must not cascade into rows that none of the transactions touched.
4. What cannot be written is a problem with its reason, and then there are no lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from binlog.cursor import MalformedBody
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.events import (
    Event,
    Incident,
    Opaque,
    Query,
    TransactionPayload,
    XaPrepare,
)
from binlog.rows.values import RowChanges
from binlog.scan import EventGroup
from binlog.transactions import TransactionKind
from gtid import Gtid
from repair.acts_by_itself import Acting, acting
from repair.guard import Guard
from repair.row_literals import CannotRender
from repair.row_sql import check_named, needs_lenience, redo_row, undo_row
from repair.statement_sql import preparation, sets_restricted, statement_lines
from repair.touched_tables import TouchedTable, touched
from repair.unguarded import checks_nothing
from topology.hidden import without_secrets

# The sql_mode for rows: zero and invalid dates are accepted, 0 is stored as 0 and not as the next
# number. Everything else is strict, so that no value is truncated.
SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_LENIENT_SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
ROW_SESSION = (
    "SET NAMES utf8mb4;",
    f"SET sql_mode = '{SQL_MODE}', time_zone = '+00:00', timestamp = DEFAULT;",
)

_END = (
    "SET @end = IF(@go, 'COMMIT', 'ROLLBACK');",
    "PREPARE `end of transaction` FROM @end;",
    "EXECUTE `end of transaction`;",
)
# Under an explicit gtid_next a prepared COMMIT is refused (1837, seen on 5.6.24). PREPARE and
# EXECUTE are skipped if the GTID is executed; COMMIT never is. So a session whose rows do not match
# ends itself before it commits.
_END_UNDER_GTID = (
    (
        "SET @end = IF(@go, 'DO 0', IF(@@SESSION.gtid_next = 'AUTOMATIC', 'ROLLBACK',"
        " CONCAT('KILL ', CONNECTION_ID())));"
    ),
    *_END[1:],
    "COMMIT;",
)
_BEGIN_WORD = re.compile(rb"BEGIN\s*\Z", re.IGNORECASE)
_COMMIT_WORD = re.compile(rb"COMMIT\s*\Z", re.IGNORECASE)
# Logged if a transaction that was rolled back had changed nontransactional tables.
_ROLLBACK_WORD = re.compile(rb"ROLLBACK\s*\Z", re.IGNORECASE)
_SAVEPOINT = re.compile(rb"SAVEPOINT\b", re.IGNORECASE)
_ROLLBACK_TO = re.compile(rb"ROLLBACK\s+TO\b", re.IGNORECASE)
_XA_START = re.compile(rb"XA\s+(?:START|BEGIN)\s+(?P<xid>.*)", re.IGNORECASE | re.DOTALL)
_XA_END = re.compile(rb"XA\s+END\b", re.IGNORECASE)
_XA = re.compile(rb"XA\s", re.IGNORECASE)
# CREATE TABLE … SELECT since 8.0.21: the table and its rows in one transaction.
_CREATE_WITH_ROWS = re.compile(
    rb"(?P<create>CREATE\s.*\S)\s+START\s+TRANSACTION\s*\Z", re.IGNORECASE | re.DOTALL
)
_COMMENT_CHARACTERS_MAX = 200


class Lines(Collection[str], Protocol):
    """Lines of SQL, in any storage: they can be read from either end."""

    def append(self, item: str) -> None:
        """Add one line."""

    def __reversed__(self) -> Iterator[str]:
        """Return the lines, the last one first."""


MakeLines = Callable[[], Lines]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One transaction as SQL. Lines contain lone surrogates where a statement is not UTF-8."""

    label: str
    lines: Collection[str]
    tables: frozenset[TouchedTable] = frozenset()
    problem: str | None = None
    # Of the transaction that is redone; None for one without a GTID, and for an undo.
    gtid: Gtid | None = None
    # The first statement whose effect no guard checks; "" if the transaction has only rows.
    unguarded: str = ""
    # A statement's session sets variables that need a privilege.
    sets_restricted: bool = False
    has_statements: bool = False  # other than BEGIN and COMMIT
    # Created objects that act by themselves.
    creates: tuple[Acting, ...] = ()

    def __post_init__(self) -> None:
        assert self.problem is None or not self.lines


def redo(
    group: EventGroup,
    items: Iterable[RowChanges | Event],
    *,
    keeps_gtid: bool = False,
    make_lines: MakeLines = list,
) -> Replayed:
    """Write what a transaction did, under a new GTID or under its own.

    Raises CorruptBinlog while `items` are read.
    """
    if keeps_gtid and group.transaction.gtid is None:
        label = f"{group.transaction.file}:{group.transaction.start}"
        return Replayed(label, (), problem="it has no GTID to keep")
    return _replay(group, items, _Redo(keeps_gtid=keeps_gtid), make_lines)


def undo(
    group: EventGroup,
    items: Iterable[RowChanges | Event],
    *,
    make_lines: MakeLines = list,
) -> Replayed:
    """Write the opposite of what a transaction did. Raises CorruptBinlog while `items` are read."""
    return _replay(group, items, _Undo(make_lines), make_lines)


def _replay(
    group: EventGroup,
    items: Iterable[RowChanges | Event],
    writer: _Redo | _Undo,
    make_lines: MakeLines,
) -> Replayed:
    transaction = group.transaction
    label = str(transaction.gtid or f"{transaction.file}:{transaction.start}")
    if not transaction.is_complete:
        return Replayed(label, (), problem="its end is not in the logs")
    if transaction.kind is TransactionKind.DDL and isinstance(writer, _Undo):
        sql = without_secrets(transaction.statements[0].sql) if transaction.statements else ""
        return Replayed(label, (), problem=f"DDL cannot be undone: {comment(sql)[3:]}")
    if transaction.kind is TransactionKind.INCIDENT:
        return Replayed(label, (), problem="the source reports that its log has a gap here")
    try:
        lines = make_lines()
        for line in writer.write(label, items):
            lines.append(line)
    except CannotRender as refusal:
        return Replayed(label, (), problem=str(refusal))
    kept = transaction.gtid if isinstance(writer, _Redo) and writer.keeps_gtid else None
    kept_lines = tuple(lines) if isinstance(lines, list) else lines
    done = Replayed(label, kept_lines, frozenset(writer.tables), gtid=kept)
    if isinstance(writer, _Undo):
        return done
    return replace(
        done,
        unguarded=writer.unguarded,
        sets_restricted=writer.sets_restricted,
        has_statements=writer.has_statements,
        creates=tuple(writer.creates),
    )


def under_gtid(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a transaction under an explicit gtid_next, with the other ending."""
    for line in lines:
        if line == _END[0]:
            yield from _END_UNDER_GTID
        elif line not in _END:
            yield line


def comment(text: str) -> str:
    """Return a comment on one line, for any text."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(shown) > _COMMENT_CHARACTERS_MAX:
        shown = shown[: _COMMENT_CHARACTERS_MAX - 1] + "…"
    return f"-- {shown}"


def _guarded_end(label: str, count: int, verb: str) -> Iterator[str]:
    if count:
        message = f"{label}: a row is not as it should be; nothing of this transaction is {verb}"
        yield from Guard(f"@rows = {count}", message).statements()
    yield from _END


def _row_lines(changes: RowChanges, statements: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Yield the rows of one event, each with its part of the count."""
    yield comment(f"{changes.table.name}, {changes.file}:{changes.position}")
    for statement, is_lenient in statements:
        counted = f"{statement} SET @rows = @rows + ROW_COUNT();"
        if is_lenient:
            yield f"SET sql_mode = '{_LENIENT_SQL_MODE}';"
            yield counted
            yield f"SET sql_mode = '{SQL_MODE}';"
        else:
            yield counted


@dataclass(slots=True)
class _Redo:
    """Writes a transaction forwards. The session has the settings of rows, or of a statement."""

    keeps_gtid: bool = False
    tables: set[TouchedTable] = field(default_factory=set)
    count: int = 0
    is_open: bool = False
    is_rolled_back: bool = False
    xid: str | None = None
    is_row_session: bool = True
    checks: tuple[bool, bool] | None = None
    unguarded: str = ""
    sets_restricted: bool = False
    has_statements: bool = False
    creates: list[Acting] = field(default_factory=list)

    def write(self, label: str, items: Iterable[RowChanges | Event]) -> Iterator[str]:
        for item in items:
            if isinstance(item, RowChanges):
                yield from self.rows(item)
            else:
                yield from self.event(label, item)
        if self.is_rolled_back:
            yield "ROLLBACK;"
        elif self.is_open:
            yield from _guarded_end(label, self.count, "done")
        yield from self.row_session()

    def row_session(self) -> Iterator[str]:
        if not self.is_row_session:
            yield from ROW_SESSION
            self.is_row_session = True
            self.checks = None

    def begin(self) -> Iterator[str]:
        if not self.is_open and self.xid is None:
            yield "BEGIN; SET @rows = 0;"
            self.is_open = True

    def rows(self, changes: RowChanges) -> Iterator[str]:
        check_named(changes.table)
        # Under its GTID it must change exactly what it changed, because its replicas do not get the
        # rest. It is logged a second time, and audits compare the two.
        keeps = self.keeps_gtid
        self.tables.add(touched(changes, asks_for_rules=keeps, keeps_form=keeps))
        yield from self.row_session()
        yield from self.begin()
        checks = (changes.foreign_key_checks, changes.unique_checks)
        if checks != self.checks:
            yield f"SET foreign_key_checks = {checks[0]:d}, unique_checks = {checks[1]:d};"
            self.checks = checks
        statements = []
        for row in changes.rows:
            statement = redo_row(changes.table, row, keeps_form=keeps)
            if statement is not None:
                statements.append((statement, needs_lenience(changes.table, row)))
        self.count += len(statements)
        yield from _row_lines(changes, statements)

    def event(self, label: str, event: Event) -> Iterator[str]:
        match event.body:
            case Query() as query:
                yield from self.query(label, event, query)
            case XaPrepare(is_one_phase=is_one_phase):
                if self.xid is None:
                    raise CannotRender("it ends an XA transaction that it does not begin")
                ending = " ONE PHASE" if is_one_phase else ""
                yield f"XA {'COMMIT' if is_one_phase else 'PREPARE'} {self.xid}{ending};"
            case Opaque() as opaque:
                yield from self.opaque(event, opaque)
            case Incident() | TransactionPayload():
                raise CannotRender("its content could not be read")
            case _:
                return  # GTID, XID, annotations: nothing more to write

    def query(self, label: str, event: Event, query: Query) -> Iterator[str]:
        if _BEGIN_WORD.match(query.sql):
            yield from self.begin()
            return
        if _COMMIT_WORD.match(query.sql):
            return
        if _ROLLBACK_WORD.match(query.sql):
            self.is_rolled_back = True
            return
        if start := _XA_START.match(query.sql):
            self.xid = start["xid"].decode("ascii", errors="surrogateescape")
            yield "SET @rows = 0;"
        if _XA_END.match(query.sql):
            message = f"{label}: a row is not as it should be; nothing of it is done"
            yield from Guard(f"@rows = {self.count}", message).statements()
        self.is_row_session, self.has_statements = False, True
        self.sets_restricted = self.sets_restricted or sets_restricted(query)
        shown = comment(without_secrets(query.sql))[3:]
        if not self.unguarded and checks_nothing(query.sql):
            self.unguarded = shown
        if (created := acting(query.schema, query.sql, shown)) is not None:
            self.creates.append(created)
        if create := _CREATE_WITH_ROWS.match(query.sql):
            # A client may not fill a table created this way; the table would stay if its rows do
            # not.
            if self.keeps_gtid:
                raise CannotRender("it creates and fills a table, which needs two GTIDs this way")
            yield from statement_lines(event, _with_sql(query, create["create"]))
            yield "BEGIN; SET @rows = 0;"
            return
        yield from statement_lines(event, query)

    def opaque(self, event: Event, opaque: Opaque) -> Iterator[str]:
        try:
            line = preparation(event, opaque)
        except MalformedBody as error:
            raise CorruptBinlog(file=event.file, position=event.start, what=error.what) from error
        if line is not None:
            yield line


def _with_sql(query: Query, sql: bytes) -> Query:
    return replace(query, sql=sql)


@dataclass(slots=True)
class _Undo:
    """Writes a transaction backwards: the rows of each event, with the last event first.

    `backwards` has the lines as they are read: a block per event, with the last line first.
    """

    make_lines: MakeLines = list
    tables: set[TouchedTable] = field(default_factory=set)

    def write(self, label: str, items: Iterable[RowChanges | Event]) -> Iterator[str]:
        backwards = self.make_lines()
        count = 0
        for item in items:
            if not isinstance(item, RowChanges):
                _refuse_to_undo(item)
                continue
            check_named(item.table)
            self.tables.add(touched(item, asks_for_rules=not item.logs_cascades))
            statements = []
            for row in reversed(item.rows):
                statement = undo_row(item.table, row)
                if statement is not None:
                    statements.append((statement, needs_lenience(item.table, row)))
            count += len(statements)
            for line in reversed(list(_row_lines(item, statements))):
                backwards.append(line)
        if not count:
            yield comment(f"{label}: changed no rows")
            return
        yield "BEGIN; SET @rows = 0;"
        yield "SET foreign_key_checks = 0, unique_checks = 1;"
        yield from reversed(backwards)
        yield from _guarded_end(label, count, "undone")


def _refuse_to_undo(event: Event) -> None:
    match event.body:
        case Query(sql=sql):
            if _BEGIN_WORD.match(sql) or _COMMIT_WORD.match(sql) or _SAVEPOINT.match(sql):
                return
            if _ROLLBACK_WORD.match(sql):
                raise CannotRender("it was rolled back, except in tables without transactions")
            if _ROLLBACK_TO.match(sql):
                raise CannotRender("it rolls back to a savepoint")
            shown = comment(without_secrets(sql))[3:]
            if _XA.match(sql):
                raise CannotRender(f"an XA transaction ends in another one: {shown}")
            raise CannotRender(f"the log has a statement, and not what it changed: {shown}")
        case XaPrepare():
            raise CannotRender("an XA transaction ends in another one")
        case Incident() | TransactionPayload():
            raise CannotRender("its content could not be read")
        case _ if event.header.type_code in _LOAD_EVENTS:
            raise CannotRender("LOAD DATA was logged as a statement")
        case _:
            return


_LOAD_EVENTS = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK})
