"""Transactions that the operator chose to omit on a replica: no other step may deliver them.

The choice means that their rows are present, or are not wanted. It may be refused. Then a start or
auto-position that was chosen for the same channel would still fetch them, and apply them twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from repair.model import Model
from repair.strategy_case import Case
from topology.findings import Finding


@dataclass(frozen=True, slots=True)
class KeptOut:
    """Transactions that are missing on a replica, and that were to be declared executed there."""

    finding: Finding
    strategy: str
    refusal: str  # why the strategy was not planned; "" if not known yet


def brings_in(case: Case, after: Model, kept_out: tuple[KeptOut, ...]) -> Iterator[str]:
    """Yield what a proposal delivers although it was to be omitted."""
    for each in kept_out:
        finding, replica = each.finding, each.finding.replica or ""
        if replica not in case.model.servers or finding.id == case.finding.id:
            continue
        brought = finding.gtid_set & (after[replica].executed - case.model[replica].executed)
        if brought:
            yield (
                f"{replica} would get {brought.shortened()}, which {each.strategy} was chosen to"
                f" leave out there ({finding.code} {finding.id})"
                + (f". That is not planned: {each.refusal}" if each.refusal else "")
            )
