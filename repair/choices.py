"""The operator's choices: a strategy for a finding, or for all findings of a code.

A choice that has no effect is an error that a plan must not hide. It is refused, with a list of the
possible choices.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import combinations

from repair.model.replication_model import Model
from repair.model.strategy_case import KnownBeside, is_seen_in_part
from repair.plan_parts import about
from repair.strategies.done_by_hand import by_hand
from repair.strategies.strategy_registry import PLANNERS
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.strategy_table import STRATEGIES, strategies_for
from topology.catalogue.verdict_table import CATALOGUE

# Codes of extra transactions on a server: one choice applies to all servers.
_EXTRA = ("E1", "E2", "E3", "J3")


class UnknownChoice(ValueError):
    """A choice for no existing finding, or of a strategy that is unknown or cannot answer it."""


def check_choices(
    audit: ClusterAudit,
    choices: Mapping[str, str],
    finding_ids: Collection[str] | None,
    model: Model,
    beside: KnownBeside,
) -> None:
    """Raise UnknownChoice for the first choice that matches nothing in the audit, or conflicts."""
    by_id = {finding.id: finding for finding in audit.findings}
    for missing in sorted(set(finding_ids or ()) - by_id.keys()):
        raise UnknownChoice(f"no finding {missing} in the audit of {audit.cluster}")
    for key, name in choices.items():
        if key not in by_id and key not in CATALOGUE:
            raise UnknownChoice(
                f"{key} is no code, and {audit.cluster} has no finding with that id"
            )
        codes = {finding.code for finding in audit.findings}
        if key not in by_id and key not in codes:
            found = ", ".join(sorted(codes)) or "nothing"
            raise UnknownChoice(
                f"{key}={name}: {audit.cluster} has no finding {key}; found: {found}"
            )
        code = by_id[key].code if key in by_id else key
        if name not in STRATEGIES:
            near = get_close_matches(name, STRATEGIES, n=1)
            known = f"did you mean {near[0]}? " if near else ""
            raise UnknownChoice(
                f"no strategy {name!r}; {known}{code} has {', '.join(strategies_for(code))}"
            )
        if name not in strategies_for(code):
            raise UnknownChoice(
                f"{name} is not an answer to {code}; these are: {', '.join(strategies_for(code))}"
            )
        if name not in PLANNERS:
            finding = next(each for each in audit.findings if key in (each.id, each.code))
            text = by_hand(name, finding, model, beside)
            raise UnknownChoice(f"{name} has no script; by hand: {text}")
    _check_each_gtid_has_one(audit, choices)


def _check_each_gtid_has_one(audit: ClusterAudit, choices: Mapping[str, str]) -> None:
    """Raise UnknownChoice where extra transactions have two choices, of which only one is possible.

    A gap is different: each replica may have its own choice.
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
    """Return the warning about unread servers that may deliver what the finding reports."""
    if not is_seen_in_part(finding):
        return ()
    return (f"{about(finding)}: {finding.explanation}",)
