"""Compares a server's definitions with what transactions need there: names, types, constraints.

1. Rows: the table exists, with the logged columns in their order, and the same types, signs,
   character sets and members. Columns that were added after them do not matter. Tables that the
   transactions alter are not compared: they will have other columns by then.
2. Constraints that make this table refuse, change or find rows differently (stricter_tables.py).
3. DDL: what it creates does not exist, what it drops does (repair/content/waiting_ddl.py).
4. What this account may not see is unknown, and is no misfit. A query that fails is a misfit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.cursors import Cursor

from binlog.adapters.server_errors import server_words
from binlog.quoting import quote_identifier
from repair.adapters.stricter_tables import KeyColumn, TableRules, UniqueKey, stricter
from repair.adapters.tables_now import Definitions, columns_misfit
from repair.content.created_tables import Created, is_new
from repair.content.waiting_ddl import altered, demands

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from binlog.rows.tables import RowTable
    from gtid import GtidSet
    from repair.content.transaction_content import TransactionContent

# ER_BAD_DB_ERROR. Definitions handles ER_NO_SUCH_TABLE.
_UNKNOWN_DATABASE: Final = 1049
_REASONS_MAX: Final = 3
# The audit's account sees the keys of every table whose definition it sees. Before 8.0.13 there are
# no keys on expressions (ER_BAD_FIELD_ERROR).
_UNKNOWN_COLUMN: Final = 1054
_KEYS: Final = (
    "SELECT index_name, column_name, sub_part, {expression} FROM information_schema.statistics"
    " WHERE table_schema = %s AND table_name = %s AND non_unique = 0"
    " ORDER BY index_name, seq_in_index"
)
_COLUMNS: Final = (
    "SELECT column_name, collation_name, extra FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name = %s"
)
# The default of new tables, and a CREATE TABLE that names its own behind the columns.
_DEFAULT: Final = (
    "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = %s"
)
_CHARACTER_SET: Final = re.compile(r"\b(?:CHARSET|CHARACTER\s+SET|COLLATE)\b", re.IGNORECASE)


class TablesThere:
    """The definitions on one server."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self.definitions = Definitions(connection, lambda _why: None)

    def unlike(
        self, content: TransactionContent, arriving: GtidSet, source: TablesThere
    ) -> str | None:
        """Return why transactions do not fit the definitions here; None if no reason is known."""
        wanted = demands(each for each in content.ddl if each.gtid in arriving)
        reasons = [
            *(f"{_name(each)} exists already" for each in wanted.absent if self._exists(each)),
            *(
                f"{_name(each)} is not there"
                for each in wanted.there
                if self._exists(each) is False
            ),
        ]
        for table in content.row_tables:
            is_altered = (table.schema, table.table) in altered(content.ddl)
            if not is_altered and not is_new(table.schema, table.table, wanted.created):
                reasons += self._misfits(table, source)
        return "; ".join(reasons[:_REASONS_MAX]) or None

    def redone_otherwise(self, content: TransactionContent, source: TablesThere) -> str | None:
        """Return what a client would do differently if it does transactions again; or None.

        A table may have more columns than its rows in the log: a second log has all of them. A
        generated column gets the value of its expression here. Or a new table gets the default
        character set of its schema, which no log has.
        """
        reasons = [*self._other_defaults(content, source)]
        for table in content.row_tables:
            now = self.definitions(table.schema, table.table)
            if (table.schema, table.table) in altered(content.ddl) or now is None:
                continue
            if len(now.columns) > len(table.columns):
                more = ", ".join(each.name for each in now.columns[len(table.columns) :])
                reasons.append(f"{table.name} has more columns than the log: {more}")
            reasons += self._generated_otherwise(table, source)
        return "; ".join(reasons[:_REASONS_MAX]) or None

    def _generated_otherwise(self, table: RowTable, source: TablesThere) -> Iterator[str]:
        """Yield the generated columns whose definition is another one on the other server."""
        name = table.schema, table.table
        sides = (self, self.definitions(*name)), (source, source.definitions(*name))
        lines: list[dict[str, str]] = []
        for side, definition in sides:
            if definition is None:
                return
            generated = {each.name for each in definition.columns if each.is_generated is not None}
            lines.append({each: _line_of(each, side.definitions.texts[name]) for each in generated})
        here, there = lines
        for column in sorted(here.keys() | there.keys()):
            if here.get(column) != there.get(column):
                yield f"{table.name}: {column} is generated by another expression"

    def _other_defaults(self, content: TransactionContent, source: TablesThere) -> Iterator[str]:
        created = [each.creates for each in content.ddl if each.creates is not None]
        schemas = {
            each.creates[0]
            for each in content.ddl
            if each.creates is not None
            and each.creates[1]
            and (each.creates[0], "") not in created
            and not _CHARACTER_SET.search(each.text.rpartition(")")[2])
        }
        for schema in sorted(schemas):
            here, there = self.default_of(schema), source.default_of(schema)
            if here and there and here != there:
                yield f"new tables of {schema} get {here} here, and {there} where they were created"

    def _misfits(self, table: RowTable, source: TablesThere) -> Iterator[str]:
        now = self.definitions(table.schema, table.table)
        if now is None:
            if (table.schema, table.table) in self.definitions.missing:
                yield f"{table.name} is not there"
            return
        why = columns_misfit(table, now)
        if why is not None:
            yield why
        try:
            rules, theirs = self.rules(table), source.rules(table)
        except pymysql.MySQLError as error:
            yield f"{table.name}: its keys and collations were not read: {server_words(error)}"
            return
        if rules is not None:
            yield from stricter(rules, theirs, len(table.columns))

    def default_of(self, schema: str) -> str | None:
        """Return the collation that new tables of a schema get; None if that is not known."""
        found = self._asked(_DEFAULT, (schema,))
        return str(found[0][0]) if found else None

    def rules(self, table: RowTable) -> TableRules | None:
        """Return the definition of a table here; None if it is not known.

        Raises pymysql.MySQLError.
        """
        name = table.schema, table.table
        definition = self.definitions(*name)
        if definition is None:
            return None
        text = self.definitions.texts[name]
        columns = self._asked(_COLUMNS, name)
        keys = self._unique_keys(name)
        names = {each.name for each in definition.unique_keys}
        names |= {"PRIMARY"} if definition.primary_key else set()
        return TableRules(
            definition,
            text,
            keys if {key.name for key in keys} == names else None,
            {column.casefold(): each for column, each, _ in columns if each is not None},
            frozenset(each.casefold() for each, _, extra in columns if "auto_increment" in extra),
        )

    def _unique_keys(self, name: Created) -> tuple[UniqueKey, ...]:
        try:
            parts = self._asked(_KEYS.format(expression="expression"), name)
        except pymysql.MySQLError as error:
            if not error.args or error.args[0] != _UNKNOWN_COLUMN:
                raise
            parts = self._asked(_KEYS.format(expression="NULL"), name)
        return tuple(
            UniqueKey(key, tuple(KeyColumn(each[1], each[2], each[3] or "") for each in of_key))
            for key, of_key in groupby(parts, key=lambda each: str(each[0]))
        )

    def _asked(self, sql: str, name: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(sql, name)
            return cursor.fetchall()

    def _exists(self, name: Created) -> bool | None:
        """Return whether a database or table exists; None if the account cannot see that."""
        schema, table = name
        if table:
            is_there = self.definitions(schema, table) is not None
            return False if name in self.definitions.missing else is_there or None
        try:
            with self._connection.cursor(Cursor) as cursor:
                cursor.execute(f"SHOW CREATE DATABASE {quote_identifier(schema)}")
        except pymysql.MySQLError as error:
            return False if error.args and error.args[0] == _UNKNOWN_DATABASE else None
        return True


def _line_of(column: str, create: str) -> str:
    """Return the line of SHOW CREATE TABLE about a column."""
    quoted = quote_identifier(column)
    lines = (each.strip().removesuffix(",") for each in create.splitlines())
    return next((each for each in lines if each.startswith(f"{quoted} ")), "")


def _name(name: Created) -> str:
    return ".".join(filter(None, name))
