"""Writes the opposite of one transaction as SQL (undo): row by row, with the last row first.

1. Foreign key checks are off: a return through former states must not fail, and must not cascade
   into rows that none of the transactions touched.
2. Only rows can be undone. A statement, an XA transaction or an event that could not be read is a
   problem with its reason, and then there are no lines (replay.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from binlog.event_types import EventType
from binlog.events import Event, Incident, Query, TransactionPayload, XaPrepare
from binlog.rows.values import LoggedRows, RowChanges
from binlog.scan import EventGroup
from binlog.transactions import TransactionKind
from repair.sql.replay import (
    BEGIN,
    BEGIN_WORD,
    COMMIT_WORD,
    ROLLBACK_WORD,
    MakeLines,
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
from repair.sql.touched_tables import TouchedTable
from repair.sql.written_rows import RowsWay
from topology.readings.hidden_passwords import without_secrets

_SAVEPOINT = re.compile(rb"SAVEPOINT\b", re.IGNORECASE)
_ROLLBACK_TO = re.compile(rb"ROLLBACK\s+TO\b", re.IGNORECASE)
_XA = re.compile(rb"XA\s", re.IGNORECASE)
_LOAD_EVENTS = frozenset({EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK})


UNDO_ROWS = RowsWay(is_undo=True)


def undo(group: EventGroup, items: Iterable[RowChanges | LoggedRows | Event]) -> Replayed:
    """Write the opposite of what a transaction did.

    Rows that were not read (LoggedRows) are checked and left out: `undo_lines` writes them. Raises
    CorruptBinlog while `items` are read.
    """
    transaction, writer = group.transaction, _Undo()
    label = label_of(transaction)
    if transaction.is_complete and transaction.kind is TransactionKind.DDL:
        sql = without_secrets(transaction.statements[0].sql) if transaction.statements else ""
        return Replayed(label, (), problem=f"DDL cannot be undone: {comment(sql)[3:]}")
    done = replayed(transaction, writer.write(label, items))
    return replace(done, tables=frozenset(writer.tables)) if done.problem is None else done


def undo_lines(
    label: str,
    items: Iterable[LoggedRows | Event],
    write: WriteRows,
    make_lines: MakeLines = list,
) -> Iterator[str]:
    """Yield the lines of a transaction that `undo` found no problem with.

    `write` has the way UNDO_ROWS; `make_lines` makes the store in which they are turned around.
    Raises CannotRender for a value that cannot be written, and CorruptBinlog.
    """
    yield from _Undo(make_lines, write).write(label, items)


@dataclass(slots=True)
class _Undo:
    """Writes a transaction backwards: the rows of each event, with the last event first.

    `backwards` has the lines as they are read: a block per event, with the last line first.
    """

    make_lines: MakeLines = list
    write_rows: WriteRows | None = None
    tables: set[TouchedTable] = field(default_factory=set)

    def write(self, label: str, items: Iterable[RowChanges | LoggedRows | Event]) -> Iterator[str]:
        backwards = self.make_lines()
        count = 0
        for item in items:
            if not isinstance(item, RowChanges | LoggedRows):
                _refuse_to_undo(item)
                continue
            if self.write_rows is None:
                self.tables.add(touched_by(item, UNDO_ROWS))
            rows = written(item, UNDO_ROWS, self.write_rows)
            count += rows.row_count
            for line in reversed(list(row_lines(item, rows))):
                backwards.append(line)
        if not count:
            yield comment(f"{label}: changed no rows")
            return
        yield BEGIN
        yield "SET foreign_key_checks = 0, unique_checks = 1;"
        yield from reversed(backwards)
        yield from guarded_end(label, count, "undone")


def _refuse_to_undo(event: Event) -> None:
    match event.body:
        case Query(sql=sql):
            if BEGIN_WORD.match(sql) or COMMIT_WORD.match(sql) or _SAVEPOINT.match(sql):
                return
            if ROLLBACK_WORD.match(sql):
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
