"""What an audit accepts because of a plan that was carried out, and what it does not."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gtid import GtidSet
from repair import plan_repair
from repair.render import PLAN, render_files
from repair.repair_plan import SCHEMA_VERSION
from tests.repair.build import UUIDS, channel, evidence_of, gtids, model, server, snapshot_of
from topology.adapters.inventory.accepted_plans import read_accepted
from topology.adapters.inventory.fleet_file import load_roster
from topology.adapters.inventory.problem import InventoryProblem
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted import (
    APPLIED_FILE,
    PLAN_SCHEMA_VERSION,
    Acceptance,
    AcceptedRepair,
    Decision,
    NotAPlan,
    accepted_from_plan,
    accepted_from_text,
)
from topology.policy import Policy
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)

ERRANT = model(server("a", "a:1-9"), server("b", "a:1-9 b:1-3", channel("a")))
DONE = snapshot_of(model(server("a", "a:1-9 b:1-3"), server("b", "a:1-9 b:1-3", channel("a"))))
READ_AT = DONE.last[0].read_ended
EARLIER = READ_AT - timedelta(hours=2)


def written() -> str:
    """A plan.json as `repair plan` writes it, by which b:1-3 is emptied on a."""
    snapshot = snapshot_of(ERRANT)
    audit = audit_cluster(snapshot)
    plan = plan_repair(snapshot, audit, choices={"E1": "inject_empty"}, evidence=evidence_of(audit))
    return render_files(plan)[PLAN]


REPAIR = accepted_from_plan(written())


def difference(gtid: str, *, committed: timedelta = timedelta(), empty: str = "a") -> Any:
    at = EARLIER + committed
    ours, theirs = (
        TransactionVersion(name, "binlog.1:4", at, at, "something", is_empty=name == empty)
        for name in ("a", "b")
    )
    [one] = gtids(gtid).gtids()
    lesser = empty if empty in ("a", "b") else "a"
    kind = Difference.EMPTY if empty in ("a", "b") else Difference.CONTENT
    return ContentDifference(one, kind, True, "they differ", ours, theirs, lesser)


def found(*differences: ContentDifference, accepted: AcceptedRepair | None = REPAIR) -> Finding:
    policy = Policy(accepted=() if accepted is None else (accepted,))
    contents = ContentReading(READ_AT, 3, (), differences, ())
    audit = audit_cluster(DONE.with_contents(contents), policy)
    [finding] = [each for each in audit.findings if each.code == "E4"]
    return finding


def test_what_a_plan_emptied_is_information_and_names_the_plan() -> None:
    assert REPAIR.emptied == ((UUIDS["a"], gtids("b:1-3")),)
    finding = found(difference("b:1"), difference("b:2"))
    assert finding.severity is Severity.INFO
    assert finding.gtid_set == gtids("b:1-2")
    assert f"emptied by plan {REPAIR.plan_id}, accepted" in finding.explanation
    assert not finding.strategies
    assert found(difference("b:1"), accepted=None).severity is Severity.WARNING


def test_a_set_that_is_accepted_in_part_is_split() -> None:
    finding = found(difference("b:1"), difference("a:7"))
    assert finding.severity is Severity.WARNING
    assert finding.gtid_set == gtids("a:7")
    assert f"{gtids('b:1').shortened()} emptied by plan" in finding.explanation


@pytest.mark.parametrize(
    "differing",
    [
        difference("b:1", committed=timedelta(hours=3)),  # committed after the plan was made
        difference("b:1", empty="neither"),  # other work instead of none
        difference("a:9"),  # not of the plan
    ],
)
def test_nothing_else_is_accepted(differing: ContentDifference) -> None:
    finding = found(differing)
    assert finding.severity is not Severity.INFO
    assert "accepted" not in finding.explanation


def test_a_plan_that_was_not_run_accepts_nothing() -> None:
    elsewhere = replace(REPAIR, emptied=((UUIDS["f"], gtids("b:1-3")),))
    assert found(difference("b:1"), accepted=elsewhere).severity is Severity.WARNING
    other = replace(REPAIR, emptied=((UUIDS["a"], gtids("b:2-3")),))
    assert found(difference("b:1"), accepted=other).severity is Severity.WARNING


BY_ALL = tuple(UUIDS[name] for name in "abc")
UNDONE = replace(REPAIR, seen=BY_ALL, undone=((UUIDS["b"], gtids("b:1-3")),))
ALL = "a:1-9 b:1-3"
THREE = snapshot_of(model(server("a", ALL), server("b", ALL, channel("a")), server("c", ALL)))
LINE = (("a", "b"), ("b", "c"))


def audited(
    *differences: ContentDifference,
    pairs: tuple[tuple[str, str], ...] = (("a", "b"),),
    repair: AcceptedRepair = UNDONE,
) -> Finding:
    """Audit three servers of which the logs of some pairs were compared."""
    contents = ContentReading(READ_AT, 3, (), differences, (), pairs=pairs)
    audit = audit_cluster(THREE.with_contents(contents), Policy(accepted=(repair,)))
    [finding] = [each for each in audit.findings if each.code == "E4"]
    return finding


def seen(gtid: str, *, holder: str = "b") -> ContentDifference:
    """Return b's transaction empty on a, and full on another, with equal rows."""
    one: ContentDifference = replace(difference(gtid), has_equal_rows=True)
    return replace(one, replica=replace(one.replica, server=holder))


