"""T4, and what stays open where a server was read once: pasted output, without a second reading.

1. Benign and malign causes that look the same: the replica has transactions of its source that the
   source does not list. The source committed them after it was read; or it has lost them (a crash,
   a RESET), or a session committed them elsewhere under its UUID. Only a later reading of the
   source separates these. So T4 is `likely`, and the verdict UNKNOWN.
2. "Clears by itself" (T1, T2, T3) needs progress between two readings. Without the second one, what
   waits may wait for ever: the verdict is UNKNOWN.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from topology.catalogue.findings import Finding, Grade, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.group_facts import is_read_in_part
from topology.readings.read_once import read_once_in
from topology.rules.build import Rules, evidence, finding, many

_WAITING: Final = frozenset({"T1", "T2", "T3"})


def ahead_of_the_only_reading(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T4: a server has what the origin may have committed after it was read."""
    for lost in facts.lost:
        if lost.undecided:
            origin, holder = facts.last[lost.origin], facts.first[lost.holder]
            ahead = lost.undecided | lost.leading
            yield finding(
                facts,
                "T4",
                source=lost.origin,
                replica=lost.holder,
                gtid_set=ahead,
                grade=Grade.LIKELY,
                strategies=("read_again",),
                proof=(
                    evidence("has", ahead, holder),
                    evidence("not executed when it was read, once", lost.undecided, origin),
                    evidence("owned, not yet executed", lost.leading, origin),
                ),
                explanation=f"{lost.holder} has {many(ahead)} of {lost.origin} that"
                f" {lost.origin} had not executed when it was read. {lost.origin} committed them"
                " later, or it has lost them (E3, E6), or a session committed them elsewhere (H7)."
                f" A second reading of {lost.origin} shows which.",
            )


def not_confirmed(facts: ClusterFacts, findings: Iterable[Finding]) -> Iterator[Unknown]:
    """Yield what one reading leaves open: each of these looks harmless and may be a fault."""
    once = read_once_in(facts.snapshot)
    for lost in facts.lost:
        if lost.undecided:
            yield Unknown(
                facts.snapshot.cluster,
                lost.origin,
                f"whether it has {many(lost.undecided)} of its own that {lost.holder} has",
                f"it was read once: read {lost.origin} again",
            )
    for membership in facts.graph.memberships:
        if is_read_in_part(membership, facts):
            group = f"the differences within the group {membership.name}"
            reason = "a server of it was read once: read them again"
            for name in sorted({*once} & {*membership.configured}):
                yield Unknown(facts.snapshot.cluster, name, group, reason)
    for each in findings:
        ends = [name for name in (each.source, each.replica) if name in once]
        if each.code in _WAITING and ends and each.replica is not None:
            yield Unknown(
                facts.snapshot.cluster,
                each.replica,
                f"whether it applies {many(each.gtid_set)} that it is missing ({each.code})",
                f"one reading shows no progress: read {', '.join(ends)} again",
            )


RULES: Rules = (
    ahead_of_the_only_reading,  # T4
)
