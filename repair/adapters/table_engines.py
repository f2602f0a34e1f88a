"""Finds the tables of a server whose engine has no transactions, by querying the server now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pymysql.connections import Connection
from pymysql.cursors import Cursor

_ENGINE: Final = (
    "SELECT engine FROM information_schema.tables LEFT JOIN information_schema.engines"
    " USING (engine) WHERE table_schema = %s AND table_name = %s AND engine IS NOT NULL"
    " AND IFNULL(transactions, 'NO') <> 'YES'"
)


def without_rollback(
    connection: Connection[Any], tables: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """Return those of the tables that cannot roll back: schema, table and engine.

    A table that does not exist, or that the account may not see, is left out.
    """
    found: list[tuple[str, str, str]] = []
    with connection.cursor(Cursor) as cursor:
        for schema, table in sorted(set(tables)):
            cursor.execute(_ENGINE, (schema, table))
            found += [(schema, table, str(engine)) for (engine,) in cursor.fetchall()]
    return tuple(found)
