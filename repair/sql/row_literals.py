"""Writes the value of a column as SQL, to store it and to find it.

1. The stored value is the logged one, to the last bit: text by its bytes and character set if
   quoting could change it, floating-point numbers by the digits that give the same double.
2. The value that is found is the logged one. Text is compared by its bytes, because a collation
   treats 'a' and 'A' as equal. A FLOAT is compared by its double (1.1 in a FLOAT column is
   1.100000023841858, and equal to no shorter number). Members of ENUM and SET are compared by
   number.
3. The session must have the settings of `replay`: sql_mode, time_zone and character set matter.
4. A value that cannot be written exactly raises CannotRender, never an approximation.
"""

from __future__ import annotations

import re
from decimal import Decimal

from binlog.quoting import quote_string
from binlog.rows.charsets import UTF8, decode_text, is_plain
from binlog.rows.images import GEOMETRY, SET, VECTOR
from binlog.rows.json_values import (
    JsonDecimal,
    JsonDocument,
    JsonObject,
    JsonOpaque,
    JsonTemporal,
    JsonUnsigned,
    JsonValue,
    json_text,
)
from binlog.rows.tables import INTEGERS, RowColumn
from binlog.rows.temporal import TemporalKind
from binlog.rows.values import Value
from binlog.schema.charset_names import BINARY

# Opaque bytes in a JSON document keep their column's type; a literal can only produce a VARCHAR's.
_LITERAL_OPAQUE = 15
_SIGNED_END = 1 << 63
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_UNESCAPED = str.maketrans({"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r"})
_CASTS = {
    TemporalKind.DATE: "DATE",
    TemporalKind.TIME: "TIME(6)",
    TemporalKind.DATETIME: "DATETIME(6)",
}


class CannotRender(Exception):
    """Why a row cannot be written as SQL, for the operator."""


def literal(column: RowColumn, value: Value) -> str:
    """Return a value as SQL, to be stored. Raises CannotRender."""
    match value:
        case None:
            return "NULL"
        case int():
            if column.type_code in INTEGERS and column.is_unsigned is None and value < 0:
                raise CannotRender(
                    f"{_label(column)} may be signed or unsigned: the log does not show which"
                )
            return str(value)
        case float():
            return _double(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return _string(column, value)
        case JsonDocument(root):
            return json_expression(root)
        case str():
            return quote_string(value)
        case _:
            raise CannotRender(f"{_label(column)} was logged as differences only")


def condition(column: RowColumn, identifier: str, value: Value, *, is_key: bool) -> str:
    """Return the condition that a column holds a value. Raises CannotRender.

    A key is compared directly, so that the server uses its index: no two rows have an equal key.
    That it is equal by its collation does not make it the same value: see `same_bytes`.
    """
    if value is None:
        return f"{identifier} IS NULL"
    text = literal(column, value)
    if is_bytes(column) and not is_key:
        return same_bytes(column, identifier, value)
    if column.type_code == SET and isinstance(value, int) and value >= _SIGNED_END:
        # In a comparison a SET is a signed number (seen on 5.6.24 and 9.7.4).
        return f"({identifier} | 0) = {text}"
    return f"{identifier} = {text}"


def same_bytes(column: RowColumn, identifier: str, value: Value) -> str:
    """Return the condition that a column holds a value byte by byte; "" if it has no bytes.

    Collations treat 'm' and 'M', 'e' and an accented one, and text with trailing spaces as equal.
    Raises CannotRender.
    """
    if value is None or not is_bytes(column):
        return ""
    return f"CAST({identifier} AS BINARY) = {literal(column, value)}"


def is_bytes(column: RowColumn) -> bool:
    """Return whether a column is compared byte by byte."""
    return column.is_string or column.type_code in {GEOMETRY, VECTOR}


def type_with_members(column: RowColumn) -> str:
    """Return the start of the type of an ENUM or SET, as COLUMN_TYPE shows it.

    It follows append_unescaped (sql/sql_show.cc; seen on 5.6.24 and 9.7.4). A character outside the
    basic multilingual plane is a question mark there. Raises CannotRender if two members then look
    the same, because their order would not be visible.
    """
    assert column.members
    shown = [_BEYOND_BMP.sub("?", member.translate(_UNESCAPED)) for member in column.members]
    if len(set(shown)) < len(shown):
        raise CannotRender(
            f"{_label(column)} has members that information_schema shows as equal: their order on"
            " the server cannot be checked"
        )
    kind = "set" if column.type_code == SET else "enum"
    members = ",".join(f"'{member}'" for member in shown)
    return f"{kind}({members}"


def json_expression(value: JsonValue) -> str:
    """Return a document as SQL. Text produces most of them; functions produce the others.

    In text an unsigned integer becomes a signed one, a decimal a double, a date a string.
    """
    if _is_plain_json(value):
        return f"CAST({quote_string(json_text(value))} AS JSON)"
    match value:
        case JsonObject(members):
            pairs = (f"{quote_string(key)}, {json_expression(item)}" for key, item in members)
            return f"JSON_OBJECT({', '.join(pairs)})"
        case tuple():
            return f"JSON_ARRAY({', '.join(map(json_expression, value))})"
        case JsonUnsigned(number):
            return f"CAST(CAST({number} AS UNSIGNED) AS JSON)"
        case JsonDecimal():
            typed = f"CAST({value.value:f} AS DECIMAL({value.precision},{value.scale}))"
            return f"CAST({value.literal or typed} AS JSON)"
        case JsonTemporal():
            return f"CAST(CAST({quote_string(value.text)} AS {_CASTS[value.kind]}) AS JSON)"
        case JsonOpaque() if value.type_code == _LITERAL_OPAQUE and value.data:
            return f"CAST(0x{value.data.hex()} AS JSON)"
        case JsonOpaque():
            what = f"bytes of column type {value.type_code}, which no SQL literal can express"
            raise CannotRender(f"a JSON document contains {what}")
    raise AssertionError(value)


def _is_plain_json(value: JsonValue) -> bool:
    match value:
        case JsonObject(members):
            return all(_is_plain_json(item) for _, item in members)
        case tuple():
            return all(map(_is_plain_json, value))
        case JsonUnsigned(number):
            return number >= _SIGNED_END
        case JsonDecimal() | JsonTemporal() | JsonOpaque():
            return False
    return True


def _double(value: float) -> str:
    """Return a double as SQL: without an exponent MySQL would read a DECIMAL."""
    text = repr(value)
    return text if "e" in text else text + "e0"


def _string(column: RowColumn, value: bytes) -> str:
    if not value:
        return "''"
    hexadecimal = f"0x{value.hex()}"
    charset = column.charset
    if column.type_code in {GEOMETRY, VECTOR}:
        return hexadecimal
    if charset == BINARY:
        return _quoted(value) if is_plain(value, "ascii") else hexadecimal
    if is_plain(value, charset or "ascii"):
        return _quoted(value)
    if charset is None:
        raise CannotRender(f"the character set of {_label(column)} is not known")
    if charset in UTF8:
        text = decode_text(value, charset)
        return hexadecimal if text is None else quote_string(text)
    return f"_{charset} {hexadecimal}"


def _quoted(value: bytes) -> str:
    return quote_string(value.decode("ascii"))


def _label(column: RowColumn) -> str:
    return f"column {column.name}" if column.name else "a column"
