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

from binlog.rows.tables import RowTable
from binlog.rows.values import RowChange, RowChanges
from binlog.transactions import Transaction, TransactionKind
from gtid import Gtid
from repair.sql.acts_by_itself import Acting
from repair.sql.guard import Guard
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import needs_lenience
from repair.sql.touched_tables import TouchedTable

# The sql_mode for rows: zero and invalid dates are accepted, 0 is stored as 0 and not as the next
# number. Everything else is strict, so that no value is truncated.
SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_LENIENT_SQL_MODE = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
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


def replayed(
    transaction: Transaction, written: Iterable[str], make_lines: MakeLines = list
) -> Replayed:
    """Return a transaction with its lines as they are written, or why it cannot be written."""
    label = label_of(transaction)
    if not transaction.is_complete:
        return Replayed(label, (), problem="its end is not in the logs")
    if transaction.kind is TransactionKind.INCIDENT:
        return Replayed(label, (), problem="the source reports that its log has a gap here")
    lines = make_lines()
    try:
        for line in written:
            lines.append(line)
    except CannotRender as refusal:
        return Replayed(label, (), problem=str(refusal))
    return Replayed(label, tuple(lines) if isinstance(lines, list) else lines)


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


def guarded_end(label: str, count: int, verb: str) -> Iterator[str]:
    """Yield the guard that compares the counted rows, and the end of a transaction."""
    if count:
        message = f"{label}: a row is not as it should be; nothing of this transaction is {verb}"
        yield from Guard(f"@rows = {count}", message).statements()
    yield from _END


def row_statements(
    table: RowTable, rows: Iterable[RowChange], write: Callable[[RowTable, RowChange], str | None]
) -> list[tuple[str, bool]]:
    """Return the statements that change rows, each with whether it needs the lenient sql_mode."""
    return [
        (statement, needs_lenience(table, row))
        for row in rows
        if (statement := write(table, row)) is not None
    ]


def row_lines(changes: RowChanges, statements: Iterable[tuple[str, bool]]) -> Iterator[str]:
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
