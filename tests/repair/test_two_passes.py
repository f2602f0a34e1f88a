"""What delivers is tried before what declares unneeded, whatever the order of the findings."""

from __future__ import annotations

import pytest

from repair import simulated_proposal
from repair.model.strategy_case import Case, Outcome, Refusal
from repair.planner import plan_repair
from repair.strategies.strategy_registry import LEAVING_OUT, PLANNERS
from tests.repair.build import channel, evidence_of, model, server, snapshot_of
from topology.audit_cluster import audit_cluster
from topology.readings.content_class import ContentClass

Tried = list[tuple[str, str]]  # code and strategy

# b has an errant transaction (E1); c does not replicate (A7), and E1 comes first in the order.
SNAPSHOT = snapshot_of(
    model(
        server("a", "a:1-3"),
        server("b", "a:1-3 b:1", channel("a")),
        server("c", "a:1-2", channel("a", runs=False)),
    )
)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    """Replace every strategy by one that notes that it was tried, and refuses."""
    found: Tried = []

    def noting(name: str) -> object:
        def strategy(case: Case) -> Outcome:
            found.append((case.finding.code, name))
            return Refusal("noted")

        return strategy

    planners = {name: noting(name) for name in PLANNERS}
    monkeypatch.setattr(simulated_proposal, "PLANNERS", planners)
    return found


def plan(kind: ContentClass = ContentClass.EMPTY, choices: dict[str, str] | None = None) -> None:
    audit = audit_cluster(SNAPSHOT)
    assert {"E1", "A7"} <= {each.code for each in audit.findings}
    plan_repair(SNAPSHOT, audit, choices=choices, evidence=evidence_of(audit, kind))


def test_nothing_is_declared_before_every_delivery_was_tried(tried: Tried) -> None:
    plan()
    names = [name for _, name in tried]
    declared = [at for at, name in enumerate(names) if name in LEAVING_OUT]
    delivered = [at for at, name in enumerate(names) if name not in LEAVING_OUT]
    assert declared
    assert {"start_channel"} <= {names[at] for at in delivered}
    assert min(declared) > names.index("start_channel")
    # What delivers is tried in both passes, what declares in the second only.
    assert tried.count(("E1", "inject_empty")) == 1
    assert tried.count(("A7", "start_channel")) == 2


def test_what_the_operator_chose_is_tried_in_its_place(tried: Tried) -> None:
    plan(choices={"E1": "inject_empty"})
    assert tried[0] == ("E1", "inject_empty")
    assert {name for code, name in tried if code == "E1"} == {"inject_empty"}
