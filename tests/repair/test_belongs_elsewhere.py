"""J3 about what another server of the audit committed, or has from its source: left alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from repair import Plan, plan_repair
from repair.model.replication_model import Model, ModelServer
from repair.strategies.redo_on_source import redo_on_source
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import channel, evidence_of, gtids, model, server, snapshot_of
from tests.repair.cases import a_case, a_content, a_finding, reason
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.readings.content_class import ContentClass

# x was a replica of a and c, and no other server is one of both.
SOURCES = (server("a", "a:1-4"), server("b", "a:1-4", channel("a")), server("c", "c:1-4"))
TAIL = a_finding("J3", "c:1-3", source="a", replica="d")
APART = "as its own or from its own source"


def chosen(servers: Model, strategy: str) -> tuple[Plan, Finding]:
    """Plan with a strategy for the J3 about d."""
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    [j3] = [each for each in audit.findings if (each.code, each.replica) == ("J3", "d")]
    choices: Mapping[str, str] = {j3.id: strategy}
    evidence = evidence_of(audit, ContentClass.DATA)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence), j3


@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_what_another_source_committed_is_neither_redone_nor_undone(strategy: str) -> None:
    plan, j3 = chosen(model(*SOURCES, server("d", "a:1-3 c:1-3")), strategy)
    assert (j3.source, j3.gtid_set) == ("a", gtids("c:1-3"))
    assert not plan.steps
    [why] = [each.why for each in plan.not_planned if each.finding_id == j3.id]
    assert why.startswith(f"{strategy}: c has {gtids('c:1-3')} too, {APART}")
    assert "by hand" not in why


PLANNERS = (redo_on_source, undo_on_replica)


@pytest.mark.parametrize(
    ("others", "holders"),
    [
        ((server("c", "c:1-4"),), "c has"),
        # A replica of both, linked with the finding's source: c is linked with it as well.
        (
            (
                server("c", "c:1-4"),
                server("e", "a:1-4 c:1-4", channel("a"), channel("c", name="c")),
            ),
            "c, e have",
        ),
        # The same, and c is not in the audit: e has an errant tail, as d has one.
        ((server("e", "a:1-4 c:1-4", channel("a")),), ""),
        ((server("e", "a:1-4 c:1-4", channel("a"), channel("b", name="b")),), ""),
        # e committed a part of it itself, and is a replica of a.
        ((server("e", "a:1-4 e:1", channel("a")),), ""),
        # A replica of d has them from d; a third server that nothing links has not committed them.
        ((server("e", "a:1-3 c:1-3", channel("d")),), ""),
        ((server("e", "a:1-3 c:1-3"),), ""),
        ((server("e", "a:1-3 c:1-3"), server("f", "a:1-3 c:1-3", channel("e"))), ""),
    ],
)
def test_whose_transactions_they_are(others: tuple[ModelServer, ...], holders: str) -> None:
    servers = model(
        server("a", "a:1-4"),
        server("b", "a:1-4", channel("a")),
        server("d", "a:1-3 c:1-3"),
        *others,
    )
    case = a_case(servers, TAIL, content=a_content("c:1-3"), is_chosen=True)
    for planner in PLANNERS:
        why = reason(planner(case)) if holders else str(planner(case))
        assert (APART in why) is bool(holders)
        assert why.startswith(holders)
