"""One server of a data check: its connection, its GTID set, its load, its tables."""

from typing import Final
from uuid import UUID

import pymysql
from pymysql.constants import ER

from binlog.adapters.server_errors import server_words
from binlog.adapters.set_statements import SETTLED_SETS
from binlog.quoting import quote_identifier, quote_string
from gtid import GtidSet
from repair.data_check.checked_tables import SYSTEM_SCHEMAS, CheckedTable, JsonForm, tables_from
from repair.data_check.part_queries import SESSION
from topology.adapters.answered_rows import Row, only_row, rows_of
from topology.adapters.connection import Connection, connect
from topology.adapters.settled_sets import settled_in
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

_DENIED: Final = frozenset(
    {ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR}
)
_VERSION: Final = "SELECT VERSION() AS version"
_JSON_TABLE: Final = ServerVersion(8, 0, 4)
_NOT_OURS: Final = ", ".join(map(quote_string, SYSTEM_SCHEMAS))
# Aliases, because the names of these columns are upper case since 8.0.
_VIEWS: Final = (
    (
        "SELECT table_schema AS schema_name, table_name AS table_name, engine AS engine,"  # noqa: S608 - ours
        " table_rows AS rows_about FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        f" AND table_schema NOT IN ({_NOT_OURS}) ORDER BY table_schema, table_name"
    ),
    (
        "SELECT table_schema AS schema_name, table_name AS table_name, column_name AS column_name,"  # noqa: S608 - ours
        " data_type AS data_type, collation_name AS collation, extra AS extra,"
        " is_nullable AS is_nullable FROM information_schema.columns"
        f" WHERE table_schema NOT IN ({_NOT_OURS})"
        " ORDER BY table_schema, table_name, ordinal_position"
    ),
    (
        "SELECT table_schema AS schema_name, table_name AS table_name, index_name AS index_name,"  # noqa: S608 - ours
        " column_name AS column_name, sub_part AS sub_part FROM information_schema.statistics"
        f" WHERE non_unique = 0 AND table_schema NOT IN ({_NOT_OURS})"
        " ORDER BY table_schema, table_name, index_name, seq_in_index"
    ),
)


class CheckedServer:
    """One server: its connection, and what is asked of it."""

    def __init__(
        self, target: ServerTarget, *, connect_seconds_max: float, statement_seconds_max: float
    ) -> None:
        """Connect. Raises pymysql.MySQLError, OSError."""
        self.name = target.name
        self._target = target
        self._connect_seconds_max = connect_seconds_max
        self._statement_seconds_max = statement_seconds_max
        self._connection: Connection | None = None
        self._open()

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = connect(
                self._target,
                timeout_seconds_max=self._connect_seconds_max,
                answer_seconds_max=self._statement_seconds_max,
            )
            with self._connection.cursor() as cursor:
                cursor.execute(SESSION)
        return self._connection

    def rows(self, statement: str, *expected: str) -> list[Row]:
        """Return the rows of an answer, over a new connection if the last one was lost."""
        connection = self._open()
        try:
            return rows_of(connection, statement, *expected)
        except (pymysql.OperationalError, pymysql.InterfaceError, OSError):
            if not connection.open:
                self._connection = None
            raise

    def executed(self) -> GtidSet:
        """Return what is executed or being committed: its rows may be visible already."""
        owned, executed = settled_in(self.rows(SETTLED_SETS, "executed"))
        return executed | owned

    def server_uuid(self) -> UUID:
        """Return which server it is."""
        statement = "SELECT @@GLOBAL.server_uuid AS server_uuid"
        return UUID(str(only_row(self.rows(statement, "server_uuid"), statement)["server_uuid"]))

    def json_form(self) -> JsonForm:
        """Return what the server shows of a JSON document: JSON_TABLE exists since 8.0.4."""
        row = only_row(self.rows(_VERSION, "version"), _VERSION)
        is_old = ServerVersion.parse(str(row["version"])) < _JSON_TABLE
        return JsonForm.SIZES if is_old else JsonForm.TYPES

    def threads_running(self) -> int:
        """Return how many threads of the server are running."""
        row = only_row(self.rows("SHOW GLOBAL STATUS LIKE 'Threads_running'", "Value"), "status")
        return int(row["Value"])

    def hides(self, schema: str, name: str) -> str:
        """Return why the account does not see a whole table; "" if it does, or there is none.

        information_schema leaves out what an account may not see, without an error.
        """
        table = f"{quote_identifier(schema)}.{quote_identifier(name)}"
        try:
            self.rows(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608 - quoted
        except pymysql.ProgrammingError as error:
            return "" if error.args[0] == ER.NO_SUCH_TABLE else self._denied(error)
        except pymysql.OperationalError as error:
            if error.args[0] not in _DENIED:
                raise
            return self._denied(error)
        return ""

    def _denied(self, error: pymysql.MySQLError) -> str:
        return f"{self.name} does not show all of it to this account ({server_words(error)})"

    def close(self) -> None:
        """Close the connection, if any."""
        if self._connection is not None and self._connection.open:
            self._connection.close()

    def tables(self) -> dict[tuple[str, str], CheckedTable]:
        """Return the tables that the account may see, by schema and name."""
        return tables_from(*(self.rows(statement) for statement in _VIEWS))
