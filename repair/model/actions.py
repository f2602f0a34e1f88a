"""Actions: what a step changes on a server, with one small value type for each kind of change.

1. An action describes what changes, and its effect on the model. procedures.py writes it as SQL.
2. The GTID sets in an action are those known at planning time. The script checks them again when it
   runs.
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gtid import GtidSet
from repair.content.definition_parts import DefinitionPart
from repair.content.failing_event import FailingEvent
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow
from repair.model.replication_model import Model, ModelServer
from repair.model.settled_model import settle
from repair.sql.replay import Replayed
from topology.facts.last_result import keep_last_result


@dataclass(frozen=True, slots=True)
class UndoRows:
    """Set rows of one table back to their state before some transactions, without logging it.

    The GTIDs stay executed on the server. They must be used up wherever they are missing.
    """

    server: str
    gtids: GtidSet
    rows: tuple[RowVersions, ...]

    def __post_init__(self) -> None:
        assert self.rows, "an action does something"
        assert len({(row.table.schema, row.table.table) for row in self.rows}) == 1, "of one table"

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server  # not logged: no set and no channel shows it


@dataclass(frozen=True, slots=True)
class InjectEmpty:
    """Commit an empty transaction under each of these GTIDs."""

    server: str
    gtids: GtidSet
    # After a position bypass it is unknown whether the server kept the failed GTID.
    may_be_executed: bool = False
    # Only because their rows are present already: a downstream server that lost them needs their
    # content.
    rows_are_there: bool = False
    # Those rows, as the transactions left them: the script looks at them again.
    rows: tuple[NetRow, ...] = ()
    # What must be executed before. If it is not, the rows would stay and no set would show it.
    undone: tuple[UndoRows, ...] = ()

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        # Without a binary log, all that is executed is purged at once: no replica can get it here.
        return server.with_executed(self.gtids, purged=not server.has_log)


@dataclass(frozen=True, slots=True)
class AppendPurged:
    """Add these GTIDs to gtid_executed and gtid_purged in one statement (8.0 and later)."""

    server: str
    gtids: GtidSet

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server.with_executed(self.gtids, purged=True)


@dataclass(frozen=True, slots=True)
class ResetAndPurge:
    """Delete the binary logs and restore gtid_executed with these GTIDs added (before 8.0)."""

    server: str
    gtids: GtidSet
    executed: GtidSet  # the exact set of the server when the script begins
    restart: tuple[str, ...]  # its channels that were running

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        goal = self.executed | self.gtids
        return replace(server, executed=goal, purged=goal)


@dataclass(frozen=True, slots=True)
class MovePast:
    """Continue a channel with a file position, after an event that cannot be applied."""

    server: str
    channel: str
    event: FailingEvent

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        channel = server.channel(self.channel)
        assert channel is not None, "strategies refer to existing channels"
        return server.with_channel(
            self.channel,
            auto_position=False,
            running=True,
            is_connected=False,
            is_stuck=False,
            lost_place="",
            retrieved=GtidSet(),
            bypassed=channel.bypassed | self.event.before | GtidSet.of(self.event.gtid),
        )


@dataclass(frozen=True, slots=True)
class AutoPositionOn:
    """Switch a channel to auto-position, and start it."""

    server: str
    channel: str
    # Must be executed before: with auto-position, the source would send them again.
    filled: GtidSet
    # The fetched transactions find these rows as before them, or the script stops the applier.
    rows: tuple[NetRow, ...] = ()
    # gtid_executed when those rows were compared, and what earlier steps leave empty. Any other
    # transaction may have changed the rows and changed them back. None: they were not compared.
    compared_at: GtidSet | None = None
    # The operator selected it. What PRIVILEGE_CHECKS_USER may do is not asked (start_guards.py).
    by_choice: bool = field(default=False, compare=False)

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        # CHANGE … AUTO_POSITION = 1 deletes the relay log and, with it, what was retrieved.
        changed = server.with_channel(
            self.channel,
            auto_position=True,
            retrieved=GtidSet(),
            bypassed=GtidSet(),
            passed=GtidSet(),
        )
        return changed.started(self.channel)


@dataclass(frozen=True, slots=True)
class StartChannel:
    """Start both threads of a channel with its current configuration."""

    server: str
    channel: str
    # The transactions that stopped the applier and can be applied now that their rows match.
    retried: GtidSet = field(default_factory=GtidSet)
    # What waits finds these rows as before its transactions, or the script does not start the
    # channel.
    rows: tuple[NetRow, ...] = ()
    # The waiting transactions. Once one of them is executed, the rows are between before and after.
    waiting: GtidSet = field(default_factory=GtidSet)
    # Clients write to no server that receives them, so they arrive in the order of one source's
    # log. A server that has committed anything of its own since may have changed their rows.
    in_order: bool = False
    # GTIDs that earlier steps used up on the source (E3): what a client has committed under one of
    # them never arrives, and once the channel runs nothing shows that.
    used_up: GtidSet = field(default_factory=GtidSet)
    # The operator selected this start. The channel's own settings may refuse what waits
    # (start_guards.py). If the start only ends another selected strategy, this is False.
    by_choice: bool = field(default=False, compare=False)

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server.started(self.channel, retried=self.retried)


@dataclass(frozen=True, slots=True)
class StopChannel:
    """Stop both threads of a channel."""

    server: str
    channel: str

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server.with_channel(self.channel, running=False, is_connected=False)


@dataclass(frozen=True, slots=True)
class MakeRowsAlike:
    """Make rows of one table equal to those of `source`, without logging it: no GTID changes.

    `source` is the server that has the version which is written: for E4, whichever was chosen.
    """

    server: str
    source: str
    rows: tuple[RowVersions, ...]
    # Rows that are only set so that these transactions can be applied (A2). Once they are executed,
    # nothing is left to do.
    until_executed: GtidSet = field(default_factory=GtidSet)

    def __post_init__(self) -> None:
        assert self.rows, "an action does something"
        assert len({(row.table.schema, row.table.table) for row in self.rows}) == 1, "of one table"

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server  # not logged: no set and no channel shows it


@dataclass(frozen=True, slots=True)
class RedoTransactions:
    """Execute transactions again, in log order, under their original GTIDs."""

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

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        # Without a binary log, all that is executed is purged at once: no replica can get it here.
        return server.with_executed(self.gtids, purged=not server.has_log)


@dataclass(frozen=True, slots=True)
class ChangeDefinition:
    """Run one DDL statement on a replica, without logging it: its definition becomes the source's.

    The statement is one that the server executes completely or not at all. Each of `parts` is as
    the plan read it, or already as on the source; otherwise the script changes nothing.
    """

    server: str
    source: str
    schema: str
    name: str
    title: str
    statement: str
    parts: tuple[DefinitionPart, ...]
    undo: str  # the statement that takes it back
    # The replica has executed nothing that is not in this set when it gets a column: the rows of
    # the source, of which none has a value in it, contain all of it. None: rows do not matter.
    rows_at: GtidSet | None = None
    session: tuple[str, ...] = ()  # settings that the statement needs
    data_bytes: int = 0  # of the table
    blocks_writes: bool = False  # appliers wait while it runs

    def __post_init__(self) -> None:
        assert self.parts, "the goal of a statement is checked"
        assert all(each.seen != each.goal for each in self.parts), "an action does something"

    def effect(self, server: ModelServer) -> ModelServer:
        """Return the server after the action."""
        return server  # not logged: no set and no channel shows it


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
    | ChangeDefinition
)


def added_by(action: Action) -> GtidSet:
    """Return the GTIDs that an action itself adds to its server; what then arrives is not in it."""
    match action:
        case InjectEmpty() | AppendPurged() | ResetAndPurge() | RedoTransactions():
            return action.gtids
        case _:
            return GtidSet()


@keep_last_result
def simulate(model: Model, action: Action) -> Model:
    """Return the servers after an action, when replication has come to rest.

    Several questions about one action follow each other, so its last answer is kept.
    """
    return settle(model.replace(action.effect(model[action.server])))
