"""The type of a dataclass's record, and JSON Schemas of the types that no table has."""

from dataclasses import asdict, dataclass
from datetime import datetime

import jsonschema
import pytest

from topology.documents.dataclass_types import parts_of_dataclass, type_of_dataclass
from topology.documents.json_schema import json_schema_of
from topology.documents.plain_types import (
    ANYTHING,
    REAL,
    TEXT,
    PlainType,
    choice_of,
    constant_of,
    map_of,
    record_of,
)


@dataclass(frozen=True)
class Inner:
    name: str
    is_new: bool


@dataclass(frozen=True)
class Outer:
    count: int
    note: str | None
    inner: tuple[Inner, ...]
    row: dict[str, str | None] | None


@dataclass(frozen=True)
class Timed:
    at: datetime


def is_valid(value: object, plain: PlainType) -> bool:
    schema = json_schema_of(plain, is_closed=True)
    jsonschema.Draft202012Validator.check_schema(schema)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def plain_of(value: Outer) -> dict[str, object]:
    return {**asdict(value), "inner": [asdict(each) for each in value.inner]}


def test_the_record_of_a_dataclass_has_its_type() -> None:
    plain = type_of_dataclass(Outer)
    record = plain_of(Outer(1, None, (Inner("a", is_new=True),), {"x": None, "y": "1"}))
    assert is_valid(record, plain)
    assert is_valid({**record, "row": None, "note": "n"}, plain)
    for change in ({"count": "1"}, {"row": {"x": 1}}, {"inner": [{"name": "a"}]}, {"new": 1}):
        assert not is_valid({**record, **change}, plain), change
    assert list(parts_of_dataclass(Outer, without=("note",))) == ["count", "inner", "row"]


def test_a_value_that_is_written_otherwise_is_refused() -> None:
    with pytest.raises(TypeError, match="no plain type for"):
        type_of_dataclass(Timed)


@pytest.mark.parametrize(
    ("plain", "valid", "invalid"),
    [
        (REAL, (1, 1.5), ("1", None)),
        (map_of(TEXT), ({}, {"a": "b"}), ({"a": 1}, [])),
        (choice_of(TEXT, REAL), ("a", 1), (None, {})),
        (constant_of(1), (1,), (2, "1")),
        (record_of(a=TEXT, b=TEXT.or_absent()), ({"a": ""}, {"a": "", "b": ""}), ({"b": ""},)),
        (ANYTHING, (None, 1, "", [], {}), ()),
    ],
)
def test_a_schema_of_each_kind(
    plain: PlainType, valid: tuple[object, ...], invalid: tuple[object, ...]
) -> None:
    assert all(is_valid(each, plain) for each in valid)
    assert not any(is_valid(each, plain) for each in invalid)