def test_rows_that_a_plan_takes_back_are_accepted_where_they_were_seen_to_be_equal() -> None:
    finding = audited(seen("b:1"), pairs=(("a", "b"), ("a", "c")))  # c has the empty one from a
    assert finding.severity is Severity.INFO
    assert f"emptied by plan {REPAIR.plan_id}, accepted" in finding.explanation
    # A pair whose logs differ too links nothing: c is a's, though it was compared with b.
    full, empty = seen("b:1").replica, replace(seen("b:1").source, server="c")
    too = replace(seen("b:1"), source=full, replica=empty)
    contents = ContentReading(READ_AT, 3, (), (seen("b:1"), too), (), pairs=(*LINE, ("a", "c")))
    audit = audit_cluster(THREE.with_contents(contents), Policy(accepted=(UNDONE,)))
    assert [each.severity for each in audit.findings if each.code == "E4"] == [Severity.INFO] * 2
    unseen = audited(difference("b:1"), pairs=(("a", "b"), ("a", "c")))
    assert unseen.severity is Severity.WARNING
    assert f"emptied by plan {REPAIR.plan_id}, not accepted" in unseen.explanation
    # A script that is run again without its check deletes what was written again since.
    assert "each check directly before its script" in unseen.explanation
    assert "a second time" not in unseen.explanation
    assert "does not show that their rows were undone on b" in unseen.explanation
    # A plan that leaves them out by decision takes nothing back: the rows differ, as was decided.
    kept = audited(difference("b:1"), pairs=LINE, repair=REPAIR)
    assert kept.severity is Severity.INFO


@pytest.mark.parametrize(
    ("differing", "pairs"),
    [
        (seen("b:1"), LINE),  # b and c have the same transaction
        (seen("b:1"), (("a", "b"),)),  # c was compared with none
        (seen("b:1"), (*LINE, ("a", "c"))),  # c's log does not show it any more
        (seen("b:1", holder="c"), (("a", "c"),)),  # the plan did nothing there
    ],
)
def test_a_server_on_which_nothing_was_taken_back_keeps_the_finding(
    differing: ContentDifference, pairs: tuple[tuple[str, str], ...]
) -> None:
    finding = audited(differing, pairs=pairs)
    assert finding.severity is Severity.WARNING
    assert "not accepted: it has no step that undoes their rows on c," in finding.explanation


def test_rows_on_a_server_that_the_plan_did_not_see_are_not_accepted() -> None:
    """It may have another transaction under the GTID: the operator never saw that."""
    assert REPAIR.seen == (UUIDS["a"], UUIDS["b"])
    finding = audited(seen("b:1", holder="c"), pairs=(("a", "c"),), repair=REPAIR)
    assert finding.severity is Severity.WARNING
    assert f"by plan {REPAIR.plan_id}, not accepted: it was made without c." in finding.explanation
    assert "compare them" in finding.explanation
    seen_too = replace(REPAIR, seen=BY_ALL)
    finding = audited(seen("b:1", holder="c"), pairs=(("a", "c"),), repair=seen_too)
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(("gtid", "severity"), [("b:1", Severity.WARNING), ("b:3", Severity.INFO)])
def test_a_plan_explains_only_the_transactions_that_it_emptied_on_a_server(
    gtid: str, severity: Severity
) -> None:
    """The plan empties b:1-3 on a, and b:3 on c, which was compared with none."""
    emptied = ((UUIDS["a"], gtids("b:1-3")), (UUIDS["c"], gtids("b:3")))
    finding = audited(seen(gtid), repair=replace(UNDONE, emptied=emptied))
    assert finding.severity is severity


def test_a_server_without_the_transaction_needs_no_step() -> None:
    """The plan takes the rows back on b, and c has executed nothing of b."""
    three = model(server("a", ALL), server("b", ALL, channel("a")), server("c", "a:1-9"))
    decision = Acceptance([UNDONE], snapshot_of(three).last).decision_on(seen("b:1"))
    assert decision == Decision(UNDONE.plan_id)


