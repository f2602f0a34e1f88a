"""The types of plain values: what a field of a record may hold, whatever the form of storage.

1. Each codec (record_codec.py) has the type of what it writes. So a field is declared once, in a
   record's table; Parquet and Spark columns (adapters/snapshot_columns.py) and JSON Schemas
   (json_schema.py) are derived from it.
2. This module knows neither Arrow nor JSON.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final


class PlainKind(Enum):
    """What a plain value is."""

    TEXT = "text"
    NUMBER = "a whole number below 2**63"
    SMALL_NUMBER = "a whole number below 2**31"
    COUNT = "a whole number of any size"
    FLAG = "true or false"
    TIME = "a time in UTC"
    REAL = "a number"
    LIST = "a list"
    RECORD = "a record"
    MAP = "values of one type, by names that are data"
    CHOICE = "a value of one of several types"
    ANYTHING = "any JSON value"


@dataclass(frozen=True, slots=True)
class PlainType:
    """The type of one plain value."""

    kind: PlainKind
    may_be_null: bool = False
    words: tuple[str, ...] = ()  # the only texts that are valid; () if any text may be
    constant: int | None = None  # the only number that is valid
    item: "PlainType | None" = None  # of a list, or of a map
    parts: tuple[tuple[str, "PlainType"], ...] = field(default=())  # of a record, in order
    choices: tuple["PlainType", ...] = ()  # of a choice
    may_be_absent: bool = False  # as a part of a record: left out, instead of null

    def or_null(self) -> "PlainType":
        """Return this type with null allowed."""
        return replace(self, may_be_null=True)

    def or_absent(self) -> "PlainType":
        """Return this type for a part that a record may leave out."""
        return replace(self, may_be_absent=True)


TEXT: Final = PlainType(PlainKind.TEXT)
NUMBER: Final = PlainType(PlainKind.NUMBER)
COUNT: Final = PlainType(PlainKind.COUNT)
FLAG: Final = PlainType(PlainKind.FLAG)
TIME: Final = PlainType(PlainKind.TIME)
REAL: Final = PlainType(PlainKind.REAL)
ANYTHING: Final = PlainType(PlainKind.ANYTHING)


def words_of(*words: str) -> PlainType:
    """Return the type of a text that is one of these."""
    return PlainType(PlainKind.TEXT, words=words)


def words_of_enum(kind: type[Enum]) -> PlainType:
    """Return the type of the values of an Enum."""
    return words_of(*(str(each.value) for each in kind))


def constant_of(number: int) -> PlainType:
    """Return the type of a number that is always this one."""
    return PlainType(PlainKind.NUMBER, constant=number)


def record_of(**parts: PlainType) -> PlainType:
    """Return the type of a record with these fields, in order."""
    return PlainType(PlainKind.RECORD, parts=tuple(parts.items()))


def list_of(item: PlainType) -> PlainType:
    """Return the type of a list."""
    return PlainType(PlainKind.LIST, item=item)


def map_of(item: PlainType) -> PlainType:
    """Return the type of values by name, where the names are data."""
    return PlainType(PlainKind.MAP, item=item)


def choice_of(*choices: PlainType) -> PlainType:
    """Return the type of a value of one of these types."""
    return PlainType(PlainKind.CHOICE, choices=choices)
