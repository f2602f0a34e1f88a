"""The input of a strategy, and its possible outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gtid import GtidSet
from repair.content.content_questions import ContentQuestion
from repair.content.definition_parts import DefinitionsRead
from repair.content.failing_event import FailingEvent
from repair.content.locks_read import LocksRead
from repair.content.row_versions import RowsRead
from repair.content.side_effects import ScheduledEvents, SideEffects
from repair.content.transaction_content import TransactionContent
from repair.model.actions import Action, MakeRowsAlike
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.model.unseen_replicas import UnseenReplica, linked_with, unseen_below
from topology.catalogue.findings import Finding
from topology.readings.connected_replica import ConnectedReplica

# The families of findings about transactions that are missing on the finding's replica.
MISSING_ON_REPLICA = frozenset("HPA")
# Gaps that the channel's source can fill: auto-position fetches all of them at once.
_FETCHED_TOGETHER = frozenset({"H1", "H8"})
# So begins a warning about what the steps leave different and no later audit reports. It counts for
# the exit status.
UNREPORTED = "stays as it is: no later audit reports it: "
# And so one about what selected steps may do to rows: the sets are equal then. It counts, too.
MAY_DIFFER = "later audits may not report it: "
# So begins a warning about data that a selected strategy leaves out. A later audit reports it (E4)
# if it compares contents, so it does not count for the exit status.
LEFT_OUT = "the GTID sets will agree and the data will NOT: "


def is_seen_in_part(finding: Finding) -> bool:
    """Return whether unread servers may deliver what a finding reports."""
    return [strategy.name for strategy in finding.strategies] == ["add_servers"]


@dataclass(frozen=True, slots=True)
class WithoutGtid:
    """A transaction without a GTID that a channel has not applied, in the log of its source.

    `at` is the place of the first one. `maybe_at` is one that it may have applied: the channel has
    forgotten its position. `unread` is the reason if the log was not read.
    """

    at: str = ""
    maybe_at: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What binary logs and tables showed, by finding id, where they were read."""

    events: Mapping[str, FailingEvent] = field(default_factory=dict)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)  # that differ (E4) or conflict (A2)
    contents: Mapping[str, TransactionContent] = field(default_factory=dict)
    # What a start of a stopped channel delivers, by server and channel (content_questions.py).
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)
    # By server and channel: what only a file position can deliver.
    without_gtid: Mapping[tuple[str, str], WithoutGtid] = field(default_factory=dict)
    # By server, for the tables of these transactions and rows.
    side_effects: Mapping[str, tuple[SideEffects, ...]] = field(default_factory=dict)
    # By server: the events that its event scheduler runs, where that was asked.
    running_events: Mapping[str, ScheduledEvents] = field(default_factory=dict)
    # By server: its locks, if one of its appliers waits.
    locks: Mapping[str, LocksRead] = field(default_factory=dict)
    definitions: Mapping[str, DefinitionsRead] = field(default_factory=dict)  # that differ (S2)
    # By server: what is connected to it as a replica; and why that was not read.
    connected: Mapping[str, tuple[ConnectedReplica, ...]] = field(default_factory=dict)
    connected_unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownBeside:
    """What a plan knows beside one finding and the servers.

    `findings`: all of the audit. `locks`: by server, where they were read for the plan.
    """

    findings: tuple[Finding, ...] = ()
    locks: Mapping[str, LocksRead] = field(default_factory=dict)


NOTHING_BESIDE: Final = KnownBeside()


@dataclass(frozen=True, slots=True)
class SavedContent:
    """Transactions that a plan declares unneeded, as SQL next to its scripts."""

    file_name: str
    text: str


@dataclass(frozen=True, slots=True)
class StreamedContent:
    """The same, where the SQL is not part of the plan: too much, or no text for its client.

    It is written from the log of a server into the directory of the plan, together with it.
    """

    file_name: str
    finding_id: str
    read_from: str
    gtids: GtidSet


Saved: TypeAlias = SavedContent | StreamedContent


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a strategy is not planned, and the manual instruction, if there is one."""

    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Actions in order, and what the operator must know about data before they run."""

    actions: tuple[Action, ...]
    warnings: tuple[str, ...] = ()
    saved: tuple[Saved, ...] = ()
    # What the finding is about and no action repairs, with the reason. It stays a finding.
    stays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherFinding:
    """What another finding about a server reports as missing there (a gap), or as extra."""

    code: str
    channel: str | None
    gtids: GtidSet
    content: TransactionContent | None


