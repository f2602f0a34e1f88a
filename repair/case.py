"""What a strategy is asked, and what it may answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gtid import GtidSet
from repair.actions import Action
from repair.evidence import FailingEvent
from repair.model import Model, ModelChannel, ModelServer
from repair.row_versions import RowsRead
from topology.findings import Finding


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a strategy is not planned, and what to do by hand if anything."""

    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """Actions in order, and what must be known about data before they run."""

    actions: tuple[Action, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One finding, before the servers as the plan so far will leave them."""

    finding: Finding
    model: Model
    event: FailingEvent | None
    is_chosen: bool  # somebody asked for this strategy by name
    unread: tuple[str, ...]  # servers of the cluster that nothing is known of
    # Codes of the findings that say why the finding's source lacks what is extra on the replica: it
    # was meant to have it, so it is not the extra transactions that are the fault.
    meant_to_arrive: tuple[str, ...]
    snapshot_executed: Mapping[str, GtidSet]
    rows: RowsRead | None = None  # the rows behind the finding, where they were read

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
    def is_hole(self) -> bool:
        """Tell whether the replica lacks transactions, rather than has too many."""
        return self.finding.code.startswith("H")


Outcome: TypeAlias = Proposal | Refusal
