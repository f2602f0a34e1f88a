"""Derives the type of a plain record from a dataclass that is written field by field.

Only for dataclasses whose record has the values of their fields (`dataclasses.asdict`): texts,
numbers, records, lists and maps of them. Another class of value is a TypeError, not a guess.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from topology.documents.plain_types import (
    FLAG,
    NUMBER,
    TEXT,
    PlainType,
    list_of,
    map_of,
    record_of,
)

_SIMPLE: Final[dict[object, PlainType]] = {str: TEXT, int: NUMBER, bool: FLAG}


def parts_of_dataclass(kind: type, *, without: Iterable[str] = ()) -> dict[str, PlainType]:
    """Return the types of the fields of a dataclass, in order. Raises TypeError."""
    hints = get_type_hints(kind)
    left_out = frozenset(without)
    return {
        each.name: _type_of(hints[each.name]) for each in fields(kind) if each.name not in left_out
    }


def type_of_dataclass(kind: type) -> PlainType:
    """Return the type of the record of a dataclass. Raises TypeError."""
    return record_of(**parts_of_dataclass(kind))


def _type_of(hint: Any) -> PlainType:  # noqa: ANN401 - an annotation
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return type_of_dataclass(hint)
    match get_origin(hint), get_args(hint):
        case (origin, (value, none)) if origin in (UnionType, Union) and none is NoneType:
            return _type_of(value).or_null()
        case (origin, (item, end)) if origin is tuple and end is Ellipsis:
            return list_of(_type_of(item))
        case (origin, (name, value)) if origin in (dict, Mapping) and name is str:
            return map_of(_type_of(value))
    raise TypeError(f"no plain type for {hint!r}")
