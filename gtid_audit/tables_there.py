"""Compares what a server has defined with what transactions need there: names, types, constraints.

1. Rows: the table is there, with the logged columns in their order, and the same types, signs,
   character sets and members. Columns that were added behind them do not matter. Tables that the
   transactions alter are not compared: they have other columns by then.
2. A CHECK, a FOREIGN KEY, or partitions by RANGE or LIST that the source's table does not have may
   refuse rows that the source took.
3. DDL: what it creates is not there, what it drops is (repair/waiting_ddl.py).
4. What this account may not see is not known, and that is no misfit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.cursors import Cursor

from gtid_audit.tables_now import Definitions, columns_misfit
from repair.created_tables import Created, is_new
from repair.waiting_ddl import altered, demands
from topology.quoting import quote_identifier

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from binlog.rows.tables import RowTable
    from gtid import GtidSet
    from repair.transaction_content import TransactionContent

# ER_BAD_DB_ERROR; ER_NO_SUCH_TABLE is what Definitions looks at.
_UNKNOWN_DATABASE: Final = 1049
_REASONS_MAX: Final = 3
# In SHOW CREATE TABLE. What a foreign key does ON DELETE refuses no row.
_CHECK: Final = re.compile(r"^ +(?:CONSTRAINT `(?:[^`]|``)+` )?(CHECK \(.*?),?$", re.MULTILINE)
_FOREIGN_KEY: Final = re.compile(r"(FOREIGN KEY \(.*?\) REFERENCES .*?\(.*?\))")
_PARTITIONS: Final = re.compile(r"PARTITION BY (?:RANGE|LIST)\b.*", re.DOTALL)


class TablesThere:
    """What one server has defined."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self.definitions = Definitions(connection, lambda _why: None)

    def unlike(
        self, content: TransactionContent, arriving: GtidSet, source: TablesThere
    ) -> str | None:
        """Return why transactions do not fit what is defined here; None if nothing shows that."""
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

    def wider(self, content: TransactionContent) -> str | None:
        """Return which tables have more columns than their rows in the log; None if none has.

        That matters to who writes the rows again: they are logged with all columns.
        """
        reasons = []
        for table in content.row_tables:
            now = self.definitions(table.schema, table.table)
            if (table.schema, table.table) in altered(content.ddl) or now is None:
                continue
            if len(now.columns) > len(table.columns):
                more = ", ".join(each.name for each in now.columns[len(table.columns) :])
                reasons.append(f"{table.name} has more columns than the log: {more}")
        return "; ".join(reasons[:_REASONS_MAX]) or None

    def _misfits(self, table: RowTable, source: TablesThere) -> Iterator[str]:
        now = self.definitions(table.schema, table.table)
        if now is None:
            if (table.schema, table.table) in self.definitions.missing:
                yield f"{table.name} is not there"
            return
        why = columns_misfit(table, now)
        if why is not None:
            yield why
        theirs = source.refusals(table)
        yield from (
            f"{table.name} has a {each} that its source does not have"
            for each in self.refusals(table)
            if each not in theirs
        )

    def refusals(self, table: RowTable) -> tuple[str, ...]:
        """Return what may refuse a row of a table."""
        if self.definitions(table.schema, table.table) is None:
            return ()
        text = self.definitions.texts[table.schema, table.table]
        parts = _PARTITIONS.search(text)
        found = [
            *(each for each in _CHECK.findall(text) if "NOT ENFORCED" not in each),
            *_FOREIGN_KEY.findall(text),
            *([parts[0]] if parts else []),
        ]
        return tuple(" ".join(each.split()) for each in found)

    def _exists(self, name: Created) -> bool | None:
        """Return whether a database or table is there; None if that cannot be seen."""
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


def _name(name: Created) -> str:
    return ".".join(filter(None, name))
