"""Finds where each row image ends, without decoding a value.

A row event does not contain its number of rows. Only the lengths of the values lead from one image
to the next, and they follow from the types and metadata in the TABLE_MAP. The rules are those of
calc_field_size and max_display_length_for_field, libs/mysql/binlog/event/binary_log_funcs.cpp.
This module handles lengths only; `values` decodes the values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

from binlog.cursor import Cursor
from binlog.events import Rows, TableMap

# enum_field_types, include/field_types.h.
FLOAT, DOUBLE, VARCHAR, BIT = 4, 5, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB = 249, 250, 251, 252
VAR_STRING, STRING, GEOMETRY = 253, 254, 255

# TINY, SHORT, LONG, NULL, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR, NEWDATE.
_FIXED_BYTES: Mapping[int, int] = MappingProxyType(
    {1: 1, 2: 2, 3: 4, 6: 0, 7: 4, 8: 8, 9: 3, 10: 3, 11: 3, 12: 8, 13: 1, 14: 3}
)

# The bytes of metadata of each type in a TABLE_MAP, and their order. Other types have none.
_METADATA: Mapping[int, tuple[int, Literal["little", "big"]]] = MappingProxyType(
    {
        **dict.fromkeys((FLOAT, DOUBLE, TIMESTAMP2, DATETIME2, TIME2, JSON, VECTOR), (1, "big")),
        **dict.fromkeys((TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, GEOMETRY), (1, "big")),
        **dict.fromkeys((VARCHAR, BIT), (2, "little")),
        # Two separate bytes, which the rules below use as high and low.
        **dict.fromkeys((NEWDECIMAL, ENUM, SET, STRING, VAR_STRING), (2, "big")),
    }
)

_DIGITS_TO_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
ONE_BYTE_LENGTH_MAX = 255


def read_column_metadata(types: bytes, metadata: Cursor) -> tuple[int, ...]:
    """Split the metadata block of a TABLE_MAP into one number per column."""
    numbers: list[int] = []
    for kind in types:
        count, order = _METADATA.get(kind, (0, "big"))
        numbers.append(int.from_bytes(metadata.take(count, f"metadata of type {kind}"), order))
    return tuple(numbers)


def count_rows(rows: Rows, table: TableMap) -> int:
    """Count the rows of one event: an update's two images are one row.

    A row without any logged column (binlog_row_image=MINIMAL, INSERT … VALUES ()) takes no bytes.
    Any number of such rows in an event is counted as one.

    Raises `MalformedBody` (offset within `rows.images`) if the images do not fit the columns.
    """
    count = sum(1 for _ in row_spans(rows, table))
    before, after = rows.columns_before, rows.columns_after
    is_logged = _present(before, table) or (after and _present(after, table))
    return count if is_logged else 1


def row_spans(rows: Rows, table: TableMap) -> Iterator[tuple[int, int]]:
    """Yield where each row begins and ends in `rows.images`: an update's two images are one row.

    Rows without any logged column take no bytes, and are omitted.

    Raises `MalformedBody` (offset within `rows.images`) if the images do not fit the columns.
    """
    assert rows.table_id == table.table_id
    cursor = Cursor(rows.images)
    if rows.column_count != len(table.column_types):
        raise cursor.fail(
            f"expected {len(table.column_types)} columns of {table.schema}.{table.table}, "
            f"found {rows.column_count}"
        )
    before = _present(rows.columns_before, table)
    after = _present(rows.columns_after, table) if rows.columns_after else None
    json_columns = table.column_types.count(JSON)
    while cursor.remaining:
        start = cursor.at
        _skip_image(cursor, before)
        if after is not None:
            if rows.is_partial and cursor.net_integer("the value options") & 1:
                cursor.take((json_columns + 7) // 8, "the bitmap of partial JSON values")
            _skip_image(cursor, after)
        if cursor.at == start:
            raise cursor.fail("a row image of no bytes")
        yield start, cursor.at


def _present(bitmap: bytes, table: TableMap) -> tuple[tuple[int, int], ...]:
    columns = zip(table.column_types, table.column_metadata, strict=True)
    return tuple(c for at, c in enumerate(columns) if bitmap[at >> 3] >> (at & 7) & 1)


def _skip_image(cursor: Cursor, columns: Iterable[tuple[int, int]]) -> None:
    columns = tuple(columns)
    nulls = cursor.take((len(columns) + 7) // 8, "the bitmap of NULLs")
    for at, (kind, metadata) in enumerate(columns):
        if not nulls[at >> 3] >> (at & 7) & 1:
            skip_value(cursor, kind, metadata)


def skip_value(cursor: Cursor, kind: int, metadata: int) -> None:
    """Skip one value, including its length bytes if it has any. Raises `MalformedBody`."""
    if kind in _FIXED_BYTES:
        cursor.take(_FIXED_BYTES[kind], "a value")
    elif kind in _SKIPS:
        _SKIPS[kind](cursor, metadata)
    else:
        raise cursor.fail(f"expected a column type, found {kind}")


def _skip_sized(cursor: Cursor, metadata: int) -> None:
    """Skip a FLOAT or DOUBLE: the metadata is the size."""
    cursor.take(metadata, "a value")


def _skip_blob(cursor: Cursor, metadata: int) -> None:
    """Skip a blob, JSON, GEOMETRY or VECTOR: the metadata is the number of length bytes."""
    cursor.take(cursor.integer(metadata, "the length of a value"), "a value")


def _skip_variable(cursor: Cursor, length_max: int) -> None:
    """Skip a VARCHAR: it has one length byte, or two if the longest value needs them."""
    size = 2 if length_max > ONE_BYTE_LENGTH_MAX else 1
    cursor.take(cursor.integer(size, "the length of a value"), "a value")


def _skip_string(cursor: Cursor, metadata: int) -> None:
    """Skip a CHAR, or an ENUM or SET logged with its type; the high byte is the real type."""
    if metadata >> 8 in (ENUM, SET):
        cursor.take(metadata & 0xFF, "a value")
    else:
        _skip_variable(cursor, char_length(metadata))


def char_length(metadata: int) -> int:
    """Return the bytes of the longest value of a CHAR or BINARY.

    It is the low byte. For lengths above 255, bits 4 and 5 of the type in the high byte contain the
    two highest bits of the length, inverted.
    """
    return ((metadata >> 4 & 0x300) ^ 0x300) + (metadata & 0xFF)


def _skip_decimal(cursor: Cursor, metadata: int) -> None:
    """Skip a DECIMAL: on each side nine digits take four bytes, the rest by table.

    The rule is that of decimal_binary_size.
    """
    precision, scale = metadata >> 8, metadata & 0xFF
    if scale > precision:
        raise cursor.fail(f"expected a scale of {precision} or less, found {scale}")
    sides = (precision - scale, scale)
    cursor.take(sum(d // 9 * 4 + _DIGITS_TO_BYTES[d % 9] for d in sides), "a decimal")


def _skip_bit(cursor: Cursor, metadata: int) -> None:
    """Skip a BIT: the high byte counts whole bytes, the low byte the remaining bits."""
    cursor.take((metadata >> 8) + (metadata & 0xFF > 0), "a value")


def _skip_temporal(base: int) -> Callable[[Cursor, int], None]:
    """Return a function that skips a TIME, DATETIME or TIMESTAMP with two digits per extra byte."""

    def skip(cursor: Cursor, digits: int) -> None:
        cursor.take(base + (digits + 1) // 2, "a value")

    return skip


_SKIPS: Mapping[int, Callable[[Cursor, int], None]] = MappingProxyType(
    {
        **dict.fromkeys((FLOAT, DOUBLE), _skip_sized),
        **dict.fromkeys((TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB), _skip_blob),
        **dict.fromkeys((VECTOR, JSON, GEOMETRY), _skip_blob),
        **dict.fromkeys((VARCHAR,), _skip_variable),
        **dict.fromkeys((STRING, ENUM, SET), _skip_string),
        NEWDECIMAL: _skip_decimal,
        BIT: _skip_bit,
        TIMESTAMP2: _skip_temporal(4),
        DATETIME2: _skip_temporal(5),
        TIME2: _skip_temporal(3),
    }
)
