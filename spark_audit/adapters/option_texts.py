"""Reads and checks the `.option(…)` texts of a data source: the part that all sources share.

1. All problems are reported at once. No message repeats a value: options appear in plans, in
   Spark's web pages and in event logs.
2. For the same reason no option takes a password; the error states where it belongs.
3. Each source defines its own table of options.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, TypeAlias

# Reads the text of one option. Raises ValueError with the expected form.
Readers: TypeAlias = Mapping[str, Callable[[str], Any]]

_PASSWORD_WORDS: Final = ("pass", "pwd", "secret")


class Credentials(Enum):
    """Which process looks up user and password: the driver, or each executor for itself.

    The driver sends them to the executors.
    """

    DRIVER = "driver"
    EXECUTOR = "executor"


def by_lower_name(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options by their names in lower case: Spark accepts any case."""
    return {name.lower(): value for name, value in options.items()}


def read_options(
    given: Mapping[str, str], readers: Readers, *, account_is_in: str
) -> tuple[dict[str, Any], list[str]]:
    """Read options by their table; return the values by name, and the problems."""
    problems = [
        _unknown(name, readers, account_is_in) for name in sorted(given.keys() - readers.keys())
    ]
    values: dict[str, Any] = {}
    for name in sorted(given.keys() & readers.keys()):
        try:
            values[name] = readers[name](given[name])
        except ValueError as expected:
            problems.append(f"option {name}: {expected}")
    return values, problems


def number_to(limit: int) -> Callable[[str], int]:
    """Return a reader for a number from 1 to a limit."""

    def read(text: str) -> int:
        fits = text.isascii() and text.isdigit() and len(text) <= len(str(limit))
        if not fits or not 1 <= int(text) <= limit:
            raise ValueError(f"expected a number from 1 to {limit:,}")
        return int(text)

    return read


def credentials_in(text: str) -> Credentials:
    """Read which process looks up the account."""
    try:
        return Credentials(text.lower())
    except ValueError:
        raise ValueError("expected driver or executor") from None


def _unknown(name: str, readers: Readers, account_is_in: str) -> str:
    if any(word in name for word in _PASSWORD_WORDS):
        return (
            f"option {name}: a password must not be an option, because Spark shows options in"
            f" plans and on its web pages; {account_is_in}"
        )
    near = get_close_matches(name, readers, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the options are {', '.join(readers)}"
    return f"option {name}: unknown; {hint}"
