"""One kind of error text: how to know it, and what it means."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One kind of text: how to know it, what it means, what to do, and the verdict it leads to."""

    title: str
    pattern: str  # regular expression, any letter case, blanks folded
    code: str | None  # catalogue code an audit would report
    means: str
    advice: tuple[str, ...]
