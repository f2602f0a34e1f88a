"""What a plan left out that was not finished is said at the end of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from gtid_audit.tasks.unfinished_repairs import left_by_unfinished
from repair.adapters.journal import Journal
from repair.adapters.plan_files import read_directory, write_plan
from repair.applying.procedures_applied import AppliedProcedure, ProcedureState
from repair.model.strategy_case import LEFT_OUT, UNREPORTED
from repair.repair_plan import Plan
from tests.repair.script_cases import full_plan, steps

LEAVING_OUT = replace(full_plan(steps()), warnings=("other", f"{LEFT_OUT}A is left out"))


def begun(
    journal: Journal,
    folder: Path,
    plan: Plan,
    *,
    state: ProcedureState = ProcedureState.FAILED,
    done: int = 99,
    servers: Sequence[str] = ("a", "b"),
) -> AppliedProcedure:
    """Record a procedure that ended in a state, after `done` scripts of its plan."""
    directory = folder / plan.id
    if not directory.exists():
        write_plan(plan, directory)
    procedure = journal.begin(
        plan_id=plan.id,
        cluster="pair",
        directory=directory,
        servers=servers,
        operator="test",
        scripts_total=99,
    )
    with journal.at_work(procedure.id) as writer:
        writer.enter(ProcedureState.RUNNING, done=done)
        writer.enter(state, "")
    return procedure


def left(journal: Journal, folder: Path) -> tuple[str, ...]:
    other = replace(full_plan(steps()), cluster="the plan of now")
    now = begun(journal, folder, other, state=ProcedureState.RUNNING)
    written, _ = read_directory(Path(now.directory))
    return left_by_unfinished(journal, now, written)


def test_what_an_unfinished_plan_left_out_is_said(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    failed = begun(journal, tmp_path, LEAVING_OUT)
    [text] = left(journal, tmp_path)
    assert text.endswith("had announced: A is left out")
    assert failed.id[:8] in text
    assert failed.plan_id in text


def test_what_later_audits_do_not_report_is_said_too(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    unseen = f"{UNREPORTED}B was not compared"
    begun(journal, tmp_path, replace(LEAVING_OUT, warnings=(*LEAVING_OUT.warnings, unseen)))
    assert [each.partition("announced: ")[2] for each in left(journal, tmp_path)] == [
        "A is left out",
        unseen,
    ]


def test_a_plan_that_changed_nothing_left_nothing_out(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    failed = begun(journal, tmp_path, LEAVING_OUT, done=0)
    assert left(journal, tmp_path) == ()
    written, _ = read_directory(Path(failed.directory))
    changes = [number for number, each in enumerate(written.scripts) if not each.is_check]
    assert changes[0] > 0, "a check comes first"
    begun(journal, tmp_path, LEAVING_OUT, done=changes[0])
    assert left(journal, tmp_path) == ()
    begun(journal, tmp_path, LEAVING_OUT, done=changes[0] + 1)
    assert left(journal, tmp_path) != ()


def test_a_repair_that_was_finished_since_has_said_it(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    begun(journal, tmp_path, LEAVING_OUT)
    since = replace(full_plan(steps()), cluster="done since")
    begun(journal, tmp_path, since, state=ProcedureState.DONE)
    assert left(journal, tmp_path) == ()


def test_a_plan_of_other_servers_is_none_of_this_one(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    elsewhere = tuple(replace(each, server_uuid=str(uuid4())) for each in LEAVING_OUT.assumed)
    begun(journal, tmp_path, replace(LEAVING_OUT, assumed=elsewhere))
    assert left(journal, tmp_path) == ()


def test_a_plan_that_cannot_be_read_may_have_left_out_data(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    for servers in (("a", "b"), ("c", "d")):
        failed = begun(journal, tmp_path, LEAVING_OUT, servers=servers)
    (Path(failed.directory) / "plan.json").unlink()
    [text] = left(journal, tmp_path)
    assert "could not be read, and may have left out data" in text


def test_what_began_later_and_the_same_plan_are_none_of_it(tmp_path: Path) -> None:
    """Another operator's plan of now has its own end; a plan that is made again says it itself."""
    journal = Journal.at(tmp_path / "journal")
    now = begun(journal, tmp_path, replace(full_plan(steps()), cluster="the plan of now"))
    written, _ = read_directory(Path(now.directory))
    begun(journal, tmp_path, LEAVING_OUT)
    assert left_by_unfinished(journal, now, written) == ()
    again = begun(journal, tmp_path, LEAVING_OUT)
    written, _ = read_directory(Path(again.directory))
    assert left_by_unfinished(journal, again, written) == ()


def test_a_plan_that_was_finished_may_be_gone(tmp_path: Path) -> None:
    journal = Journal.at(tmp_path / "journal")
    done = begun(journal, tmp_path, LEAVING_OUT, state=ProcedureState.DONE)
    (Path(done.directory) / "plan.json").unlink()
    assert left(journal, tmp_path) == ()
