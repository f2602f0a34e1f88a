"""JSON documents that no other server writes with the same bytes.

A server has changed one in place, so that it has bytes to which nothing in it refers. Or it has a
value whose type is that of a column.
"""

from decimal import Decimal

import pytest

from binlog.rows.json_values import JsonDecimal, JsonDocument, JsonObject, read_json


def _decimal(_data: bytes, _precision: int, _scale: int) -> Decimal:
    raise AssertionError("there is none")


# An object {"a": "xy"}: count, size, the key's place and length, the value's type and place.
OBJECT = b"\x00" + b"\x01\x00\x0f\x00" + b"\x0b\x00\x01\x00" + b"\x0c\x0c\x00" + b"a" + b"\x02xy"
ROOT = JsonObject((("a", "xy"),))


@pytest.mark.parametrize(
    ("data", "root", "is_reproducible"),
    [
        (b"", None, True),
        (b"\x04\x00", None, True),
        (b"\x05\x07\x00", 7, True),
        (b"\x0c\x02xy", "xy", True),
        (b"\x02\x00\x00\x04\x00", (), True),
        (b"\x02\x01\x00\x07\x00\x05\x07\x00", (7,), True),  # the number is in the entry
        (b"\x02\x01\x00\x09\x00\x05\x07\x00xy", (7,), False),
        (OBJECT, ROOT, True),
        (OBJECT.replace(b"\x02xy", b"\x01xy"), JsonObject((("a", "x"),)), False),
        (b"\x05\x07\x00\x00", 7, False),
    ],
)
def test_unused_bytes_are_seen(data: bytes, root: object, *, is_reproducible: bool) -> None:
    found = read_json(data, _decimal)
    assert found.root == root
    assert found.is_reproducible is is_reproducible
    assert found == JsonDocument(found.root), "as a value it is the same"


@pytest.mark.parametrize(
    ("value", "precision", "scale", "literal", "is_reproducible"),
    [
        # Precision and scale as 9.7.4 logs them for the literal.
        ("1.50", 3, 2, "1.50", True),
        ("-0.5", 2, 1, "-0.5", True),
        ("0.00", 3, 2, "0.00", True),
        ("0.5", 1, 1, ".5", True),
        ("-0.125", 3, 3, "-.125", True),
        ("1", 1, 0, "1.", True),
        ("1234567890.1", 11, 1, "1234567890.1", True),
        # As it logs them for CAST and the results of functions.
        ("1.50", 11, 2, None, True),
        ("0.000", 12, 3, None, True),
        ("12345678901.00", 20, 2, None, True),
        ("7", 9, 0, None, True),
        # As it logs them for a column.
        ("1.50", 10, 2, None, False),
        ("12345678901.50000", 30, 5, None, False),
    ],
)
def test_only_the_decimal_of_a_column_is_not_reproducible(
    value: str, precision: int, scale: int, literal: str | None, *, is_reproducible: bool
) -> None:
    data = b"\x0f\xf6" + bytes([2, precision, scale])
    found = read_json(data, lambda _data, _precision, _scale: Decimal(value))
    assert isinstance(found.root, JsonDecimal)
    assert found.root.literal == literal
    assert found.root.is_reproducible is found.is_reproducible is is_reproducible


@pytest.mark.parametrize(
    ("type_code", "is_reproducible"),
    [(10, True), (11, True), (12, True), (7, False), (17, False), (18, False)],
)
def test_no_cast_makes_a_timestamp(type_code: int, *, is_reproducible: bool) -> None:
    data = b"\x0f" + bytes([type_code, 8]) + bytes(8)
    assert read_json(data, _decimal).is_reproducible is is_reproducible
