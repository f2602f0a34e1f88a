"""A script of every action, cut off behind each of its statements, and run again: the same end.

What a script leaves in its session is gone with it, so each piece runs in a client of its own. That
a script of rows may be cut off anywhere is in test_row_repairs_live.py, of redone and undone
transactions in test_contents_live.py.
"""

from collections.abc import Iterator

import pytest

from compose import faults, faults_after_plan
from compose.native.shapes import Pair, wait_for
from repair import Plan
from repair.render import render_files
from repair.scripts.steps import Step
from tests.repair.live import (
    await_clean,
    examine,
    executed,
    read_logs,
    rows,
    run_plan,
    wait_until,
)
from topology.catalogue.findings import Verdict

# Behind which statements the client is killed: those that change the server or the session.
CHANGES = ("EXECUTE todo;", "COMMIT;", "SET SESSION gtid_next", "SET GLOBAL")


def pieces(script: str) -> Iterator[str]:
    """Yield the beginnings of a script that end behind a change, shortest first."""
    lines = script.splitlines(keepends=True)
    for count, line in enumerate(lines, start=1):
        if line.startswith(CHANGES):
            yield "".join(lines[:count])


def cut_everywhere(pair: Pair, step: Step, script: str) -> None:
    server = pair[step.server]
    begun = list(pieces(script))
    assert begun, f"{step.action} changes something"
    for piece in begun:
        done = server.client(piece)
        assert done.returncode == 0, f"{step.action}: {done.stderr}\n{piece[-300:]}"
    for _ in range(2):
        done = server.client(script)
        assert done.returncode == 0, f"{step.action}: {done.stderr}"
        assert f"step {step.number} is done" in done.stdout


def run_cut(pair: Pair, plan: Plan, *actions: str) -> None:
    assert [step.action for step in plan.steps] == list(actions)
    files = render_files(plan)
    for step in plan.steps:
        cut_everywhere(pair, step, files[step.file_name])
    again = {name: executed(server) for name, server in pair.servers.items()}
    for step in plan.steps:
        assert pair[step.server].client(files[step.file_name]).returncode == 0
    assert {name: executed(server) for name, server in pair.servers.items()} == again
    pair.settle()
    assert executed(pair.a) == executed(pair.b)


def test_past_an_event(pair56: Pair) -> None:
    faults.failing_create_view(pair56)
    plan = examine(pair56).plan()
    run_cut(pair56, plan, "MovePast", "InjectEmpty", "AutoPositionOn")


def test_a_reset(pair56: Pair) -> None:
    faults.position_bypass(pair56)
    plan = examine(pair56).plan({"H1": "reset_and_purge"})
    run_cut(pair56, plan, "StopChannel", "ResetAndPurge", "StartChannel", "AutoPositionOn")


def test_a_reset_that_stopped_between_its_statements_is_reported(pair56: Pair) -> None:
    faults.position_bypass(pair56)
    plan = examine(pair56).plan({"H1": "reset_and_purge"})
    b, files = pair56.b, render_files(plan)
    stop, reset, *_ = plan.steps
    assert pair56[stop.server].client(files[stop.file_name]).returncode == 0
    for piece in pieces(files[reset.file_name]):
        b.client(piece)
        if not executed(b):
            break
    found = examine(pair56)
    texts = [each.explanation for each in found.audit.findings if each.replica == "b"]
    assert any("`reset_and_purge` script of a repair stopped there" in each for each in texts)
    assert found.audit.verdict is not Verdict.OK
    assert not found.plan().steps
    assert b.client(files[reset.file_name]).returncode == 0
    assert not any("reset_and_purge" in each.explanation for each in examine(pair56).audit.findings)


def test_a_reset_of_a_source_that_stopped_between_its_statements_is_not_replaced(
    pair56: Pair,
) -> None:
    """Another script would write a set on the source that lacks its own GTIDs."""
    a, b = pair56.a, pair56.b
    a.execute("CREATE DATABASE own")
    pair56.settle()
    faults.errant_transaction(pair56)
    faults_after_plan.remove_channel(a)
    plan = examine(pair56).plan({"E1": "reset_and_purge"})
    before, files = executed(b), render_files(plan)
    stop, reset, start = plan.steps
    assert pair56[stop.server].client(files[stop.file_name]).returncode == 0
    for piece in pieces(files[reset.file_name]):
        a.client(piece)
        if not executed(a):
            break
    found = examine(pair56)
    for choice in ("reset_and_purge", "inject_empty", "redo_on_source"):
        assert not found.plan({"E1": choice}).steps
    for step in (reset, start):
        assert pair56[step.server].client(files[step.file_name]).returncode == 0
    assert executed(a) == executed(b) == before


@pytest.mark.parametrize(
    ("strategy", "actions"),
    [
        ("inject_empty", ("InjectEmpty", "AutoPositionOn")),
        ("gtid_purged_append", ("AppendPurged", "AutoPositionOn")),
        ("refetch", ("AutoPositionOn",)),
    ],
)
def test_a_hole(pair97: Pair, strategy: str, actions: tuple[str, ...]) -> None:
    faults.position_bypass(pair97)
    run_cut(pair97, examine(pair97).plan({"H1": strategy}), *actions)
    fetched = rows(pair97.a, "bypassed.t") == rows(pair97.b, "bypassed.t")
    assert fetched == (strategy == "refetch")


