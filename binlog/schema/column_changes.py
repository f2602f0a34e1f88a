"""Finds where a log changes the columns of tables, for definitions valid only at the log's end.

How it works
------------
A server reports the current definition of a table. Rows of an older transaction fit that definition
only if no later statement changed the table's columns: their order, their types, or the members of
an ENUM or SET. A TABLE_MAP shows types. But if two INT columns or two members of an ENUM changed
places, it looks the same. So the statements are read.

1. A statement that is understood counts if it changes columns, or creates, drops or renames the
   table. Keys, comments, defaults of the table and TRUNCATE do not change columns. EXCHANGE
   PARTITION counts for both tables: the rows of one are in the other since.
2. A statement that is not understood counts for the tables in it. If even these cannot be read, it
   counts for every table.
3. In doubt, a statement counts as a change: the letter case of names is ignored, and so is whether
   a table is temporary, or whether the statement failed on its server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from binlog.events import Event, FormatDescription, Query
from binlog.schema.changes import (
    Action,
    AddForeignKey,
    AddKey,
    AlterTable,
    Change,
    CreateTable,
    DropConstraint,
    DropDatabase,
    DropKey,
    DropTables,
    RenameKey,
    RenameTables,
    RenameTo,
    ReplaceRows,
    SetCharset,
    SetVisibility,
    TableName,
)
from binlog.schema.logged_statements import LoggedStatement, version_number
from binlog.schema.sql_words import ANY_VERSION, CannotFollow

# Actions that change neither the order nor the type of a column.
_HARMLESS: tuple[type[Action], ...] = (
    AddKey,
    DropKey,
    DropConstraint,
    RenameKey,
    AddForeignKey,
    SetCharset,
    SetVisibility,
)
_OTHER_TABLES = (RenameTo, ReplaceRows)  # their `name` is of another table
_ANY = "*"  # in a key, it stands for every schema or every table


@dataclass(frozen=True, slots=True, order=True)
class LogPlace:
    """A place in a sequence of logs: the number of the log, then the byte."""

    log: int
    position: int


@dataclass(slots=True)
class ColumnChanges:
    """The places at which columns change. `take` receives the events in the order of the logs."""

    # The last place by (schema, table), (schema, _ANY) or (_ANY, _ANY), in lower case.
    _last: dict[tuple[str, str], tuple[LogPlace, str]] = field(default_factory=dict)
    _version: int = ANY_VERSION

    def take(self, event: Event, *, log: int) -> None:
        """Process the next event; `log` is the number of its log."""
        match event.body:
            case FormatDescription() as description:
                self._version = version_number(description)
            case Query() as query:
                place = LogPlace(log, event.start)
                shown = f"{event.file}:{event.start}"
                for key in self._changed_by(query):
                    self._last[key] = (place, shown)

    def behind(self, schema: str, table: str, place: LogPlace) -> str | None:
        """Return where a table's columns change at or after a place; None if they do not."""
        names = (schema.casefold(), table.casefold())
        for key in (names, (names[0], _ANY), (_ANY, _ANY)):
            found = self._last.get(key)
            if found is not None and found[0] >= place:
                return found[1]
        return None

    def _changed_by(self, query: Query) -> Iterator[tuple[str, str]]:
        statement = LoggedStatement.of(query, server_version=self._version)
        if statement is None:
            return
        try:
            change = statement.change()
        except CannotFollow:
            try:
                names = statement.named_tables()
            except CannotFollow:
                yield _ANY, _ANY
                return
            yield from (_key(name, query) for name in names)
            return
        if isinstance(change, DropDatabase):
            yield change.name.casefold(), _ANY
            return
        yield from (_key(name, query) for name in _changed_tables(change))


def _changed_tables(change: Change) -> Iterator[TableName]:
    match change:
        case CreateTable(if_not_exists=False, is_temporary=False):
            yield change.name
        case AlterTable():
            if not all(isinstance(action, _HARMLESS) for action in change.actions):
                yield change.name
            others = (each for each in change.actions if isinstance(each, _OTHER_TABLES))
            yield from (each.name for each in others if each.name is not None)
        case DropTables(is_temporary=False):
            yield from change.names
        case RenameTables():
            yield from (name for pair in change.pairs for name in pair)


def _key(name: TableName, query: Query) -> tuple[str, str]:
    return (name.schema or query.schema).casefold(), name.table.casefold()
