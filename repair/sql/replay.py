"""One transaction as SQL: the value, and what redo_sql.py and undo_sql.py have in common.

1. A transaction becomes one transaction. Before it commits, a guard counts its rows: each statement
   must have found exactly one. Otherwise the client stops and the server rolls back, or, if the
   client does not stop at errors, the script rolls back.
2. What cannot be written is a problem with its reason, and then there are no lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from binlog.rows.values import LoggedRows, RowChanges
from binlog.transactions import Transaction, TransactionKind
from gtid import Gtid
from repair.sql.acts_by_itself import Acting
from repair.sql.guard import Guard
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import check_named
from repair.sql.touched_tables import TouchedTable, touched
from repair.sql.written_rows import SQL_MODE, RowsWay, WrittenRows, write_rows

ROW_SESSION = (
    "SET NAMES utf8mb4;",
    f"SET sql_mode = '{SQL_MODE}', time_zone = '+00:00', timestamp = DEFAULT;",
)

# What guarded_end ends.
BEGIN = "BEGIN; SET @rows = 0;"
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
BEGIN_WORD = re.compile(rb"BEGIN\s*\Z", re.IGNORECASE)
COMMIT_WORD = re.compile(rb"COMMIT\s*\Z", re.IGNORECASE)
# Logged if a transaction that was rolled back had changed nontransactional tables.
ROLLBACK_WORD = re.compile(rb"ROLLBACK\s*\Z", re.IGNORECASE)
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


def label_of(transaction: Transaction) -> str:
    """Return what identifies a transaction in texts: its GTID, or its place in the log."""
    return str(transaction.gtid or f"{transaction.file}:{transaction.start}")


def replayed(transaction: Transaction, written: Iterable[str]) -> Replayed:
    """Return a transaction with its lines as they are written, or why it cannot be written."""
    label = label_of(transaction)
    if not transaction.is_complete:
        return Replayed(label, (), problem="its end is not in the logs")
    if transaction.kind is TransactionKind.INCIDENT:
        return Replayed(label, (), problem="the source reports that its log has a gap here")
    try:
        return Replayed(label, tuple(written))
    except CannotRender as refusal:
        return Replayed(label, (), problem=str(refusal))


def under_gtid(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a transaction under an explicit gtid_next, with the other ending."""
    for line in lines:
        if line == _END[0]:
            yield from _END_UNDER_GTID
        elif line not in _END:
            yield line


def comment(text: str) -> str:
    """Return a comment on one line, for any text."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    shown = " ".join(text.split())
    if len(shown) > _COMMENT_CHARACTERS_MAX:
        shown = shown[: _COMMENT_CHARACTERS_MAX - 1] + "…"
    return f"-- {shown}"


def guarded_end(label: str, count: int, verb: str) -> Iterator[str]:
    """Yield the guard that compares the counted rows, and the end of a transaction."""
    if count:
        message = f"{label}: a row is not as it should be; nothing of this transaction is {verb}"
        yield from Guard(f"@rows = {count}", message).statements()
    yield from _END


class WriteRows(Protocol):
    """Writes the rows of an event that were not read before."""

    def __call__(self, logged: LoggedRows) -> WrittenRows:
        """Return the lines. Raises CannotRender, CorruptBinlog."""


def touched_by(item: RowChanges | LoggedRows, way: RowsWay) -> TouchedTable:
    """Return the table of an event, and what a script must check of it. Raises CannotRender.

    Of rows that were not read, only what no value changes can be refused here.
    """
    check_named(item.table)
    asks = not item.logs_cascades if way.is_undo else way.keeps_form
    table = touched(item, asks_for_rules=asks, keeps_form=way.keeps_form)
    if isinstance(item, LoggedRows) and item.rows.images:
        way.statement(item.table, item.as_one_row())
    return table


def written(item: RowChanges | LoggedRows, way: RowsWay, write: WriteRows | None) -> WrittenRows:
    """Return the lines of an event; none of rows that were not read, if nothing can read them."""
    if isinstance(item, RowChanges):
        return write_rows(way, item.table, item.rows)
    return WrittenRows((), 0) if write is None else write(item)


def row_lines(item: RowChanges | LoggedRows, rows: WrittenRows) -> Iterator[str]:
    """Yield the lines of one event, after a comment with its place."""
    yield comment(f"{item.table.name}, {item.file}:{item.position}")
    yield from rows.lines
