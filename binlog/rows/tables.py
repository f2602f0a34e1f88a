"""What is known of a table whose rows are to be read, and from where.

1. Types, sizes and the number of columns are the binlog's own, always. Everything else (names,
   signs, character sets, members, keys) is the binlog's where it says it, else a definition's.
2. A definition that does not fit the logged types is of another time or another table: it is not
   used, and `mismatch` says what does not fit. Nothing is taken from it by halves.
3. What neither says is None. A name is never made up; who shows a column may call it @1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from binlog.events import TableMap
from binlog.rows.charsets import decode_text, is_plain
from binlog.rows.images import (
    DOUBLE,
    FLOAT,
    NEWDECIMAL,
    VECTOR,
)
from binlog.schema.charsets import BINARY, CHARSET_OF_COLLATION
from binlog.schema.check import misfit
from binlog.schema.tables import Column, TableDefinition
from binlog.table_metadata import (
    CHARACTER_TYPES,
    ColumnMetadata,
    TableMetadata,
    read_table_metadata,
    real_types,
)

# enum_field_types, include/field_types.h; the others are in row_images.
TINY, SHORT, LONG, LONGLONG, INT24 = 1, 2, 3, 8, 9
OLD_TIMESTAMP, OLD_DATETIME = 7, 12
INTEGERS = frozenset({TINY, SHORT, INT24, LONG, LONGLONG})
STRINGS = CHARACTER_TYPES - {VECTOR}

_BINARY_TYPES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


class Origin(Enum):
    """Where the names of a table's columns come from."""

    BINLOG = "the binlog"
    DEFINITION = "a definition"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One column of a row image. What is None is not known, or has no sense for the type."""

    # enum_field_types, with ENUM and SET in place of the STRING they are logged as.
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
        """True if a value is bytes in a character set, which may be binary or not known."""
        return self.type_code in STRINGS


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table as its rows are read. `key` holds indexes of columns; None if it is not known."""

    schema: str
    table: str
    columns: tuple[RowColumn, ...]
    # The primary key, or a unique key without NULLs: () if there is none.
    key: tuple[int, ...] | None
    origin: Origin
    # Why the definition that was given is not used.
    mismatch: str | None = None
    # Columns of each other unique key, as far as a definition shows them; all where it is not of
    # whole columns (a prefix, an expression).
    unique_keys: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        assert all(at < len(self.columns) for at in self.key or ())
        assert (self.origin is Origin.NOWHERE) == (not self.has_names)

    @property
    def has_names(self) -> bool:
        """True if every column has a name."""
        return all(column.name is not None for column in self.columns)

    @property
    def name(self) -> str:
        """The table's name for a person."""
        return f"{self.schema}.{self.table}"


def describe_table(table_map: TableMap, definition: TableDefinition | None = None) -> RowTable:
    """Join what the binlog says of a table and what a definition says.

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
    )


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
    """Return a member's text; where it has none that is certain, its bytes, as values are shown."""
    text = decode_text(member, charset)
    if text is None and is_plain(member, charset):
        text = member.decode("ascii")
    return f"0x{member.hex().upper()}" if text is None else text


def _completed(column: RowColumn, defined: Column) -> RowColumn:
    """Add what only the definition says."""
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
    """Return the columns that tell a row from all others. A key that may be NULL does not."""
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
