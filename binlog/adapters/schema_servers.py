"""Queries servers about tables: SHOW CREATE TABLE, and settings that a log does not contain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from binlog.adapters.schema_events import begun_at_seconds, server_events
from binlog.adapters.server_errors import read_answer
from binlog.adapters.shown_definitions import show_create_table, shown_definition
from binlog.schema.column_types import Timestamps
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import Place, TableKey

if TYPE_CHECKING:
    from pymysql.connections import Connection

_FACTS = (
    "SELECT @@GLOBAL.server_uuid AS server_uuid, @@GLOBAL.lower_case_table_names AS folding,"
    " @@GLOBAL.explicit_defaults_for_timestamp AS explicit"
)


@dataclass(frozen=True, slots=True)
class ServerTables:
    """One live server. Each query uses its own connection."""

    connect: Callable[[], Connection[Any]]
    seconds_max: float

    def uuid_and_facts(self) -> tuple[UUID, SchemaFacts]:
        """Read its UUID, and the settings that names and TIMESTAMPs depend on."""
        rows = self._rows(_FACTS)
        with read_answer("who it is"):
            [row] = rows
            timestamps = Timestamps.NULLABLE if int(row["explicit"]) else Timestamps.NOT_NULL
            return UUID(str(row["server_uuid"])), SchemaFacts(timestamps, int(row["folding"]) != 0)

    def logs(self) -> dict[str, int]:
        """Return its binary logs with the bytes of each, the oldest first."""
        rows = self._rows("SHOW BINARY LOGS")
        with read_answer("its binary logs"):
            return {str(row["Log_name"]): int(row["File_size"]) for row in rows}

    def created_at(self, file: str) -> int:
        """Return the time of a log's first event, in seconds since 1970 (UTC)."""
        events = server_events(self.connect, Place(file, 0), timeout_seconds_max=self.seconds_max)
        with closing(events):
            return begun_at_seconds(events)

    def create_table(self, key: TableKey) -> str | None:
        """Return the text of SHOW CREATE TABLE; None if there is no such table, or it is a view."""
        statement = show_create_table(key.schema, key.table)
        with closing(self.connect()) as connection, read_answer(f"the table {key}"):
            return shown_definition(connection, statement).table_text

    def definition(self, key: TableKey) -> TableDefinition | None:
        """Return a table's present definition; None if there is none. Raises CannotFollow."""
        text = self.create_table(key)
        return None if text is None else definition_from_create(text, schema=key.schema)

    def _rows(self, statement: str) -> list[dict[str, Any]]:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())
