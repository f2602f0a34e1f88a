"""What /readyz answers: whether the first audits have ended, and what is wrong although it works.

A service that is ready stays ready: if it were taken out of service because one cluster hangs, the
metrics of all others would be missing, too. What needs attention is in the text.
"""

from dataclasses import dataclass
from typing import Final

from gtid.counted_nouns import counted
from gtid_audit.service.cluster_results import ServiceResults

_NAMED_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the first audits have ended, and what to tell an operator, line by line."""

    is_ready: bool
    lines: tuple[str, ...]


def readiness_of(results: ServiceResults, *, journal_problem: str | None) -> Readiness:
    """Evaluate the results of a service."""
    waiting = results.not_attempted
    lines = []
    if waiting:
        lines.append(f"not ready: no audit has ended of {_named(waiting)}")
    else:
        lines.append(f"ready: {counted(len(results.clusters), 'cluster')}")
    if results.configuration.problem is not None:
        lines.append(f"could not be loaded again: {results.configuration.problem}")
    stale = [each.cluster for each in results.stale if each.is_attempted]
    if stale:
        lines.append(f"the last audit is too old of {_named(stale)}")
    failed = [each for each in results.clusters if each.failure is not None]
    lines.extend(
        f"the last audit of {each.cluster} failed: {each.failure}" for each in failed[:_NAMED_MAX]
    )
    if len(failed) > _NAMED_MAX:
        lines.append(f"… and of {len(failed) - _NAMED_MAX} more clusters")
    if journal_problem is not None:
        lines.append(f"the journal of repairs cannot be read: {journal_problem}")
    return Readiness(not waiting, tuple(lines))


def _named(clusters: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(clusters[:_NAMED_MAX])
    more = len(clusters) - _NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
