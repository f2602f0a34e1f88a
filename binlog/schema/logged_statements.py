"""A statement in a log, as text, and how its own server reads it.

1. `sql_mode` is that of its session. `server_version` is that of the server that wrote the log, and
   decides about executable comments.
2. A statement that is not in its session's character set is still read: its keywords are ASCII, and
   its table names may be. `broken` then states what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from binlog.bodies import version_tuple
from binlog.events import FormatDescription, Query
from binlog.rows.charsets import decode_text
from binlog.schema.changes import Change, TableName
from binlog.schema.charset_names import CHARSET_OF_COLLATION
from binlog.schema.grammar import named_tables, read_statement

# Most statements of a log are these; they are skipped without parsing.
_FRAMES = frozenset({b"BEGIN", b"COMMIT"})


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """The text of one statement, and the settings with which it ran."""

    text: str
    sql_mode: int
    server_version: int
    broken: str = ""

    @classmethod
    def of(cls, query: Query, *, server_version: int) -> LoggedStatement | None:
        """Return the statement of an event; None for BEGIN and COMMIT."""
        if query.sql in _FRAMES:
            return None
        charset = CHARSET_OF_COLLATION.get(query.charset_client or 0, "utf8mb4")
        text, broken = decode_text(query.sql, charset), ""
        if text is None:
            text = query.sql.decode("ascii", errors="backslashreplace")
            broken = f"the statement is not in {charset}"
        return cls(text, query.sql_mode or 0, server_version, broken)

    def change(self) -> Change:
        """Parse the statement. Raises CannotFollow."""
        return read_statement(self.text, sql_mode=self.sql_mode, server_version=self.server_version)

    def named_tables(self) -> tuple[TableName, ...]:
        """Return the tables of a statement that cannot be followed. Raises CannotFollow."""
        return named_tables(self.text, sql_mode=self.sql_mode, server_version=self.server_version)


def version_number(description: FormatDescription) -> int:
    """Return 90704 for 9.7.4-log: the number format of executable comments."""
    numbers = (*version_tuple(description.server_version)[:3], 0, 0, 0)[:3]
    return numbers[0] * 10_000 + numbers[1] * 100 + numbers[2]
