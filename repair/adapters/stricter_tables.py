"""Compares a table with its source's: which rows it refuses, changes, or confuses with others.

Pure. repair/adapters/tables_there.py reads the two definitions.

1. A CHECK, a FOREIGN KEY, or partitions by RANGE or LIST that the source's table does not have may
   refuse rows that the source accepted.
2. A column that is NOT NULL here only: the applier stores 0 or '' in place of NULL, without an
   error (9.7.4).
3. A unique or primary key that no key of the source implies: two rows may be duplicates here only
   (error 1062). A unique key of the source implies each key that has its columns and more.
4. A column of a unique or primary key with another collation: other values are duplicates, and the
   applier may find another row. ENUM and SET are compared by number, whatever their collation is.
5. A geometry column of another shape, or another spatial reference system. All of them are one type
   in the log. The applier stores an empty value for one that does not fit (9.7.4).
6. An engine that stores no rows (BLACKHOLE), or cannot update and delete rows (ARCHIVE).

Rules 2 to 5 need both definitions, with the same columns in the same places. If that is not known,
nothing is reported. Values are compared as the servers resolve them, not as they print defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from binlog.quoting import quote_identifier
from binlog.schema.logged_types import GEOMETRIES

if TYPE_CHECKING:
    from binlog.schema.table_definitions import TableDefinition

# In SHOW CREATE TABLE. The ON DELETE action of a foreign key refuses no row.
_CHECK: Final = re.compile(r"^ +(?:CONSTRAINT `(?:[^`]|``)+` )?(CHECK \(.*?),?$", re.MULTILINE)
_FOREIGN_KEY: Final = re.compile(r"(FOREIGN KEY \(.*?\) REFERENCES .*?\(.*?\))")
_PARTITIONS: Final = re.compile(r"PARTITION BY (?:RANGE|LIST)\b.*", re.DOTALL)
# The character set of a literal in an expression: that of the session that created the key.
_INTRODUCER: Final = re.compile(r"\b_[a-z0-9]+(?=\\?')")
_PRIMARY: Final = "PRIMARY"
_ENGINE: Final = re.compile(r"^\) ENGINE=(\w+)", re.MULTILINE)
_SRID: Final = re.compile(r"^ +(`(?:[^`]|``)+`) .*/\*!80003 (SRID \d+) \*/", re.MULTILINE)
_KEEPS_LESS: Final = {
    "BLACKHOLE": "keeps no rows",
    "ARCHIVE": "updates and deletes no rows",
}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key, with the length of its prefix, or an expression."""

    column: str | None
    prefix: int | None = None
    expression: str = ""

    def __str__(self) -> str:
        if self.column is None:
            return f"({self.expression})"
        return quote_identifier(self.column) + (f"({self.prefix})" if self.prefix else "")

    def decides(self, other: KeyColumn) -> bool:
        """Return whether rows that differ in this part also differ in the other part."""
        if self.column is None or other.column is None:
            return (self.column, _plain(self.expression)) == (
                other.column,
                _plain(other.expression),
            )
        if self.column.casefold() != other.column.casefold():
            return False
        if other.prefix is None:  # the whole column
            return True
        return self.prefix is not None and self.prefix <= other.prefix


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique or primary key."""

    name: str
    parts: tuple[KeyColumn, ...]

    def __str__(self) -> str:
        kind = "PRIMARY KEY" if self.name == _PRIMARY else "UNIQUE KEY"
        return f"{kind} ({', '.join(map(str, self.parts))})"

    def implies(self, other: UniqueKey) -> bool:
        """Return whether rows that are distinct in this key are never duplicates in the other."""
        return all(any(part.decides(each) for each in other.parts) for part in self.parts)


@dataclass(frozen=True, slots=True)
class TableRules:
    """The definition of a table on one server."""

    definition: TableDefinition
    text: str  # output of SHOW CREATE TABLE
    keys: tuple[UniqueKey, ...] | None = None  # None: not known
    collations: Mapping[str, str] = field(default_factory=dict)  # by column, in lower case
    counting: frozenset[str] = frozenset()  # AUTO_INCREMENT columns, in lower case


def stricter(here: TableRules, there: TableRules | None, logged_columns: int) -> Iterator[str]:
    """Yield how a table is stricter than its source's, for rows with that many columns."""
    name = f"{here.definition.schema}.{here.definition.table}"
    ours, engine = (_engine_of(each.text) if each else "" for each in (here, there))
    if ours in _KEEPS_LESS and ours != engine:
        yield f"{name} has ENGINE={ours}, which {_KEEPS_LESS[ours]}"
    theirs = _refusals(there.text) if there else ()
    refusing = [each for each in _refusals(here.text) if each not in theirs]
    if there is not None and _have_like_columns(here, there, logged_columns):
        yield from (f"{name}: {each}" for each in _not_null(here, there, logged_columns))
        yield from (f"{name}: {each}" for each in _other_collations(here, there))
        yield from (f"{name}: {each}" for each in _other_shapes(here, there, logged_columns))
        refusing += map(str, _extra_keys(here, there))
    yield from (f"{name} has a {each} that its source does not have" for each in refusing)


