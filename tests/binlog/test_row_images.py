"""Counting rows by their lengths alone. Real tables are counted against mysqlbinlog elsewhere."""

from __future__ import annotations

import pytest

from binlog.cursor import Cursor, MalformedBody
from binlog.event_types import RowKind
from binlog.events import Rows, TableMap
from binlog.rows.images import count_rows, read_column_metadata

# Type, metadata as a TABLE_MAP holds it, one value. From calc_field_size, binary_log_funcs.cpp.
VALUES = {
    "decimal(10,3)": (246, b"\x0a\x03", bytes(4 + 2)),
    "decimal(38,19)": (246, b"\x26\x13", bytes(9 + 9)),
    "decimal(9,9)": (246, b"\x09\x09", bytes(4)),
    "char(10)": (254, b"\xfe\x0a", b"\3abc"),
    "char(255) of 3 bytes": (254, b"\xee\xfd", b"\3\0abc"),
    "enum": (254, b"\xf7\x01", b"\1"),
    "enum of two bytes": (254, b"\xf7\x02", b"\1\0"),
    "set": (254, b"\xf8\x08", bytes(8)),
    "varchar(20)": (15, b"\x14\x00", b"\2ab"),
    "varchar(300)": (15, b"\x2c\x01", b"\2\0ab"),
    "tinyblob": (252, b"\1", b"\2ab"),
    "blob": (252, b"\2", b"\2\0ab"),
    "mediumblob": (252, b"\3", b"\2\0\0ab"),
    "longblob": (252, b"\4", b"\2\0\0\0ab"),
    "json": (245, b"\4", b"\1\0\0\0x"),
    "vector": (242, b"\4", b"\4\0\0\0abcd"),
    "geometry": (255, b"\4", b"\1\0\0\0x"),
    "bit(11)": (16, b"\3\1", bytes(2)),
    "bit(8)": (16, b"\0\1", bytes(1)),
    "float": (4, b"\4", bytes(4)),
    "double": (5, b"\x08", bytes(8)),
    "timestamp(2)": (17, b"\2", bytes(4 + 1)),
    "datetime(6)": (18, b"\6", bytes(5 + 3)),
    "time(1)": (19, b"\1", bytes(3 + 1)),
    "time": (19, b"\0", bytes(3)),
    **{
        f"type {kind}": (kind, b"", bytes(size))
        for kind, size in ((1, 1), (2, 2), (3, 4), (8, 8), (9, 3))
    },
    **{
        f"type {kind}": (kind, b"", bytes(size))
        for kind, size in ((7, 4), (10, 3), (12, 8), (13, 1))
    },
}


def table(types: bytes, metadata: bytes) -> TableMap:
    return TableMap(1, "d", "t", types, read_column_metadata(types, Cursor(metadata)))


def rows(
    images: bytes,
    columns: int,
    *,
    kind: RowKind = RowKind.WRITE,
    present: int | None = None,
    is_partial: bool = False,
) -> Rows:
    size = (columns + 7) // 8
    bitmap = ((1 << columns) - 1 if present is None else present).to_bytes(size, "little")
    after = bitmap if kind is RowKind.UPDATE else b""
    return Rows(1, kind, columns, bitmap, after, images, is_partial)


@pytest.mark.parametrize("name", VALUES)
def test_one_value(name: str) -> None:
    kind, metadata, value = VALUES[name]
    of = table(bytes((kind,)), metadata)
    row = b"\0" + value
    null = b"\1"
    assert count_rows(rows(row * 3, 1), of) == 3
    assert count_rows(rows(row + null + row, 1), of) == 3
    assert count_rows(rows(row + row, 1, kind=RowKind.UPDATE), of) == 1
    with pytest.raises(MalformedBody):
        count_rows(rows(row * 2 + row[:-1], 1), of)


def test_a_row_of_everything() -> None:
    types = bytes(kind for kind, _, _ in VALUES.values())
    of = table(types, b"".join(metadata for _, metadata, _ in VALUES.values()))
    columns = len(types)
    row = bytes((columns + 7) // 8) + b"".join(value for _, _, value in VALUES.values())
    assert count_rows(rows(row * 5, columns), of) == 5


def test_only_the_columns_present_are_walked() -> None:
    of = table(b"\x03\x08\x01", b"")
    assert count_rows(rows((b"\0" + bytes(5)) * 2, 3, present=0b101), of) == 2


def test_rows_without_columns_are_counted_as_one() -> None:
    of = table(b"\x03", b"")
    assert count_rows(rows(b"", 1, present=0), of) == 1
    with pytest.raises(MalformedBody, match="a row image of no bytes"):
        count_rows(rows(b"x", 1, present=0), of)


def test_partial_updates() -> None:
    """The after image begins with options, and with a bit per JSON column if they say so."""
    of = table(b"\x03\xf5", b"\4")
    image = b"\0" + b"\1\0\0\0" + b"\1\0\0\0x"
    whole = rows(image + b"\0" + image, 2, kind=RowKind.UPDATE, is_partial=True)
    assert count_rows(whole, of) == 1
    difference = rows(image + b"\1\1" + image, 2, kind=RowKind.UPDATE, is_partial=True)
    assert count_rows(difference, of) == 1


def test_what_does_not_fit() -> None:
    with pytest.raises(MalformedBody, match=r"expected 1 columns of d\.t, found 2"):
        count_rows(rows(b"", 2), table(b"\x03", b""))
    with pytest.raises(MalformedBody, match="expected a column type, found 20"):
        count_rows(rows(b"\0x", 1), table(b"\x14", b""))
    with pytest.raises(MalformedBody, match="expected a scale of 3 or less, found 9"):
        count_rows(rows(b"\0x", 1), table(b"\xf6", b"\3\x09"))
    with pytest.raises(MalformedBody, match="metadata of type 15"):
        table(b"\x0f", b"\1")
