"""The place of a run's results, for both engines: what is there, and how a draft is published.

adapters/results.py explains the layout and its invariants. This module knows no rows.
"""

from dataclasses import dataclass, fields
from typing import Final

from spark_audit.adapters.runs import latest_before
from spark_audit.adapters.storage import Storage
from spark_audit.summary import FleetSummary, MalformedSummary, policy_digest
from topology.adapters.run_directory import COMPLETE, RunName, complete_draft, new_draft
from topology.policy import Policy

AUDITS_BELOW: Final = "audits"
_SUMMARY: Final = "_summary.json"


class ResultsDiffer(Exception):
    """The run has results already, and they differ from those that would be written now."""


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """Where the results of a run belong, and the complete results that exist."""

    storage: Storage
    root: str  # the directory of the results of all runs
    run: RunName
    kept: FleetSummary | None  # of this run; None if it has no complete results yet
    previous: RunName | None  # the latest results before this run

    @classmethod
    def below(
        cls, storage: Storage, directory: str, *, run: RunName, policy: Policy
    ) -> "ResultPlace":
        """Look at what is stored. Raises ResultsDiffer if another policy evaluated the run."""
        root = f"{directory}/{AUDITS_BELOW}"
        place = f"{root}/{run.path}"
        kept = summary_at(storage, place) if storage.exists(f"{place}/{COMPLETE}") else None
        if kept is not None and kept.policy != policy_digest(policy):
            raise ResultsDiffer(_advice(place, "these results were evaluated with another policy"))
        return cls(storage, root, run, kept, latest_before(storage, root, run))

    @property
    def path(self) -> str:
        """Return the directory of the results."""
        return f"{self.root}/{self.run.path}"

    @property
    def new_draft(self) -> str:
        """Return a directory for a draft, with another name each time."""
        return new_draft(self.root)

    def publish(self, summary: FleetSummary, *, draft: str) -> None:
        """Make the tables of a draft the complete results."""
        complete_draft(self.storage, draft, {_SUMMARY: summary.to_text()})
        if draft != self.path:
            self.storage.rename(draft, self.path)

    def require_same(self, kept: FleetSummary, made: FleetSummary) -> None:
        """Raise ResultsDiffer unless the run, evaluated again, gives the kept results.

        `kept` has the digests of the engine that made `made`.
        """
        names = [each.name for each in fields(FleetSummary)]
        differing = [name for name in names if getattr(kept, name) != getattr(made, name)]
        if differing:
            what = f"these results differ when evaluated again ({', '.join(differing)})"
            raise ResultsDiffer(_advice(self.path, what))


def summary_at(storage: Storage, place: str) -> FleetSummary:
    """Read the summary of a complete run. Raises MalformedSummary."""
    try:
        return FleetSummary.from_text(storage.read_text(f"{place}/{_SUMMARY}"))
    except MalformedSummary as error:
        raise MalformedSummary(f"{place}/{_SUMMARY}: {error}") from error


def _advice(place: str, what: str) -> str:
    """Return the text of an error: results exist, and how to replace them on purpose."""
    return (
        f"{place}: {what}. The stored results are kept. To replace them, move that directory away"
        " and audit this run again, then the later runs in order: each run takes the start of a"
        " finding from the run before"
    )
