"""Damaged row images: rows, or CorruptBinlog with file and position; never anything else."""

from __future__ import annotations

import random

import pytest

from binlog.adapters.row_decoder import RowDecoder
from binlog.cursor import MalformedBody
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType, RowKind
from binlog.events import Event, Rows, TableMap
from binlog.header import EventHeader
from binlog.rows.images import BIT, JSON, NEWDECIMAL
from binlog.rows.json_values import DEPTH_MAX, read_diffs, read_json
from binlog.rows.tables import RowColumn, describe_table
from binlog.rows.values import RowChanges, read_rows

TYPES = bytes((3, 15, NEWDECIMAL, BIT, 17, 18, 19, 10, 13, 252, JSON, 4, 5, 254, 9, 242, 255))
METADATA = (0, 300, 65 << 8 | 30, 8 << 8, 6, 6, 6, 0, 0, 2, 4, 4, 8, 254 << 8 | 20, 0, 4, 4)
IMAGE = (
    b"\x00\x00\x00"
    b"\xff\xff\xff\xff"
    b"\x03\x00abc"
    + bytes.fromhex("8000000000000000000000000000000000000000000000000000000000ab")[:30]
    + b"\x01\x02\x03\x04\x05\x06\x07\x08"
    + b"\x65\x00\x00\x00\x01\xe2\x40"
    + b"\x99\xb2\xbb\x7e\xfb\x01\xe2\x40"
    + b"\x7f\xff\xff\xfe\x1d\xc0"
    + b"\x5d\xd0\x0f"
    + b"\x7c"
    + b"\x02\x00xy"
    + b"\x0f\x00\x00\x00\x00\x01\x00\x0e\x00\x0b\x00\x01\x00\x0c\x0c\x00a\x01b"
    + b"\x00\x00\x80\x3f"
    + b"\x00\x00\x00\x00\x00\x00\xf0\x3f"
    + b"\x02hi"
    + b"\x00\x00\x80"
    + b"\x04\x00\x00\x00\x00\x00\x80\x3f"
    + b"\x02\x00\x00\x00gg"
)
TABLE_MAP = TableMap(7, "d", "t", TYPES, METADATA, b"\xff\xff\x01")


def _read(images: bytes) -> RowChanges:
    rows = Rows(7, RowKind.WRITE, len(TYPES), b"\xff\xff\x01", b"", images, is_partial=False)
    header = EventHeader(0, EventType.WRITE_ROWS, 1, 60, 160, 0)
    event = Event("binlog.000001", 100, 160, header, rows)
    return read_rows(event, rows, describe_table(TABLE_MAP), RowDecoder())


def test_the_sound_one_is_read() -> None:
    [row] = _read(IMAGE).rows
    assert row.after is not None
    assert row.after[0] == -1
    assert row.after[8] == "2024"
    assert row.after[9] == b"xy"


def test_cut_off_anywhere_it_is_corrupt_with_its_place() -> None:
    for end in range(1, len(IMAGE)):
        with pytest.raises(CorruptBinlog, match=r"^binlog\.000001: at byte 100: rows of d\.t: "):
            _read(IMAGE[:end])


@pytest.mark.long
def test_mutated_it_is_rows_or_corrupt() -> None:
    dice = random.Random(4)
    refused = 0
    for _ in range(1500):
        data = bytearray(IMAGE)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        try:
            read = _read(bytes(data))
        except CorruptBinlog:
            refused += 1
        else:
            assert read.rows
    assert 150 < refused < 1500


def _decimal(_data: bytes, _precision: int, _scale: int) -> None:
    raise MalformedBody(offset=0, what="no decimals here")


def test_json_that_refers_to_itself_over_and_over_is_refused() -> None:
    # An array of 200 members, each of which is the array after it, and so on: 200 ** 3 values.
    inner = b"\x01\x00\x07\x00\x05\x01\x00"
    level = inner
    for _ in range(3):
        count = 200
        head = 4 + 3 * count
        entries = b"".join(b"\x02" + head.to_bytes(2, "little") for _ in range(count))
        size = head + len(level)
        level = count.to_bytes(2, "little") + size.to_bytes(2, "little") + entries + level
    with pytest.raises(MalformedBody, match="overlapping members"):
        read_json(b"\x02" + level, _decimal)  # type: ignore[arg-type]


def test_json_has_a_greatest_depth() -> None:
    value = b"\x01\x00\x07\x00\x05\x01\x00"
    for _ in range(DEPTH_MAX):
        size = 7 + len(value)
        value = b"\x01\x00" + size.to_bytes(2, "little") + b"\x02\x07\x00" + value
    with pytest.raises(MalformedBody, match="nested deeper than 100"):
        read_json(b"\x02" + value, _decimal)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"\x04",
        b"\x04\x07",
        b"\x63",
        b"\x0c\xff\xff\xff\xff\xff\x01",
        b"\x0c\x01\xff",
        b"\x00\x01\x00",
    ],
)
def test_json_that_is_none(data: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_json(data, _decimal)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data", [b"\x03", b"\x00\x02$", b"\x00\x02$.\x05\x04", b"\x00\x01\xff\x00"]
)
def test_differences_that_are_none(data: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_diffs(data, _decimal)  # type: ignore[arg-type]


def test_a_type_nobody_knows() -> None:
    with pytest.raises(MalformedBody, match="expected a column type, found 200"):
        RowDecoder()(RowColumn(200, 0), b"", is_partial=False)
