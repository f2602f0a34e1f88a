"""A channel's replication filters: a plan names what they leave out, and no script is surprised."""

import pytest

from compose import faults
from compose.faults_content import restart_with
from compose.native.shapes import Pair
from tests.repair.live import examine, executed, rows, run_plan, run_step

pytestmark = pytest.mark.slow  # a rare shape: make nightly

IGNORE = "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = (bypassed.t) FOR CHANNEL ''"
NO_FILTER = "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = () FOR CHANNEL ''"


def set_filter(pair: Pair, statement: str) -> None:
    pair.b.execute("STOP REPLICA SQL_THREAD", statement, "START REPLICA SQL_THREAD")


def test_a_plan_says_what_filters_leave_out(pair97: Pair) -> None:
    faults.position_bypass(pair97)
    set_filter(pair97, IGNORE)
    plan = examine(pair97).plan()
    [warning] = [each for each in plan.warnings if "without its rows" in each]
    assert "the filters of b (Replicate_Ignore_Table=bypassed.t) stay" in warning
    had = rows(pair97.b, "bypassed.t")
    run_plan(pair97, plan)
    assert executed(pair97.b) == executed(pair97.a)
    assert rows(pair97.b, "bypassed.t") == had != rows(pair97.a, "bypassed.t")


def test_a_plan_says_what_a_server_in_the_middle_does_not_log(pair97: Pair) -> None:
    faults.position_bypass(pair97)
    restart_with(pair97.b, "--binlog-ignore-db=bypassed")
    faults.await_status(pair97.b, lambda status: status["Replica_IO_Running"] == "Yes")
    plan = examine(pair97).plan()
    [warning] = [each for each in plan.warnings if "does not log all that it applies" in each]
    assert "(binlog_ignore_db = bypassed): its replicas get " in warning


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_script_stops_at_filters_that_are_new(pair97: Pair, *, is_emptied: bool) -> None:
    faults.position_bypass(pair97)
    plan = examine(pair97).plan()
    assert not any("without its rows" in each for each in plan.warnings)
    set_filter(pair97, IGNORE)
    if is_emptied:
        set_filter(pair97, NO_FILTER)  # its row stays, with an empty rule
        run_plan(pair97, plan)
        assert rows(pair97.b, "bypassed.t") == rows(pair97.a, "bypassed.t")
        return
    before = executed(pair97.b)
    done = [run_step(pair97, plan, step) for step in plan.steps]
    [refused] = [each.stderr for each in done if each.returncode]
    assert "its channel has new filters; audit and plan again" in refused
    assert "REPLICATE_IGNORE_TABLE = bypassed.t" in refused
    assert executed(pair97.b) == before


def test_nothing_is_done_again_where_it_is_not_logged(pair97: Pair) -> None:
    """Its GTIDs would go out empty, and its rows stay on the source alone."""
    a, b = pair97.a, pair97.b
    faults.table_on(a, b, "hidden")
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    restart_with(a, "--binlog-ignore-db=hidden")
    faults.commit(b, "INSERT INTO hidden.t VALUES (9, 'errant')")
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "a does not log hidden.t (binlog_ignore_db = hidden)" in left.why
