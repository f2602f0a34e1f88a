"""A server's version, as the server reports it.

1. Versions are integer tuples. 5.6, 8.0.36, 9.7.4 and the calendar releases after them (26.7.0)
   compare as numbers, never as text.
2. This module does not define what a version supports: the dialect table does.
"""

import re
from dataclasses import dataclass

_NUMBERS = re.compile(r"(?P<major>[0-9]+)\.(?P<minor>[0-9]+)(?:\.(?P<patch>[0-9]+))?")


class UnreadableVersion(ValueError):
    """A version text that does not begin with a number."""


@dataclass(frozen=True, slots=True, order=True)
class ServerVersion:
    """Release number of a server: `(major, minor, patch)`."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> "ServerVersion":
        """Read `@@version`: "5.6.24-log", "8.0.36-28", "9.7.4".

        Raises:
            UnreadableVersion: the text does not begin with a release number.
        """
        found = _NUMBERS.match(text.strip())
        if found is None:
            raise UnreadableVersion(f"expected a release number, found {text!r}")
        return cls(int(found["major"]), int(found["minor"]), int(found["patch"] or 0))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# The first version of each release series. An innovation release belongs to the series it leads to.
_SERIES = (
    ServerVersion(5, 6),
    ServerVersion(5, 7),
    ServerVersion(8, 0),
    ServerVersion(8, 1),
    ServerVersion(9, 0),
)


def follows(replica: ServerVersion, source: ServerVersion) -> bool:
    """Return whether MySQL supports a replica of this version: of the same series or the next.

    Calendar releases after 9.x belong to the last series of the table: no limits are known for
    them.
    """
    return 0 <= series_of(replica) - series_of(source) <= 1


def series_of(version: ServerVersion) -> int:
    """Return the number of a version's release series, in order of time."""
    return sum(first <= version for first in _SERIES)


# Seen: 5.6 and 9.7 cannot connect to each other, in either direction (errors 2026 and 2059).
_REFUSED_BY_NEWEST = ServerVersion(5, 7)
_NEWEST = ServerVersion(9, 7)


def refuse_each_other(one: ServerVersion, other: ServerVersion) -> bool:
    """Return whether servers of two versions cannot connect to each other."""
    older, newer = sorted((one, other))
    return older < _REFUSED_BY_NEWEST and newer >= _NEWEST
