"""How a value becomes a plain record and is read back: the machinery, without any field's name.

1. A codec writes one value, and reads it back given the path of its place. A shape is a table of
   named codecs.
2. Reading is strict and says where: MalformedRecord carries the path, as `channels[0].workers`.
3. This file knows no snapshot and no finding: topology/records.py does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from gtid import GtidError, GtidSet
from topology.version import ServerVersion

Plain: TypeAlias = "bool | int | str | list[Plain] | dict[str, Plain] | None"
Record: TypeAlias = "dict[str, Plain]"
T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_SHOWN_CHARS = 60


class MalformedRecord(ValueError):
    """A record that is truncated, foreign or damaged: `place` is the path of the field."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place or 'record'}: {self.problem}"


def time_to_text(time: datetime) -> str:
    """Write a time as `2026-01-02T03:04:05.000006Z`. Raises ValueError if it names no zone."""
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
    """Writes a value, and reads it back given the path of its place."""

    write: Callable[[T], Plain]
    read: Callable[[Plain, str], T]


def _refuse(plain: Plain, place: str, expected: str) -> MalformedRecord:
    shown = "null" if plain is None else repr(plain)
    if len(shown) > _SHOWN_CHARS:
        shown = shown[:_SHOWN_CHARS] + "…"
    return MalformedRecord(place, f"expected {expected}, found {shown}")


def _read_text(plain: Plain, place: str) -> str:
    if not isinstance(plain, str):
        raise _refuse(plain, place, "a text")
    return plain


def _read_number(plain: Plain, place: str) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _refuse(plain, place, "a whole number")
    return plain


def _read_flag(plain: Plain, place: str) -> bool:
    if not isinstance(plain, bool):
        raise _refuse(plain, place, "true or false")
    return plain


def through_text(
    *, write: Callable[[T], str], parse: Callable[[str], T], expected: str
) -> Codec[T]:
    """Make the codec of a value that has one text, and accept that text only."""

    def read(plain: Plain, place: str) -> T:
        text = _read_text(plain, place)
        try:
            value = parse(text)
        except GtidError as error:  # it says what was expected, and shows the place in the text
            raise MalformedRecord(place, str(error)) from error
        except ValueError as error:
            raise _refuse(plain, place, expected) from error
        if write(value) != text:
            raise _refuse(plain, place, expected)
        return value

    return Codec(write, read)


def word(kind: type[E]) -> Codec[E]:
    """Make the codec of an Enum whose values are the words to write."""
    words = ", ".join(repr(member.value) for member in kind)
    return through_text(
        write=lambda member: str(member.value), parse=kind, expected=f"one of {words}"
    )


def optional(codec: Codec[T]) -> Codec[T | None]:
    """Let the value be None."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda plain, place: None if plain is None else codec.read(plain, place),
    )


def many(codec: Codec[T]) -> Codec[tuple[T, ...]]:
    """Make the codec of a tuple, written as a list, out of that of its items."""

    def read(plain: Plain, place: str) -> tuple[T, ...]:
        if not isinstance(plain, list):
            raise _refuse(plain, place, "a list")
        return tuple(codec.read(item, f"{place}[{index}]") for index, item in enumerate(plain))

    return Codec(lambda values: [codec.write(value) for value in values], read)


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """The fields of a record, in their order, and what makes the value of them.

    A `derived` field follows from the others: it is written for whoever reads the record, and must
    agree when it is read back. `get` looks a field up in the value.
    """

    make: Callable[..., T]
    fields: Mapping[str, Codec[Any]]
    derived: frozenset[str] = frozenset()
    get: Callable[[T, str], Any] = field(default=getattr)

    def write(self, value: T) -> Record:
        """Write the fields in the order of the table."""
        return {name: codec.write(self.get(value, name)) for name, codec in self.fields.items()}

    def read(self, plain: Plain, place: str = "") -> T:
        """Make the value of exactly these fields. Raises MalformedRecord."""
        if not isinstance(plain, dict):
            raise _refuse(plain, place, "a record")
        prefix = f"{place}." if place else ""
        for name in sorted(plain.keys() - self.fields.keys()):
            raise MalformedRecord(f"{prefix}{name}", "no such field is known")
        values = {}
        for name, codec in self.fields.items():
            if name not in plain:
                raise MalformedRecord(f"{prefix}{name}", "the field is missing")
            values[name] = codec.read(plain[name], f"{prefix}{name}")
        try:
            made = self.make(**{name: values[name] for name in values if name not in self.derived})
        except ValueError as error:
            raise MalformedRecord(place, str(error)) from error
        for name in sorted(self.derived):
            if values[name] != self.get(made, name):
                expected = f"{self.get(made, name)!r}, which follows from the other fields"
                raise _refuse(plain[name], f"{prefix}{name}", expected)
        return made

    @property
    def codec(self) -> Codec[T]:
        """Return this shape as the codec of a field of another."""
        return Codec(self.write, self.read)


TEXT: Codec[str] = Codec(str, _read_text)
NUMBER: Codec[int] = Codec(int, _read_number)
FLAG: Codec[bool] = Codec(bool, _read_flag)
TIME = through_text(
    write=time_to_text,
    parse=time_from_text,
    expected="a UTC time like 2026-01-02T03:04:05.000006Z",
)
UUID_TEXT = through_text(write=str, parse=UUID, expected="a UUID in lower case with dashes")
GTID_SET = through_text(write=str, parse=GtidSet.parse, expected="a canonical GTID set")
VERSION = through_text(write=str, parse=ServerVersion.parse, expected="a release like 9.7.4")
