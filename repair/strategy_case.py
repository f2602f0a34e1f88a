"""What a strategy is asked, and what it may answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gtid import GtidSet
from repair.actions import Action
from repair.content_questions import ContentQuestion
from repair.failing_event import FailingEvent
from repair.model import Model, ModelChannel, ModelServer
from repair.row_versions import RowsRead
from repair.side_effects import SideEffects
from repair.transaction_content import TransactionContent
from topology.findings import Finding

# The families of findings about transactions that are missing on the finding's replica.
MISSING_ON_REPLICA = frozenset("HPA")
# Holes that the channel's source can fill: auto-position fetches all of them at once.
_FETCHED_TOGETHER = frozenset({"H1", "H8"})


def is_seen_in_part(finding: Finding) -> bool:
    """Return whether servers that were not read may deliver what a finding is about."""
    return [strategy.name for strategy in finding.strategies] == ["add_servers"]


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What binary logs and tables showed, by finding id, where they were read."""

    events: Mapping[str, FailingEvent] = field(default_factory=dict)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)  # that differ (E4) or conflict (A2)
    contents: Mapping[str, TransactionContent] = field(default_factory=dict)
    # What a start of a stopped channel delivers, by server and channel (content_questions.py).
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)
    # By server, of the tables of these transactions and rows.
    side_effects: Mapping[str, tuple[SideEffects, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedContent:
    """Transactions that a plan declares unneeded, written as SQL beside its scripts."""

    file_name: str
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a strategy is not planned, and what to do by hand if anything."""

    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Actions in order, and what must be known about data before they run."""

    actions: tuple[Action, ...]
    warnings: tuple[str, ...] = ()
    saved: tuple[SavedContent, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """Transactions that are missing on a server, by another finding about that server."""

    code: str
    channel: str | None
    gtids: GtidSet
    content: TransactionContent | None


@dataclass(frozen=True, slots=True)
class Case:
    """One finding, before the servers as the plan so far will leave them."""

    finding: Finding
    model: Model
    event: FailingEvent | None
    is_chosen: bool  # the operator selected this strategy with --strategy
    # Servers of the cluster of which too little is known, and gtid_executed where it was read.
    unread: Mapping[str, GtidSet]
    # Codes of the findings that say why the finding's source lacks what is extra on the replica: it
    # was meant to have it, so it is not the extra transactions that are the fault.
    meant_to_arrive: tuple[str, ...]
    snapshot_executed: Mapping[str, GtidSet]
    # gtid_executed by the first readings: what is missing since then does not only need a moment.
    first_executed: Mapping[str, GtidSet] = field(default_factory=dict)
    # gtid_executed before the first step of the plan, when what runs already has come to rest.
    at_start: Mapping[str, GtidSet] = field(default_factory=dict)
    # What earlier steps of the plan do again, and where they write rows.
    redone: GtidSet = field(default_factory=GtidSet)
    written: frozenset[str] = frozenset()
    rows: RowsRead | None = None  # the rows behind the finding, where they were read
    content: TransactionContent | None = None  # what its transactions did; None: not read
    # What stopped channels would deliver, by server and channel: what to know, and what is known.
    waiting: Mapping[tuple[str, str], ContentQuestion] = field(default_factory=dict)
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)
    holes: tuple[Hole, ...] = ()  # what else is missing on the finding's replica
    # What earlier steps of the plan declare executed without content, by server: there, and where
    # replication brings it from there. No row is changed by it.
    declared: Mapping[str, GtidSet] = field(default_factory=dict)

    def declared_on(self, name: str) -> GtidSet:
        """Return what a server has executed without content by earlier steps of the plan."""
        return self.declared.get(name, GtidSet())

    def was_there(self, name: str) -> GtidSet:
        """Return what a server had executed when it was read, or has by steps without content.

        What the model lets arrive besides may be held up, dropped or skipped there.
        """
        return self.snapshot_executed[name] | self.declared_on(name)

    def brought(self, name: str) -> GtidSet:
        """Return what earlier steps of the plan let replication apply on a server.

        Rows that were compared before may be other ones then.
        """
        server = self.model[name]
        return server.executed - self.at_start.get(name, server.executed) - self.declared_on(name)

    def overtaken(self, *names: str) -> str | None:
        """Return why rows that were compared may be other ones by now; None if no step says so.

        Without names on any server. A script that writes rows looks at those of its own server once
        more, so for it only what replication brings matters.
        """
        moved = [
            name
            for name in names or self.model.servers
            if self.brought(name) - self.redone or (not names and name in self.written)
        ]
        if not moved:
            return None
        return (
            f"earlier steps of this plan change rows on {', '.join(moved)}, which were compared as"
            " they are now: run these alone, then audit and plan again"
        )

    @property
    def beside(self) -> tuple[tuple[GtidSet, TransactionContent | None], ...]:
        """Return the other holes of the same channel that auto-position fetches as well."""
        return tuple(
            (hole.gtids, hole.content)
            for hole in self.holes
            if hole.channel == self.finding.channel and hole.code in _FETCHED_TOGETHER
        )

    @property
    def replica(self) -> ModelServer | None:
        """Return the finding's replica, if it could be read."""
        return self.model.servers.get(self.finding.replica or "")

    @property
    def source(self) -> ModelServer | None:
        """Return the finding's source, if it is in the snapshot and could be read."""
        return self.model.servers.get(self.finding.source or "")

    @property
    def channel(self) -> ModelChannel | None:
        """Return the finding's channel on its replica."""
        if self.replica is None or self.finding.channel is None:
            return None
        return self.replica.channel(self.finding.channel)

    @property
    def receiving(self) -> tuple[ModelServer, ModelChannel] | None:
        """Return the finding's replica and its channel; None without a channel that was read."""
        replica, channel = self.replica, self.channel
        return None if replica is None or channel is None else (replica, channel)

    @property
    def is_hole(self) -> bool:
        """Return whether transactions are missing on the replica, rather than on the source.

        H7 is a future hole: the replica has a GTID of its source that the source has not reached.
        """
        return self.finding.code[0] in MISSING_ON_REPLICA and self.finding.code != "H7"

    @property
    def wanted(self) -> GtidSet:
        """Return the transactions the finding is about; for a stopped applier the one it met."""
        if self.finding.code.startswith("A"):
            return self.content.wanted if self.content is not None else GtidSet()
        return self.finding.gtid_set

    @property
    def lacking(self) -> ModelServer | None:
        """Return the server on which the finding's transactions are missing."""
        return self.replica if self.is_hole else self.source

    @property
    def holder(self) -> ModelServer | None:
        """Return the server that the finding's transactions are compared with and has them."""
        return self.source if self.is_hole else self.replica


Outcome: TypeAlias = Proposal | Refusal
