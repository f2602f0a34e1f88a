"""A stopped channel whose address another server has taken over since it was connected last."""

from compose.faults import await_status
from compose.faults_channels import address_taken_over
from compose.native.shapes import Topology
from repair import Plan
from tests.repair.live import examine, executed, rows, run_plan
from topology.catalogue.findings import ClusterAudit, Finding, Grade


def about(audit: ClusterAudit, replica: str) -> list[Finding]:
    return [each for each in audit.findings if each.replica == replica and each.channel is not None]


def refusals_of(plan: Plan, code: str) -> str:
    return "; ".join(each.why for each in plan.not_planned if each.code == code)


def test_a_channel_at_another_servers_address_is_not_started(star97: Topology) -> None:
    fault = address_taken_over(star97)
    shown = fault.replica.replica_status()
    assert shown["Source_UUID"] == fault.former.value("@@server_uuid")
    assert shown["Source_Port"] == fault.successor.port
    found = examine(star97)
    stopped = [each for each in about(found.audit, "replica2") if each.code == "A7"]
    assert [each.source for each in stopped] == ["replica1"]
    assert all(each.grade is Grade.LIKELY for each in about(found.audit, "replica2"))
    assert "was last connected to" in stopped[0].explanation
    assert "(source)" in stopped[0].explanation
    for choice in (None, {"A7": "start_channel"}):
        plan = found.plan(choice)
        assert not plan.steps
        assert "CHANGE REPLICATION SOURCE TO" in refusals_of(plan, "A7")
    # The pair as the operator knows it: nothing shows who is at the address, so no default.
    pair = Topology({name: star97[name] for name in ("source", "replica2")}, links=())
    found = examine(pair)
    stopped = [each for each in about(found.audit, "replica2") if each.code == "A7"]
    assert [(each.source, each.grade) for each in stopped] == [("source", Grade.LIKELY)]
    assert "another server may be there" in stopped[0].explanation
    assert not found.plan().steps
    # The way out that both refusals name: once it is connected, the receiver proves its source.
    assert "START REPLICA IO_THREAD" in refusals_of(found.plan(), "A7")
    fault.replica.execute("START REPLICA IO_THREAD")
    await_status(fault.replica, lambda shown: shown["Replica_IO_Running"] == "Yes")
    assert fault.replica.replica_status()["Source_UUID"] == fault.successor.value("@@server_uuid")
    plan = examine(star97).plan()
    assert [step.action for step in plan.steps] == ["StartChannel"]
    run_plan(star97, plan)
    assert executed(fault.replica) == executed(fault.successor)
    assert rows(fault.replica, "taken.t") == rows(fault.successor, "taken.t")
