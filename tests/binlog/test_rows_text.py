"""Values as a person reads them."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.adapters.row_decoder import RowDecoder
from binlog.rows.geometry_text import geometry_text
from binlog.rows.images import BIT, ENUM, FLOAT, GEOMETRY, JSON, SET, STRING, VARCHAR, VECTOR
from binlog.rows.json_values import (
    DiffKind,
    JsonDiff,
    JsonDiffs,
    JsonDocument,
    JsonObject,
    JsonOpaque,
    JsonUnsigned,
)
from binlog.rows.number_text import double_text, single_text
from binlog.rows.tables import LONGLONG, TINY, RowColumn
from binlog.rows.value_text import value_text
from binlog.rows.values import ABSENT, Value

COLUMN = RowColumn(VARCHAR, 10)
POINT = struct.pack("<IBI2d", 0, 1, 1, 1.5, -2)
CASES: tuple[tuple[RowColumn, Value, str], ...] = (
    (COLUMN, None, "NULL"),
    (COLUMN, ABSENT, "(not logged)"),
    (COLUMN, b"abc", "abc"),
    (COLUMN, b"\xfc", "0xFC"),
    (RowColumn(VARCHAR, 10, charset="latin1"), b"\xfc", "ü"),
    (RowColumn(VARCHAR, 10, charset="utf8mb4"), b"\xff", "0xFF"),
    (RowColumn(VARCHAR, 10, charset="hp8"), b"\xff", "0xFF"),
    (RowColumn(STRING, 0, charset="binary"), b"ab", "ab"),
    (RowColumn(STRING, 0, charset="binary"), b"a\0", "0x6100"),
    (RowColumn(VARCHAR, 10, charset="hp8"), b"abc", "abc"),
    (RowColumn(VARCHAR, 10, charset="swe7"), b"a`", "0x6160"),  # é in that set
    (RowColumn(VARCHAR, 10, charset="sjis"), b"\x81\x5f", "\\"),
    (RowColumn(VARCHAR, 10, charset="greek"), b"\xa4", "0xA4"),
    (RowColumn(GEOMETRY, 4), POINT, "POINT(1.5 -2)"),
    (RowColumn(GEOMETRY, 4), b"\xe6\x10\0\0" + POINT[4:], "SRID=4326;POINT(1.5 -2)"),
    (RowColumn(GEOMETRY, 4), POINT[:-1], f"0x{POINT[:-1].hex().upper()}"),
    (RowColumn(VECTOR, 4), struct.pack("<2f", 1, math.inf), "0x0000803F0000807F"),
    (RowColumn(TINY, 0), -1, "-1 or 255"),
    (RowColumn(TINY, 0, is_unsigned=False), -1, "-1"),
    (RowColumn(LONGLONG, 0), -1, "-1 or 18446744073709551615"),
    (RowColumn(BIT, 0), 5, "b'101'"),
    (RowColumn(ENUM, 0), 2, "#2"),
    (RowColumn(ENUM, 0, members=("x", "y")), 2, "y"),
    (RowColumn(ENUM, 0, members=("x", "y")), 3, "#3"),
    (RowColumn(ENUM, 0, members=("x", "y")), 0, ""),
    (RowColumn(SET, 0, members=("x", "y")), 3, "x,y"),
    (RowColumn(SET, 0, members=("x", "y")), 4, "#4"),
    (RowColumn(FLOAT, 4), 1.100000023841858, "1.1"),
    (RowColumn(246, 0), Decimal("1E-9"), "0.000000001"),
    (RowColumn(VECTOR, 4, charset="binary"), struct.pack("<2f", 1, -2.5), "[1,-2.5]"),
    (
        RowColumn(JSON, 4),
        JsonDocument(JsonObject((("a", (1, None, "ü\n")), ("b", JsonUnsigned(7))))),
        '{"a": [1, null, "ü\\n"], "b": 7}',
    ),
    (RowColumn(JSON, 4), JsonDocument(JsonOpaque(15, b"\0")), '"base64:type15:AA=="'),
    (
        RowColumn(JSON, 4),
        JsonDiffs(
            (
                JsonDiff(DiffKind.REPLACE, "$.a", JsonDocument(77)),
                JsonDiff(DiffKind.REMOVE, "$.b", None),
            )
        ),
        "replace $.a: 77, remove $.b",
    ),
)


@pytest.mark.parametrize(("column", "value", "text"), CASES)
def test_values(column: RowColumn, value: Value, text: str) -> None:
    assert value_text(column, value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e14, "100000000000000"),
        (1e15, "1e15"),
        (1.5e300, "1.5e300"),
        (1234567890123456.2, "1234567890123456.2"),
        (1234567890123456.0, "1.234567890123456e15"),
        (1.2345678901234568e16, "1.2345678901234568e16"),
        (1.5e-15, "0.0000000000000015"),
        (1e-16, "1e-16"),
        (-1.7976931348623157e308, "-1.7976931348623157e308"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_comes_back(value: float) -> None:
    assert struct.pack("<d", float(double_text(value))) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_single_comes_back(value: float) -> None:
    text = single_text(value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    assert len(text.lstrip("-0.").partition("e")[0].replace(".", "").strip("0")) <= 9


# What servers before 5.6.4 wrote, and tables not rebuilt since still hold. No server here writes it.
OLD_TEMPORAL = (
    (7, (0).to_bytes(4, "little"), "0000-00-00 00:00:00"),
    (7, (1).to_bytes(4, "little"), "1970-01-01 00:00:01"),
    (7, (2**31 - 1).to_bytes(4, "little"), "2038-01-19 03:14:07"),
    (11, (0).to_bytes(3, "little"), "00:00:00"),
    (11, (8385959).to_bytes(3, "little"), "838:59:59"),
    (11, (-8385959).to_bytes(3, "little", signed=True), "-838:59:59"),
    (11, (-1).to_bytes(3, "little", signed=True), "-00:00:01"),
    (12, (0).to_bytes(8, "little"), "0000-00-00 00:00:00"),
    (12, (20240229235959).to_bytes(8, "little"), "2024-02-29 23:59:59"),
    (12, (99991231235959).to_bytes(8, "little"), "9999-12-31 23:59:59"),
)


@pytest.mark.parametrize(("type_code", "raw", "text"), OLD_TEMPORAL)
def test_temporal_values_of_before_5_6_4(type_code: int, raw: bytes, text: str) -> None:
    assert RowDecoder()(RowColumn(type_code, 0), raw, is_partial=False) == text


def _collection(*members: bytes) -> bytes:
    return struct.pack("<BII", 1, 7, len(members)) + b"".join(members)


def test_a_geometry_that_is_none_has_no_text() -> None:
    whole = bytes(4) + _collection(_collection(), POINT[4:])
    assert geometry_text(whole) == "GEOMETRYCOLLECTION(GEOMETRYCOLLECTION EMPTY,POINT(1.5 -2))"
    for end in range(len(whole)):
        assert geometry_text(whole[:end]) is None
    assert geometry_text(whole + b"x") is None
    assert geometry_text(POINT[:4] + b"\0" + POINT[5:]) is None  # the other byte order
    assert geometry_text(struct.pack("<IBI2d", 0, 1, 1, math.nan, 0)) is None
    assert geometry_text(struct.pack("<IBII", 0, 1, 2, 1 << 31)) is None  # a count beyond the bytes
    deep = POINT[4:]
    for _ in range(200):
        deep = _collection(deep)
    assert geometry_text(bytes(4) + deep) is None


@given(st.binary(max_size=60), st.integers(1, 7))
def test_any_bytes_have_a_text_or_none(data: bytes, kind: int) -> None:
    text = geometry_text(struct.pack("<IBI", 0, 1, kind) + data)
    assert text is None or text.isprintable()
