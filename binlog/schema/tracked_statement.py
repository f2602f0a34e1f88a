"""One statement of a log with its event, and the change of tables that it stands for."""

from dataclasses import dataclass

from binlog.events import Event, Query
from binlog.schema.changes import Change, DropTables, NoChange
from binlog.schema.column_types import Timestamps
from binlog.schema.logged_statements import LoggedStatement
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_history import Catalogue, TableKey, TemporaryTable

_ER_BAD_TABLE_ERROR = 1051


@dataclass(frozen=True, slots=True)
class TrackedStatement:
    """One statement, its event, and how it reads a TIMESTAMP without NULL."""

    event: Event
    query: Query
    statement: LoggedStatement
    timestamps: Timestamps

    @property
    def text(self) -> str:
        """Return the statement."""
        return self.statement.text

    def temporary(self, key: TableKey) -> TemporaryTable:
        """Return the temporary table of this name in the session of the statement."""
        return TemporaryTable(self.event.header.server_id, self.query.thread_id, key)

    def sees_temporary(self, key: TableKey, catalogue: Catalogue) -> bool:
        """Return whether the session sees a temporary table under this name."""
        return self.temporary(key) in catalogue.temporary

    def change(self) -> Change:
        """Parse the statement. Raises CannotFollow if it failed: it may be applied in part."""
        change = self.statement.change()
        error = self.query.error_code
        if isinstance(change, NoChange):
            return change
        if self.statement.broken:
            raise CannotFollow(why=self.statement.broken)
        # DROP TABLE with a missing table still drops the others: afterwards none of them exists.
        if error and not (error == _ER_BAD_TABLE_ERROR and isinstance(change, DropTables)):
            raise CannotFollow(why=f"the statement ended with error {error} on its server")
        return change
