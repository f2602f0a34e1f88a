"""Reads the optional metadata of a TABLE_MAP: facts about its table other than types (8.0.1).

1. The metadata consists of fields with type, length and value (Optional_metadata_fields,
   rows_event.h; written by Table_map_log_event::init_metadata_fields, sql/log_event.cc). A field of
   unknown type is skipped by its length.
2. binlog_row_metadata=MINIMAL logs signedness, character sets and geometry types; FULL adds names,
   members of ENUM and SET, the primary key, visibility. A fact that was not logged is None.
3. Bits in these fields count from the highest bit of each byte, in contrast to row images.
4. This module describes a table as its TABLE_MAP does; binlog/schema has SQL definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from binlog.cursor import Cursor
from binlog.events import TableMap
from binlog.rows.images import (
    BLOB,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    NEWDECIMAL,
    SET,
    STRING,
    VAR_STRING,
    VARCHAR,
    VECTOR,
)

# is_numeric_type, is_character_type, is_enum_or_set_type (sql/log_event.cc), by the real type.
# TINY, SHORT, LONG, LONGLONG, INT24, YEAR: include/field_types.h. A YEAR is unsigned, and a VECTOR
# is logged with the character columns, as binary (verified on 9.7.4).
NUMERIC_TYPES = frozenset({1, 2, 3, 8, 9, 13, NEWDECIMAL, FLOAT, DOUBLE})
CHARACTER_TYPES = frozenset({STRING, VAR_STRING, VARCHAR, BLOB, VECTOR})
_CHOICE_TYPES = frozenset({ENUM, SET})


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """A TABLE_MAP's facts about one column; None if not logged, or not applicable."""

    name: str | None = None
    is_unsigned: bool | None = None
    # The collation's id (information_schema.COLLATIONS.ID), which determines the character set; 63
    # is binary. For character columns and, with FULL, also for ENUM and SET.
    collation_id: int | None = None
    # For ENUM and SET: in the column's character set, not decoded.
    members: tuple[bytes, ...] | None = None
    # Field::geometry_type, sql/field.h: 0 geometry, 1 point, 2 linestring, …
    geometry_type: int | None = None
    vector_dimensions: int | None = None
    is_visible: bool | None = None


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the primary key, by its index; `prefix_characters` is 0 for the whole column."""

    column: int
    prefix_characters: int = 0


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """One entry per column, and the primary key: () if there is none, None if it was not logged."""

    columns: tuple[ColumnMetadata, ...]
    primary_key: tuple[KeyPart, ...] | None

    def __post_init__(self) -> None:
        assert all(part.column < len(self.columns) for part in self.primary_key or ())

    @property
    def is_full(self) -> bool:
        """Whether it was logged with binlog_row_metadata=FULL."""
        return self.primary_key is not None


def real_type(type_code: int, metadata: int) -> int:
    """Return a column's type: ENUM and SET are logged as STRING, with their type as metadata."""
    if type_code == STRING and metadata >> 8 in _CHOICE_TYPES:
        return metadata >> 8
    return type_code


def real_types(table: TableMap) -> tuple[int, ...]:
    """Return `real_type` of every column."""
    return tuple(map(real_type, table.column_types, table.column_metadata))


def read_table_metadata(table: TableMap) -> TableMetadata:
    """Read a TABLE_MAP's optional metadata; before 8.0.1 there is none, and all facts are None.

    Raises `MalformedBody` (offset within `optional_metadata`) for fields that do not fit the table.
    """
    cursor = Cursor(table.optional_metadata)
    draft = _Draft(real_types(table))
    while cursor.remaining:
        number = cursor.integer(1, "a metadata field")
        size = cursor.net_integer("the length of a metadata field")
        start = cursor.at
        value = Cursor(cursor.take(size, f"metadata field {number}"))
        if number in _FIELDS:
            try:
                _FIELDS[number](draft, value)
            except _NoSuchColumn as error:
                cursor.at = start
                raise cursor.fail(f"metadata field {number} {error}") from error
    return draft.finish()


class _NoSuchColumn(Exception):
    """A field has more entries, or higher column numbers, than the table has columns."""


