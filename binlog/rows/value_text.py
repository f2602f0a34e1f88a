"""Writes the value of a column for output: as SELECT shows it, if that is readable.

1. Equal values have equal text. No value is truncated here, and no character is invented.
2. Bytes that are not text, and bytes in an unknown character set that are not plain ASCII, are
   written in hexadecimal. A geometry is written as WKT.
3. The output shows what is unknown: a negative integer of unknown signedness is written with both
   readings, and an ENUM without members as a number.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

from binlog.rows.charsets import decode_text, is_plain
from binlog.rows.geometry_text import geometry_text
from binlog.rows.images import BIT, ENUM, FLOAT, GEOMETRY, SET, VECTOR
from binlog.rows.json_values import JsonDiff, JsonDiffs, JsonDocument, json_text
from binlog.rows.number_text import double_text, single_text
from binlog.rows.tables import INT24, INTEGERS, LONG, LONGLONG, SHORT, TINY, RowColumn
from binlog.rows.values import ABSENT, Value
from binlog.schema.charset_names import BINARY

NULL = "NULL"
NOT_LOGGED = "(not logged)"
_BITS = {TINY: 8, SHORT: 16, INT24: 24, LONG: 32, LONGLONG: 64}
_VECTOR_ITEM_BYTES = 4


def value_text(column: RowColumn, value: Value) -> str:
    """Write one value on one line."""
    match value:
        case None:
            return NULL
        case _ if value is ABSENT:
            return NOT_LOGGED
        case int():
            return _number_text(column, value)
        case float():
            return single_text(value) if column.type_code == FLOAT else double_text(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return _bytes_text(column, value)
        case JsonDocument(root):
            return json_text(root)
        case JsonDiffs(steps):
            return ", ".join(map(diff_text, steps))
        case _:
            return str(value)


def diff_text(step: JsonDiff) -> str:
    """Write one step of a partial update: `replace $.a: 77`."""
    value = "" if step.value is None else f": {json_text(step.value.root)}"
    return f"{step.kind.name.lower()} {step.path}{value}"


def members_of(column: RowColumn, number: int) -> tuple[str, ...] | None:
    """Return the members that an ENUM's or SET's number means; None if they are unknown.

    The number 0 of an ENUM is not a member: MySQL stores it for an invalid value outside strict
    mode.
    """
    members = column.members
    if members is None:
        return None
    if column.type_code == ENUM:
        if number > len(members):
            return None
        return (members[number - 1],) if number else ()
    if number >> len(members):
        return None
    return tuple(member for at, member in enumerate(members) if number >> at & 1)


def text_of(column: RowColumn, value: bytes) -> str | None:
    """Return a string's text; None if it is binary, or if its text is not certain."""
    if column.charset == BINARY or not column.is_string:
        return None
    if column.charset is None:
        # In most sets where these bytes are not ASCII, the value would contain zeros; not in swe7.
        return value.decode("ascii") if is_plain(value, "ascii") else None
    return decode_text(value, column.charset)


def _number_text(column: RowColumn, value: int) -> str:
    kind = column.type_code
    if kind == BIT:
        return f"b'{value:b}'"
    if kind in (ENUM, SET):
        members = members_of(column, value)
        return f"#{value}" if members is None else ",".join(members)
    if kind in INTEGERS and column.is_unsigned is None and value < 0:
        return f"{value} or {value + (1 << _BITS[kind])}"
    return str(value)


def _bytes_text(column: RowColumn, value: bytes) -> str:
    if column.type_code == VECTOR and len(value) % _VECTOR_ITEM_BYTES == 0:
        items = struct.unpack(f"<{len(value) // _VECTOR_ITEM_BYTES}f", value)
        if all(map(math.isfinite, items)):
            return "[" + ",".join(map(single_text, items)) + "]"
    text = geometry_text(value) if column.type_code == GEOMETRY else text_of(column, value)
    # Bytes, and text in a character set without a Python codec, are readable if plain ASCII.
    charset = "ascii" if column.charset in (None, BINARY) else column.charset
    if text is None and column.is_string and is_plain(value, charset):
        text = value.decode("ascii")
    return f"0x{value.hex().upper()}" if text is None else text
