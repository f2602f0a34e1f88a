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
    LIST = "a list"
    RECORD = "a record"


@dataclass(frozen=True, slots=True)
class PlainType:
    """The type of one plain value."""

    kind: PlainKind
    may_be_null: bool = False
    words: tuple[str, ...] = ()  # the only texts that are valid; () if any text may be
    item: "PlainType | None" = None  # of a list
    parts: tuple[tuple[str, "PlainType"], ...] = field(default=())  # of a record, in order

    def or_null(self) -> "PlainType":
        """Return this type with null allowed."""
        return replace(self, may_be_null=True)


TEXT: Final = PlainType(PlainKind.TEXT)
NUMBER: Final = PlainType(PlainKind.NUMBER)
COUNT: Final = PlainType(PlainKind.COUNT)
FLAG: Final = PlainType(PlainKind.FLAG)
TIME: Final = PlainType(PlainKind.TIME)


def words_of(*words: str) -> PlainType:
    """Return the type of a text that is one of these."""
    return PlainType(PlainKind.TEXT, words=words)


def record_of(**parts: PlainType) -> PlainType:
    """Return the type of a record with these fields, in order."""
    return PlainType(PlainKind.RECORD, parts=tuple(parts.items()))


def list_of(item: PlainType) -> PlainType:
    """Return the type of a list."""
    return PlainType(PlainKind.LIST, item=item)
