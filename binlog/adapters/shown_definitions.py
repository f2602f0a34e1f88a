"""Reads SHOW CREATE: the one row of an object's definition, or that there is no such object.

1. An object is absent if the server says so, in one of the errors below. Any other error is the
   caller's: a definition that was not read is not a missing one.
2. SHOW CREATE TABLE of a view succeeds, with the column of a view. So the caller looks for the
   column of its kind.
3. An answer of no row, or of several, is no answer of MySQL. It is an error, so that a proxy does
   not make an object absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER
from pymysql.cursors import DictCursor

from binlog.adapters.server_errors import server_words
from binlog.quoting import quote_identifier

if TYPE_CHECKING:
    from pymysql.connections import Connection

TABLE_COLUMN: Final = "create table"
# There is no such schema, table, routine (1305), trigger (1360), event (1539), or the name is that
# of another kind of object: a table where a view was (1347, ER_WRONG_OBJECT).
_ABSENT: Final = frozenset(
    {ER.BAD_DB_ERROR, ER.NO_SUCH_TABLE, ER.SP_DOES_NOT_EXIST, 1347, 1360, 1539}
)


@dataclass(frozen=True, slots=True)
class ShownDefinition:
    """The row of SHOW CREATE by column, in lower case; empty if there is no such object."""

    row: Mapping[str, Any]
    absent: str = ""  # the server's words, if it has no such object

    @property
    def table_text(self) -> str | None:
        """Return the CREATE TABLE; None if there is no such table, or it is a view."""
        text = self.row.get(TABLE_COLUMN)
        return None if text is None else str(text)


def show_create_table(schema: str, table: str) -> str:
    """Return the statement that shows a table."""
    return f"SHOW CREATE TABLE {quote_identifier(schema)}.{quote_identifier(table)}"


def shown_definition(connection: Connection[Any], statement: str) -> ShownDefinition:
    """Send a SHOW CREATE statement, and return its row.

    Raises pymysql.MySQLError and OSError, and ValueError unless it is one row.
    """
    try:
        with connection.cursor(DictCursor) as cursor:
            cursor.execute(statement)
            [row] = cursor.fetchall()
    except pymysql.MySQLError as error:
        if error.args and error.args[0] in _ABSENT:
            return ShownDefinition({}, server_words(error))
        raise
    return ShownDefinition({name.lower(): value for name, value in row.items()})
