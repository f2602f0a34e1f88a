"""Reads present table definitions, and decides whether logged rows may be used with them.

How it works
------------
A server returns what a table is *now* (SHOW CREATE TABLE). That definition fits rows of an older
transaction only if the table's columns have not changed since. Two INT columns that changed places,
or two members of an ENUM, look the same in a row event, and every value would go to the other
column. So three checks come before any logged row is compared, written or fetched:

1. `LoggedDefinitions`: does the log of that server show a change of the table's columns after the
   transaction? Then the table is *changed*: its rows are not used, and the place of the change is
   reported. Column names in the log (binlog_row_metadata=FULL) do not help. A table whose columns
   were renamed since has other columns under these names. A replica that fetches the transaction
   applies it by the columns' positions.
2. `misfit_now`: does the table, on a server where rows are looked up, have the same columns in the
   same order? Do its ENUM and SET columns have the same members? Images hold the numbers of
   members, and SELECT compares numbers. If rows may be written, `columns_misfit` also checks the
   types.
3. The script checks the members again when it runs (repair/scripts/row_procedures.py).

Check 1 does not see a change that was made with sql_log_bin=0, or whose log is purged. Only check 2
sees it, if it changed names or members.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pymysql

from binlog.adapters.heads_server import facts_of_server
from binlog.adapters.schema_changes import ServerChanges
from binlog.adapters.server_errors import read_answer, server_words
from binlog.adapters.shown_definitions import show_create_table, shown_definition
from binlog.errors import BinlogError, UnexpectedAnswer
from binlog.schema.check import column_misfit
from binlog.schema.show_create import definition_from_create
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import Place

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from binlog.adapters.schema_changes import ChangesBehind
    from binlog.rows.tables import RowTable
    from binlog.rows.values import DefinitionOf

# How much log after a transaction is read for changes of its tables: with and without kernels.
LOG_BYTES_MAX: Final = 4 << 30
LOG_BYTES_WITHOUT_KERNELS_MAX: Final = 512 << 20

Note = Callable[[str], None]


class TooMuchLog(BinlogError):
    """A plan would have to read more log than its limit."""


class Definitions:
    """The definitions of one server's tables now. A definition that cannot be used is noted."""

    def __init__(self, connection: Connection[Any], note: Note) -> None:
        self._connection = connection
        self._note = note
        self._known: dict[tuple[str, str], TableDefinition | None] = {}
        self.missing: set[tuple[str, str]] = set()  # the table, or its database, does not exist
        self.texts: dict[tuple[str, str], str] = {}

    def __call__(self, schema: str, table: str) -> TableDefinition | None:
        """Return the present definition of a table, or None."""
        if (schema, table) not in self._known:
            self._known[schema, table] = self._asked(schema, table)
        return self._known[schema, table]

    def _asked(self, schema: str, table: str) -> TableDefinition | None:
        try:
            with read_answer(f"the table {schema}.{table}"):
                shown = shown_definition(self._connection, show_create_table(schema, table))
            if shown.table_text is not None:
                text = self.texts[schema, table] = shown.table_text
                return definition_from_create(text, schema=schema)
            if shown.absent:
                self.missing.add((schema, table))
            reason = shown.absent or "it is a view"
        except pymysql.MySQLError as error:
            reason = server_words(error)
        except (CannotFollow, UnexpectedAnswer) as error:
            reason = str(error)
        self._note(f"{schema}.{table}: its definition was not read: {reason}")
        return None


class LoggedDefinitions:
    """The definitions of one server, for the rows of its own log: check 1 of the module header.

    Invariant: a table in `changed` gets no definition from then on, and its rows must not be used.
    If the log could not be read for it, the table counts as changed.
    """

    def __init__(self, of_now: Definitions, changed_behind: ChangesBehind, note: Note) -> None:
        self._of_now = of_now
        self._changed_behind = changed_behind
        self._note = note
        self.changed: dict[tuple[str, str], str] = {}

    def at(self, file: str, position: int) -> DefinitionOf:
        """Return the definitions for a transaction that begins there. Raises BinlogError."""
        return lambda schema, table: self._find(schema, table, file, position)

    def _find(self, schema: str, table: str, file: str, position: int) -> TableDefinition | None:
        name = schema, table
        if name in self.changed:
            return None
        try:
            place = self._changed_behind(schema, table, file, position)
        except TooMuchLog as problem:
            why = (
                f"{schema}.{table}: it is not known whether its columns or partitions were changed:"
                f" {problem}"
            )
        else:
            if place is None:
                return self._of_now(schema, table)
            why = (
                f"{schema}.{table}: its columns or partitions were changed at {place}, after the"
                f" transaction at {file}:{position}"
            )
        self.changed[name] = why
        self._note(why)
        return None


