"""Plans for clusters written down by hand: which strategy, which steps, and what is refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest

from gtid import Gtid, GtidSet
from repair import FailingEvent, LogEvidence, Plan, UnknownChoice, plan_repair
from repair.content.transaction_content import TransactionContent
from repair.model.replication_model import Model
from repair.planner import BY_OTHER_STEPS
from repair.strategies.leaving_out import INJECTED_PER_SCRIPT_MAX, INJECTED_UNASKED_MAX
from tests.repair.build import (
    NEW,
    OLD,
    UUIDS,
    channel,
    evidence_of,
    gtids,
    model,
    server,
    snapshot_of,
)
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding
from topology.policy import Policy
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ClusterSnapshot, LogPosition


def _audited(servers: Model, silent: tuple[str, ...] = ()) -> tuple[ClusterSnapshot, ClusterAudit]:
    snapshot = snapshot_of(servers, silent=silent)
    return snapshot, audit_cluster(snapshot)


def _plan(servers: Model, choices: Mapping[str, str] | None = None) -> Plan:
    snapshot, audit = _audited(servers)
    return plan_repair(snapshot, audit, choices=choices, evidence=evidence_of(audit))


def _bypassed(version: object = NEW, hole: str = "a:4-6") -> Model:
    assert isinstance(version, type(NEW))
    held = str(gtids("a:1-9") - gtids(hole)).replace(str(UUIDS["a"]), "a")
    return model(
        server("a", "a:1-9", channel("b"), version=version),
        server("b", held, channel("a", auto=False, bypassed=hole), version=version),
    )


def _star() -> Model:
    return model(
        server("a", "a:1-5"),
        server("b", "a:1-5 b:1", channel("a")),
        server("c", "a:1-5", channel("a")),
        server("d", "a:1-5", channel("c")),
    )


class Scene(NamedTuple):
    servers: Model
    choices: Mapping[str, str]
    steps: list[str]


SCENES = {
    "a hole the source still has": Scene(_bypassed(), {}, ["b AutoPositionOn"]),
    "a hole skipped on purpose": Scene(
        _bypassed(), {"H1": "inject_empty"}, ["b InjectEmpty", "b AutoPositionOn"]
    ),
    "a hole, appended": Scene(
        _bypassed(), {"H1": "gtid_purged_append"}, ["b AppendPurged", "b AutoPositionOn"]
    ),
    "a hole on 5.6, reset": Scene(
        _bypassed(OLD),
        {"H1": "reset_and_purge"},
        ["a StopChannel", "b ResetAndPurge", "a StartChannel", "b AutoPositionOn"],
    ),
    "reset, once its replica by file position is on auto-position": Scene(
        model(
            server("a", "a:1-3", version=OLD),
            server("b", "a:1 a:3", channel("a", auto=False, bypassed="a:2"), version=OLD),
            server("c", "a:1-3", channel("b", auto=False), version=OLD),
        ),
        {"H1": "reset_and_purge"},
        [
            "c AutoPositionOn",
            "c StopChannel",
            "b ResetAndPurge",
            "c StartChannel",
            "b AutoPositionOn",
        ],
    ),
    "file position, and nothing lacking": Scene(
        model(server("a", "a:1-3"), server("b", "a:1-3", channel("a", auto=False))),
        {},
        ["b AutoPositionOn"],
    ),
    "stopped by hand": Scene(
        model(server("a", "a:1-3"), server("b", "a:1-2", channel("a", runs=False))),
        {},
        ["b StartChannel"],
    ),
    "stopped, and by file position": Scene(
        model(server("a", "a:1-3"), server("b", "a:1-2", channel("a", runs=False, auto=False))),
        {},
        ["b AutoPositionOn"],
    ),
    "errant, with a stopped way home": Scene(
        model(
            server("a", "a:1-3", channel("b", runs=False)), server("b", "a:1-3 b:1", channel("a"))
        ),
        {},
        ["a StartChannel"],
    ),
    "errant, the way home stopped, content unwanted": Scene(
        model(
            server("a", "a:1-3", channel("b", runs=False)), server("b", "a:1-3 b:1", channel("a"))
        ),
        {"E1": "inject_empty"},
        ["a InjectEmpty", "a StartChannel"],
    ),
    "errant in a tree: on the source, and replication brings it to the others": Scene(
        _star(), {}, ["a InjectEmpty"]
    ),
    "errant in a tree, appended": Scene(
        _star(),
        {"E1": "gtid_purged_append"},
        ["d AppendPurged", "c AppendPurged", "a AppendPurged"],
    ),
    "errant in the middle of a chain: it flows down by itself": Scene(
        model(
            server("a", "a:1-5"),
            server("b", "a:1-5 b:1", channel("a")),
            server("c", "a:1-5", channel("b")),
        ),
        {},
        ["a InjectEmpty"],
    ),
    "nothing wrong": Scene(
        model(server("a", "a:1-3", channel("b")), server("b", "a:1-3", channel("a"))), {}, []
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_has_these_steps(name: str) -> None:
    scene = SCENES[name]
    plan = _plan(scene.servers, scene.choices)
    assert [f"{step.server} {step.action}" for step in plan.steps] == scene.steps
    assert not plan.not_planned


class Refused(NamedTuple):
    servers: Model
    choices: Mapping[str, str]
    code: str
    why: str


REFUSED = {
    "crash-lost: the operator must choose": Refused(
        model(server("a", "a:1-3"), server("b", "a:1-5", channel("a"))),
        {},
        "E3",
        "only planned when selected",
    ),
    "purged before it arrived": Refused(
        model(server("a", "a:1-5", purged="a:1-3"), server("b", "a:1", channel("a", runs=False))),
        {},
        "P1",
        "none of its strategies has a script",
    ),
    "errant and purged: its content cannot be read": Refused(
        model(server("a", "a:1-3"), server("b", "a:1-3 b:1", channel("a"), purged="b:1")),
        {},
        "E2",
        "its content needs a decision by the operator (unread: ",
    ),
    "append: another server below would get 1236": Refused(
        model(
            server("a", "a:1-3"),
            server("b", "a:1 a:3", channel("a", auto=False, bypassed="a:2")),
            server("c", "a:1 a:3", channel("b", runs=False)),
        ),
        {"H1": "gtid_purged_append"},
        "H1",
        "c would get error 1236 from b",
    ),
    "append: not before 8.0": Refused(
        _bypassed(OLD), {"H1": "gtid_purged_append"}, "H1", "cannot append to gtid_purged"
    ),
    "reset: not where append does it": Refused(
        _bypassed(), {"H1": "reset_and_purge"}, "H1", "gtid_purged_append needs no reset"
    ),
    "reset: a replica below still needs its logs": Refused(
        model(
            server("a", "a:1-3", version=OLD),
            server("b", "a:1 a:3", channel("a", auto=False, bypassed="a:2"), version=OLD),
            server("c", "a:1", channel("b", runs=False), version=OLD),
        ),
        {"H1": "reset_and_purge"},
        "H1",
        "c still needs transactions that are only in the binary logs of",
    ),
    "stopped, and its source has purged what it needs": Refused(
        model(
            server("a", "a:1-5", channel("b", runs=False), purged="a:1-3"),
            server("b", "a:1-3 b:1-2", channel("a"), purged="b:1"),
        ),
        {},
        "E1",
        "repair P1 first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told_with_its_reason(name: str) -> None:
    scene = REFUSED[name]
    plan = _plan(scene.servers, scene.choices)
    told = {each.code: each for each in plan.not_planned}
    assert scene.code in told, (plan.answered, plan.not_planned)
    assert scene.why in told[scene.code].why
    assert not any(scene.code == each.code for each in plan.answered)


def test_strategies_without_a_script_come_with_what_to_do_by_hand() -> None:
    refused = REFUSED["purged before it arrived"]
    [left] = [each for each in _plan(refused.servers).not_planned if each.code == "P1"]
    assert [text.partition(":")[0] for text in left.by_hand] == ["reclone"]


def test_differences_that_time_heals_are_told_and_need_nothing() -> None:
    waiting = model(server("a", "a:1-3"), server("b", "a:1-2", channel("a")))
    waiting = waiting.replace(waiting["b"].with_channel("", retrieved=gtids("a:3")))
    plan = _plan(waiting)
    assert not plan.steps
    assert [each.code for each in plan.not_planned] == ["T2"]
    assert plan.not_planned[0].by_hand == ("wait: nothing to run: audit again in a few minutes",)


def test_a_choice_says_why_the_others_were_not_taken() -> None:
    plan = _plan(_bypassed(), {"H1": "inject_empty"})
    assert [(each.strategy, each.why[:19]) for each in plan.not_chosen] == [
        ("refetch", "inject_empty has pr")
    ]


def test_many_transactions_are_appended_only_when_selected() -> None:
    many = f"a:1-{INJECTED_UNASKED_MAX + 1}"
    servers = model(server("b", "b:1"), server("a", f"b:1 {many}", channel("b")))
    snapshot, audit = _audited(servers)
    [finding] = audit.findings
    read = TransactionContent("a", {ContentClass.EMPTY: finding.gtid_set})
    evidence = LogEvidence(contents={finding.id: read})
    plan = plan_repair(snapshot, audit, evidence=evidence)
    assert not plan.steps
    assert "select gtid_purged_append" in plan.not_planned[0].why
    chosen = {"E1": "gtid_purged_append"}
    plan = plan_repair(snapshot, audit, choices=chosen, evidence=evidence)
    assert [step.action for step in plan.steps] == ["AppendPurged"]


def test_asked_for_by_name_many_are_split_over_scripts() -> None:
    count = 2 * INJECTED_PER_SCRIPT_MAX + 1
    servers = model(server("b", "b:1"), server("a", f"b:1 a:1-{count}", channel("b")))
    plan = _plan(servers, {"E1": "inject_empty"})
    sizes = ["\n".join(step.procedure.statements).count("BEGIN;") for step in plan.steps]
    assert sizes == [INJECTED_PER_SCRIPT_MAX, INJECTED_PER_SCRIPT_MAX, 1]


def test_tags_do_not_go_to_a_server_that_knows_none() -> None:
    holder = replace(
        server("b", "a:1", channel("a")),
        executed=GtidSet.parse(f"{UUIDS['a']}:1,{UUIDS['b']}:dba:1"),
    )
    plan = _plan(model(server("a", "a:1", version=OLD), holder))
    assert not plan.steps
    [extra] = [each for each in plan.not_planned if each.code == "E1"]
    assert "does not support GTID tags" in extra.why


def test_an_unread_server_forbids_what_could_harm_it() -> None:
    servers = model(*_bypassed().servers.values(), server("c", "a:1-9"))
    snapshot, audit = _audited(servers, silent=("c",))
    plan = plan_repair(snapshot, audit, choices={"H1": "gtid_purged_append"})
    [told] = [each for each in plan.not_planned if each.code == "H1"]
    assert "c could not be read" in told.why
    plan = plan_repair(snapshot, audit, evidence=evidence_of(audit))
    assert any("nothing is known of c" in text for text in plan.warnings)


def _with_event(audit: ClusterAudit, finding: Finding, event: FailingEvent) -> LogEvidence:
    return replace(evidence_of(audit), events={finding.id: event})


def _event(servers: Model, gno: int, before: str = "") -> FailingEvent:
    start = LogPosition.of(file="binlog.000002", position=700)
    end = LogPosition.of(file="binlog.000002", position=900)
    assert start is not None
    assert end is not None
    return FailingEvent(
        source="a",
        source_uuid=servers["a"].server_uuid,
        gtid=Gtid.parse(f"{UUIDS['a']}:{gno}"),
        start=start,
        end=end,
        error_code=1050,
        schema="",
        statement="CREATE VIEW v AS SELECT 1",
        before=gtids(before),
    )


@pytest.mark.parametrize("held", ["a:1-3", "a:1-4"], ids=["not executed", "executed"])
def test_the_bypass_keeps_its_order_whether_or_not_the_gtid_was_kept(held: str) -> None:
    servers = model(server("a", "a:1-6"), server("b", held, channel("a", stuck=True)))
    snapshot, audit = _audited(servers)
    [finding] = audit.findings
    plan = plan_repair(snapshot, audit, evidence=_with_event(audit, finding, _event(servers, 4)))
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    move = " ".join(plan.steps[0].procedure.statements)
    assert "SOURCE_LOG_FILE = ''binlog.000002'', SOURCE_LOG_POS = 900" in move
    assert "an empty transaction alone does not help" in " ".join(plan.steps[0].procedure.warnings)


def test_the_bypass_never_jumps_over_what_a_parallel_applier_left_open() -> None:
    servers = model(server("a", "a:1-6"), server("b", "a:1-2 a:4", channel("a", stuck=True)))
    snapshot, audit = _audited(servers)
    [finding] = [each for each in audit.findings if each.code == "A1"]
    plan = plan_repair(
        snapshot, audit, evidence=_with_event(audit, finding, _event(servers, 4, before="a:3"))
    )
    assert not plan.steps
    assert "the parallel applier left gaps" in plan.not_planned[0].why


def test_a_hole_that_would_stop_the_applier_is_not_fetched_again() -> None:
    servers = _bypassed(hole="a:4-6")
    snapshot, audit = _audited(servers)
    [finding] = audit.findings
    plan = plan_repair(snapshot, audit, evidence=_with_event(audit, finding, _event(servers, 4)))
    assert [step.action for step in plan.steps] == ["InjectEmpty", "AutoPositionOn"]
    assert f"'{UUIDS['a']}:4'" in " ".join(plan.steps[0].procedure.statements)
    assert "fetch 2 transactions" in plan.steps[1].procedure.title
    assert any("would stop the applier again" in text for text in plan.warnings)


def test_a_hole_behind_a_stuck_applier_is_never_declared_unneeded_unasked() -> None:
    servers = model(
        server("a", "a:1-6", channel("b")),
        server("b", "a:1 a:3", channel("a", auto=False, stuck=True, bypassed="a:2")),
    )
    servers = servers.replace(servers["b"].with_channel("", retrieved=gtids("a:3-6")))
    snapshot, audit = _audited(servers)
    plan = plan_repair(snapshot, audit)
    assert not plan.steps
    assert plan.not_planned


def test_a_finding_that_other_steps_answer_is_not_left_over() -> None:
    servers = model(
        server("a", "a:1-5", purged="a:1-3"),
        server("b", "a:1", channel("a", runs=False)),
        server("c", "a:1-3", channel("b")),
    )
    plan = _plan(servers, {"E1": "inject_empty"})
    assert ("P1", BY_OTHER_STEPS) in [(each.code, each.strategy) for each in plan.answered]
    assert not plan.not_planned


def test_a_finding_that_other_steps_answer_has_no_strategy_of_its_own() -> None:
    """The switch to auto-position starts the channel."""
    stopped = channel("a", auto=False, runs=False)
    plan = _plan(model(server("a", "a:1-3"), server("b", "a:1-3", stopped)))
    assert [step.action for step in plan.steps] == ["AutoPositionOn"]
    found = {each.code: (each.strategy, each.steps) for each in plan.answered}
    assert found == {"C3": ("auto_position_on", (2,)), "A7": (BY_OTHER_STEPS, ())}


@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("executed", ["", "a:1-2"])
def test_what_arrives_by_file_position_is_not_counted_on(executed: str, *, auto: bool) -> None:
    """A file position may be behind the tail: no set shows that, not even an empty one."""
    servers = model(
        server("a", "a:1-5"),
        server("b", executed, channel("a", auto=auto)),
        server("c", "a:1-3 a:5", channel("a", auto=False, bypassed="a:4")),
    )
    plan = _plan(servers)
    assert ("H1", "refetch") in [(each.code, each.strategy) for each in plan.answered]
    assert ("T3" in [each.code for each in plan.answered]) is auto
    assert ("T3" in [each.code for each in plan.not_planned]) is not auto


def test_only_what_was_asked_for_is_planned() -> None:
    servers = model(
        server("a", "a:1-9", channel("b", runs=False)),
        server("b", "a:1-3 a:7-9 b:1", channel("a", auto=False, bypassed="a:4-6")),
    )
    snapshot, audit = _audited(servers)
    [wanted] = [finding.id for finding in audit.findings if finding.code == "H1"]
    plan = plan_repair(snapshot, audit, finding_ids=[wanted], evidence=evidence_of(audit))
    assert plan.finding_ids == (wanted,)
    assert [step.action for step in plan.steps] == ["AutoPositionOn"]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"H1": "no_such_thing"}, "no strategy 'no_such_thing'; H1 has refetch, "),
        ({"H1": "refech"}, r"no strategy 'refech'; did you mean refetch\? H1 has refetch, "),
        ({"Z9": "refetch"}, "is no code"),
        ({"H1": "position_bypass"}, "not an answer to H1"),
        ({"E3": "redo_on_source"}, "has no finding E3; found: H1"),
    ],
)
def test_a_choice_that_fits_nothing_is_said(choices: Mapping[str, str], words: str) -> None:
    with pytest.raises(UnknownChoice, match=words):
        _plan(_bypassed(), choices)


def test_an_unknown_finding_is_said() -> None:
    snapshot, audit = _audited(_bypassed())
    with pytest.raises(UnknownChoice, match="no finding 0123"):
        plan_repair(snapshot, audit, finding_ids=["0123"])


def test_what_is_left_to_do_is_evaluated_with_the_policy_of_the_audit() -> None:
    servers = _star().replace(server("d", "a:1-4", channel("c", runs=False)))
    policy = Policy(allowed_uuids=frozenset({UUIDS["b"]}))
    snapshot = snapshot_of(servers)
    audit = audit_cluster(snapshot, policy)
    assert [each.code for each in audit.findings] == ["A7", "T6"]
    evidence = evidence_of(audit)
    assert not plan_repair(snapshot, audit, evidence=evidence, policy=policy).afterwards
    [left] = plan_repair(snapshot, audit, evidence=evidence).afterwards
    assert left.code == "E1"


def test_an_audit_of_another_snapshot_is_refused() -> None:
    snapshot, audit = _audited(_bypassed())
    with pytest.raises(ValueError, match="not made from this snapshot"):
        plan_repair(snapshot, replace(audit, cluster="other"))


def test_the_id_is_a_digest_of_what_the_plan_says() -> None:
    first, second = _plan(_bypassed()), _plan(_bypassed())
    assert first == second
    assert first.id == second.id
    assert first.id != _plan(_bypassed(), {"H1": "inject_empty"}).id
    assert first.id != _plan(_bypassed(hole="a:4-5")).id


def test_nothing_is_done_on_a_replica_whose_history_is_empty() -> None:
    """A reset that was interrupted looks like this, and so does a new replica."""
    servers = model(server("a", "a:1-9"), server("b", "", channel("a", runs=False)))
    snapshot = snapshot_of(servers)
    plan = plan_repair(snapshot, audit_cluster(snapshot))
    assert not plan.steps
    assert any("run that script again" in each.why for each in plan.not_planned)
