"""A source of semi-synchronous replication whose replica cannot acknowledge, on real servers."""

from compose import faults
from compose.native.shapes import Pair, wait_for
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
