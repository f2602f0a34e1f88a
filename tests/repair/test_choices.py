"""Choices that cannot be followed together, and what a choice without a script is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair import UnknownChoice, plan_repair
from tests.repair.build import channel, evidence_of, model, server, snapshot_of
from tests.repair.test_other_steps import found
from topology.audit_cluster import audit_cluster

ONE = found("E1", "a", "b", "d:1-2", channel="")
TWO = found("E1", "a", "c", "d:2-3", channel="")
SERVERS = model(
    server("a", "a:1-3"),
    server("b", "a:1-3 d:1-2", channel("a")),
    server("c", "a:1-3 d:2-3", channel("a")),
)


def planned(**choices: str) -> None:
    snapshot = snapshot_of(SERVERS)
    audit = replace(audit_cluster(snapshot), findings=(ONE, TWO))
    by_name = {"one": ONE.id, "two": TWO.id}
    named = {by_name.get(key, key): name for key, name in choices.items()}
    plan_repair(snapshot, audit, choices=named, evidence=evidence_of(audit))


def test_one_gtid_has_one_choice() -> None:
    with pytest.raises(UnknownChoice, match=r"dddddddd.*:2 has two choices: undo.* and redo"):
        planned(one="undo_on_replica", two="redo_on_source")
    with pytest.raises(UnknownChoice, match="has two choices"):
        planned(E1="inject_empty", two="redo_on_source")
    planned(one="undo_on_replica", two="undo_on_replica")
    planned(one="undo_on_replica")


def test_each_replica_may_have_its_own_answer_to_a_hole() -> None:
    behind = [server(name, "a:1 a:3", channel("a", auto=False)) for name in ("b", "c")]
    snapshot = snapshot_of(model(server("a", "a:1-3"), *behind))
    holes = (found("H1", "a", "b", "a:2", channel=""), found("H1", "a", "c", "a:2", channel=""))
    audit = replace(audit_cluster(snapshot), findings=holes)
    choices = {holes[0].id: "refetch", holes[1].id: "inject_empty"}
    plan = plan_repair(snapshot, audit, choices=choices, evidence=evidence_of(audit))
    assert [each.strategy for each in plan.answered] == ["refetch", "inject_empty"]


def test_a_choice_without_a_script_names_the_donor_that_there_is() -> None:
    servers = model(
        server("a", "a:1-9", purged="a:1-5"),
        server("b", "a:1-3", channel("a")),
        server("c", "a:1-9", channel("a")),
    )
    snapshot = snapshot_of(servers)
    purged = found("P1", "a", "b", "a:4-5", channel="")
    audit = replace(audit_cluster(snapshot), findings=(purged,))
    with pytest.raises(
        UnknownChoice, match=r"donor_refetch has no script; by hand: .*c"
    ) as problem:
        plan_repair(snapshot, audit, choices={"P1": "donor_refetch"})
    assert "no server of this snapshot has all" not in str(problem.value)