def test_a_stopped_channel_and_an_errant_transaction(pair97: Pair) -> None:
    faults.errant_transaction(pair97)
    faults_after_plan.remove_channel(pair97.a)
    plan = examine(pair97).plan({"E1": "inject_empty"})
    run_cut(pair97, plan, "InjectEmpty")
    pair97.b.execute(pair97.b.dialect.stop_replica)
    pair97.a.execute("CREATE DATABASE late")
    run_cut_started(pair97)


def test_a_receiver_that_was_started_and_does_not_connect_is_seen(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE early")
    pair97.settle()
    faults_after_plan.remove_channel(a)
    b.execute(b.dialect.stop_replica)
    a.execute("CREATE DATABASE late")
    plan = examine(pair97).plan()
    [step] = [each for each in plan.steps if each.action == "StartChannel"]
    a.freeze()
    try:
        b.execute(f"{b.dialect.start_replica} IO_THREAD")
        refused = b.client(render_files(plan)[step.file_name])
    finally:
        a.thaw()
    assert "an interrupted script): an operator may want that; audit and plan" in refused.stderr
    assert not b.query("SHOW DATABASES LIKE 'late'")


def test_an_undo_of_two_tables_that_stopped_between_them_goes_on(pair97: Pair) -> None:
    """Each script undoes the rows of one table; the next plan finds a part of them undone."""
    tables = ("kept.t", "kept.u")
    pair97.a.execute("CREATE DATABASE kept", *(f"CREATE TABLE {t} (id INT KEY)" for t in tables))
    pair97.settle()
    faults_after_plan.remove_channel(pair97.a)
    pair97.b.execute("BEGIN", *(f"INSERT INTO {t} VALUES (1)" for t in tables), "COMMIT")
    plan = examine(pair97).plan({"E1": "undo_on_replica"})
    assert [step.action for step in plan.steps] == ["UndoRows", "UndoRows", "InjectEmpty"]
    script = render_files(plan)[plan.steps[0].file_name]
    assert pair97.b.client(script).returncode == 0
    assert [len(rows(pair97.b, table)) for table in tables] == [0, 1]
    again = examine(pair97)
    assert "E1" in again.codes
    run_plan(pair97, again.plan({"E1": "undo_on_replica"}))
    await_clean(pair97)
    assert all(not rows(server, t) for server in (pair97.a, pair97.b) for t in tables)


def test_a_hole_whose_rows_later_ones_have_changed_is_filled(pair97: Pair) -> None:
    """b forgets the INSERT of two rows, and receives what changes one and deletes the other."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT KEY, v INT)")
    pair97.settle()
    faults_after_plan.remove_channel(a)
    known = executed(b)
    a.execute("INSERT INTO kept.t VALUES (1, 1), (2, 2)")
    wait_for(b, executed(a))
    b.execute(b.dialect.words.reset_binary_logs_and_gtids, f"SET GLOBAL gtid_purged = '{known}'")
    a.execute("UPDATE kept.t SET v = 5 WHERE id = 1", "DELETE FROM kept.t WHERE id = 2")
    wait_until(lambda: rows(b, "kept.t") == [(1, 5)])
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE kept.t SET v = 6")
    unlike = examine(pair97)
    assert "H8" in unlike.codes
    assert not unlike.plan().steps
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE kept.t SET v = 5")
    plan = examine(pair97).plan()
    assert [f"{step.server} {step.action}" for step in plan.steps] == ["b InjectEmpty"]
    assert any("as later transactions of a left them there" in each for each in plan.warnings)
    run_plan(pair97, plan)
    assert executed(a) == executed(b)


def test_a_row_that_its_source_deletes_just_now_is_not_one_that_is_there(pair97: Pair) -> None:
    """b forgets an INSERT and its row; the row is gone on a as well, but b has not heard of it."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE kept", "CREATE TABLE kept.t (id INT KEY)")
    pair97.settle()
    faults_after_plan.remove_channel(a)
    known = executed(b)
    a.execute("INSERT INTO kept.t VALUES (1)")
    wait_for(b, executed(a))
    b.execute(b.dialect.words.reset_binary_logs_and_gtids, f"SET GLOBAL gtid_purged = '{known}'")
    a.execute("INSERT INTO kept.t VALUES (2)")
    wait_until(lambda: len(rows(b, "kept.t")) == 2)
    b.execute("SET SESSION sql_log_bin = 0", "DELETE FROM kept.t WHERE id = 1")
    wait_until(lambda: examine(pair97).codes == ["H8"])
    found = examine(pair97)
    with b.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES kept.t READ")
        a.execute("DELETE FROM kept.t WHERE id = 1")
        assert rows(a, "kept.t") == rows(b, "kept.t") == [(2,)]
        plan = read_logs(pair97, found.snapshot, found.audit).plan()
    assert found.codes == ["H8"]
    assert not plan.steps


def run_cut_started(pair: Pair) -> None:
    """Where only the receiver was started, an operator may want that: the plan is made again."""
    plan = examine(pair).plan()
    [step] = [each for each in plan.steps if each.action == "StartChannel"]
    script = render_files(plan)[step.file_name]
    assert pair.b.client(next(pieces(script))).returncode == 0
    refused = pair.b.client(script)
    assert "an interrupted script): an operator may want that; audit and plan" in refused.stderr
    again = examine(pair).plan()
    [step] = [each for each in again.steps if each.action == "StartChannel"]
    cut_everywhere(pair, step, render_files(again)[step.file_name])
    assert pair.b.query("SHOW DATABASES LIKE 'late'")
