"""What a step does to a server: one small value for each kind of change.

1. An action says what changes, not how it is written (procedures.py) nor what follows (model.py).
2. GTID sets in an action are what it is about when planned. The script checks again when it runs.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from gtid import GtidSet
from repair.failing_event import FailingEvent
from repair.replay import Replayed
from repair.row_versions import RowVersions
from repair.transaction_content import NetRow


@dataclass(frozen=True, slots=True)
class UndoRows:
    """Set rows of one table back to what they were before some transactions, without logging it.

    The GTIDs stay executed on the server; they must be used up wherever they are missing.
    """

    server: str
    gtids: GtidSet
    rows: tuple[RowVersions, ...]

    def __post_init__(self) -> None:
        assert self.rows, "an action does something"
        assert len({(row.table.schema, row.table.table) for row in self.rows}) == 1, "of one table"


@dataclass(frozen=True, slots=True)
class InjectEmpty:
    """Commit an empty transaction under each of these GTIDs."""

    server: str
    gtids: GtidSet
    # After a position bypass nobody knows whether the failed GTID was kept: it may be there.
    may_be_executed: bool = False
    # Only because their rows are there already: a server below that lost them needs their content.
    rows_are_there: bool = False
    # What must be done before: where it is not, the rows would stay and no set would show it.
    undone: tuple[UndoRows, ...] = ()


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
    # What is fetched finds these rows as before its transactions, or stops the applier.
    rows: tuple[NetRow, ...] = ()
    # gtid_executed when those rows were compared, and what earlier steps leave empty: any other
    # transaction may have changed the rows, and changed them back. None: they were not compared.
    compared_at: GtidSet | None = None


@dataclass(frozen=True, slots=True)
class StartChannel:
    """Start both threads of a channel as it is configured."""

    server: str
    channel: str
    # The transactions that stopped the applier and can be applied now that their rows fit.
    retried: GtidSet = field(default_factory=GtidSet)
    # What waits finds these rows as before its transactions, or the channel is not started.
    rows: tuple[NetRow, ...] = ()
    # These transactions. Once one of them is executed, the rows are between before and after.
    waiting: GtidSet = field(default_factory=GtidSet)
    # No server that receives them is written to: they arrive in the order of one source's log. One
    # that has committed anything of its own since may have changed their rows.
    in_order: bool = False
    # The operator selected this start itself: the channel's own settings may refuse what waits
    # (start_guards.py). A start that only ends another selected strategy is not by choice.
    by_choice: bool = field(default=False, compare=False)


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
    # Rows that only let these transactions be applied (A2): once they are, nothing is left to do.
    until_executed: GtidSet = field(default_factory=GtidSet)

    def __post_init__(self) -> None:
        assert self.rows, "an action does something"
        assert len({(row.table.schema, row.table.table) for row in self.rows}) == 1, "of one table"


@dataclass(frozen=True, slots=True)
class RedoTransactions:
    """Do transactions again, in the order of the log, under the GTIDs that they had."""

    server: str
    transactions: tuple[Replayed, ...]
    # Their rows: as before on the servers that receive the transactions, as after on those that
    # have them. None: they were not compared.
    rows: tuple[NetRow, ...] | None = ()

    def __post_init__(self) -> None:
        assert self.transactions, "an action does something"
        assert all(each.gtid is not None and not each.problem for each in self.transactions)

    @property
    def gtids(self) -> GtidSet:
        """Return the GTIDs of the transactions."""
        return GtidSet.of(each.gtid for each in self.transactions if each.gtid is not None)


Action: TypeAlias = (
    InjectEmpty
    | AppendPurged
    | ResetAndPurge
    | MovePast
    | AutoPositionOn
    | StartChannel
    | StopChannel
    | MakeRowsAlike
    | UndoRows
    | RedoTransactions
)