def _refusals(text: str) -> tuple[str, ...]:
    parts = _PARTITIONS.search(text)
    found = [
        *(each for each in _CHECK.findall(text) if "NOT ENFORCED" not in each),
        *_FOREIGN_KEY.findall(text),
        *([parts[0]] if parts else []),
    ]
    return tuple(" ".join(each.split()) for each in found)


def _have_like_columns(here: TableRules, there: TableRules, logged_columns: int) -> bool:
    """Return whether each logged column has one name on both servers: rows go by position."""
    names = [
        [column.name.casefold() for column in rules.definition.columns[:logged_columns]]
        for rules in (here, there)
    ]
    return names[0] == names[1] and len(names[0]) == logged_columns


def _not_null(here: TableRules, there: TableRules, logged_columns: int) -> Iterator[str]:
    pairs = zip(here.definition.columns, there.definition.columns, strict=False)
    for ours, theirs in list(pairs)[:logged_columns]:
        if theirs.is_nullable and not ours.is_nullable:
            yield f"{ours.name} is NOT NULL, but may be NULL on its source"


def _other_collations(here: TableRules, there: TableRules) -> Iterator[str]:
    keyed = {part.column.casefold() for key in here.keys or () for part in key.parts if part.column}
    for column in here.definition.columns:
        name = column.name.casefold()
        pair = [rules.collations.get(name) for rules in (here, there)]
        if name not in keyed or None in pair or column.base_type in ("enum", "set"):
            continue
        ours, theirs = (_of_today(each or "") for each in pair)
        if ours != theirs:
            yield f"{column.name} is part of a key and has {ours}; on its source it has {theirs}"


def _other_shapes(here: TableRules, there: TableRules, logged_columns: int) -> Iterator[str]:
    ours, theirs = (dict(_SRID.findall(rules.text)) for rules in (here, there))
    pairs = zip(here.definition.columns, there.definition.columns, strict=False)
    for one, other in list(pairs)[:logged_columns]:
        if not {one.base_type, other.base_type} <= {*GEOMETRIES}:
            continue
        takes_any = one.base_type == GEOMETRIES[0] or one.base_type == other.base_type
        if not takes_any:
            yield f"{one.name} is {one.base_type}; on its source it is {other.base_type}"
        name, other_name = quote_identifier(one.name), quote_identifier(other.name)
        srid = ours.get(name)
        if srid is not None and srid != theirs.get(other_name):
            on_source = theirs.get(other_name, "no SRID attribute")
            yield f"{one.name} has {srid}; its source has {on_source}"


def _engine_of(text: str) -> str:
    found = _ENGINE.search(text)
    return found[1].upper() if found else ""


def _extra_keys(here: TableRules, there: TableRules) -> Iterator[UniqueKey]:
    """Yield keys that no key of the source implies.

    Exception: a column that only this server has, with AUTO_INCREMENT, gets a new value per row.
    """
    if here.keys is None or there.keys is None:
        return
    theirs = {column.name.casefold() for column in there.definition.columns}
    for key in here.keys:
        columns = {part.column.casefold() for part in key.parts if part.column}
        counts_itself = bool(columns & here.counting - theirs)
        if not counts_itself and not any(each.implies(key) for each in there.keys):
            yield key


def _of_today(collation: str) -> str:
    return re.sub(r"^utf8_", "utf8mb3_", collation.lower())


def _plain(expression: str) -> str:
    return "".join(_INTRODUCER.sub("", expression).split())
