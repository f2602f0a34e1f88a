"""What is marked automatic is what `reconcile` may apply: the mark is in findings and documents."""

from __future__ import annotations

from gtid_audit.catalogue_page import catalogue_page
from repair.strategies.strategy_registry import PLANNERS
from topology.catalogue.strategy_table import RECONCILABLE, STRATEGIES


def test_every_automatic_strategy_has_scripts_and_may_be_listed_in_a_policy() -> None:
    marked = {name for name, each in STRATEGIES.items() if each.automatic}
    assert marked == {*RECONCILABLE}
    assert marked <= PLANNERS.keys(), "what is done by hand is not applied by a program"
    assert "until_after_gaps" not in marked


def test_the_catalogue_page_marks_them() -> None:
    said = {
        line.split("**")[1].rstrip(":")
        for line in catalogue_page().splitlines()
        if line.endswith("`reconcile` may apply it (`policy.reconcile`).")
    }
    assert said == {*RECONCILABLE}
