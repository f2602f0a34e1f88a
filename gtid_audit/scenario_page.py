"""Writes docs/reconcile-scenarios.md from the catalogue: `python -m gtid_audit.scenario_page`.

The page is generated: do not edit it by hand. A test compares it with the catalogue.
"""

import sys
from collections.abc import Iterator

from gtid_audit.operator_actions import OPERATOR_ACTIONS
from repair.strategies.definition_scenarios import SCENARIOS, Scenario
from topology.catalogue.strategy_table import RECONCILABLE
from topology.catalogue.verdict_table import CATALOGUE, FAMILIES, CatalogueEntry

_HEAD = (
    "# Which findings `reconcile` repairs by itself",
    "",
    "Generated from the table in the code (`make docs`). A finding is repaired without an operator",
    "only if a plan takes the strategy by default, `policy.reconcile` lists it, and everything was",
    "read ([reconcile.md](reconcile.md)).",
    "",
    "* **by policy**: may be listed in `policy.reconcile`.",
    "* **by an operator**: the plan shows what to decide; select it with `--strategy`, or follow",
    "  the instruction of the plan.",
    "* **what the user does**: where no policy lists the strategy, or the plan does not take it by",
    "  default.",
)


_DEFINITIONS = (
    "",
    "### Differences of S2",
    "",
    "Words are seen from the replica. *yes*: planned by default, and applied if `policy.reconcile`",
    "lists `repair_definition`. *if selected*: a script does it after `--strategy`. *no*: there is",
    "no script. The conditions of each row: [repair-definitions.md](repair-definitions.md).",
    "",
    "| code | the replica has | automatic | statement on the replica | what the user does |",
    "|---|---|---|---|---|",
)


def scenario_page() -> str:
    """Return the whole page, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from _HEAD
    for family, heading in FAMILIES.items():
        entries = [
            each for each in CATALOGUE.values() if each.code.startswith(family) and each.has_rule
        ]
        if not entries:
            continue
        yield ""
        yield f"## {family}: {heading}"
        yield ""
        yield "| finding | by policy | by an operator | what the user does |"
        yield "|---|---|---|---|"
        yield from map(_row, entries)
        if family == "S":
            yield from _DEFINITIONS
            yield from (_definition(each.value, row) for each, row in SCENARIOS.items())


def _row(entry: CatalogueEntry) -> str:
    names = [each.name for each in entry.strategies]
    by_policy = [each for each in names if each in RECONCILABLE]
    by_operator = [each for each in names if each not in RECONCILABLE]
    cells = (_listed(by_policy), _listed(by_operator), OPERATOR_ACTIONS[entry.code])
    return f"| {entry.code} {entry.name} | {' | '.join(cells)} |"


def _definition(difference: str, row: Scenario) -> str:
    words = difference.replace("other", "view, trigger, routine or event")
    cells = (row.code, words, row.handling.value, row.statement or "none", row.user)
    return f"| {' | '.join(cells)} |"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in names) or "none"


if __name__ == "__main__":
    sys.stdout.write(scenario_page())
