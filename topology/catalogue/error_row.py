"""One kind of error text: how to recognize it, and what it means."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One kind of text: how to recognize it, its meaning, the next step, and its verdict."""

    title: str
    pattern: str  # regular expression; any letter case, whitespace folded
    code: str | None  # catalogue code an audit would report
    means: str
    advice: tuple[str, ...]
