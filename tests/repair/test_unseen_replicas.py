"""Replicas that are connected and not part of the audit: what they refuse, and what is listed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from gtid_audit.tasks.planning import Planned
from repair import plan_repair
from repair.content.transaction_content import RowsOn, RowState
from repair.doubts.unseen_receivers import unless_unseen
from repair.model.actions import InjectEmpty, StartChannel
from repair.model.replication_model import Model
from repair.model.strategy_case import MAY_DIFFER, UNREPORTED, Proposal
from repair.model.unseen_replicas import (
    UnseenReplica,
    linked_with,
    refused_for,
    unseen_below,
    unseen_replicas,
)
from repair.plan_parts import UNSEEN
from repair.strategies.leaving_out import gtid_purged_append, inject_empty, reset_and_purge
from repair.strategies.redo_on_source import redo_on_source
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import (
    OLD,
    UUIDS,
    channel,
    evidence_of,
    gtids,
    model,
    server,
    snapshot_of,
)
from tests.repair.cases import NOTHING_STREAMED, a_case, a_content, a_finding, proposed, reason
from topology.audit_cluster import audit_cluster
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ThreadState

C_UUID = str(UUIDS["c"])
AT_B = ConnectedReplica(C_UUID, ("10.0.0.3:3306",))
CONSUMER = ConnectedReplica("", ("10.0.0.9",))
BELOW_B = (UnseenReplica("b", AT_B),)
HOLE = a_finding("H1", "a:2")
ERRANT = a_finding("E1", "b:1")


def holed(**versions: Any) -> Model:
    return model(
        server("a", "a:1-3", **versions),
        server("b", "a:1 a:3", channel("a", auto=False, bypassed="a:2"), **versions),
        server("d", "a:1-3", channel("a"), **versions),
    )


def errant() -> Model:
    return model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")))


def planned(
    servers: Model,
    connected: dict[str, tuple[ConnectedReplica, ...]],
    kind: ContentClass = ContentClass.DATA,
    choices: dict[str, str] | None = None,
    **read: Any,
) -> Planned:
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    states = dict.fromkeys(servers.servers, RowsOn(RowState.AS_BEFORE))
    states["a"] = RowsOn(RowState.AS_AFTER)
    evidence = evidence_of(audit, kind, rows_on=states, rows=())
    evidence = replace(evidence, connected=connected, **read)
    plan = plan_repair(snapshot, audit, choices=choices, evidence=evidence)
    return Planned(plan, audit, (), NOTHING_STREAMED)


def test_what_is_connected_and_read_is_part_of_the_audit() -> None:
    """By server_uuid, at any address; by address where no server_uuid was read."""
    seen = snapshot_of(holed(), silent=["d"])
    at_d = ConnectedReplica(str(UUIDS["d"]), ("127.0.0.1:3308", "elsewhere:3308"))
    b_elsewhere = ConnectedReplica(str(UUIDS["b"]), ("10.1.1.1:3306",))
    assert unseen_replicas(seen, {"a": (b_elsewhere, at_d)}) == ()
    at_address_of_b = ConnectedReplica(C_UUID, ("127.0.0.1:3307",))
    found = unseen_replicas(seen, {"b": (CONSUMER, AT_B), "a": (at_address_of_b,)})
    assert found == (
        UnseenReplica("a", at_address_of_b),
        UnseenReplica("b", CONSUMER),
        UnseenReplica("b", AT_B),
    )
    assert [str(each) for each in found[1:]] == [
        f"a replica or a consumer ({what}) is connected to b and is not part of this audit"
        for what in ("10.0.0.9", f"10.0.0.3:3306, server_uuid {C_UUID}")
    ]
    assert "(address not known)" in str(UnseenReplica("b", ConnectedReplica("")))


def test_a_server_that_was_read_only_once_is_known() -> None:
    whole, silent = snapshot_of(holed()), snapshot_of(holed(), silent=["d"])
    connected = {"a": (ConnectedReplica(str(UUIDS["d"])),)}
    assert len(unseen_replicas(silent, connected)) == 1
    for once in (replace(whole, last=silent.last), replace(whole, first=silent.first)):
        assert unseen_replicas(once, connected) == ()


def test_what_a_server_logs_reaches_what_is_connected_below_it() -> None:
    servers = holed()
    found = {
        name: unseen_below(BELOW_B, servers, [name]) == BELOW_B for name in ("a", "b", "d", "none")
    }
    assert found == {"a": True, "b": True, "d": False, "none": False}
    stopped = model(server("a", "a:1"), server("b", "a:1", channel("a", runs=False)))
    assert unseen_below(BELOW_B, stopped, ["a"]) == BELOW_B
    assert linked_with(servers, ["d", "none"]) == {"a", "b", "d"}
    assert linked_with(model(server("a", "a:1"), server("b", "a:1")), ["a"]) == {"a"}


def test_no_gap_is_emptied_above_an_unseen_replica_unless_selected() -> None:
    content = a_content("a:2", ContentClass.EMPTY)
    facts: dict[str, Any] = {"content": content, "is_chosen": False}
    case = a_case(holed(), HOLE, unseen=BELOW_B, **facts)
    why = reason(inject_empty(case))
    assert why.startswith(f"a replica or a consumer (10.0.0.3:3306, server_uuid {C_UUID}) is conn")
    assert "If it is a server, add it to the audit and plan again" in why
    both = refused_for((*BELOW_B, UnseenReplica("d", AT_B), UnseenReplica("d", CONSUMER)))
    assert f"server_uuid {C_UUID}) is connected to b and d and is not part" in str(both)
    assert "(10.0.0.9) is connected to d and is not part of this audit. The tr" in str(both)
    assert refused_for(()) is None
    elsewhere = (UnseenReplica("d", CONSUMER), UnseenReplica("a", CONSUMER))
    for other in ((), elsewhere):
        assert BELOW_B[0] not in a_case(holed(), HOLE, unseen=other).unseen_below
        outcome = inject_empty(a_case(holed(), HOLE, unseen=other, **facts))
        assert "is not part of this audit" not in str(outcome)
    assert proposed(inject_empty(a_case(holed(), HOLE, unseen=BELOW_B, content=content))).actions


@pytest.mark.parametrize("strategy", [undo_on_replica, redo_on_source, gtid_purged_append])
def test_what_could_differ_there_is_refused_even_if_selected(strategy: Any) -> None:
    """As for a server that is named and could not be read."""
    case = a_case(errant(), ERRANT, content=a_content("b:1"), unseen=BELOW_B)
    assert "is connected to b and is not part" in reason(strategy(case))
    named = replace(case, unseen=(), unread={"c": gtids("")})
    assert "c could not be read" in reason(strategy(named))


def test_no_server_is_reset_above_an_unseen_replica() -> None:
    servers = holed(version=OLD)
    above_b = a_case(servers, HOLE, content=a_content("a:2"), unseen=BELOW_B)
    assert "is connected to b and is not part" in reason(reset_and_purge(above_b))
    beside = replace(above_b, unseen=(UnseenReplica("d", CONSUMER),))
    assert proposed(reset_and_purge(beside)).actions


def test_other_strategies_may_not_write_by_default() -> None:
    case = a_case(holed(), HOLE, is_chosen=False, unseen=BELOW_B)
    empty = Proposal((InjectEmpty("a", gtids("a:4")),))
    assert "is connected to b" in reason(unless_unseen(case, empty))
    start = Proposal((StartChannel("b", ""),))
    assert unless_unseen(case, start) is start
    assert unless_unseen(replace(case, is_chosen=True), empty) is empty
    beside = Proposal((InjectEmpty("d", gtids("a:4")),))
    assert unless_unseen(case, beside) is beside


def test_data_is_not_fetched_for_an_unseen_replica_by_default() -> None:
    alone = planned(holed(), {})
    assert ({each.strategy for each in alone.plan.answered}, alone.status) == ({"refetch"}, 0)
    seen = planned(holed(), {"a": (ConnectedReplica(str(UUIDS["b"])),), "d": (CONSUMER,)})
    assert (seen.plan.id, seen.status) == (alone.plan.id, 0)
    assert seen.plan.warnings == alone.plan.warnings, "no step reaches what is connected to d"
    unseen = planned(holed(), {"b": (AT_B,)})
    assert (unseen.plan.steps, unseen.status) == ((), 1)
    [left] = [each for each in unseen.plan.not_planned if each.code == "H1"]
    assert f"refetch: a replica or a consumer (10.0.0.3:3306, server_uuid {C_UUID})" in left.why


def test_a_selected_strategy_lists_it_and_the_status_is_not_0() -> None:
    chosen = planned(holed(), {"b": (AT_B, CONSUMER)}, choices={"H1": "refetch"})
    assert chosen.status == 1
    fetched, first, second = chosen.plan.unreported
    assert fetched.startswith(MAY_DIFFER)
    assert first.startswith(f"{UNREPORTED}a replica or a consumer (10.0.0.9) is connected to b")
    assert second.startswith(f"{UNREPORTED}a replica or a consumer (10.0.0.3:3306, ")
    numbers = ", ".join(str(each.number) for each in chosen.plan.steps)
    assert f"What step {numbers} does may stop its applier" in first
    assert chosen.plan.warnings[-1] == UNSEEN


def test_a_transaction_without_rows_is_fetched_and_the_replica_is_listed() -> None:
    """An operator reads it; `reconcile` applies nothing with such a warning."""
    empty = planned(holed(), {"b": (AT_B,)}, ContentClass.EMPTY)
    assert ({each.strategy for each in empty.plan.answered}, empty.status) == ({"refetch"}, 0)
    assert empty.plan.unreported == ()
    assert [each for each in empty.plan.warnings if each.startswith("a replica or a consumer (")]


def test_a_stopped_channel_is_started_as_above_a_server_that_was_not_read() -> None:
    servers = model(server("a", "a:1-3"), server("b", "a:1", channel("a", runs=False)))
    snapshot = snapshot_of(servers)
    assert snapshot.last[1].channels is not None
    assert snapshot.last[1].channels[0].receiver is ThreadState.STOPPED
    found = planned(servers, {"b": (AT_B,)})
    assert {each.strategy for each in found.plan.answered} == {"start_channel"}
    assert [each for each in found.plan.warnings if each.startswith("a replica or a consumer (")]


def test_replicas_that_could_not_be_listed_are_a_warning() -> None:
    why = {"b": "privilege: Access denied (it needs REPLICATION SLAVE)", "z": "not of this plan"}
    found = planned(holed(), {}, connected_unread=why)
    assert {each.strategy for each in found.plan.answered} == {"refetch"}
    [warning] = [each for each in found.plan.warnings if "could not be read" in each]
    assert warning == f"which replicas are connected to b could not be read: {why['b']}"


def test_the_same_input_gives_the_same_bytes() -> None:
    orders = [{"b": (AT_B, CONSUMER), "a": (CONSUMER,)}, {"a": (CONSUMER,), "b": (CONSUMER, AT_B)}]
    [one, two] = [planned(holed(), each, choices={"H1": "refetch"}).plan for each in orders]
    assert one.as_json() == two.as_json()
    assert UUID(AT_B.server_uuid) == UUIDS["c"]
