"""Reads the answer to one statement: rows with the expected columns, or why there are none.

A proxy, or a server of another kind, may answer with OK, with its own rows, or with values of other
types. No rows would then mean "nothing", which is wrong. Such an answer is an unread fact.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pymysql

from gtid import GtidError
from topology.adapters.connection import Connection
from topology.adapters.unread import unread_fact
from topology.adapters.vendor_reasons import with_vendor_reason
from topology.readings.snapshot import UnreadFact, UnreadReason
from topology.readings.vendors import Vendor

Row = Mapping[str, Any]
T = TypeVar("T")

# What parsing an unexpected answer raises: a missing column, NULL or another type, another form.
UNEXPECTED: Final = (GtidError, ValueError, LookupError, TypeError, AttributeError)
_COLUMNS_SHOWN_MAX = 5


class NotShown(Exception):
    """The server, as its version or its configuration is, does not show a fact."""


def rows_of(connection: Connection, statement: str, *expected: str) -> list[Row]:
    """Return the rows of an answer that has one of the expected columns. Raises ValueError."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        columns = [column[0] for column in cursor.description or ()]
        return expected_rows(columns, list(cursor.fetchall()), *expected)


def expected_rows(columns: Sequence[str], rows: list[Row], *expected: str) -> list[Row]:
    """Return the rows if their columns are one of the expected ones. Raises ValueError."""
    if not columns or (expected and not set(expected) & set(columns)):
        found = ", ".join(map(repr, columns[:_COLUMNS_SHOWN_MAX])) or "OK without rows"
        raise ValueError(f"expected {' or '.join(expected) or 'rows'}, got {found}")
    return rows


def only_row(rows: list[Row], statement: str) -> Row:
    """Return the only row of an answer. Raises ValueError."""
    if len(rows) != 1:
        raise ValueError(f"expected one row, got {len(rows)}: {statement}")
    return rows[0]


def text_of(value: object) -> str:
    """Return a value as text; NULL is empty. performance_schema sends some texts as bytes."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def unexpected_answer(fact: str, error: Exception) -> UnreadFact:
    """Return the unread fact of an answer that could not be parsed."""
    detail = f"an unexpected answer ({type(error).__name__}: {error})"
    return UnreadFact(fact, UnreadReason.UNPARSEABLE, detail)


@dataclass(slots=True)
class FactsOfConnection:
    """Facts that are read one by one over a connection, and those that could not be read."""

    seconds_max: float  # the time limit of the connection, for one answer
    unread: list[UnreadFact] = field(default_factory=list)
    vendor: Vendor | None = None  # as soon as it is known: its reasons are added to `unread`

    def take(self, name: str, read: Callable[[], T]) -> T | None:
        """Return a fact, or note why it could not be read.

        Raises:
            pymysql.MySQLError, OSError: the connection is lost; `unread` has it.
        """
        begun = time.monotonic()
        try:
            return read()
        except NotShown as reason:
            self._note(UnreadFact(name, UnreadReason.UNSUPPORTED, str(reason)))
        except UNEXPECTED as error:
            self._note(unexpected_answer(name, error))
        except (pymysql.MySQLError, OSError) as error:
            is_late = time.monotonic() - begun >= self.seconds_max
            unread = unread_fact(name, error, timed_out=is_late)
            self._note(unread)
            if unread.reason in (UnreadReason.UNREACHABLE, UnreadReason.TIMEOUT):
                raise
        return None

    def _note(self, fact: UnreadFact) -> None:
        unread = with_vendor_reason(self.vendor, fact)
        if unread not in self.unread:
            self.unread.append(unread)
