"""Describes a table whose rows are read: its facts, and where they come from.

1. Types, sizes and the number of columns always come from the binlog. All other facts (names,
   signedness, character sets, members, keys) come from the binlog if it logs them, else from a
   definition.
2. A definition that does not fit the logged types is of another time or of another table. It is not
   used at all, not even in part; `mismatch` states the difference.
3. A fact that neither contains is None. A name is never invented; output may call a column @1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from binlog.events import TableMap
from binlog.rows.charsets import decode_text, is_plain
from binlog.rows.images import (
    DOUBLE,
    FLOAT,
    NEWDECIMAL,
    VECTOR,
)
from binlog.schema.charset_names import BINARY, CHARSET_OF_COLLATION
from binlog.schema.check import misfit
from binlog.schema.table_definitions import Column, TableDefinition
from binlog.table_metadata import (
    CHARACTER_TYPES,
    ColumnMetadata,
    TableMetadata,
    read_table_metadata,
    real_types,
)

# enum_field_types, include/field_types.h; the others are in binlog/rows/images.py.
TINY, SHORT, LONG, LONGLONG, INT24 = 1, 2, 3, 8, 9
OLD_TIMESTAMP, OLD_DATETIME = 7, 12
INTEGERS = frozenset({TINY, SHORT, INT24, LONG, LONGLONG})
STRINGS = CHARACTER_TYPES - {VECTOR}

_DESCRIPTIONS_MAX: Final = 1024
_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


class Origin(Enum):
    """Where the names of a table's columns come from."""

    BINLOG = "the binlog"
    DEFINITION = "a definition"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One column of a row image. A field is None if unknown, or not applicable to the type."""

    # enum_field_types; ENUM and SET are logged as STRING, but have their own code here.
    type_code: int
    metadata: int
    name: str | None = None
    is_unsigned: bool | None = None
    charset: str | None = None
    members: tuple[str, ...] | None = None
    is_generated: bool | None = None
    is_invisible: bool | None = None

    @property
    def is_string(self) -> bool:
        """Whether a value is bytes in a character set, which may be binary or unknown."""
        return self.type_code in STRINGS


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table for reading its rows. `key` contains column indexes; None if it is unknown."""

    schema: str
    table: str
    columns: tuple[RowColumn, ...]
    # The primary key, or a unique key of NOT NULL columns: () if there is none.
    key: tuple[int, ...] | None
    origin: Origin
    # Why the definition is not used.
    mismatch: str | None = None
    # The columns of each other unique key in the definition; all columns of the table for a key
    # that is not of whole columns (a prefix, an expression).
    unique_keys: tuple[tuple[int, ...], ...] = ()
    # With a mismatch: what the log says of the table, and the definition that is not used.
    unfitting: tuple[TableMap, TableDefinition] | None = None

    def __post_init__(self) -> None:
        assert all(at < len(self.columns) for at in self.key or ())
        assert (self.origin is Origin.NOWHERE) == (not self.has_names)

    @property
    def has_names(self) -> bool:
        """Whether every column has a name."""
        return all(column.name is not None for column in self.columns)

    @property
    def name(self) -> str:
        """The table's name for output."""
        return f"{self.schema}.{self.table}"


def describe_table(table_map: TableMap, definition: TableDefinition | None = None) -> RowTable:
    """Combine the facts about a table in the binlog with those in a definition.

    Raises `MalformedBody` for optional metadata that does not fit the table.
    """
    metadata = read_table_metadata(table_map)
    types = real_types(table_map)
    mismatch = misfit(definition, table_map) if definition else None
    used = None if mismatch else definition
    columns = tuple(
        _column(
            (type_code, table_map.column_metadata[at]),
            metadata.columns[at],
            used.columns[at] if used else None,
        )
        for at, type_code in enumerate(types)
    )
    origin = Origin.NOWHERE
    if metadata.is_full:
        origin = Origin.BINLOG
    elif used:
        origin = Origin.DEFINITION
    return RowTable(
        schema=table_map.schema,
        table=table_map.table,
        columns=columns,
        key=_key(metadata, used),
        origin=origin,
        mismatch=mismatch,
        unique_keys=tuple(_unique_keys(used)) if used else (),
        unfitting=(table_map, definition) if mismatch and definition else None,
    )


class TableDescriptions:
    """Describes tables, and returns the same object for the same TABLE_MAP and definition."""

    def __init__(self) -> None:
        # The definition is kept, so that no other object can get its id.
        self._known: dict[tuple[TableMap, int], tuple[RowTable, TableDefinition | None]] = {}

    def __call__(self, table_map: TableMap, definition: TableDefinition | None) -> RowTable:
        """Return `describe_table`. Raises MalformedBody."""
        key = (table_map, id(definition))
        if (known := self._known.get(key)) is None:
            if len(self._known) >= _DESCRIPTIONS_MAX:
                self._known.clear()
            self._known[key] = known = describe_table(table_map, definition), definition
        return known[0]


def _column(
    logged_type: tuple[int, int], logged: ColumnMetadata, defined: Column | None
) -> RowColumn:
    type_code, metadata = logged_type
    charset = CHARSET_OF_COLLATION.get(logged.collation_id) if logged.collation_id else None
    members = None
    if logged.members is not None:
        members = tuple(_member(each, charset) for each in logged.members)
    column = RowColumn(
        type_code,
        metadata,
        name=logged.name,
        is_unsigned=logged.is_unsigned,
        charset=charset,
        members=members,
        is_invisible=None if logged.is_visible is None else not logged.is_visible,
    )
    return column if defined is None else _completed(column, defined)


def _member(member: bytes, charset: str | None) -> str:
    """Return a member's text, or its bytes in hexadecimal if the text is not certain."""
    text = decode_text(member, charset)
    if text is None and is_plain(member, charset):
        text = member.decode("ascii")
    return f"0x{member.hex().upper()}" if text is None else text


def _completed(column: RowColumn, defined: Column) -> RowColumn:
    """Add the facts that only the definition contains."""
    is_number = column.type_code in INTEGERS | {NEWDECIMAL, FLOAT, DOUBLE}
    charset = BINARY if defined.base_type in _BINARY_TYPES else defined.charset
    return replace(
        column,
        name=column.name or defined.name,
        is_unsigned=(
            defined.is_unsigned if column.is_unsigned is None and is_number else column.is_unsigned
        ),
        charset=column.charset or charset,
        members=column.members or defined.members or None,
        is_generated=defined.is_generated is not None,
        is_invisible=defined.is_invisible,
    )


def _unique_keys(used: TableDefinition) -> Iterator[tuple[int, ...]]:
    places = {column.name.casefold(): at for at, column in enumerate(used.columns)}
    for key in used.unique_keys:
        names = key.columns if key.is_exact else places
        yield tuple(places[name.casefold()] for name in names)


def _key(metadata: TableMetadata, used: TableDefinition | None) -> tuple[int, ...] | None:
    """Return the columns that identify a row. A key with nullable columns does not."""
    if metadata.primary_key:
        return tuple(part.column for part in metadata.primary_key)
    if used is None or not used.is_complete:
        return None if metadata.primary_key is None else ()
    places = {column.name.casefold(): at for at, column in enumerate(used.columns)}
    candidates = [used.primary_key, *(key.columns for key in used.unique_keys if key.is_exact)]
    for names in candidates:
        key = tuple(places[name.casefold()] for name in names)
        if key and not any(used.columns[at].is_nullable for at in key):
            return key
    return ()
