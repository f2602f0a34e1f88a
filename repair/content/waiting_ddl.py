"""What waiting DDL requires of a server: databases and tables that must exist, or must not.

1. CREATE and DROP of a database or a table, and TRUNCATE, depend only on the existence of their
   object. An earlier statement of the same transactions may create or drop it (`demands`).
2. For any other DDL, existence is not enough: an index, a column, an account or a view may already
   exist. It is not compared, so it `is_other`. So is a table whose definition refers to other
   tables (LIKE, REFERENCES, SELECT).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gtid import Gtid
from repair.content.created_tables import NAME, NAME_ENDS, Created, created_by, plain

_ENTRY: Final = rf"{NAME}(?:\s*\.\s*{NAME})?{NAME_ENDS}"
_COMMENTS: Final = re.compile(r"(?:\s+|/\*(?!!).*?\*/|(?:#|-- )[^\n]*(?:\n|\Z))+", re.DOTALL)
_TEMPORARY: Final = re.compile(r"/\*!\d*\s*(TEMPORARY)\s*\*/", re.IGNORECASE)
_DROP: Final = re.compile(
    r"DROP\s+(?P<temporary>TEMPORARY\s+)?(?:(?P<database>DATABASE|SCHEMA)|TABLES?)\s+"
    rf"(?P<lenient>IF\s+EXISTS\s+)?(?P<names>{_ENTRY}(?:\s*,\s*{_ENTRY})*)(?!\s*,)",
    re.IGNORECASE,
)
_TRUNCATE: Final = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?(?P<names>{_ENTRY})", re.IGNORECASE)
_ALTER: Final = re.compile(rf"ALTER\s+TABLE\s+(?P<names>{_ENTRY})", re.IGNORECASE)
_OTHER_TABLES: Final = re.compile(r"\b(?:LIKE|REFERENCES|SELECT)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ddl:
    """One statement that changes definitions."""

    gtid: Gtid
    text: str  # on one line, without secrets
    creates: Created | None = None
    drops: tuple[Created, ...] = ()
    is_lenient: bool = False  # DROP … IF EXISTS
    uses: tuple[Created, ...] = ()  # must exist, and stays
    is_other: bool = False
    alters: Created | None = None  # of an ALTER TABLE, which is one of the others


@dataclass(frozen=True, slots=True)
class Demands:
    """What must exist on a server, and what must not, before the first of some statements."""

    there: tuple[Created, ...]
    absent: tuple[Created, ...]
    created: frozenset[Created]  # rows of these belong to tables that the statements create


def ddl_of(gtid: Gtid, schema: str, sql: str, text: str) -> Ddl:
    """Return what a statement, executed in a schema, requires of a server."""
    head = _TEMPORARY.sub(r"\1", sql)
    found = _COMMENTS.match(head)
    head = head[found.end() :] if found else head
    created = created_by(schema, head)
    if created is not None and not _OTHER_TABLES.search(head):
        return Ddl(gtid, text, creates=created)
    if dropped := _DROP.match(head):
        names = _names(schema, dropped["names"], is_database=bool(dropped["database"]))
        is_lenient = bool(dropped["lenient"])
        if dropped["temporary"]:  # belongs to a session, and never exists there
            return Ddl(gtid, text, is_other=not is_lenient)
        return Ddl(gtid, text, drops=names, is_lenient=is_lenient)
    if emptied := _TRUNCATE.match(head):
        return Ddl(gtid, text, uses=_names(schema, emptied["names"], is_database=False))
    if altered := _ALTER.match(head):
        [name] = _names(schema, altered["names"], is_database=False)
        return Ddl(gtid, text, is_other=True, alters=name)
    return Ddl(gtid, text, is_other=True)


def demands(statements: Iterable[Ddl]) -> Demands:
    """Return what statements, in this order, require of a server."""
    there: dict[Created, None] = {}
    absent: dict[Created, None] = {}
    decided: set[Created] = set()  # created or dropped by an earlier one of the statements
    created: set[Created] = set()

    def is_open(name: Created) -> bool:
        """Return whether it is as before the first of them."""
        return name not in decided and (name[0], "") not in decided

    for each in statements:
        for name in each.uses if each.is_lenient else (*each.uses, *each.drops):
            if is_open(name):
                there[name] = None
        decided.update(each.drops)
        if each.creates is not None:
            schema, table = each.creates
            if is_open(each.creates):
                absent[each.creates] = None
            if table and (schema, "") not in decided:
                there[schema, ""] = None
            decided.add(each.creates)
            created.add(each.creates)
    return Demands(tuple(there), tuple(absent), frozenset(created))


def altered(statements: Iterable[Ddl]) -> frozenset[Created]:
    """Return the tables that statements alter."""
    return frozenset(each.alters for each in statements if each.alters is not None)


def _names(schema: str, names: str, *, is_database: bool) -> tuple[Created, ...]:
    found = []
    for entry in re.finditer(rf"(?P<first>{NAME})(?:\s*\.\s*(?P<second>{NAME}))?", names):
        first, second = plain(entry["first"]), entry["second"]
        if is_database:
            found.append((first, ""))
        else:
            found.append((first, plain(second)) if second else (schema, first))
    return tuple(found)
