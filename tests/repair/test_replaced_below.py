"""The servers below an E4 repair that keep the version which it replaces: plan, status, apply."""

from __future__ import annotations

import pytest

from gtid_audit.tasks.planning import Planned
from repair import LogEvidence, Plan, plan_repair
from repair.applying.audit_afterwards import compare_with_plan
from repair.applying.written_plan import WrittenPlan, read_plan
from repair.content.row_versions import RowsRead
from repair.model.replication_model import Model
from repair.model.strategy_case import UNREPORTED
from repair.plan_parts import STAYS
from repair.render import PLAN, render_files
from repair.replaced_below import with_replaced_below
from tests.repair.build import UUIDS, channel, gtids, model, server, snapshot_of
from tests.repair.cases import NOTHING_STREAMED
from tests.repair.test_data_repair import row
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)

A_PAIR = model(server("a", "a:1-9"), server("b", "a:1-9", channel("a")))
CHAIN = model(
    server("a", "a:1-9"), server("b", "a:1-9", channel("a")), server("c", "a:1-9", channel("b"))
)
LATER = model(
    server("a", "a:1-9"), server("b", "a:1-9", channel("a")), server("c", "a:1-6", channel("b"))
)
RING = model(
    server("a", "a:1-9", channel("c")),
    server("b", "a:1-9", channel("a")),
    server("c", "a:1-9", channel("b")),
)
ALL = {"E4": "data_repair"}


def planned(servers: Model, *differing: str, choices: dict[str, str] | None = None) -> Planned:
    """Plan for E4 of a:7 between a and each of these servers."""
    snapshot = snapshot_of(servers)
    moment = snapshot.last[0].read_ended
    [gtid] = gtids("a:7").gtids()
    versions = {
        name: TransactionVersion(name, "binlog.000001:4", moment, moment, name)
        for name in ("a", *differing)
    }
    found = tuple(
        ContentDifference(gtid, Difference.CONTENT, True, "x", versions["a"], versions[name])
        for name in differing
    )
    audit = audit_cluster(snapshot.with_contents(ContentReading(moment, 1, (), found, ())))
    rows = {
        each.id: RowsRead((row((1, 5), (1, 6)),), equal_count=3)
        for each in audit.findings
        if each.code == "E4"
    }
    made = plan_repair(snapshot, audit, choices=choices, evidence=LogEvidence(rows=rows))
    return Planned(with_replaced_below(made, audit, snapshot), audit, (), NOTHING_STREAMED)


def as_written(plan: Plan) -> WrittenPlan:
    return read_plan(render_files(plan)[PLAN])


def test_a_server_below_keeps_the_replaced_version_and_the_status_is_not_0() -> None:
    of = planned(CHAIN, "b", choices=ALL)
    [left] = of.plan.unreported
    assert UNREPORTED.startswith(STAYS)
    assert left.startswith(UNREPORTED + "c got aaaaaaaa-0000-0000-0000-000000000000:7 through b, ")
    assert of.status == 1
    verdict, text = compare_with_plan(
        ClusterAudit("pair", Verdict.OK, (), (), (), read_at=None), as_written(of.plan)
    )
    assert (verdict, left in text) == (Verdict.WARNING, True)


@pytest.mark.parametrize(
    ("servers", "differing", "choices"),
    [
        (A_PAIR, ["b"], ALL),
        (CHAIN, ["b"], None),  # nothing is written
        (RING, ["b", "c"], ALL),  # both get the version of a, by two steps
    ],
)
def test_nothing_is_left_below(
    servers: Model, differing: list[str], choices: dict[str, str] | None
) -> None:
    of = planned(servers, *differing, choices=choices)
    assert of.plan.unreported == ()
    assert of.status == (0 if choices else 1)
    written = as_written(of.plan)
    assert written.unreported == ()
    nothing = ClusterAudit("pair", Verdict.OK, (), (), (), read_at=None)
    assert compare_with_plan(nothing, written)[0] is Verdict.OK


def test_a_server_that_gets_the_transaction_later_gets_the_replaced_version() -> None:
    [left] = planned(LATER, "b", choices=ALL).plan.unreported
    assert left.startswith(f"{UNREPORTED}c got ")


def test_in_a_ring_the_source_of_the_version_is_not_below() -> None:
    of = planned(RING, "b", choices=ALL)
    [left] = of.plan.unreported
    assert left.startswith(f"{UNREPORTED}c got ")


STAR = model(
    server("a", "a:1-9"), server("b", "a:1-9", channel("a")), server("c", "a:1-9", channel("a"))
)


def test_other_replicas_of_a_source_keep_the_version_that_is_replaced_there() -> None:
    of = planned(STAR, "b", choices={"E4": "data_repair_on_source"})
    [left] = of.plan.unreported
    assert left.startswith(f"{UNREPORTED}c got {UUIDS['a']}:7 through a, ")
    assert "Compare these rows on c with b" in left
    assert of.status == 1


@pytest.mark.parametrize("servers", [A_PAIR, CHAIN, RING])
def test_what_is_below_the_replica_has_the_version_that_is_written_on_the_source(
    servers: Model,
) -> None:
    of = planned(servers, "b", choices={"E4": "data_repair_on_source"})
    assert (of.plan.unreported, of.status) == ((), 0)
