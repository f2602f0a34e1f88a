"""Random row events of all types of columns: sound ones, and now and then a damaged value."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from binlog.event_types import RowKind
from binlog.events import Rows
from binlog.rows.images import (
    BIT,
    BLOB,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    JSON,
    NEWDECIMAL,
    SET,
    STRING,
    TIME2,
    TIMESTAMP2,
    VARCHAR,
    VECTOR,
)
from binlog.rows.tables import INT24, LONG, LONGLONG, SHORT, TINY, Origin, RowColumn, RowTable
from binlog.rows.values import LoggedRows

_INTEGERS = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_DATE, _YEAR, _OLD_TIMESTAMP = 10, 13, 7
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_TEXTS = (
    *(b"", b"a", b"it's", b"100%", b"a\\b", b"line\nend", b"~", b"%s", b"NULL", b"\xff\xfe"),
    *("grüße".encode(), "日本".encode(), b"\x00", b"x" * 70, b"'" * 9, b"trailing "),
)
_JSON_TEXTS = (b"\x04\x00", b"\x05\x07\x00", b"\x0c\x01a", b"\x00\x00\x00\x04\x00")

Encode = Callable[[random.Random], bytes]


def integer_of(column: RowColumn) -> Encode:
    size = _INTEGERS[column.type_code]
    ends = [bytes(size), b"\xff" * size, b"\xff" * (size - 1) + b"\x7f", bytes(size - 1) + b"\x80"]
    return lambda dice: dice.choice([*ends, dice.randbytes(size), bytes([7, *bytes(size - 1)])])


def decimal_of(precision: int, scale: int) -> Encode:
    """Return the encoder of decimal.cc: groups of nine digits, a sign in the first bit."""
    whole = precision - scale
    groups = [g for g in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9) if g]

    def encode(dice: random.Random) -> bytes:
        digits = [dice.choice([0, 0, 10**g - 1, dice.randrange(10**g)]) for g in groups]
        raw = b"".join(
            d.to_bytes(_DIGIT_BYTES[g], "big") for d, g in zip(digits, groups, strict=True)
        )
        is_negative = dice.random() < 0.3 and any(digits)
        raw = bytes([raw[0] ^ 0x80, *raw[1:]])
        return bytes(byte ^ 0xFF for byte in raw) if is_negative else raw

    return encode


def moment_of(kind: int, digits: int) -> Encode:
    size = (digits + 1) // 2

    def encode(dice: random.Random) -> bytes:
        fraction = dice.randrange(10**digits) * (10 if digits & 1 else 1)
        if kind == TIMESTAMP2:
            seconds = dice.choice([0, 1, 951_782_400, 2**31 - 1, 2**32 - 1, dice.randrange(2**32)])
            return seconds.to_bytes(4, "big") + fraction.to_bytes(size, "big")
        clock = dice.randrange(24) << 12 | dice.randrange(60) << 6 | dice.randrange(60)
        if kind == DATETIME2:
            year, month, day = dice.choice([0, 2024, 9999]), dice.randrange(13), dice.randrange(32)
            whole = ((year * 13 + month) << 5 | day) << 17 | clock
            return (whole + (1 << 39)).to_bytes(5, "big") + fraction.to_bytes(size, "big")
        hours = dice.choice([0, 12, 99, 100, 838])
        packed = (hours << 12 | clock & 0xFFF) << 8 * size | fraction
        packed = -packed if dice.random() < 0.4 else packed
        return (packed + (1 << (23 + 8 * size))).to_bytes(3 + size, "big")

    return encode


def text_of(length_bytes: int, *, bytes_max: int = 255) -> Encode:
    def encode(dice: random.Random) -> bytes:
        text = dice.choice([*_TEXTS, b"plain text", b"another one"])[:bytes_max]
        return len(text).to_bytes(length_bytes, "little") + text

    return encode


def document(dice: random.Random) -> bytes:
    text = dice.choice(_JSON_TEXTS)
    return struct.pack("<I", len(text)) + text


def _kinds() -> Sequence[tuple[RowColumn, Encode]]:
    found: list[tuple[RowColumn, Encode]] = []
    for kind in _INTEGERS:
        for sign in (True, False, None):
            column = RowColumn(kind, 0, is_unsigned=sign)
            found.append((column, integer_of(column)))
    for precision, scale in ((12, 2), (5, 0), (4, 4), (30, 10), (65, 30), (18, 9), (9, 9), (20, 3)):
        found.append((RowColumn(NEWDECIMAL, precision << 8 | scale), decimal_of(precision, scale)))
    for kind in (DATETIME2, TIMESTAMP2, TIME2):
        found += [(RowColumn(kind, digits), moment_of(kind, digits)) for digits in (0, 1, 3, 6)]
    for charset in ("utf8mb4", "utf8mb3", "latin1", "ucs2", "binary", "ascii", None):
        found.append((RowColumn(VARCHAR, 80, charset=charset), text_of(1)))
        found.append((RowColumn(VARCHAR, 800, charset=charset), text_of(2)))
        found.append((RowColumn(BLOB, 2, charset=charset), text_of(2)))
        char = RowColumn(STRING, 254 << 8 | 8, charset=charset)
        found.append((char, text_of(1, bytes_max=8)))
    members = ("a", "b", "c")
    found += [
        (RowColumn(ENUM, ENUM << 8 | 1, members=members), lambda d: bytes([d.randrange(0, 4)])),
        (RowColumn(SET, SET << 8 | 1, members=members), lambda d: bytes([d.randrange(0, 8)])),
        (RowColumn(SET, SET << 8 | 8), lambda d: d.randbytes(8)),
        (RowColumn(FLOAT, 4), lambda d: struct.pack("<f", d.choice([0.0, -0.0, 1.1, 1e30]))),
        (RowColumn(DOUBLE, 8), lambda d: struct.pack("<d", d.choice([0.1, -0.0, 1e300, 3.0]))),
        (RowColumn(BIT, 1 << 8 | 3), lambda d: (d.randrange(2**11)).to_bytes(2, "big")),
        (RowColumn(BIT, 8 << 8), lambda d: d.randbytes(8)),
        (RowColumn(_DATE, 0), lambda d: (d.randrange(10_000) << 9 | d.randrange(512)).to_bytes(3, "little")),
        (RowColumn(_YEAR, 0), lambda d: d.randbytes(1)),
        (RowColumn(_OLD_TIMESTAMP, 0), lambda d: d.choice([bytes(4), d.randbytes(4)])),
        (RowColumn(JSON, 4), document),
        (RowColumn(GEOMETRY, 4), text_of(4)),
        (RowColumn(VECTOR, 4), text_of(4)),
    ]  # fmt: skip
    return tuple(found)


KINDS = _kinds()


def random_event(dice: random.Random, kinds: Sequence[tuple[RowColumn, Encode]]) -> LoggedRows:
    """Return a row event of one to forty rows over some of the kinds of columns."""
    from dataclasses import replace

    chosen = [dice.choice(kinds) for _ in range(dice.randint(1, 9))]
    columns = tuple(
        replace(column, name=f"c%{at}`", is_generated=dice.random() < 0.1 and at > 1)
        for at, (column, _) in enumerate(chosen)
    )
    key = dice.choice([(), (0,), (len(columns) - 1, 0), None])
    table = RowTable(
        "d%s", "t", columns, tuple(dict.fromkeys(key)) if key else key, Origin.DEFINITION
    )
    kind = dice.choice(list(RowKind))
    whole = bytes([0xFF] * ((len(columns) + 7) // 8))
    some = dice.randbytes(len(whole)) if dice.random() < 0.2 else whole
    image_bitmaps = [some, whole if dice.random() < 0.5 else some]
    images = b""
    previous = b""
    for _ in range(dice.choice([1, 2, 40])):
        for bitmap in image_bitmaps[: 2 if kind is RowKind.UPDATE else 1]:
            image = _image(dice, chosen, bitmap, table.key or ())
            is_kept = bitmap == image_bitmaps[0] and previous and dice.random() < 0.2
            previous = previous if is_kept else image
            images += previous
    if dice.random() < 0.05:
        images = images[:-1]
    rows = Rows(
        table_id=7,
        kind=kind,
        column_count=len(columns),
        columns_before=image_bitmaps[0],
        columns_after=image_bitmaps[1] if kind is RowKind.UPDATE else b"",
        images=images,
        is_partial=False,
        flags=1,
    )
    return LoggedRows(table, rows, "binlog.000001", 4711)


def _image(
    dice: random.Random,
    kinds: Sequence[tuple[RowColumn, Encode]],
    bitmap: bytes,
    key: tuple[int, ...],
) -> bytes:
    present = [at for at in range(len(kinds)) if bitmap[at >> 3] >> (at & 7) & 1]
    nulls = bytearray((len(present) + 7) // 8)
    values = b""
    for place, at in enumerate(present):
        column, encode = kinds[at]
        if at not in key and dice.random() < 0.15:
            nulls[place >> 3] |= 1 << (place & 7)
            continue
        value = encode(dice)
        if column.type_code in (DATETIME2, TIMESTAMP2, NEWDECIMAL) and dice.random() < 0.01:
            value = dice.randbytes(len(value))
        values += value
    return bytes(nulls) + values
