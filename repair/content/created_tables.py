"""Databases and tables that transactions create: where they do not exist, rows are as before.

Rows of a table cannot be compared with a server's if the transactions also change definitions. One
kind of change is simple: a name that did not exist. No other kind is analyzed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeAlias

NAME = r"(?:`(?:[^`]|``)+`|[0-9A-Za-z_$]+)"
# What follows belongs to another name: "…" is one under ANSI_QUOTES.
NAME_ENDS = r"(?![\w$\"]|\s*\.)"
_CREATE = re.compile(
    r"\s*CREATE\s+(?:(?P<database>DATABASE|SCHEMA)|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"(?P<first>{NAME})(?:\s*\.\s*(?P<second>{NAME}))?{NAME_ENDS}",
    re.IGNORECASE,
)

# A schema and a table; the table is empty for a database.
Created: TypeAlias = tuple[str, str]


def created_by(schema: str, sql: str) -> Created | None:
    """Return what a CREATE of a database or table creates; None for any other statement."""
    found = _CREATE.match(sql)
    if found is None:
        return None
    first, second = plain(found["first"]), found["second"]
    if found["database"]:
        return None if second else (first, "")
    if second:
        return first, plain(second)
    return (schema, first) if schema else None


def is_new(schema: str, table: str, created: Collection[Created]) -> bool:
    """Return whether a table, or its database, is one of those created."""
    return (schema, table) in created or (schema, "") in created


def all_created(statements: Iterable[tuple[str, str]]) -> tuple[Created, ...] | None:
    """Return what statements, each with its schema, create; None if any does something else."""
    found = [created_by(schema, sql) for schema, sql in statements]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def plain(name: str) -> str:
    """Return a name without quotes."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