class LogBehind:
    """Finds where one server's log changes columns after a place, within LOG_BYTES_MAX."""

    def __init__(self, connect: Callable[[], Connection[Any]], seconds_max: float) -> None:
        self._connect = connect
        self._changes = ServerChanges(connect, seconds_max, lambda _text: None)
        has_kernels = all(find_spec(name) is not None for name in ("numpy", "numba"))
        self._bytes_max = LOG_BYTES_MAX if has_kernels else LOG_BYTES_WITHOUT_KERNELS_MAX
        self._first: Place | None = None  # from here on the size is known to be within the limit

    def __call__(self, schema: str, table: str, file: str, position: int) -> str | None:
        """See `ChangesBehind`. Raises BinlogError, including TooMuchLog."""
        place = Place(file, position)
        if self._first is None or (place.number, position) < (self._first.number, position):
            self._check_size(place)
            self._first = place
        return self._changes(schema, table, file, position)

    def _check_size(self, place: Place) -> None:
        facts = facts_of_server(self._connect)
        sizes = zip(facts.files, facts.sizes, strict=True)
        ahead = sum(size for name, size in sizes if Place(name, 0).number >= place.number)
        if ahead - place.position > self._bytes_max:
            raise TooMuchLog(
                f"{ahead - place.position:,} bytes of log follow {place.file}:{place.position};"
                f" gtid-audit searches at most {self._bytes_max:,} bytes for changes of tables"
            )


def misfit_now(table: RowTable, now: TableDefinition | None) -> str | None:
    """Return why logged rows must not be compared with a present table; None if they may be.

    Columns and members that were added after the logged ones change no position and no number.
    """
    if now is None:
        return f"{table.name}: its definition was not read"
    names = [(column.name or "").casefold() for column in table.columns]
    names_now = [column.name.casefold() for column in now.columns]
    if names != names_now[: len(names)]:
        return f"{table.name}: its columns or their order differ from the log"
    for logged, column in zip(table.columns, now.columns, strict=False):
        members = logged.members or ()
        if members and members != column.members[: len(members)]:
            return f"{table.name}: the members of {column.name} differ from the log"
    return None


def columns_misfit(table: RowTable, now: TableDefinition | None) -> str | None:
    """Return why logged rows must not be written into a present table; None if they may be.

    If a column has another type, a value may be rounded, cut or padded without an error.
    """
    if table.has_names:
        why = misfit_now(table, now)
        if why is not None:
            return why
    if now is None:
        return f"{table.name}: its definition was not read"
    if len(table.columns) > len(now.columns):
        return f"{table.name}: it has {len(now.columns)} columns; the log has {len(table.columns)}"
    for logged, column in zip(table.columns, now.columns, strict=False):
        why = column_misfit(column, logged.type_code, logged.metadata)
        if why is not None:
            return f"{table.name}: {why}"
        is_number = column.base_type != "year"
        if is_number and logged.is_unsigned not in (None, column.is_unsigned):
            sign = "unsigned" if logged.is_unsigned else "signed"
            return f"{table.name}: {column.name} is {column.type_text}; the log has it {sign}"
        charsets = {logged.charset, column.charset}
        if logged.is_string and None not in charsets and len(charsets) > 1:
            return f"{table.name}: {column.name} is {column.charset}; the log has {logged.charset}"
    return None


def lookup_misfit(table: RowTable, now: TableDefinition | None) -> str | None:
    """Return why logged rows must not be looked up by their key in a present table, to be written.

    Besides what `columns_misfit` says, the table needs that key: without it, it may have a row more
    than once (tried on 9.7.4: a primary key that a replica had lost).
    """
    why = columns_misfit(table, now)
    if why is not None or now is None or not table.key:
        return why
    by = {now.columns[at].name.casefold() for at in table.key}
    keys = [now.primary_key, *(each.columns for each in now.unique_keys if each.is_exact)]
    if any(key and {name.casefold() for name in key} <= by for key in keys):
        return None
    names = ", ".join(now.columns[at].name for at in table.key)
    return f"{table.name}: it has no unique key on {names} here: a row may be there more than once"