def test_a_server_without_the_transaction_does_not_show_that_it_is_empty_elsewhere() -> None:
    """The plan was run on a and not yet on d: c has b's rows, and was compared with d alone."""
    d = server("d", "a:1-9")
    four = model(server("a", ALL), server("b", ALL, channel("a")), server("c", ALL), d)
    emptied = tuple((UUIDS[name], gtids("b:1-3")) for name in "ad")
    repair = replace(UNDONE, emptied=emptied)
    contents = ContentReading(READ_AT, 3, (), (seen("b:1"),), (), pairs=(("a", "b"), ("c", "d")))
    audit = audit_cluster(snapshot_of(four).with_contents(contents), Policy(accepted=(repair,)))
    [finding] = [each for each in audit.findings if each.code == "E4"]
    assert finding.severity is Severity.WARNING
    assert "not accepted: it has no step that undoes their rows on c," in finding.explanation


def test_a_plan_with_a_step_for_every_server_is_accepted() -> None:
    both = replace(UNDONE, undone=((UUIDS["b"], gtids("b:1-3")), (UUIDS["c"], gtids("b:1-3"))))
    finding = audited(seen("b:1"), pairs=LINE, repair=both)
    assert finding.severity is Severity.INFO
    # Of two plans for the same transaction the one that holds is named.
    contents = ContentReading(READ_AT, 3, (), (difference("b:1"),), (), pairs=(("a", "b"),))
    audit = audit_cluster(
        DONE.with_contents(contents), Policy(accepted=(UNDONE, replace(REPAIR, plan_id="x")))
    )
    assert [each.severity for each in audit.findings if each.code == "E4"] == [Severity.INFO]


def test_a_plan_says_where_it_takes_rows_back(tmp_path: Path) -> None:
    plan = json.loads(written())
    [step] = plan["steps"]
    undo = {**step, "change": {"type": "UndoRows", "server": "b", "gtids": str(gtids("b:1-3"))}}
    plan["steps"] = [undo, step]
    read = accepted_from_plan(json.dumps(plan))
    assert read == replace(UNDONE, seen=REPAIR.seen)
    assert accepted_from_text(read.to_text()) == read


def test_a_fleet_file_names_plans_from_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "plan-1").mkdir()
    (tmp_path / "plan-1" / PLAN).write_text(written())
    file = tmp_path / "fleet.yaml"
    clusters = "clusters: [{name: c, servers: [{name: s, host: h}]}]\n"
    file.write_text(f"policy: {{accepted: [plan-1]}}\n{clusters}")
    assert load_roster(file, environment={}).policy.accepted == (REPAIR,)
    file.write_text(f"policy: {{accepted: [plan-1, plan-2]}}\n{clusters}")
    with pytest.raises(InventoryProblem, match=r"line 1: policy.accepted\[1\]: .*plan-2"):
        load_roster(file, environment={})


def test_it_is_the_same_through_a_command_line_and_a_file(tmp_path: Path) -> None:
    assert PLAN_SCHEMA_VERSION == SCHEMA_VERSION
    assert accepted_from_text(REPAIR.to_text()) == REPAIR
    (tmp_path / PLAN).write_text(written())
    assert read_accepted([tmp_path, tmp_path / PLAN]) == (REPAIR, REPAIR)
    assert GtidSet.union_of(each for _, each in REPAIR.emptied) == gtids("b:1-3")


def test_who_applied_a_plan_stands_in_the_finding(tmp_path: Path) -> None:
    (tmp_path / PLAN).write_text(written())
    record = {"plan_id": REPAIR.plan_id, "procedure": "p", "at": "2026-01-01T12:00:00+00:00"}
    applied = [
        {**record, "operator": "anna@ops"},
        {**record, "operator": "eve@elsewhere", "plan_id": "of another plan"},
        {**record, "operator": "ben@ops"},
        {**record, "operator": "anna@ops"},
    ]
    (tmp_path / APPLIED_FILE).write_text(json.dumps({"applied": applied}))
    [read] = read_accepted([tmp_path])
    assert read == replace(REPAIR, applied_by=("anna@ops", "ben@ops"))
    assert accepted_from_text(read.to_text()) == read
    by = f"plan {REPAIR.plan_id}, applied by anna@ops and ben@ops, accepted."
    assert f"{gtids('b:1')} emptied by {by}" in found(difference("b:1"), accepted=read).explanation
    refused = replace(read, seen=())
    assert "applied by anna@ops and ben@ops, not accepted: it was made without" in (
        found(difference("b:1"), accepted=refused).explanation
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"applied": [3]}', '{"applied": [{}]}'])
def test_a_damaged_record_of_who_applied_a_plan_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / PLAN).write_text(written())
    (tmp_path / APPLIED_FILE).write_text(text)
    with pytest.raises(InventoryProblem, match=r"applied\.json: not a record that `repair apply`"):
        read_accepted([tmp_path])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema_version": 1}', json.dumps({**json.loads(written()), "steps": 3})],
)
def test_what_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(NotAPlan):
        accepted_from_plan(text)
    with pytest.raises(NotAPlan):
        accepted_from_text(text)
    (tmp_path / PLAN).write_text(text)
    with pytest.raises(InventoryProblem, match=r"plan\.json"):
        read_accepted([tmp_path])
