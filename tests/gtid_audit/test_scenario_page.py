"""The table of scenarios has a row for each finding: its strategies, and what the user does."""

from __future__ import annotations

import re

from gtid_audit.operator_actions import OPERATOR_ACTIONS
from gtid_audit.scenario_page import scenario_page
from topology.catalogue.strategy_table import RECONCILABLE, STRATEGIES
from topology.catalogue.verdict_table import CATALOGUE

REPORTED = {code for code, each in CATALOGUE.items() if each.has_rule}


def test_every_reported_finding_has_an_action_of_the_user() -> None:
    assert OPERATOR_ACTIONS.keys() == REPORTED
    rows = [line.strip("|").split("|") for line in scenario_page().splitlines()]
    written = {
        cells[0].split()[0]: cells[-1].strip()
        for cells in rows
        if len(cells) == 4 and cells[0].split() and cells[0].split()[0] in REPORTED
    }
    assert written == OPERATOR_ACTIONS


def test_an_action_refers_to_strategies_that_exist() -> None:
    for text in OPERATOR_ACTIONS.values():
        for name in re.findall("`([a-z_]+)`", text):
            assert name in STRATEGIES, text


def test_a_policy_strategy_is_in_the_policy_column() -> None:
    row = next(line for line in scenario_page().splitlines() if line.startswith("| H1 "))
    _, _, by_policy, by_operator, _, _ = row.split("|")
    assert "`refetch`" in by_policy
    assert "refetch" in RECONCILABLE
    assert by_operator.strip() == "none"
