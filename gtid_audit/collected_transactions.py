"""What a plan keeps of the transactions of one server's log: classes, SQL, rows, within limits.

1. `Collected` takes one transaction after the other, in the order of the log, and then says what
   they did together (repair/transaction_content.py).
2. Rows that cannot be folded, and what is cut by a limit, have a reason; the rows that can still be
   compared are kept apart (`rows_in_part`).
3. It opens nothing: transactions_for_plan.py reads.
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
from gtid_audit.tables_now import LoggedDefinitions
from gtid_audit.transaction_parts import committed_at, short, summed
from repair.created_tables import Created, all_created, is_new
from repair.logged_form import is_cut, is_loose, would_be_cut
from repair.replay import Replayed, redo
from repair.transaction_content import (
    CannotFold,
    ContentClass,
    NetRow,
    OutOfOrder,
    TransactionContent,
    class_of,
    net_rows,
    rows_that_fold,
)
from repair.waiting_ddl import Ddl, ddl_of

# More are not kept as SQL and rows.
TRANSACTIONS_REPLAYED_MAX: Final = 2_000
CHARACTERS_REPLAYED_MAX: Final = 16 * 1024**2
STATEMENTS_SHOWN_MAX: Final = 5


@dataclass(slots=True)
class Collected:
    """What was read of one server's log, while it is read."""

    classes: dict[ContentClass, list[Any]] = field(default_factory=dict)
    tables: dict[tuple[str, str], TableChange] = field(default_factory=dict)
    statements: dict[str, None] = field(default_factory=dict)
    moments: list[datetime] = field(default_factory=list)
    redo: list[Replayed] = field(default_factory=list)
    changes: list[RowChanges] = field(default_factory=list)
    server_ids: dict[int, list[Any]] = field(default_factory=dict)
    characters: int = 0
    cut: str = ""
    rows_unread: str = ""
    altered: str = ""  # which table has other columns since: no rows are of use then
    altered_tables: set[tuple[str, str]] = field(default_factory=set)
    before_statements: int | None = None  # how many of `changes` precede the first statement
    created: list[Created] = field(default_factory=list)
    creates_only: bool = True  # no other statement was logged
    row_tables: dict[tuple[str, str], RowTable] = field(default_factory=dict)
    has_cut_rows: bool = False
    has_whole_rows: bool = False
    has_partial_updates: bool = False
    has_plain_updates: bool = False
    has_loose_documents: bool = False
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

    def keep(self, group: EventGroup, items: list[Any], logged: LoggedDefinitions) -> None:
        """Keep a transaction as SQL and rows, within the limits.

        Rows of a table whose columns were changed since are of no use: see tables_now.py.
        """
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
        if self.cut:
            return  # by the first limit that was reached
        if len(self.redo) >= TRANSACTIONS_REPLAYED_MAX:
            self.cut = f"more than {TRANSACTIONS_REPLAYED_MAX:,} transactions"
            return
        # What cannot be written as SQL has no GTID there, and its reason must not be lost.
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
        """Return what all of them did; `unread` says why the log of `server` has no more."""
        why = self.cut or self.altered or unread or ("" if self.creates_only else self.rows_unread)
        rows: tuple[NetRow, ...] | None = None
        is_out_of_order = False
        if not why:
            try:
                rows = net_rows(self.changes)
            except CannotFold as problem:
                why, is_out_of_order = str(problem), isinstance(problem, OutOfOrder)
        # What undoes rows must not overlook statements.
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
            ddl=tuple(self.ddl),
            server_ids={each: GtidSet.of(gtids) for each, gtids in self.server_ids.items()},
        )

    def _rows_in_part(self) -> tuple[NetRow, ...]:
        """Return the rows that can be compared although others cannot.

        A statement may change any row: what follows it in the log does not find the rows of today.
        """
        known = self.changes[: self.before_statements]
        return rows_that_fold(
            each
            for each in known
            if (each.table.schema, each.table.table) not in self.altered_tables
            and not is_new(each.table.schema, each.table.table, self.created)
        )


def _ddl(gtid: Gtid, statements: Iterable[Statement], kind: ContentClass) -> Iterator[Ddl]:
    """Yield what changes definitions; beside rows that is a CREATE or DROP only."""
    for each in statements:
        found = ddl_of(gtid, each.schema, each.sql, short(each.sql))
        if each.is_cut and kind is ContentClass.DDL:
            found = Ddl(gtid, found.text, is_other=True)
        if kind is ContentClass.DDL or not found.is_other:
            yield found