@dataclass(frozen=True, slots=True)
class Case:
    """One finding, with the servers as the plan so far leaves them."""

    finding: Finding
    model: Model
    event: FailingEvent | None
    is_chosen: bool  # the operator selected this strategy with --strategy
    # Servers of the cluster that cannot be evaluated, with gtid_executed where it was read.
    unread: Mapping[str, GtidSet]
    # Codes of the findings that explain why the finding's source is missing the replica's extra
    # GTIDs. The source should have them, so the extra transactions are not the fault.
    meant_to_arrive: tuple[str, ...]
    snapshot_executed: Mapping[str, GtidSet]
    # gtid_executed of the first readings: what is missing since then needs more than a moment.
    first_executed: Mapping[str, GtidSet] = field(default_factory=dict)
    # gtid_executed before the first step of the plan, when current replication has come to rest.
    at_start: Mapping[str, GtidSet] = field(default_factory=dict)
    # What earlier steps of the plan redo, and those that write rows.
    redone: GtidSet = field(default_factory=GtidSet)
    rows_written: tuple[MakeRowsAlike, ...] = ()
    rows: RowsRead | None = None  # the rows of the finding, where they were read
    content: TransactionContent | None = None  # of its transactions; None: not read
    definitions: DefinitionsRead | None = None  # of an S2, where they were read in full
    # What stopped channels would deliver, by server and channel: the question, and the answer.
    waiting: Mapping[tuple[str, str], ContentQuestion] = field(default_factory=dict)
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)
    holes: tuple[OtherFinding, ...] = ()  # other gaps of the finding's replica
    extras: tuple[OtherFinding, ...] = ()  # what only this replica has, by findings about it
    # What earlier steps of the plan declare executed without content, by server: on the step's
    # server and on those that receive it by replication. It changes no rows.
    declared: Mapping[str, GtidSet] = field(default_factory=dict)
    # What is connected to the cluster's servers as a replica and is not part of the audit.
    unseen: tuple[UnseenReplica, ...] = ()

    @property
    def written(self) -> frozenset[str]:
        """Return the servers on which earlier steps of the plan write rows."""
        return frozenset(each.server for each in self.rows_written)

    def declared_on(self, name: str) -> GtidSet:
        """Return what a server has executed without content by earlier steps of the plan."""
        return self.declared.get(name, GtidSet())

    def was_there(self, name: str) -> GtidSet:
        """Return what a server had executed when it was read, or has by steps without content.

        Everything else that arrives in the model may be held up, dropped or skipped there.
        """
        return self.snapshot_executed[name] | self.declared_on(name)

    def brought(self, name: str) -> GtidSet:
        """Return what replication applies on a server because of earlier steps of the plan.

        Rows that were compared before may differ by then.
        """
        server = self.model[name]
        return server.executed - self.at_start.get(name, server.executed) - self.declared_on(name)

    def overtaken(self, *names: str) -> str | None:
        """Return why compared rows may differ by now; None if no step changes them.

        Without names, any server counts. A script that writes rows checks those of its own server
        again, so for it only what replication delivers matters.
        """
        moved = [
            name
            for name in names or self.model.servers
            if self.brought(name) - self.redone or (not names and name in self.written)
        ]
        if not moved:
            return None
        return (
            f"earlier steps of this plan change rows on {', '.join(moved)}, which were compared"
            " without these steps: run these steps alone, then audit and plan again"
        )

    @property
    def beside(self) -> tuple[tuple[GtidSet, TransactionContent | None], ...]:
        """Return the other gaps of the same channel that auto-position fetches as well."""
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

        H7 is a future gap: the replica has a GTID of its source that the source has not reached.
        """
        return self.finding.code[0] in MISSING_ON_REPLICA and self.finding.code != "H7"

    @property
    def unseen_below(self) -> tuple[UnseenReplica, ...]:
        """Return what is not part of the audit and may get what a strategy writes.

        A gap is filled on the finding's replica. Extra transactions concern all linked servers.
        """
        replica, source = self.finding.replica or "", self.finding.source or ""
        names = {replica} if self.is_hole else linked_with(self.model, (replica, source))
        return unseen_below(self.unseen, self.model, names)

    @property
    def wanted(self) -> GtidSet:
        """Return the transactions of the finding; for a stopped applier the one that stopped it."""
        if self.finding.code.startswith("A"):
            return self.content.wanted if self.content is not None else GtidSet()
        return self.finding.gtid_set

    @property
    def is_executed_since(self) -> bool:
        """Return whether a replica has executed all at which its applier stopped (A2, A3).

        Another channel or a session did it, or the failed applier itself, in part (MyISAM). A start
        continues after it.
        """
        if self.finding.code not in ("A2", "A3") or self.replica is None or not self.wanted:
            return False
        return self.wanted <= self.snapshot_executed[self.replica.name]

    @property
    def target(self) -> ModelServer | None:
        """Return the server on which the finding's transactions are missing."""
        return self.replica if self.is_hole else self.source

    @property
    def holder(self) -> ModelServer | None:
        """Return the server that has the finding's transactions, with which others are compared."""
        return self.source if self.is_hole else self.replica


Outcome: TypeAlias = Proposal | Refusal
