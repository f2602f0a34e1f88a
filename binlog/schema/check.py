"""Checks whether a definition fits a TABLE_MAP, before any row is read.

1. The check compares the number of columns. For each column it compares the type with length and
   fraction, the nullability and, with binlog_row_metadata=FULL, the name. A definition that fits
   may still be wrong in facts that are not logged.
2. Types and their metadata: Field_…::do_save_field_metadata, sql/field.cc. Tables that were not
   rebuilt since 5.5 log the older temporal types, which also fit.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from binlog.events import TableMap
from binlog.rows.images import (
    BIT,
    BLOB,
    ENUM,
    GEOMETRY,
    NEWDECIMAL,
    SET,
    STRING,
    VARCHAR,
    VECTOR,
    char_length,
)
from binlog.schema.charset_names import CHARACTER_BYTES_MAX
from binlog.schema.logged_types import (
    FRACTIONAL,
    GEOMETRIES,
    INTEGERS,
    LENGTH_BYTES,
    OF_OLD_TEMPORAL,
    PLAIN,
)
from binlog.schema.table_definitions import Column, TableDefinition
from binlog.table_metadata import read_table_metadata, real_type

# The number of bytes of a length, or of a number, as in the metadata.
_DOCUMENT_LENGTH_BYTES = 4
_METADATA = {"float": 4, "double": 8, "json": _DOCUMENT_LENGTH_BYTES}
_ONE_BYTE_MEMBERS_MAX = 255
_SET_BYTES_MAX = 4  # a larger SET takes eight: get_set_pack_length, sql/field.h


def misfit(definition: TableDefinition, table: TableMap) -> str | None:
    """Return why the rows do not fit this definition; None if they do.

    Raises `MalformedBody` for optional metadata that does not fit the TABLE_MAP itself.
    """
    logged = len(table.column_types)
    if logged != definition.column_count:
        return (
            f"Column count doesn't match value count: the definition has {definition.column_count}"
            f" columns, the rows have {logged}"
        )
    metadata = read_table_metadata(table)
    for at, column in enumerate(definition.columns):
        found = (table.column_types[at], table.column_metadata[at])
        if not _fits(column, *found):
            return (
                f"column {at + 1}, {column.name}, is {column.type_text};"
                f" the log has {_shown(*found)}"
            )
        facts = metadata.columns[at]
        if facts.name is not None and facts.name.casefold() != column.name.casefold():
            return f"column {at + 1} is {column.name}, and was logged as {facts.name}"
        if facts.is_unsigned not in (None, column.is_unsigned) and column.base_type != "year":
            sign = "unsigned" if facts.is_unsigned else "signed"
            return f"column {at + 1}, {column.name}, is {column.type_text}; the log has it {sign}"
        if table.nullable and column.is_nullable != _bit(table.nullable, at):
            may = "may" if _bit(table.nullable, at) else "may not"
            return f"column {at + 1}, {column.name}, {may} be NULL in the log"
    return None


def column_misfit(column: Column, type_code: int, metadata: int) -> str | None:
    """Return why a column cannot contain values of a logged type; None if it can."""
    if _fits(column, type_code, metadata):
        return None
    return f"{column.name} is {column.type_text}; the log has {_shown(type_code, metadata)}"


def _bit(bits: bytes, at: int) -> bool:
    return bool(bits[at >> 3] >> (at & 7) & 1)


def _shown(type_code: int, metadata: int) -> str:
    return f"type {real_type(type_code, metadata)} with metadata {metadata}"


def _fits(column: Column, type_code: int, metadata: int) -> bool:
    expected_type, expected_metadata = _EXPECTED[column.base_type](column)
    found = real_type(type_code, metadata)
    if found in OF_OLD_TEMPORAL:
        return OF_OLD_TEMPORAL[found] == column.base_type and expected_metadata == 0
    if found in (ENUM, SET):  # logged as STRING: the type, and the bytes of a value
        return (found, metadata & 0xFF) == (expected_type, expected_metadata)
    if found == STRING:
        return (STRING, char_length(metadata)) == (expected_type, expected_metadata)
    return (found, metadata) == (expected_type, expected_metadata)


def _numbers(column: Column) -> tuple[int, ...]:
    inside = column.type_text.partition("(")[2].partition(")")[0]
    return tuple(map(int, inside.split(","))) if inside else ()


def _bytes_per_character(column: Column) -> int:
    return CHARACTER_BYTES_MAX[column.charset] if column.charset else 1


def _fixed(type_code: int, metadata: int = 0) -> Callable[[Column], tuple[int, int]]:
    return lambda _column: (type_code, metadata)


def _sized(type_code: int) -> Callable[[Column], tuple[int, int]]:
    return lambda column: (type_code, _numbers(column)[0] * _bytes_per_character(column))


def _fraction(type_code: int) -> Callable[[Column], tuple[int, int]]:
    return lambda column: (type_code, (*_numbers(column), 0)[0])


def _decimal(column: Column) -> tuple[int, int]:
    precision, scale = _numbers(column)
    return NEWDECIMAL, precision << 8 | scale


def _bit_field(column: Column) -> tuple[int, int]:
    [bits] = _numbers(column)
    return BIT, bits // 8 << 8 | bits % 8


def _enum(column: Column) -> tuple[int, int]:
    return ENUM, 1 if len(column.members) <= _ONE_BYTE_MEMBERS_MAX else 2


def _set(column: Column) -> tuple[int, int]:
    size = (len(column.members) + 7) // 8
    return SET, size if size <= _SET_BYTES_MAX else 8


def _lengths() -> dict[str, Callable[[Column], tuple[int, int]]]:
    return {
        f"{prefix}{kind}": _fixed(BLOB, count)
        for prefix, count in LENGTH_BYTES.items()
        for kind in ("text", "blob")
    }


_EXPECTED: Mapping[str, Callable[[Column], tuple[int, int]]] = MappingProxyType(
    {
        **{name: _fixed(code) for name, code in INTEGERS.items()},
        **{name: _fixed(code, _METADATA.get(name, 0)) for name, code in PLAIN.items()},
        **{name: _fraction(code) for name, code in FRACTIONAL.items()},
        "decimal": _decimal,
        "bit": _bit_field,
        **dict.fromkeys(("char", "binary"), _sized(STRING)),
        **dict.fromkeys(("varchar", "varbinary"), _sized(VARCHAR)),
        **_lengths(),
        "enum": _enum,
        "set": _set,
        "vector": _fixed(VECTOR, _DOCUMENT_LENGTH_BYTES),
        **dict.fromkeys(GEOMETRIES, _fixed(GEOMETRY, _DOCUMENT_LENGTH_BYTES)),
    }
)