@dataclass(slots=True)
class _Draft:
    """Metadata under construction, by column."""

    types: tuple[int, ...]
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    key: tuple[KeyPart, ...] = ()

    def columns_of(self, types: frozenset[int]) -> list[int]:
        return [at for at, each in enumerate(self.types) if each in types]

    def note(self, column: int, **facts: Any) -> None:  # noqa: ANN401 - fields of ColumnMetadata
        self.facts.setdefault(column, {}).update(facts)

    def check(self, column: int) -> int:
        if column >= len(self.types):
            raise _NoSuchColumn(f"refers to column {column} of {len(self.types)}")
        return column

    def finish(self) -> TableMetadata:
        columns = tuple(ColumnMetadata(**self.facts.get(at, {})) for at in range(len(self.types)))
        # FULL always logs names. It logs no primary key for a table that has none.
        is_full = bool(columns) and all(each.name is not None for each in columns)
        return TableMetadata(columns, self.key if is_full else None)


def _next_of(columns: list[int], at: int) -> int:
    if at >= len(columns):
        raise _NoSuchColumn(f"has more entries than the {len(columns)} columns it is about")
    return columns[at]


def _bits(value: Cursor, count: int) -> list[bool]:
    block = value.take((count + 7) // 8, "a bitmap")
    return [bool(block[at >> 3] << (at & 7) & 0x80) for at in range(count)]


def _signedness(draft: _Draft, value: Cursor) -> None:
    columns = draft.columns_of(NUMERIC_TYPES)
    for column, is_unsigned in zip(columns, _bits(value, len(columns)), strict=True):
        draft.note(column, is_unsigned=is_unsigned)


def _visibility(draft: _Draft, value: Cursor) -> None:
    for column, is_visible in enumerate(_bits(value, len(draft.types))):
        draft.note(column, is_visible=is_visible)


def _default_collation(types: frozenset[int]) -> Callable[[_Draft, Cursor], None]:
    """Return a reader of a default collation and pairs: index among these columns, collation."""

    def read(draft: _Draft, value: Cursor) -> None:
        columns = draft.columns_of(types)
        default = value.net_integer("the default collation")
        for column in columns:
            draft.note(column, collation_id=default)
        while value.remaining:
            column = _next_of(columns, value.net_integer("the number of a column"))
            draft.note(column, collation_id=value.net_integer("a collation"))

    return read


def _one_number_each(types: frozenset[int], fact: str) -> Callable[[_Draft, Cursor], None]:
    def read(draft: _Draft, value: Cursor) -> None:
        columns = draft.columns_of(types)
        at = 0
        while value.remaining:
            draft.note(_next_of(columns, at), **{fact: value.net_integer(fact)})
            at += 1

    return read


def _names(draft: _Draft, value: Cursor) -> None:
    column = 0
    while value.remaining:
        size = value.net_integer("the length of a name")
        draft.note(draft.check(column), name=value.text(size, "the name of a column"))
        column += 1


def _members(type_code: int) -> Callable[[_Draft, Cursor], None]:
    def read(draft: _Draft, value: Cursor) -> None:
        columns = draft.columns_of(frozenset({type_code}))
        at = 0
        while value.remaining:
            members = tuple(
                value.take(value.net_integer("the length of a member"), "a member")
                for _ in range(value.net_integer("the number of members"))
            )
            draft.note(_next_of(columns, at), members=members)
            at += 1

    return read


def _simple_key(draft: _Draft, value: Cursor) -> None:
    while value.remaining:
        column = draft.check(value.net_integer("a column of the primary key"))
        draft.key += (KeyPart(column),)


def _key_with_prefixes(draft: _Draft, value: Cursor) -> None:
    while value.remaining:
        column = draft.check(value.net_integer("a column of the primary key"))
        draft.key += (KeyPart(column, value.net_integer("the length of a prefix")),)


# Optional_metadata_field_type, rows_event.h.
_FIELDS: Mapping[int, Callable[[_Draft, Cursor], None]] = MappingProxyType(
    {
        1: _signedness,
        2: _default_collation(CHARACTER_TYPES),
        3: _one_number_each(CHARACTER_TYPES, "collation_id"),
        4: _names,
        5: _members(SET),
        6: _members(ENUM),
        7: _one_number_each(frozenset({GEOMETRY}), "geometry_type"),
        8: _simple_key,
        9: _key_with_prefixes,
        10: _default_collation(_CHOICE_TYPES),
        11: _one_number_each(_CHOICE_TYPES, "collation_id"),
        12: _visibility,
        13: _one_number_each(frozenset({VECTOR}), "vector_dimensions"),
    }
)
