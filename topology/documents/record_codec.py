"""Converts values to plain records and back. This generic module contains no field names.

1. A codec writes one value, and reads it back. A shape is a table of named codecs.
2. Reading is strict, and an error shows where: MalformedRecord contains the path, such as
   `channels[0].workers`. The path is built only while the error propagates, so it costs nothing
   when a record is valid.
3. This module is independent of snapshots and findings: topology/documents/records.py defines their
   fields.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from gtid import GtidError, GtidSet
from topology.documents.plain_types import PlainKind, PlainType
from topology.readings.version import ServerVersion

Plain: TypeAlias = "bool | int | str | list[Plain] | dict[str, Plain] | None"
Record: TypeAlias = "dict[str, Plain]"
T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_SHOWN_CHARS = 60
_RECENT_CHARS_MAX = 4_096
_RECENT_MAX = 1_024  # of sets: 10 MB at most


class MalformedRecord(ValueError):
    """A record that is truncated, foreign or damaged. `place` is the path of the field."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place or 'record'}: {self.problem}"

    def within(self, outer: str) -> "MalformedRecord":
        """Return the same error with the outer field added to its path."""
        joint = "" if not self.place or self.place.startswith("[") else "."
        made = MalformedRecord(f"{outer}{joint}{self.place}", self.problem)
        made.__cause__ = self.__cause__
        return made


def time_to_text(time: datetime) -> str:
    """Write a time as `2026-01-02T03:04:05.000006Z`. Raises ValueError if it has no time zone."""
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone: {time.isoformat()}")
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def time_from_text(text: str) -> datetime:
    """Read what `time_to_text` writes, and nothing else. Raises ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None or time_to_text(time) != text:
        raise ValueError(text)
    return time


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Writes a value, and reads it back. Reading raises MalformedRecord."""

    write: Callable[[T], Plain]
    read: Callable[[Plain], T]
    plain_type: PlainType  # of what it writes
    kind: type | None = None  # a value of exactly this type is returned unchanged


def _refuse(plain: Plain, expected: str) -> MalformedRecord:
    shown = "null" if plain is None else repr(plain)
    if len(shown) > _SHOWN_CHARS:
        shown = shown[:_SHOWN_CHARS] + "…"
    return MalformedRecord("", f"expected {expected}, found {shown}")


def _read_text(plain: Plain) -> str:
    if not isinstance(plain, str):
        raise _refuse(plain, "a text")
    return plain


def _read_number(plain: Plain) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _refuse(plain, "a whole number")
    return plain


def _read_flag(plain: Plain) -> bool:
    if not isinstance(plain, bool):
        raise _refuse(plain, "true or false")
    return plain


def through_text(
    *, write: Callable[[T], str], parse: Callable[[str], T], expected: str
) -> Codec[T]:
    """Return the codec of a value that has exactly one text, and accept only that text."""

    def read(plain: Plain) -> T:
        text = _read_text(plain)
        try:
            value = parse(text)
        except GtidError as error:  # its message shows what was expected, and where
            raise MalformedRecord("", str(error)) from error
        except ValueError as error:
            raise _refuse(plain, expected) from error
        if write(value) != text:
            raise _refuse(plain, expected)
        return value

    return Codec(write, read, PlainType(PlainKind.TEXT))


def word(kind: type[E]) -> Codec[E]:
    """Return the codec of an Enum whose values are the words to write."""
    expected = "one of " + ", ".join(repr(member.value) for member in kind)
    members = {member.value: member for member in kind}

    def read(plain: Plain) -> E:
        try:
            return members[plain]
        except (KeyError, TypeError):
            raise _refuse(_read_text(plain), expected) from None

    words = tuple(str(member.value) for member in kind)
    return Codec(lambda member: str(member.value), read, PlainType(PlainKind.TEXT, words=words))


