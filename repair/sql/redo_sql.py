"""Writes one transaction as SQL again (redo), under a new GTID or under its own.

1. The session settings of the rows (foreign key and unique checks) and of the statements
   (everything: see `statement_sql`) are restored.
2. Under its GTID a transaction must change exactly what it changed, because the replicas of the
   server do not get the rest.
3. What cannot be written is a problem with its reason, and then there are no lines (replay.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from binlog.cursor import MalformedBody
from binlog.errors import CorruptBinlog
from binlog.events import Event, Incident, Opaque, Query, TransactionPayload, XaPrepare
from binlog.rows.values import LoggedRows, RowChanges
from binlog.scan import EventGroup
from repair.sql.acts_by_itself import Acting, acting
from repair.sql.guard import Guard
from repair.sql.replay import (
    BEGIN,
    BEGIN_WORD,
    COMMIT_WORD,
    ROLLBACK_WORD,
    ROW_SESSION,
    Replayed,
    WriteRows,
    comment,
    guarded_end,
    label_of,
    replayed,
    row_lines,
    touched_by,
    written,
)
from repair.sql.row_literals import CannotRender
from repair.sql.statement_sql import preparation, sets_restricted, statement_lines
from repair.sql.touched_tables import TouchedTable
from repair.sql.unguarded import checks_nothing
from repair.sql.written_rows import RowsWay
from topology.readings.hidden_passwords import without_secrets

_XA_START = re.compile(rb"XA\s+(?:START|BEGIN)\s+(?P<xid>.*)", re.IGNORECASE | re.DOTALL)
_XA_END = re.compile(rb"XA\s+END\b", re.IGNORECASE)
# CREATE TABLE … SELECT since 8.0.21: the table and its rows in one transaction.
_CREATE_WITH_ROWS = re.compile(
    rb"(?P<create>CREATE\s.*\S)\s+START\s+TRANSACTION\s*\Z", re.IGNORECASE | re.DOTALL
)


def redo(
    group: EventGroup,
    items: Iterable[RowChanges | LoggedRows | Event],
    *,
    keeps_gtid: bool = False,
) -> Replayed:
    """Write what a transaction did, under a new GTID or under its own.

    Rows that were not read (LoggedRows) are checked and left out: `redo_lines` writes them. Raises
    CorruptBinlog while `items` are read.
    """
    transaction, writer = group.transaction, _Redo(keeps_gtid=keeps_gtid)
    label = label_of(transaction)
    if keeps_gtid and transaction.gtid is None:
        return Replayed(label, (), problem="it has no GTID to keep")
    done = replayed(transaction, writer.write(label, items))
    if done.problem is not None:
        return done
    return replace(
        done,
        tables=frozenset(writer.tables),
        gtid=transaction.gtid if keeps_gtid else None,
        unguarded=writer.unguarded,
        sets_restricted=writer.sets_restricted,
        has_statements=writer.has_statements,
        creates=tuple(writer.creates),
    )


def redo_lines(
    label: str,
    items: Iterable[LoggedRows | Event],
    write: WriteRows,
    *,
    keeps_gtid: bool = False,
) -> Iterator[str]:
    """Yield the lines of a transaction that `redo` found no problem with.

    `write` has the way `rows_way`. Raises CannotRender for a value that cannot be written, and
    CorruptBinlog.
    """
    yield from _Redo(keeps_gtid=keeps_gtid, write_rows=write).write(label, items)


_AS_ROWS, _KEEPING_FORM = RowsWay(), RowsWay(keeps_form=True)


def rows_way(*, keeps_gtid: bool) -> RowsWay:
    """Return how a redo writes rows.

    Under its GTID it must change exactly what it changed, because its replicas do not get the rest.
    It is logged a second time, and audits compare the two.
    """
    return _KEEPING_FORM if keeps_gtid else _AS_ROWS


@dataclass(slots=True)
class _Redo:
    """Writes a transaction forwards. The session has the settings of rows, or of a statement."""

    keeps_gtid: bool = False
    write_rows: WriteRows | None = None
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

    def write(self, label: str, items: Iterable[RowChanges | LoggedRows | Event]) -> Iterator[str]:
        for item in items:
            if isinstance(item, RowChanges | LoggedRows):
                yield from self.rows(item)
            else:
                yield from self.event(label, item)
        if self.is_rolled_back:
            yield "ROLLBACK;"
        elif self.is_open:
            yield from guarded_end(label, self.count, "done")
        yield from self.row_session()

    def row_session(self) -> Iterator[str]:
        if not self.is_row_session:
            yield from ROW_SESSION
            self.is_row_session = True
            self.checks = None

    def begin(self) -> Iterator[str]:
        if not self.is_open and self.xid is None:
            yield BEGIN
            self.is_open = True

    def rows(self, changes: RowChanges | LoggedRows) -> Iterator[str]:
        way = rows_way(keeps_gtid=self.keeps_gtid)
        if self.write_rows is None:
            self.tables.add(touched_by(changes, way))
        yield from self.row_session()
        yield from self.begin()
        checks = (changes.foreign_key_checks, changes.unique_checks)
        if checks != self.checks:
            yield f"SET foreign_key_checks = {checks[0]:d}, unique_checks = {checks[1]:d};"
            self.checks = checks
        rows = written(changes, way, self.write_rows)
        self.count += rows.row_count
        yield from row_lines(changes, rows)

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
        if BEGIN_WORD.match(query.sql):
            yield from self.begin()
            return
        if COMMIT_WORD.match(query.sql):
            return
        if ROLLBACK_WORD.match(query.sql):
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
            yield from statement_lines(event, replace(query, sql=create["create"]))
            yield BEGIN
            return
        yield from statement_lines(event, query)

    def opaque(self, event: Event, opaque: Opaque) -> Iterator[str]:
        try:
            line = preparation(event, opaque)
        except MalformedBody as error:
            raise CorruptBinlog(file=event.file, position=event.start, what=error.what) from error
        if line is not None:
            yield line
