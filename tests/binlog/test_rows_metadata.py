"""What a TABLE_MAP says of its table: bytes that 9.7.4 wrote, and bytes that no server would."""

from __future__ import annotations

import pytest

from binlog.cursor import MalformedBody
from binlog.events import TableMap
from binlog.table_metadata import ColumnMetadata, KeyPart, read_table_metadata, real_types

TYPES = b"\x03\r\x0f\x0f\xfc\xfe\xfe\xff\xff\xf2\xf6\xf5\x03\x03\x03\x10\x04"
METADATA = (0, 0, 10, 10, 2, 63233, 63489, 4, 4, 4, 2562, 4, 0, 0, 0, 257, 4)
MINIMAL = b"\x01\x01\xe0\x03\x06\x08?\xfc\xff\x00?\x07\x02\x01\x00\r\x01\x05"
FULL = MINIMAL + (
    b"\x04(\x01a\x01y\x01b\x02bb\x01c\x01e\x01s\x01g\x02gg\x01v\x01d\x01j\x01i\x03gen\x02gs\x02bt\x01f"
    b"\x0b\x04\x08\xfc\xff\x00\x05\x05\x02\x01p\x01q\x06\x05\x02\x01x\x01\xfc\t\x04\x02\x03\x00\x00"
    b"\x0c\x03\xff\xf7\x80"
)


def table_map(optional: bytes, types: bytes = TYPES) -> TableMap:
    metadata = METADATA[: len(types)]
    return TableMap(1, "d", "t", types, metadata, b"\xfa\xff\x01", optional)


def test_full() -> None:
    read = read_table_metadata(table_map(FULL))
    assert [each.name for each in read.columns] == (
        ["a", "y", "b", "bb", "c", "e", "s", "g", "gg", "v", "d", "j", "i", "gen", "gs", "bt", "f"]
    )
    by_name = {each.name: each for each in read.columns}
    assert by_name["a"] == ColumnMetadata(name="a", is_unsigned=True, is_visible=True)
    assert by_name["i"].is_visible is False
    assert by_name["i"].is_unsigned is False
    assert (by_name["b"].collation_id, by_name["bb"].collation_id) == (8, 63)
    assert by_name["c"].collation_id == by_name["s"].collation_id == 255
    assert (by_name["e"].members, by_name["e"].collation_id) == ((b"x", b"\xfc"), 8)
    assert by_name["s"].members == (b"p", b"q")
    assert (by_name["g"].geometry_type, by_name["gg"].geometry_type) == (1, 0)
    assert by_name["v"].vector_dimensions == 5
    assert read.primary_key == (KeyPart(2, 3), KeyPart(0))
    assert read.is_full
    assert real_types(table_map(FULL))[5:7] == (247, 248)


def test_minimal() -> None:
    read = read_table_metadata(table_map(MINIMAL))
    assert not read.is_full
    assert read.primary_key is None
    assert {each.name for each in read.columns} == {None}
    assert read.columns[0].is_unsigned is True
    assert read.columns[2].collation_id == 8


def test_before_8_0_1_nothing_is_known() -> None:
    read = read_table_metadata(table_map(b""))
    assert read.columns == (ColumnMetadata(),) * len(TYPES)
    assert read.primary_key is None


def test_no_primary_key_is_not_an_unknown_one() -> None:
    read = read_table_metadata(table_map(b"\x01\x01\x00\x04\x02\x01x\x0c\x01\x80", b"\x03"))
    assert read.primary_key == ()


def test_a_default_collation_and_its_exceptions() -> None:
    read = read_table_metadata(table_map(b"\x02\x05\xfc\xff\x00\x01\x3f", TYPES[:5]))
    assert [each.collation_id for each in read.columns] == [None, None, 255, 63, 255]


def test_an_unknown_field_is_stepped_over() -> None:
    assert read_table_metadata(table_map(b"\xf0\x02ab" + FULL)) == read_table_metadata(
        table_map(FULL)
    )


@pytest.mark.parametrize(
    "optional",
    [
        b"\x01",
        b"\x01\x05\x00",
        b"\x01\x00",
        b"\x03\x02\x08\x08",
        b"\x04\x04\x01a\x01b",
        b"\x04\x02\x09a",
        b"\x08\x01\x01",
        b"\x06\x01\x00",
        b"\x0c\x00",
    ],
)
def test_what_does_not_fit_is_refused(optional: bytes) -> None:
    with pytest.raises(MalformedBody):
        read_table_metadata(table_map(optional, b"\x03"))


def test_every_cut_is_refused_or_a_shorter_truth() -> None:
    whole = read_table_metadata(table_map(FULL))
    for end in range(len(FULL)):
        try:
            read = read_table_metadata(table_map(FULL[:end]))
        except MalformedBody:
            continue
        for ours, theirs in zip(read.columns, whole.columns, strict=True):
            assert ours.name in {None, theirs.name}
            assert ours.is_unsigned in {None, theirs.is_unsigned}
