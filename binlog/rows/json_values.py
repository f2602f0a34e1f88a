"""Reads MySQL's binary JSON, and writes it as MySQL prints it.

1. The format is that of json_binary.h: a type byte, then a scalar, or the count, size and offsets
   of an object or array, followed by the values of its members.
2. A value keeps what JSON text would lose: unsigned integers, decimals, dates, opaque bytes. Each
   has a class here, so that a value can be recreated exactly.
3. The library's own reader is not used. It drops those types, returns None for a truncated value,
   and reads only one difference of a partial update, although MySQL logs several.
4. Documents nest at most 100 levels (JSON_DOCUMENT_MAX_DEPTH). Deeper ones are rejected, so the
   recursion is limited.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from binlog.cursor import Cursor
from binlog.rows.number_text import double_text
from binlog.rows.temporal import TemporalKind, packed_text

DEPTH_MAX = 100

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY = 0, 1, 2, 3
_LITERAL, _INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64 = 4, 5, 6, 7, 8, 9, 10
_DOUBLE, _STRING, _OPAQUE = 11, 12, 15
_LITERALS = {0: None, 1: True, 2: False}
_INTEGERS = {
    _INT16: (2, True),
    _UINT16: (2, False),
    _INT32: (4, True),
    _UINT32: (4, False),
    _INT64: (8, True),
    _UINT64: (8, False),
}
_OBJECTS, _SMALL = {_SMALL_OBJECT, _LARGE_OBJECT}, {_SMALL_OBJECT, _SMALL_ARRAY}
_CONTAINERS = {_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY}
# Values that are stored in the member's entry itself, instead of their offset.
_INLINED, _INLINED_IN_LARGE = {_LITERAL, _INT16, _UINT16}, {_INT32, _UINT32}
_PACKED_BYTES = 8
# Lengths of strings and opaque values: seven bits a byte, five bytes at most.
_LENGTH_BYTES_MAX = 5

# enum_field_types of opaque values with their own text form: DECIMAL and NEWDECIMAL; DATE and
# NEWDATE; DATETIME and TIMESTAMP, old and new; TIME.
_DECIMAL_TYPES = frozenset({0, 246})
_TEMPORAL_TYPES = {
    **dict.fromkeys((10, 14), TemporalKind.DATE),
    **dict.fromkeys((7, 12, 17, 18), TemporalKind.DATETIME),
    **dict.fromkeys((11, 19), TemporalKind.TIME),
}
_CAST_TYPES = frozenset({10, 11, 12})  # DATE, TIME and DATETIME; no CAST makes a TIMESTAMP
# Reads a decimal with a precision and scale from bytes. Raises `MalformedBody`.
ReadDecimal: TypeAlias = Callable[[bytes, int, int], Decimal]


@dataclass(frozen=True, slots=True)
class JsonUnsigned:
    """An integer whose JSON_TYPE is UNSIGNED INTEGER."""

    value: int


@dataclass(frozen=True, slots=True)
class JsonDecimal:
    """A DECIMAL(precision, scale) inside a document.

    The precision that is logged depends on the expression (seen on 9.7.4): a literal 1.50 has 3, a
    column of type DECIMAL(10,2) 10, and the result of a function or CAST 9 for each begun nine
    digits before the point, and the scale.
    """

    value: Decimal
    precision: int
    scale: int

    @property
    def literal(self) -> str | None:
        """Return the literal that has this precision; None if there is none."""
        text = f"{self.value:f}"
        if self.precision == self.scale:
            return text.replace("0.", ".", 1) if self._whole_digits == 0 else None
        if self.precision != max(1, self._whole_digits) + self.scale:
            return None
        return text if self.scale else f"{text}."

    @property
    def is_reproducible(self) -> bool:
        """Return whether a literal or CAST has this precision."""
        by_cast = 9 * max(1, -(-self._whole_digits // 9)) + self.scale
        return self.literal is not None or self.precision == by_cast

    @property
    def _whole_digits(self) -> int:
        whole = abs(int(self.value))
        return len(str(whole)) if whole else 0


@dataclass(frozen=True, slots=True)
class JsonTemporal:
    """A date, time or datetime in a document, as text with six digits of fraction."""

    kind: TemporalKind
    text: str


@dataclass(frozen=True, slots=True)
class JsonOpaque:
    """A value of another SQL type inside a document: `type_code` is an enum_field_types."""

    type_code: int
    data: bytes


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Members in MySQL's order: by the length of the key, then by its bytes."""

    members: tuple[tuple[str, JsonValue], ...]


