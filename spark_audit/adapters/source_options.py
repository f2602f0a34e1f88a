"""What may be said in `.option(…)` to the data source `mysql_snapshot`, read and checked.

1. All problems are reported at once, and no message repeats a value.
2. No option takes a password: options stand in plans, in Spark's web pages and in event logs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, Final

from topology.adapters.inventory.problem import InventoryProblem

COUNT_MAX: Final = 10_000


class Credentials(Enum):
    """Who looks up user and password: the driver, which ships them, or each executor for itself."""

    DRIVER = "driver"
    EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one `load()`."""

    fleet: Path  # as the driver sees it
    cluster: str | None = None  # only this one
    partitions: int | None = None  # at most so many tasks
    connections: int | None = None  # of one task, at once
    credentials: Credentials = Credentials.DRIVER

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Read options; names in any case, as Spark has them. Raises InventoryProblem."""
        given = {name.lower(): value for name, value in options.items()}
        problems = [_unknown(name) for name in sorted(given.keys() - READERS.keys())]
        if not given.get("fleet"):
            problems.append("option fleet: is missing; it is the path of a fleet file")
        values: dict[str, Any] = {}  # each reader gives the type of its field
        for name in sorted(given.keys() & READERS.keys()):
            try:
                values[name] = READERS[name](given[name])
            except ValueError as expected:
                problems.append(f"option {name}: {expected}")
        if problems:
            raise InventoryProblem(*problems)
        return cls(**values)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= len(str(COUNT_MAX))):
        raise ValueError(f"expected a number from 1 to {COUNT_MAX:,}")
    if not 1 <= int(text) <= COUNT_MAX:
        raise ValueError(f"expected a number from 1 to {COUNT_MAX:,}")
    return int(text)


def _credentials(text: str) -> Credentials:
    try:
        return Credentials(text.lower())
    except ValueError:
        raise ValueError("expected driver or executor") from None


def _name(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "fleet": Path,
    "cluster": _name,
    "partitions": _count,
    "connections": _count,
    "credentials": _credentials,
}


def _unknown(name: str) -> str:
    if any(word in name for word in ("pass", "pwd", "secret")):
        return (
            f"option {name}: a password is no option, for options can be read in plans and in"
            " Spark's web pages; the fleet file says where it is"
        )
    near = get_close_matches(name, READERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(READERS)}"
    return f"option {name}: unknown; {hint}"
