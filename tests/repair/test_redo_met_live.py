"""A redo that meets its own GTIDs: the rows tell whether it was this script that used them up."""

import pytest

from compose.native.shapes import Pair, Topology, wait_for
from repair.render import render_files
from tests.repair.live import examine, executed, rows, run_plan, run_step, wait_until

pytestmark = pytest.mark.slow  # a rare shape: make nightly


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
    assert "a row of d.t is not as the redo leaves it" in refused.stderr
    assert not rows(a, "d.t")
    a.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES (7, 7)")
    assert run_step(pair, redo, step).returncode == 0, "the row was written by hand"


def test_a_redo_does_not_reach_a_channel_that_was_started_since(star97: Topology) -> None:
    """No rows were compared behind a stopped channel: started, it would bring what is done again."""
    source, one, two = (star97.servers[each] for each in ("source", "replica1", "replica2"))
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    wait_for(one, executed(source))
    wait_for(two, executed(source))
    two.execute(two.dialect.stop_replica, "INSERT INTO d.t VALUES (7, 2)")
    one.execute("INSERT INTO d.t VALUES (7, 1)")
    found = examine(star97)
    [errant] = [
        each.id for each in found.audit.findings if each.code == "E1" and each.replica == "replica1"
    ]
    plan = found.plan({errant: "redo_on_source"})
    [step] = plan.steps
    [check] = [each for each in step.checks if each.server == "replica2"]
    script = render_files(plan)[step.check_name(check)]
    assert two.client(script).returncode == 0
    two.execute(two.dialect.start_replica)
    wait_until(lambda: two.client(script).returncode != 0)
    assert "its replication runs now" in two.client(script).stderr
    two.execute(two.dialect.stop_replica)
    assert two.client(script).returncode == 0
    assert run_step(star97, plan, step).returncode == 0
    assert rows(source, "d.t") == [(7, 1)]
    assert rows(two, "d.t") == [(7, 2)]
    two.execute("DELETE FROM d.t", two.dialect.start_replica)
    wait_for(two, executed(source))
    assert two.client(script).returncode == 0, "they have arrived: the script may be run again"
