"""What plans leave to the operator, what they refuse, and what they announce for afterwards."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from gtid import GtidSet
from repair import Plan, UnknownChoice, plan_repair
from repair.content.transaction_content import RowsOn, RowState
from repair.model.actions import InjectEmpty, StartChannel, simulate
from repair.model.invariants import broken_invariants
from repair.model.replication_model import Model
from repair.model.settled_model import settle
from repair.strategies.done_by_hand import by_hand
from repair.strategies.strategy_registry import LEAVING_OUT, PLANNERS
from tests.repair.build import (
    UUIDS,
    channel,
    evidence_of,
    gtids,
    model,
    server,
    show,
    snapshot_of,
)
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.strategy_table import strategies_for
from topology.catalogue.verdict_table import CATALOGUE
from topology.readings.content_class import ContentClass
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import ServerSnapshot, ThreadState
from topology.readings.version import ServerVersion


def planned(
    servers: Model,
    kind: ContentClass = ContentClass.EMPTY,
    choices: dict[str, str] | None = None,
    rows_on: dict[str, RowsOn] | None = None,
) -> Plan:
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    evidence = evidence_of(audit, kind, rows_on=rows_on or {})
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence)


def actions(plan: Plan) -> list[str]:
    return [f"{step.server} {step.action}" for step in plan.steps]


def why(plan: Plan, code: str) -> str:
    return "\n".join(each.why for each in plan.not_planned if each.code == code)


ERRANT = model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a")))
HOLE = model(
    server("a", "a:1-9", channel("b")),
    server("b", "a:1-3 a:7-9", channel("a", auto=False, bypassed="a:4-6")),
)


@pytest.mark.parametrize("kind", [ContentClass.DATA, ContentClass.DDL, ContentClass.UNREAD])
def test_content_that_matters_has_no_default(kind: ContentClass) -> None:
    plan = planned(ERRANT, kind)
    assert not plan.steps
    assert f"{kind.value}: {UUIDS['b']}:1" in why(plan, "E1")
    assert [each.code for each in plan.afterwards] == ["E1"]


@pytest.mark.parametrize("kind", [ContentClass.EMPTY, ContentClass.HARMLESS])
def test_content_that_does_not_matter_is_left_out(kind: ContentClass) -> None:
    assert actions(planned(ERRANT, kind)) == ["a InjectEmpty"]


def test_unread_content_is_never_left_out_by_default() -> None:
    snapshot = snapshot_of(ERRANT)
    audit = audit_cluster(snapshot)
    plan = plan_repair(snapshot, audit)
    assert not plan.steps
    assert "has not been read" in why(plan, "E1")


def test_what_is_left_out_when_selected_is_named() -> None:
    plan = planned(ERRANT, ContentClass.DATA, {"E1": "inject_empty"})
    assert actions(plan) == ["a InjectEmpty"]
    text = "\n".join(plan.warnings)
    assert "the data will NOT" in text
    assert "is NOT saved" in text, "this test has no SQL of it"
    assert "THE DATA WAS NOT CHECKED" not in text
    unread = planned(ERRANT, ContentClass.UNREAD, {"E1": "inject_empty"})
    assert any("THE DATA WAS NOT CHECKED: no log shows what" in each for each in unread.warnings)


def test_in_a_ring_a_stopped_channel_delivers() -> None:
    ring = model(
        server("a", "a:1-3", channel("c")),
        server("b", "a:1-2", channel("a", runs=False)),
        server("c", "a:1-2", channel("b")),
    )
    plan = planned(ring, ContentClass.EMPTY)
    assert actions(plan) == ["b StartChannel"]
    assert not plan.afterwards


def test_delivering_comes_before_leaving_out_even_what_is_empty() -> None:
    stuck = model(
        server("a", "a:1-3", channel("c")),
        server("b", "a:1-2", channel("a", auto=False, stuck=True)),
        server("c", "a:1-2", channel("b")),
    )
    plan = planned(stuck, ContentClass.EMPTY)
    assert not any(step.action == "InjectEmpty" for step in plan.steps)


FITS = {"a": RowsOn(RowState.AS_AFTER), "b": RowsOn(RowState.AS_BEFORE)}


@pytest.mark.parametrize(
    ("rows_on", "steps"),
    [
        (FITS, ["b AutoPositionOn"]),
        ({**FITS, "a": RowsOn(RowState.CONFLICT, "row 1")}, []),  # changed since
        ({**FITS, "a": RowsOn(RowState.AS_BEFORE)}, []),  # and changed back
        ({**FITS, "b": RowsOn(RowState.CONFLICT, "row 1")}, []),
        ({**FITS, "b": RowsOn(RowState.UNREAD, "no key")}, []),
        ({"b": RowsOn(RowState.AS_BEFORE)}, []),
        ({**FITS, "b": RowsOn(RowState.AS_AFTER)}, ["b InjectEmpty", "b AutoPositionOn"]),
    ],
)
def test_a_hole_is_fetched_only_if_its_rows_fit(
    rows_on: dict[str, RowsOn], steps: list[str]
) -> None:
    assert actions(planned(HOLE, ContentClass.DATA, rows_on=rows_on)) == steps
    chosen = planned(HOLE, ContentClass.DATA, {"H1": "refetch"}, rows_on)
    are_there = steps[:1] == ["b InjectEmpty"]
    assert actions(chosen) == ([] if are_there else ["b AutoPositionOn"])


def test_a_position_that_may_have_passed_rows_is_not_given_up_unasked() -> None:
    behind = model(server("a", "a:1-3"), server("b", "a:1-2", channel("a", runs=False, auto=False)))
    conflict = {"b": RowsOn(RowState.CONFLICT, "row t `id` = 1 is not as expected")}
    plan = planned(behind, ContentClass.DATA, rows_on=conflict)
    assert not any(step.action == "AutoPositionOn" for step in plan.steps)


@pytest.mark.parametrize("own", [True, False], ids=["a member", "the group's UUID"])
def test_a_group_is_left_alone(own: bool) -> None:
    group = UUIDS["f"]
    servers = model(server("a", "a:1-3 f:1"), server("b", "a:1-3 f:1", channel("a")))
    servers = servers.replace(replace(servers["a"], group_name=group))
    action = InjectEmpty("a", gtids("e:1")) if own else InjectEmpty("b", gtids("f:2"))
    text = "; ".join(broken_invariants(servers, simulate(servers, action), action))
    assert ("is a member of the group" if own else "is the UUID of the group") in text
    for harmless in (StartChannel("b", ""), InjectEmpty("b", gtids("e:1"))):
        assert not broken_invariants(servers, simulate(servers, harmless), harmless)


def test_a_member_read_from_a_server_is_known_to_the_plan() -> None:
    snapshot = snapshot_of(ERRANT)
    group = GroupSnapshot(str(UUIDS["f"]), "ONLINE", "PRIMARY", GtidSet())
    grouped = replace(
        snapshot,
        last=tuple(
            replace(each, group=group) if each.name == "a" else each for each in snapshot.last
        ),
    )
    audit = audit_cluster(snapshot)
    plan = plan_repair(grouped, audit, choices={"E1": "inject_empty"}, evidence=evidence_of(audit))
    assert not plan.steps
    assert "a is a member of the group" in why(plan, "E1")


def test_the_ends_of_a_tree_come_first_where_a_range_becomes_purged() -> None:
    apart = model(
        server("a", "a:1-3"),
        server("b", "a:1-3 b:1", channel("a")),
        server("c", "a:1-3", channel("a", runs=False)),
    )
    plan = planned(apart, ContentClass.EMPTY, {"E1": "gtid_purged_append"})
    assert actions(plan) == ["c AppendPurged", "a AppendPurged", "c StartChannel"]
    for step in plan.steps:
        after = simulate(apart, step.effect)
        assert not broken_invariants(apart, after, step.effect)
        apart = after


def test_a_way_back_by_file_position_is_not_switched_unasked() -> None:
    back = model(
        server("a", "a:1-3", channel("b", runs=False, auto=False)),
        server("b", "a:1-3 b:1", channel("a")),
    )
    assert not planned(back, ContentClass.DATA).steps
    chosen = planned(back, ContentClass.DATA, {"E1": "start_channel"})
    assert actions(chosen) == ["a AutoPositionOn"]


def test_a_finding_may_be_chosen_by_its_id() -> None:
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-3 b:1", channel("a")),
        server("c", "a:1-3 c:1", channel("a")),
    )
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot)
    one, other = audit.findings
    plan = plan_repair(
        snapshot,
        audit,
        choices={one.id: "inject_empty"},
        evidence=evidence_of(audit, ContentClass.DATA),
    )
    assert [each.finding_id for each in plan.answered] == [one.id]
    assert [each.finding_id for each in plan.not_planned] == [other.id]


def test_a_choice_for_nothing_found_is_refused() -> None:
    with pytest.raises(UnknownChoice, match="has no finding H1; found: E1"):
        planned(ERRANT, choices={"H1": "refetch"})


def test_every_planned_strategy_answers_a_code() -> None:
    answering = {name for code in CATALOGUE for name in strategies_for(code)}
    assert answering >= PLANNERS.keys() >= LEAVING_OUT


@pytest.mark.parametrize(("code", "errno"), [("A2", 1062), ("A3", 1146)])
def test_an_applier_stopped_by_an_error_counts_as_stuck(code: str, errno: int) -> None:
    stopped = model(
        server("a", "a:1-6"),
        server("b", "a:1-2 a:4", channel("a", auto=False, bypassed="a:3")),
    )
    snapshot = snapshot_of(stopped)

    def with_error(each: ServerSnapshot) -> ServerSnapshot:
        channels = tuple(
            replace(one, applier=ThreadState.STOPPED, applier_errno=errno, applier_error="x")
            for one in each.channels or ()
        )
        return replace(each, channels=channels)

    snapshot = replace(
        snapshot,
        first=tuple(map(with_error, snapshot.first)),
        last=tuple(map(with_error, snapshot.last)),
    )
    audit = audit_cluster(snapshot)
    assert code in [each.code for each in audit.findings]
    plan = plan_repair(snapshot, audit, evidence=evidence_of(audit, rows_on=FITS))
    assert not plan.steps, "what is fetched would wait behind the event"


def test_a_source_outside_the_snapshot_is_not_started_unasked() -> None:
    outside = model(server("b", "b:1", replace(channel("a", runs=False), source=None)))
    plan = planned(outside)
    assert not plan.steps
    assert "is not a server of this snapshot" in why(plan, "A7")
    assert actions(planned(outside, choices={"A7": "start_channel"})) == ["b StartChannel"]


def test_a_refusal_that_was_there_before_forbids_nothing_elsewhere() -> None:
    servers = model(
        server("a", "a:1-9", purged="a:1-5"),
        server("b", "a:1-2", channel("a", runs=False)),  # refused with 1236 already
        server("c", "a:1-9 c:1", channel("a")),
    )
    for action in (InjectEmpty("a", gtids("c:1")), InjectEmpty("a", gtids("e:1"))):
        assert not broken_invariants(servers, simulate(servers, action), action)


def test_both_servers_of_a_pair_are_never_cloned() -> None:
    pair = model(
        server("a", "a:1-5", channel("b", runs=False), purged="a:1-5"),
        server("b", "b:1-5", channel("a", runs=False), purged="b:1-3"),
    )
    plan = planned(pair)
    texts = [way for each in plan.not_planned for way in each.by_hand if way.startswith("reclone")]
    assert len(texts) == 2
    assert all("do NOT restore" in text for text in texts)
    assert any("binlog show" in text and f"{UUIDS['b']}:4-5" in text for text in texts)
    assert any("purged them too" in text for text in texts)


def test_a_clone_that_loses_nothing_is_told_plainly() -> None:
    behind = model(
        server("a", "a:1-5", purged="a:1-3"), server("b", "a:1", channel("a", runs=False))
    )
    audit = audit_cluster(snapshot_of(behind))
    [finding] = [each for each in audit.findings if each.code == "P1"]
    text = by_hand("reclone", finding, behind)
    assert "Nothing is lost" in text
    assert "do NOT" not in text


def _trees() -> list[Model]:
    """Every star and chain of three whose replicas hold some of a:1-2, b:1, c:1."""
    found = []
    parts = ("a:1", "a:2", "a:1-2")
    for below, of_b, of_c, own_b, own_c, runs, auto in itertools.product(
        ("a", "b"), parts, parts, ("", "b:1"), ("", "c:1"), (True, False), (True, False)
    ):
        sent = gtids("a:1-2") if below == "a" else gtids(of_b)
        missing = sent - gtids(of_c)
        found.append(
            model(
                server("a", "a:1-2"),
                server("b", f"{of_b} {own_b}", channel("a", runs=runs)),
                replace(
                    server("c", f"{of_c} {own_c}", channel(below, auto=auto)),
                    channels=(
                        replace(
                            channel(below, auto=auto),
                            bypassed=GtidSet() if auto else missing,
                        ),
                    ),
                ),
            )
        )
    return found


@pytest.mark.slow
def test_three_servers_planned_wholly_and_cut_anywhere() -> None:
    """The counts hold the plans against themselves: one that becomes smaller is noticed."""
    steps = left = 0
    for drawn in _trees():
        servers = settle(drawn)
        plan = planned(servers, rows_on=FITS)
        story = f"{show(servers)}\n{actions(plan)}\n{[(n.code, n.why) for n in plan.not_planned]}"
        goal = servers
        for step in plan.steps:
            after = simulate(goal, step.effect)
            assert not broken_invariants(goal, after, step.effect), story
            goal = after
        steps += len(plan.steps)
        left += len(plan.afterwards)
        again = planned(goal, rows_on=FITS)
        assert not again.steps, f"{story}\nplanned again: {actions(again)}"
        shown = {each.finding_id for each in again.not_planned if each.code[0] not in "TU"}
        announced = {each.finding_id for each in plan.afterwards}
        assert shown <= announced, f"{story}\nnot announced: {shown - announced}"
    assert (steps, left) == (576, 0)


EXTRA_CHOICES = [
    (each, "5.6.24" if each == "reset_and_purge" else "9.7.4")
    for each in strategies_for("E1")
    if each in PLANNERS and each != "start_channel"
]


@pytest.mark.parametrize(("strategy", "version"), EXTRA_CHOICES)
def test_nothing_is_chosen_that_keeps_out_what_unread_servers_may_deliver(
    strategy: str, version: str
) -> None:
    """Emptied on a, the transaction of b that x delivers next would be dropped there for good."""
    of = ServerVersion.parse(version)
    outside = a_channel("x", C, source_host="x.example", source_port=3306)
    for channels in ((outside,), ()):
        a = a_server("a", A, f"{A}:1-3", server_id=1, channels=channels, version=of)
        b = a_server("b", B, f"{A}:1-3,{B}:1", server_id=2, channels=(a_channel("a", A),))
        snapshot = a_cluster("part", a, replace(b, version=of))
        audit = audit_cluster(snapshot)
        evidence = evidence_of(audit, ContentClass.DATA)
        assert not plan_repair(snapshot, audit, evidence=evidence).steps
        plan = plan_repair(snapshot, audit, choices={"E1": strategy}, evidence=evidence)
        refused = " ".join(each.why for each in plan.not_planned if each.code == "E1")
        is_refused = "servers that were not read may deliver the transactions" in refused
        assert is_refused is bool(channels)
        assert not (channels and plan.steps)
        if strategy == "inject_empty":
            assert bool(plan.steps) is not bool(channels)
