"""What a step does to a server: one small value for each kind of change.

1. An action says what changes, not how it is written (procedures.py) nor what follows (model.py).
2. GTID sets in an action are what it is about when planned. The script checks again when it runs.
"""

from dataclasses import dataclass
from typing import TypeAlias

from gtid import GtidSet
from repair.evidence import FailingEvent
from repair.row_versions import RowVersions


@dataclass(frozen=True, slots=True)
class InjectEmpty:
    """Commit an empty transaction under each of these GTIDs."""

    server: str
    gtids: GtidSet
    # After a position bypass nobody knows whether the failed GTID was kept: it may be there.
    may_be_executed: bool = False


@dataclass(frozen=True, slots=True)
class AppendPurged:
    """Add these GTIDs to gtid_executed and gtid_purged in one statement (8.0 and later)."""

    server: str
    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class ResetAndPurge:
    """Delete the binary logs and put back gtid_executed with these GTIDs added (before 8.0)."""

    server: str
    gtids: GtidSet
    executed: GtidSet  # what the server must hold, exactly, when the script begins
    restart: tuple[str, ...]  # its channels that ran


@dataclass(frozen=True, slots=True)
class MovePast:
    """Continue a channel by file position, behind an event that cannot be applied."""

    server: str
    channel: str
    event: FailingEvent


@dataclass(frozen=True, slots=True)
class AutoPositionOn:
    """Let the sets decide what a channel receives, and start it."""

    server: str
    channel: str
    # Must be executed before: with auto-position on, the source would send them again.
    filled: GtidSet


@dataclass(frozen=True, slots=True)
class StartChannel:
    """Start both threads of a channel as it is configured."""

    server: str
    channel: str


@dataclass(frozen=True, slots=True)
class StopChannel:
    """Stop both threads of a channel."""

    server: str
    channel: str


@dataclass(frozen=True, slots=True)
class MakeRowsAlike:
    """Make rows of one table like those of a source, without logging it: no GTID is touched."""

    server: str
    source: str
    rows: tuple[RowVersions, ...]

    def __post_init__(self) -> None:
        assert self.rows, "an action does something"
        assert len({(row.table.schema, row.table.table) for row in self.rows}) == 1, "of one table"


Action: TypeAlias = (
    InjectEmpty
    | AppendPurged
    | ResetAndPurge
    | MovePast
    | AutoPositionOn
    | StartChannel
    | StopChannel
    | MakeRowsAlike
)
