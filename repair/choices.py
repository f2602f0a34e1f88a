"""What the operator may choose: a strategy for a finding, or for all findings of a code.

A choice that has no effect is an error of the operator that a plan must not hide: it is refused,
with what could be chosen.
"""

from collections.abc import Collection, Mapping
from itertools import combinations

from repair.manual_instructions import by_hand
from repair.model import Model
from repair.plan_parts import about
from repair.strategies import PLANNERS
from repair.strategy_case import is_seen_in_part
from topology.catalogue import CATALOGUE, answers
from topology.findings import ClusterAudit, Finding
from topology.strategies import STRATEGIES

# The codes of transactions that are extra on a server: one answer is about all servers.
_EXTRA = ("E1", "E2", "E3", "J3")


class UnknownChoice(ValueError):
    """A choice that names no finding, no strategy, or one that cannot answer the finding."""


def check_choices(
    audit: ClusterAudit,
    choices: Mapping[str, str],
    finding_ids: Collection[str] | None,
    model: Model,
) -> None:
    """Raise UnknownChoice for the first choice that fits nothing in the audit, or another one."""
    by_id = {finding.id: finding for finding in audit.findings}
    for missing in sorted(set(finding_ids or ()) - by_id.keys()):
        raise UnknownChoice(f"no finding {missing} in the audit of {audit.cluster}")
    for key, name in choices.items():
        if key not in by_id and key not in CATALOGUE:
            raise UnknownChoice(f"{key} is no code, and no finding of {audit.cluster} has that id")
        codes = {finding.code for finding in audit.findings}
        if key not in by_id and key not in codes:
            found = ", ".join(sorted(codes)) or "nothing"
            raise UnknownChoice(
                f"{key}={name}: {audit.cluster} has no finding {key}; found: {found}"
            )
        if name not in STRATEGIES:
            raise UnknownChoice(f"no strategy {name!r}; there are {', '.join(sorted(STRATEGIES))}")
        code = by_id[key].code if key in by_id else key
        if name not in answers(code):
            raise UnknownChoice(
                f"{name} is not an answer to {code}; these are: {', '.join(answers(code))}"
            )
        if name not in PLANNERS:
            finding = next(each for each in audit.findings if key in (each.id, each.code))
            text = by_hand(name, finding, model)
            raise UnknownChoice(f"{name} has no script; by hand: {text}")
    _check_each_gtid_has_one(audit, choices)


def _check_each_gtid_has_one(audit: ClusterAudit, choices: Mapping[str, str]) -> None:
    """Raise UnknownChoice where extra transactions have two choices: only one of them can be done.

    A hole is different: each replica may get its own answer.
    """
    chosen = [
        (finding, name)
        for finding in audit.findings
        if finding.code.startswith(_EXTRA)
        and (name := choices.get(finding.id, choices.get(finding.code))) is not None
    ]
    for (one, first), (other, second) in combinations(chosen, 2):
        both = one.gtid_set & other.gtid_set
        if both and first != second:
            raise UnknownChoice(
                f"{both.shortened()} has two choices: {first} ({one.code} {one.id}) and"
                f" {second} ({other.code} {other.id}); select one strategy for it"
            )


def seen_in_part(finding: Finding) -> tuple[str, ...]:
    """Return the warning that servers were not read which may deliver what the finding is about."""
    if not is_seen_in_part(finding):
        return ()
    return (f"{about(finding)}: {finding.explanation}",)