def optional(codec: Codec[T]) -> Codec[T | None]:
    """Return a codec that also allows None."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda plain: None if plain is None else codec.read(plain),
        codec.plain_type.or_null(),
        codec.kind,
    )


def many(codec: Codec[T]) -> Codec[tuple[T, ...]]:
    """Return the codec of a tuple, written as a list, given the codec of its items."""

    def read(plain: Plain) -> tuple[T, ...]:
        if not isinstance(plain, list):
            raise _refuse(plain, "a list")
        values: list[T] = []
        try:
            for item in plain:
                values.append(codec.read(item))
        except MalformedRecord as error:
            raise error.within(f"[{len(values)}]") from error
        return tuple(values)

    kind = PlainType(PlainKind.LIST, item=codec.plain_type)
    return Codec(lambda values: [codec.write(value) for value in values], read, kind)


def text_pair(first: str, second: str) -> Codec[tuple[str, str]]:
    """Return the codec of two texts, written as a record: there are many of them."""
    names = (first, second)
    shape = RecordShape(
        lambda **texts: (texts[first], texts[second]),
        {first: TEXT, second: TEXT},
        get=lambda pair, name: pair[names.index(name)],
    )

    def read(plain: Plain) -> tuple[str, str]:
        if type(plain) is dict and len(plain) == len(names):
            one, other = plain.get(first), plain.get(second)
            if type(one) is str and type(other) is str:
                return one, other
        return shape.read(plain)  # raises an error that shows what is wrong

    return Codec(shape.write, read, shape.plain_type)


@dataclass(frozen=True, slots=True)
class RecordShape(Generic[T]):
    """The fields of a record, in their order, and the constructor of the value.

    A `derived` field follows from the others. It is written for readers of the record, and must
    agree when it is read back. `get` returns a field of the value.
    """

    make: Callable[..., T]
    fields: Mapping[str, Codec[Any]]
    derived: frozenset[str] = frozenset()
    get: Callable[[T, str], Any] = field(default=getattr)
    _steps: tuple[tuple[str, type | None, Callable[[Plain], Any]], ...] = field(init=False)

    def __post_init__(self) -> None:
        steps = tuple((name, codec.kind, codec.read) for name, codec in self.fields.items())
        object.__setattr__(self, "_steps", steps)

    def write(self, value: T) -> Record:
        """Write the fields in the order of the table."""
        return {name: codec.write(self.get(value, name)) for name, codec in self.fields.items()}

    def read(self, plain: Plain) -> T:
        """Return the value made of exactly these fields. Raises MalformedRecord."""
        if not isinstance(plain, dict):
            raise _refuse(plain, "a record")
        values = {}
        name = ""
        try:
            for name, kind, read in self._steps:
                value = plain[name]
                values[name] = value if type(value) is kind else read(value)
        except MalformedRecord as error:
            raise error.within(name) from error
        except KeyError:
            raise MalformedRecord(name, "the field is missing") from None
        if len(plain) != len(values):
            unknown = min(plain.keys() - values.keys())
            raise MalformedRecord(unknown, "no such field is known")
        derived = {name: values.pop(name) for name in self.derived} if self.derived else {}
        try:
            made = self.make(**values)
        except ValueError as error:
            raise MalformedRecord("", str(error)) from error
        for name in sorted(derived):
            if derived[name] != self.get(made, name):
                expected = f"{self.get(made, name)!r}, which follows from the other fields"
                raise _refuse(plain[name], expected).within(name)
        return made

    @property
    def plain_type(self) -> PlainType:
        """Return the type of the record."""
        parts = tuple((name, codec.plain_type) for name, codec in self.fields.items())
        return PlainType(PlainKind.RECORD, parts=parts)

    @property
    def codec(self) -> Codec[T]:
        """Return this shape as the codec of a field in another shape."""
        return Codec(self.write, self.read, self.plain_type)


TEXT: Codec[str] = Codec(str, _read_text, PlainType(PlainKind.TEXT), str)
NUMBER: Codec[int] = Codec(int, _read_number, PlainType(PlainKind.NUMBER), int)
SMALL_NUMBER: Codec[int] = Codec(int, _read_number, PlainType(PlainKind.SMALL_NUMBER), int)
COUNT: Codec[int] = Codec(int, _read_number, PlainType(PlainKind.COUNT), int)
FLAG: Codec[bool] = Codec(bool, _read_flag, PlainType(PlainKind.FLAG), bool)
_TIME_TEXT = through_text(
    write=time_to_text,
    parse=time_from_text,
    expected="a UTC time like 2026-01-02T03:04:05.000006Z",
)
# A column of times needs no intermediate text: see readings_of_table in snapshot_columns.py.
TIME = Codec(_TIME_TEXT.write, _TIME_TEXT.read, PlainType(PlainKind.TIME), datetime)


def _remembering(codec: Codec[T]) -> Codec[T]:
    """Return a codec that caches the values of short texts that it read recently.

    Two readings of a server, and many servers of a fleet, have most of their values in common.
    """
    recent = lru_cache(maxsize=_RECENT_MAX)(codec.read)

    def read(plain: Plain) -> T:
        if type(plain) is str and len(plain) <= _RECENT_CHARS_MAX:
            return recent(plain)
        return codec.read(plain)

    return Codec(codec.write, read, codec.plain_type)


UUID_TEXT = _remembering(
    through_text(write=str, parse=UUID, expected="a UUID in lower case with dashes")
)
_GTID_SET_TEXT = _remembering(
    through_text(write=str, parse=GtidSet.parse, expected="a canonical GTID set")
)
# As with times: a caller that has read a column of sets need not convert them to text and back.
GTID_SET = Codec(_GTID_SET_TEXT.write, _GTID_SET_TEXT.read, _GTID_SET_TEXT.plain_type, GtidSet)
VERSION = _remembering(
    through_text(write=str, parse=ServerVersion.parse, expected="a release like 9.7.4")
)
