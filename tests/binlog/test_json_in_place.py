"""A JSON document with bytes that nothing in it refers to: a server has changed it in place."""

from decimal import Decimal

import pytest

from binlog.rows.json_values import JsonDocument, JsonObject, read_json


def _decimal(_data: bytes, _precision: int, _scale: int) -> Decimal:
    raise AssertionError("there is none")


# An object {"a": "xy"}: count, size, the key's place and length, the value's type and place.
OBJECT = b"\x00" + b"\x01\x00\x0f\x00" + b"\x0b\x00\x01\x00" + b"\x0c\x0c\x00" + b"a" + b"\x02xy"
ROOT = JsonObject((("a", "xy"),))


@pytest.mark.parametrize(
    ("data", "root", "is_compact"),
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
def test_unused_bytes_are_seen(data: bytes, root: object, *, is_compact: bool) -> None:
    found = read_json(data, _decimal)
    assert found.root == root
    assert found.is_compact is is_compact
    assert found == JsonDocument(found.root), "as a value it is the same"
