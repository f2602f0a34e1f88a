"""What a data check compares, how long it waits for what, and which load it leaves alone."""

from dataclasses import dataclass
from typing import Final

from repair.data_check.checked_tables import SYSTEM_SCHEMAS

STATEMENT_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """How long a data check waits for what, and which load it leaves alone."""

    statement_seconds_max: float = STATEMENT_SECONDS_MAX
    connect_seconds_max: float = 10.0
    behind_seconds_max: float = 60.0
    threads_running_max: int = 25
    pause_seconds: float = 0.0  # after each part
    # Await nothing: one of them cannot go on (1236), or has a gap. What it does not have differs.
    as_they_are: bool = False


@dataclass(frozen=True, slots=True)
class CheckScope:
    """What is compared: these tables, and all tables of these databases; neither: everything."""

    tables: frozenset[tuple[str, str]] = frozenset()
    databases: frozenset[str] = frozenset()

    def has(self, place: tuple[str, str]) -> bool:
        """Return whether a table is compared."""
        if not (self.tables or self.databases):
            return place[0] not in SYSTEM_SCHEMAS
        return place in self.tables or place[0] in self.databases