JsonValue: TypeAlias = (
    "bool | int | float | str | JsonUnsigned | JsonDecimal | JsonTemporal | JsonOpaque"
    " | JsonObject | tuple[JsonValue, ...] | None"
)


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """The value of a JSON column; a JSON null is a document whose root is None."""

    root: JsonValue
    # Whether SQL can make a server write the same bytes. A server that changes a document in place
    # (JSON_SET, JSON_REPLACE, JSON_REMOVE) leaves unused bytes; a rewritten document has none. And
    # no expression but the column itself has the type of some values.
    is_reproducible: bool = field(default=True, compare=False, repr=False)


class DiffKind(Enum):
    """enum_json_diff_operation, json_diff.h."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


@dataclass(frozen=True, slots=True)
class JsonDiff:
    """One step of a partial update; `value` is None for REMOVE."""

    kind: DiffKind
    path: str
    value: JsonDocument | None


@dataclass(frozen=True, slots=True)
class JsonDiffs:
    """The steps of a partial update of a document (binlog_row_value_options=PARTIAL_JSON)."""

    steps: tuple[JsonDiff, ...]


def read_json(data: bytes, read_decimal: ReadDecimal) -> JsonDocument:
    """Read a column's value. Raises `MalformedBody`.

    An empty value is a JSON null: an ALTER TABLE may leave it in a NOT NULL column.
    """
    if not data:
        return JsonDocument(None)
    cursor = Cursor(data)
    reader = _Reader(read_decimal, len(data))
    root = reader.value(cursor.integer(1, "a JSON type"), cursor, depth=0)
    is_compact = reader.used + 1 == len(data)
    return JsonDocument(root, is_reproducible=is_compact and reader.is_reproducible)


def read_diffs(data: bytes, read_decimal: ReadDecimal) -> JsonDiffs:
    """Read the differences of a partial update. Raises `MalformedBody`."""
    cursor = Cursor(data)
    steps: list[JsonDiff] = []
    while cursor.remaining:
        number = cursor.integer(1, "a JSON operation")
        if number not in _DIFF_KINDS:
            raise cursor.fail(f"expected a JSON operation, found {number}")
        kind = _DIFF_KINDS[number]
        path = _utf8(cursor, cursor.net_integer("the length of a path"), "a path")
        value = None
        if kind is not DiffKind.REMOVE:
            size = cursor.net_integer("the length of a value")
            value = read_json(cursor.take(size, "a value"), read_decimal)
        steps.append(JsonDiff(kind, path, value))
    return JsonDiffs(tuple(steps))


def json_text(value: JsonValue) -> str:
    """Write a value as MySQL prints it (Json_wrapper::to_string)."""
    return "".join(_pieces(value))


def opaque_text(value: JsonOpaque) -> str:
    """Write a value without its own text form as MySQL does (Json_wrapper::to_string)."""
    return f"base64:type{value.type_code}:{base64.b64encode(value.data).decode()}"


_LITERAL_TEXTS = {None: "null", True: "true", False: "false"}
_DIFF_KINDS = {kind.value: kind for kind in DiffKind}


def _pieces(value: JsonValue) -> Iterator[str]:
    match value:
        case None | bool():
            yield _LITERAL_TEXTS[value]
        case float():
            text = double_text(value)
            yield text if "." in text or "e" in text else text + ".0"
        case int() | JsonUnsigned():
            yield str(value if isinstance(value, int) else value.value)
        case str():
            yield _quoted(value)
        case JsonDecimal(number):
            yield f"{number:f}"
        case JsonTemporal():
            yield _quoted(value.text)
        case JsonOpaque():
            yield _quoted(opaque_text(value))
        case JsonObject(members):
            yield "{"
            for at, (key, member) in enumerate(members):
                yield (", " if at else "") + _quoted(key) + ": "
                yield from _pieces(member)
            yield "}"
        case tuple():
            yield "["
            for at, member in enumerate(value):
                yield ", " if at else ""
                yield from _pieces(member)
            yield "]"


def _quoted(text: str) -> str:
    """Quote as MySQL does: escape only control characters, quotes and backslashes."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(slots=True)
