"""Strategies that leave transactions out: when they are tried, and what they keep out.

If the operator chose to leave transactions out on a replica, no other step may deliver them. The
choice means that their rows are there, or are not wanted. It may be refused. Then a start or
auto-position that was chosen for the same channel would still fetch them, and apply them twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from repair.content.content_questions import HOLES
from repair.doubts.rows_there import is_there_already
from repair.model.replication_model import Model
from repair.model.strategy_case import Case
from repair.strategies.strategy_registry import LEAVING_OUT
from topology.catalogue.findings import Finding


@dataclass(frozen=True, slots=True)
class KeptOut:
    """Transactions that are missing on a replica, and that were to be declared executed there."""

    finding: Finding
    strategy: str
    refusal: str  # why the strategy was not planned; "" if not known yet


def may_come_first(case: Case, name: str) -> bool:
    """Return whether a strategy may be tried in the first pass, before all that deliver are done.

    One that leaves transactions out may only if it is selected, or their rows are there already.
    """
    return name not in LEAVING_OUT or case.is_chosen or is_there_already(case)


def kept_out(
    findings: Iterable[Finding],
    chosen: Callable[[Finding], str | None],
    refusals: Mapping[str, Mapping[str, str]],
) -> Iterator[KeptOut]:
    """Yield what the operator chose to leave out and no step has left out yet.

    Args:
        findings: those without a step so far.
        chosen: returns the strategy that the operator selected for a finding.
        refusals: by finding id, why strategies were not planned.
    """
    for finding in findings:
        name = chosen(finding)
        if name in LEAVING_OUT and finding.code in HOLES:
            yield KeptOut(finding, name, refusals.get(finding.id, {}).get(name, ""))


def brings_in(case: Case, after: Model, out: tuple[KeptOut, ...]) -> Iterator[str]:
    """Yield what a proposal delivers although it was to be omitted."""
    for each in out:
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
