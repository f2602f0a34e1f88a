"""The parameters of requests to the API: what each may be, for the reader and for the document.

1. A parameter is declared once. The OpenAPI document has its schema from the same row.
2. An unknown parameter, or one that may be given once and is given twice, is an error: a filter
   with a typing error would otherwise return everything.
3. A parameter that is a list may be repeated; one of its values must apply.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
TEXT_CHARACTERS_MAX: Final = 4096  # a cursor holds five names
VALUES_MAX: Final = 50  # of one parameter


class BadParameter(Exception):
    """A parameter of a request is wrong. The text names it, and what was expected."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `words`: the only values that are valid; () if any text is."""

    name: str
    about: str
    words: tuple[str, ...] = ()
    is_list: bool = False
    is_number: bool = False
    is_required: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value.

        It does not say how long a text may be: no client reaches that limit by using names and
        cursors that it was given.
        """
        if self.is_number:
            return {
                "type": "integer",
                "minimum": 1,
                "maximum": LIMIT_MAX,
                "default": LIMIT_DEFAULT,
            }
        one: dict[str, Any] = (
            {"type": "string", "enum": list(self.words)}
            if self.words
            else {"type": "string", "minLength": 1}
        )
        return {"type": "array", "items": one, "maxItems": VALUES_MAX} if self.is_list else one

    def check(self, values: Sequence[str]) -> None:
        """Raise BadParameter unless these are values of this parameter."""
        if not self.is_list and len(values) > 1:
            raise BadParameter(f"{self.name}: expected once, found {len(values)} times")
        if len(values) > VALUES_MAX:
            raise BadParameter(f"{self.name}: expected at most {VALUES_MAX} values")
        for value in values:
            if self.words and value not in self.words:
                raise BadParameter(f"{self.name}: expected one of {', '.join(self.words)}")
            if not 1 <= len(value) <= TEXT_CHARACTERS_MAX:
                raise BadParameter(f"{self.name}: expected 1 to {TEXT_CHARACTERS_MAX} characters")
            if self.is_number and not _is_number(value):
                raise BadParameter(f"{self.name}: expected a number from 1 to {LIMIT_MAX}")


def _is_number(text: str) -> bool:
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(LIMIT_MAX))
    return is_short and 1 <= int(text) <= LIMIT_MAX


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one request, all valid."""

    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, declared: Sequence[Parameter], given: Sequence[tuple[str, str]]) -> "Parameters":
        """Check the parameters of a request. Raises BadParameter."""
        known = {each.name: each for each in declared}
        found: dict[str, list[str]] = {}
        for name, value in given:
            if name not in known:
                names = ", ".join(known) or "none"
                raise BadParameter(f"unknown parameter; the parameters of this path: {names}")
            found.setdefault(name, []).append(value)
        for name, values in found.items():
            known[name].check(values)
        for each in declared:
            if each.is_required and each.name not in found:
                raise BadParameter(f"{each.name}: is required")
        return cls({name: tuple(values) for name, values in found.items()})

    def one(self, name: str) -> str | None:
        """Return the value of a parameter that is no list; None if it was not given."""
        values = self.values.get(name)
        return None if values is None else values[0]

    def admits(self, name: str, value: str) -> bool:
        """Return whether a filter leaves a value in: also if it was not given."""
        values = self.values.get(name)
        return values is None or value in values

    @property
    def limit(self) -> int:
        """Return how many items a page has at most."""
        return int(self.one("limit") or LIMIT_DEFAULT)