class _Reader:
    """Reads the values of one document.

    In a malformed document, several members may have the same offset, so that few bytes expand to a
    huge text. `left` limits the values to what a valid document of this size can contain; `used`
    counts the bytes read.
    """

    read_decimal: ReadDecimal
    left: int
    used: int = 0
    is_reproducible: bool = True

    def spend(self, cursor: Cursor, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise cursor.fail("a JSON document with overlapping members")

    def value(self, kind: int, cursor: Cursor, *, depth: int) -> JsonValue:
        """Read the value of type `kind` at the cursor."""
        self.spend(cursor, 1)
        if kind in _CONTAINERS:
            if depth >= DEPTH_MAX:
                raise cursor.fail(f"a JSON document nested deeper than {DEPTH_MAX}")
            return self.container(kind, cursor, depth=depth)
        start = cursor.at
        found = self.scalar(kind, cursor)
        self.used += cursor.at - start
        return found

    def scalar(self, kind: int, cursor: Cursor) -> JsonValue:
        """Read a value that is not an object or array."""
        if kind == _LITERAL:
            number = cursor.integer(1, "a JSON literal")
            if number not in _LITERALS:
                raise cursor.fail(f"expected a JSON literal, found {number}")
            return _LITERALS[number]
        if kind in _INTEGERS:
            size, signed = _INTEGERS[kind]
            number = int.from_bytes(cursor.take(size, "an integer"), "little", signed=signed)
            return number if signed else JsonUnsigned(number)
        if kind == _DOUBLE:
            double: float = struct.unpack("<d", cursor.take(8, "a JSON double"))[0]
            if not math.isfinite(double):
                raise cursor.fail(f"expected a JSON double, found {double}")
            return double
        if kind == _STRING:
            length = _length(cursor)
            self.spend(cursor, length)
            return _utf8(cursor, length, "a JSON string")
        if kind == _OPAQUE:
            return self.opaque(cursor)
        raise cursor.fail(f"expected a JSON type, found {kind}")

    def opaque(self, cursor: Cursor) -> JsonValue:
        type_code = cursor.integer(1, "the type of an opaque value")
        length = _length(cursor)
        self.spend(cursor, length)
        data = cursor.take(length, "an opaque value")
        if type_code in _TEMPORAL_TYPES and length == _PACKED_BYTES:
            kind = _TEMPORAL_TYPES[type_code]
            self.is_reproducible &= type_code in _CAST_TYPES
            return JsonTemporal(
                kind, packed_text(kind, int.from_bytes(data, "little", signed=True))
            )
        if type_code in _DECIMAL_TYPES:
            inside = Cursor(data)
            precision = inside.integer(1, "a precision")
            scale = inside.integer(1, "a scale")
            number = self.read_decimal(inside.rest(), precision, scale)
            found = JsonDecimal(number, precision, scale)
            self.is_reproducible &= found.is_reproducible
            return found
        return JsonOpaque(type_code, data)

    def container(self, kind: int, cursor: Cursor, *, depth: int) -> JsonValue:
        """Read an object or array. Offsets count from its first byte and must be inside it."""
        is_object = kind in _OBJECTS
        is_small = kind in _SMALL
        width = 2 if is_small else 4
        start = cursor.at
        count = cursor.integer(width, "the number of members")
        size = cursor.integer(width, "the size of an object or array")
        entries = count * (width + 1 + (width + 2 if is_object else 0))
        if size > cursor.end - start or 2 * width + entries > size:
            raise cursor.fail(f"an object or array of {count} members in {size} bytes")
        self.used += 2 * width + entries
        inside = Cursor(cursor.data[start : start + size])
        inside.take(2 * width, "a header")
        places = [
            (inside.integer(width, "a key"), inside.integer(2, "a key"))
            for _ in range(count if is_object else 0)
        ]
        values: list[JsonValue] = []
        for _ in range(count):
            member = inside.integer(1, "a JSON type")
            slot = inside.take(width, "a member")
            is_inlined = member in _INLINED or (member in _INLINED_IN_LARGE and not is_small)
            at = Cursor(slot) if is_inlined else _at(inside, int.from_bytes(slot, "little"))
            before = self.used
            values.append(self.value(member, at, depth=depth + 1))
            if is_inlined:  # its bytes were counted with the entry
                self.used = before
        if not is_object:
            return tuple(values)
        for _, length in places:
            self.spend(inside, length)
            self.used += length
        keys = [_utf8(_at(inside, at), length, "a key") for at, length in places]
        return JsonObject(tuple(zip(keys, values, strict=True)))


def _at(cursor: Cursor, offset: int) -> Cursor:
    """Return a cursor over the same bytes at another offset."""
    if offset > cursor.end:
        raise cursor.fail(f"a member at byte {offset} of {cursor.end}")
    moved = Cursor(cursor.data)
    moved.at = offset
    return moved


def _utf8(cursor: Cursor, count: int, what: str) -> str:
    data = cursor.take(count, what)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise cursor.fail(f"{what} that is not UTF-8") from error


def _length(cursor: Cursor) -> int:
    """Read a variable-length number: seven bits in each byte, lowest first."""
    length = 0
    for at in range(_LENGTH_BYTES_MAX):
        byte = cursor.integer(1, "a length")
        length |= (byte & 0x7F) << 7 * at
        if not byte & 0x80:
            return length
    raise cursor.fail("a length of more than five bytes")
