"""Collects what a plan needs of one server's transactions: classes, SQL, rows, within limits.

How it works
------------
A plan must know of a finding's transactions: what kind each is, which SQL repeats them, and which
rows they changed in total. The last is compared with the rows that servers have now. `Collected`
takes the transactions in log order, one at a time, so that only limited parts stay in memory:

* `add` counts every transaction: its class, tables, time and statements. These facts are complete.
* `keep` also keeps SQL and row images of a transaction that changes data or definitions, within
  the limits.
* `content` folds the row changes into one net change per row, and returns everything.

Invariants:

1. Transactions come in log order. Net changes and `before_statements` depend on it.
2. Once a limit is exceeded, `cut` stays set and the result has no SQL at all. The first part of a
   repair without the rest would leave a state that no server ever had.
3. A table whose columns were changed after the transaction (tables_now.py) makes rows unusable. Its
   transaction keeps its GTID, with the reason in place of SQL.
4. If the result has no `rows`, `rows_unread` has the reason. Then two weaker results may exist:
   * `rows_beside_created`: the net rows, if the only statements are CREATE DATABASE or CREATE
   TABLE;
   * `rows_in_part`: rows that can be compared but not written: those before the first other
     statement, of tables that were neither altered nor created here.

Example, one transaction per line:

    U:5  CREATE TABLE t1
    U:6  INSERT t1 (1)
    U:7  UPDATE t1 (1) to (2)       up to here rows_beside_created is: t1, none before, (2) after
    U:8  UPDATE t2 … (statement)    from here no rows: the statement may have changed any row

Why not simpler: comparing each transaction's own images would fail for the (1) of U:6, which no
server has any more. The text of the statements alone does not show the rows before and after.

This module opens nothing; logged_content.py reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from binlog.event_types import RowKind
from binlog.rows.tables import RowTable
from binlog.rows.values import RowChanges
from binlog.scan import EventGroup
from binlog.transactions import Statement, TableChange, Transaction
from gtid import Gtid, GtidSet
from repair.adapters.tables_now import LoggedDefinitions
from repair.content.created_tables import Created, all_created, is_new
from repair.content.transaction_content import (
    CannotFold,
    NetRow,
    OutOfOrder,
    TransactionContent,
    net_rows,
    rows_that_fold,
)
from repair.content.waiting_ddl import Ddl, ddl_of
from repair.doubts.logged_form import is_cut, is_loose, is_rewritten, would_be_cut
from repair.sql.redo_sql import redo
from repair.sql.replay import Replayed
from topology.readings.content_class import ContentClass
from topology.readings.transaction_parts import class_of, committed_at, short, summed

# Limits for what is kept as SQL and rows.
TRANSACTIONS_REPLAYED_MAX: Final = 2_000
CHARACTERS_REPLAYED_MAX: Final = 16 * 1024**2
BYTES_REPLAYED_MAX: Final = 32 * 1024**2  # of the log: the rows of more are not kept in memory
STATEMENTS_SHOWN_MAX: Final = 5


@dataclass(slots=True)
class Collected:
    """The state while one server's log is read."""

    classes: dict[ContentClass, list[Any]] = field(default_factory=dict)
    tables: dict[tuple[str, str], TableChange] = field(default_factory=dict)
    statements: dict[str, None] = field(default_factory=dict)
    moments: list[datetime] = field(default_factory=list)
    redo: list[Replayed] = field(default_factory=list)
    changes: list[RowChanges] = field(default_factory=list)
    server_ids: dict[int, list[Any]] = field(default_factory=dict)
    characters: int = 0
    bytes_logged: int = 0
    cut: str = ""
    rows_unread: str = ""
    altered: str = ""  # tables whose columns were changed since: rows are then unusable
    altered_tables: set[tuple[str, str]] = field(default_factory=set)
    before_statements: int | None = None  # number of `changes` before the first other statement
    created: list[Created] = field(default_factory=list)
    creates_only: bool = True  # every logged statement creates a database or a table
    row_tables: dict[tuple[str, str], RowTable] = field(default_factory=dict)
    has_cut_rows: bool = False
    has_whole_rows: bool = False
    has_partial_updates: bool = False
    has_plain_updates: bool = False
    has_loose_documents: bool = False
    has_rewritten_statements: bool = False
    ddl: list[Ddl] = field(default_factory=list)

    def add(self, transaction: Transaction) -> ContentClass:
        """Count a transaction, and return its class."""
        kind = class_of(transaction)
        self.classes.setdefault(kind, []).append(transaction.gtid)
        self.server_ids.setdefault(transaction.server_id, []).append(transaction.gtid)
        self.moments.append(committed_at(transaction))
        if kind in (ContentClass.DATA, ContentClass.DDL, ContentClass.UNREAD):
            for table in transaction.tables:
                old = self.tables.get((table.schema, table.table))
                self.tables[table.schema, table.table] = summed(old, table)
            for statement in transaction.statements:
                if len(self.statements) < STATEMENTS_SHOWN_MAX:
                    self.statements[short(statement.sql)] = None
        if kind in (ContentClass.DATA, ContentClass.DDL) and transaction.gtid is not None:
            self.ddl += _ddl(transaction.gtid, transaction.statements, kind)
        return kind

    def keep(self, group: EventGroup, items: Iterable[Any], logged: LoggedDefinitions) -> None:
        """Keep a transaction as SQL and rows, within the limits.

        Rows of a table whose columns were changed since cannot be used: see tables_now.py. Nothing
        of a transaction above the limits stays in memory, however large it is.
        """
        if not self.cut and len(self.redo) >= TRANSACTIONS_REPLAYED_MAX:
            self.cut = f"more than {TRANSACTIONS_REPLAYED_MAX:,} transactions"
        kept: list[Any] = []
        for each in self._noted(group, items):
            if not self.cut:
                kept.append(each)
        if self.cut:
            return  # by the first limit that was reached
        self._keep(group, kept, logged)

    def _noted(self, group: EventGroup, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the content of a transaction, and note the forms of its rows."""
        if not self.cut:
            self.bytes_logged += sum(each.header.event_bytes for each in group.events)
        if not self.cut and self.bytes_logged > BYTES_REPLAYED_MAX:
            self.cut = f"more than {BYTES_REPLAYED_MAX:,} bytes of log"
        for each in items:
            if isinstance(each, RowChanges):
                self.row_tables.setdefault((each.table.schema, each.table.table), each.table)
                if each.kind is RowKind.UPDATE:
                    self.has_partial_updates = self.has_partial_updates or each.is_partial
                    self.has_plain_updates = self.has_plain_updates or not each.is_partial
                for row in each.rows:
                    self.has_cut_rows = self.has_cut_rows or is_cut(each.table, row)
                    self.has_whole_rows = self.has_whole_rows or would_be_cut(each.table, row)
                    self.has_loose_documents = self.has_loose_documents or is_loose(row)
            yield each
        if any(is_rewritten(each.sql) for each in group.transaction.statements):
            self.has_rewritten_statements = True

    def _keep(self, group: EventGroup, items: list[Any], logged: LoggedDefinitions) -> None:
        """Keep a transaction, unless its SQL is above the limit."""
        # redo() sets no GTID for a transaction without SQL, but its reason must be kept.
        replayed = replace(redo(group, items, keeps_gtid=True), gtid=group.transaction.gtid)
        tables = [(each.schema, each.table) for each in group.transaction.tables]
        changed = [logged.changed[name] for name in tables if name in logged.changed]
        if changed:
            self.altered_tables.update(tables)
            replayed = replace(replayed, lines=(), tables=frozenset(), problem="; ".join(changed))
            self.altered = self.altered or "; ".join(changed)
        self.characters += sum(map(len, replayed.lines))
        if self.characters > CHARACTERS_REPLAYED_MAX:
            self.cut = f"more than {CHARACTERS_REPLAYED_MAX:,} characters of SQL"
            return
        self.redo.append(replayed)
        created = all_created((each.schema, each.sql) for each in group.transaction.statements)
        if created is None and self.before_statements is None:
            self.before_statements = len(self.changes)
        self.changes += [each for each in items if isinstance(each, RowChanges)]
        statements = group.transaction.statements
        if statements and not self.rows_unread:
            self.rows_unread = f"{group.transaction.gtid} is logged as a statement"
        self.created += created or ()
        self.creates_only = self.creates_only and created is not None

    def content(self, server: str, unread: str) -> TransactionContent:
        """Return what all of them did; `unread` is why the log of `server` has no more."""
        why = self.cut or self.altered or unread or ("" if self.creates_only else self.rows_unread)
        rows: tuple[NetRow, ...] | None = None
        is_out_of_order = False
        if not why:
            try:
                rows = net_rows(self.changes)
            except CannotFold as problem:
                why, is_out_of_order = str(problem), isinstance(problem, OutOfOrder)
        # Undoing rows must not overlook statements.
        beside = rows if self.rows_unread else None
        return TransactionContent(
            read_from=server,
            classes={each: GtidSet.of(gtids) for each, gtids in self.classes.items()},
            unread=unread,
            tables=tuple(self.tables[name] for name in sorted(self.tables)),
            statements=tuple(self.statements),
            committed_first=min(self.moments, default=None),
            committed_last=max(self.moments, default=None),
            rows=None if self.rows_unread else rows,
            rows_unread=why or self.rows_unread,
            is_out_of_order=is_out_of_order,
            created=tuple(dict.fromkeys(self.created)) if beside is not None else (),
            rows_beside_created=beside,
            rows_in_part=() if rows is not None or is_out_of_order else self._rows_in_part(),
            redo=() if self.cut else tuple(self.redo),
            row_tables=tuple(self.row_tables.values()),
            has_cut_rows=self.has_cut_rows,
            has_whole_rows=self.has_whole_rows,
            has_partial_updates=self.has_partial_updates,
            has_plain_updates=self.has_plain_updates,
            has_loose_documents=self.has_loose_documents,
            has_rewritten_statements=self.has_rewritten_statements,
            ddl=tuple(self.ddl),
            server_ids={each: GtidSet.of(gtids) for each, gtids in self.server_ids.items()},
        )

    def _rows_in_part(self) -> tuple[NetRow, ...]:
        """Return the rows that can be compared although others cannot.

        A statement may change any row. So changes after it do not lead to the present rows.
        """
        known = self.changes[: self.before_statements]
        return rows_that_fold(
            each
            for each in known
            if (each.table.schema, each.table.table) not in self.altered_tables
            and not is_new(each.table.schema, each.table.table, self.created)
        )


def _ddl(gtid: Gtid, statements: Iterable[Statement], kind: ContentClass) -> Iterator[Ddl]:
    """Yield the statements that change definitions; in a data transaction only CREATE and DROP."""
    for each in statements:
        found = ddl_of(gtid, each.schema, each.sql, short(each.sql))
        if each.is_cut and kind is ContentClass.DDL:
            found = Ddl(gtid, found.text, is_other=True)
        if kind is ContentClass.DDL or not found.is_other:
            yield found
