"""A source of semi-synchronous replication whose replica cannot acknowledge, on real servers."""

from threading import Thread

from compose import faults
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from repair.render import render_files
from tests.repair.live import await_clean, examine, executed, rows, run_plan

_SOURCE = (
    "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
    "SET GLOBAL rpl_semi_sync_source_timeout = 3600000",
    "SET GLOBAL rpl_semi_sync_source_enabled = ON",
)


def test_a_script_does_not_wait_for_a_replica_that_the_source_refuses(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    fault = faults.lost_tail_crash(pair97)
    a.execute("SET SESSION sql_log_bin = 0", *_SOURCE)
    found = examine(pair97)
    before, there = executed(a), rows(b, "lost.t")
    undo, redo = (found.plan({"E3": each}) for each in ("undo_on_replica", "redo_on_source"))
    [check] = undo.steps[0].checks  # before anything is taken back
    first = render_files(undo)[undo.steps[0].check_name(check)]
    for script in (first, render_files(redo)[redo.steps[0].file_name]):
        stopped = a.client(script)
        assert stopped.returncode != 0
        assert "SET GLOBAL rpl_semi_sync_source_enabled = OFF until the plan" in stopped.stderr
    assert (executed(a), rows(b, "lost.t")) == (before, there)
    a.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
    run_plan(pair97, redo)
    wait_for(a, fault.lost)
    await_clean(pair97)
    assert rows(a, "lost.t") == there


def test_nothing_is_fetched_while_the_source_still_commits_what_was_applied(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    faults.table_on(a, b, "late")
    wait_for(b, faults.commit(a, "INSERT INTO late.t (id) VALUES (1)"))
    a.execute("SET SESSION sql_log_bin = 0", *_SOURCE)
    there = GtidSet.parse(executed(a))
    [tsid] = there.tsids
    highest = there.highest(tsid)
    assert highest is not None
    waiting = Thread(target=a.execute, args=("DELETE FROM late.t WHERE id = 1",))
    waiting.start()
    try:
        wait_for(b, f"{tsid}:{highest + 1}")
        b.execute(b.dialect.words.reset_binary_logs_and_gtids)
        found = examine(pair97)
        plan = found.plan()
    finally:
        a.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
        waiting.join()
    assert "H8" in found.codes
    assert plan.steps == ()
    # The row is still on a and no longer on b: fetched again, it would come back.
    assert any("a is still committing" in each.why for each in plan.not_planned)
    a.execute(a.dialect.stop_replica, a.dialect.start_replica)  # the RESET stranded its receiver
    run_plan(pair97, examine(pair97).plan({"H8": "inject_empty"}))
    await_clean(pair97)
    assert rows(a, "late.t") == rows(b, "late.t") == []
