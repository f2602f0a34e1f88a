"""A redo that meets its own GTIDs: the rows tell whether it was this script that used them up."""

import pytest

from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows, run_plan, run_step


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_gtid_that_another_plan_left_empty_is_not_done(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    wait_for(b, executed(a))
    b.execute("INSERT INTO d.t VALUES (7, 7)")
    found = examine(pair)
    redo, inject = found.plan({"E1": "redo_on_source"}), found.plan({"E1": "inject_empty"})
    run_plan(pair, inject)
    [step] = redo.steps
    refused = run_step(pair, redo, step)
    assert refused.returncode != 0
    assert "a row of d.t is not as it is done here" in refused.stderr
    assert not rows(a, "d.t")
    a.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES (7, 7)")
    assert run_step(pair, redo, step).returncode == 0, "the row was written by hand"
