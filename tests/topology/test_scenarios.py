"""The stories of scenarios.txt are evaluated as they say, and they cover the whole table."""

import re
from pathlib import Path

import pytest

from tests.topology.transcript import Scenario, read_scenarios, transcript_of
from topology import suppression
from topology.audit_cluster import audit_cluster
from topology.catalogue.verdict_table import CATALOGUE
from topology.facts.cluster_facts import gather_facts
from topology.rules import RULES
from topology.suppression import EXPLAINS, suppress_symptoms

TEXT = (Path(__file__).parent / "scenarios.txt").read_text()
SCENARIOS = read_scenarios(TEXT)
every_scenario = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[f"line {scenario.line}" for scenario in SCENARIOS]
)


@every_scenario
def test_the_story_is_told_as_written(scenario: Scenario) -> None:
    assert transcript_of(scenario) == scenario.expected, scenario.title


@every_scenario
def test_the_same_snapshot_gives_the_same_audit(scenario: Scenario) -> None:
    first, second = (audit_cluster(scenario.snapshot, scenario.policy) for _ in range(2))
    assert repr(first) == repr(second)


def test_every_story_has_a_title_of_its_own() -> None:
    titles = [scenario.title for scenario in SCENARIOS]
    assert all(titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("code", [entry.code for entry in CATALOGUE.values() if entry.has_rule])
def test_every_evaluated_code_is_told_in_a_story(code: str) -> None:
    told = [line for scenario in SCENARIOS for line in scenario.expected.splitlines()]
    assert any(line.startswith(f"{code} ") for line in told)
    assert re.search(rf"^# .*\b{code}\b", TEXT, re.MULTILINE), "and named in a title"


@pytest.mark.long
@pytest.mark.parametrize("row", range(len(EXPLAINS)))
def test_every_row_of_suppression_acts_in_a_story(
    row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression, "EXPLAINS", EXPLAINS[:row] + EXPLAINS[row + 1 :])
    told = ((transcript_of(each), each.expected) for each in SCENARIOS)
    assert any(now != approved for now, approved in told), EXPLAINS[row][:2]


def test_no_cause_is_explained_away_after_it_explained() -> None:
    for earlier, (causes, own_symptoms, _) in enumerate(EXPLAINS):
        assert not set(causes) & set(own_symptoms)
        for _, symptoms, _ in EXPLAINS[earlier + 1 :]:
            assert not set(causes) & set(symptoms)


def test_what_is_unread_is_never_explained_away() -> None:
    assert not {symptom for _, symptoms, _ in EXPLAINS for symptom in symptoms} & {"U1", "U2"}


@every_scenario
def test_suppression_keeps_the_order_and_is_done_after_once(scenario: Scenario) -> None:
    facts = gather_facts(scenario.snapshot, scenario.policy)
    found = [finding for rule in RULES for finding in rule(facts)]
    once = suppress_symptoms(found)
    assert once == [finding for finding in found if finding in once]
    assert suppress_symptoms(once) == once
