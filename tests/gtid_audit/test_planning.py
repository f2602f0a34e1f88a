import json
from dataclasses import replace
from pathlib import Path

import pytest

from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.audited_cluster import AuditedCluster
from gtid_audit.tasks.planning import Planned, make_plan
from gtid_audit.views.plan_text import show_plan
from repair.repair_plan import Afterwards
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.readings.snapshot import ClusterSnapshot, ThreadState


def failed() -> ClusterSnapshot:
    """An applier stopped on something that only a person can answer."""
    stopped = a_channel(
        "b", B, applier=ThreadState.STOPPED, applier_errno=1146, applier_error="no t"
    )
    return a_cluster(
        "pair",
        a_server("a", A, f"{A}:1", channels=(stopped,)),
        a_server("b", B, f"{A}:1", channels=(a_channel("a", A),)),
    )


def planned(snapshot: ClusterSnapshot, **choices: str) -> Planned:
    read = AuditedCluster(snapshot, audit_cluster(snapshot), ())
    return make_plan(read, choices=choices, finding_ids=None, say=lambda _text: None)


@pytest.mark.parametrize(
    ("snapshot", "status"), [(healthy(), 0), (holed(), 1), (failed(), 1), (half_read(), 3)]
)
def test_status(snapshot: ClusterSnapshot, status: int) -> None:
    assert planned(snapshot).status == status


@pytest.mark.parametrize(
    ("is_answered", "is_new", "status"),
    [(False, False, 0), (False, True, 1), (True, False, 1), (True, True, 1)],
)
def test_what_the_audit_will_show_afterwards_decides_the_status(
    is_answered: bool, is_new: bool, status: int
) -> None:
    """1 for a finding of the plan's own and for an answered one that stays.

    A finding that was not selected may stay. What the selected strategy leaves out unread counts as
    well: it is taken away here.
    """
    chosen = planned(holed(), H1="inject_empty")
    assert chosen.status == 1
    assert "THE DATA WAS NOT CHECKED" in chosen.plan.unreported[0]
    sound = replace(chosen, plan=replace(chosen.plan, warnings=()))
    assert sound.status == 0
    assert sound.plan.afterwards == ()
    (answered,) = sound.plan.answered
    shown = Afterwards(
        finding_id=answered.finding_id if is_answered else "another",
        code="E4",
        name="different content",
        about="a and b",
        severity="critical",
        explanation="Rows differ.",
        is_new=is_new,
    )
    plan = replace(sound.plan, afterwards=(shown,))
    assert replace(sound, plan=plan).status == status
    in_logs = replace(sound.plan, afterwards=(replace(shown, is_only_in_logs=True),))
    assert replace(sound, plan=in_logs).status == int(is_new), "its steps repair the rows"


def test_what_stands_in_the_way_is_told() -> None:
    (told,) = planned(holed()).unread_events
    assert "no connection to a is configured" in told


def test_a_choice_that_fits_nothing() -> None:
    with pytest.raises(UsageProblem, match="no strategy 'pray'"):
        planned(holed(), H1="pray")


def test_files_are_written_once_and_never_over_others(tmp_path: Path) -> None:
    plan = planned(holed())
    files = plan.write(tmp_path / "plan")
    assert plan.write(tmp_path / "plan") == files
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["id"] == plan.plan.id
    (tmp_path / "plan" / "mine.txt").write_text("x")
    with pytest.raises(UsageProblem, match="holds something else"):
        plan.write(tmp_path / "plan")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageProblem):
        plan.write(tmp_path / "file" / "plan")


def test_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = planned(holed(), H1="refetch")
    assert plan.status == 1, "no rows were compared: they may become older"
    show_plan(plan.plan, plan.audit, files=())
    text = capsys.readouterr().out
    assert text.startswith(f"Plan {plan.plan.id}  2 steps, about ")
    assert "2. " in text
    assert "01-a.sql" in text
    assert text.index("01-a.sql") < text.index("02-b.sql")
    assert "undo" in text
    assert "Not written: --out DIR" in text
    show_plan(plan.plan, plan.audit, files=plan.write(tmp_path / "p"))
    assert "RUNBOOK.md first." in " ".join(capsys.readouterr().out.split())
    left = planned(failed())
    show_plan(left.plan, left.audit, files=())
    text = capsys.readouterr().out
    assert "Findings without steps:" in text
    assert "A3 applier stopped by an error" in text
    well = planned(healthy())
    show_plan(well.plan, well.audit, files=())
    assert capsys.readouterr().out == (
        "No findings in pair: there is nothing to repair.\n"
        "An audit with --content or --definitions may find more: plan with the options of the"
        " audit.\n"
    )
