"""What a started channel delivers goes on to the servers below: their rows are compared as well."""

import pytest

from compose import faults
from compose.native.shapes import Topology, wait_for
from repair.render import render_files
from tests.repair.live import await_clean, examine, rows, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.mysql]

_OCCUPY = ("SET SESSION sql_log_bin = 0", "INSERT INTO below.t VALUES (1, 'on the last')")
_FREE = ("SET SESSION sql_log_bin = 0", "DELETE FROM below.t WHERE id = 1")


def test_rows_that_conflict_on_the_last_server_start_nothing_further_up(
    chain97: Topology,
) -> None:
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    faults.table_on(first, middle, "below")
    chain97.settle()
    middle.execute(middle.dialect.stop_replica)
    faults.commit(first, "INSERT INTO below.t VALUES (1, 'on the first')")
    last.execute(*_OCCUPY)
    plan = examine(chain97).plan()
    assert not plan.steps
    [left] = plan.not_planned
    assert "were changed since on last" in left.why
    assert "below.t `id` = 1" in left.why
    last.execute(*_FREE)
    plan = examine(chain97).plan()
    [step] = plan.steps
    [check] = step.checks
    assert (step.server, check.server) == ("middle", "last")
    last.execute(*_OCCUPY)  # after the plan was made
    script = render_files(plan)[step.check_name(check)]
    stopped = last.client(script)
    assert stopped.returncode != 0
    assert "a row of below.t that arriving transactions change is not as it was" in stopped.stderr
    last.execute(*_FREE)
    assert last.client(script).returncode == 0
    run_plan(chain97, plan)
    chain97.settle()
    await_clean(chain97)
    assert rows(last, "below.t") == rows(first, "below.t") == [(1, "on the first")]

    middle.execute(middle.dialect.stop_replica)
    waiting = faults.commit(first, "INSERT INTO below.t VALUES (2, 'two')")
    faults.commit(first, "INSERT INTO below.t VALUES (3, 'three')")
    plan = examine(chain97).plan()
    [step] = plan.steps
    [check] = step.checks
    script = render_files(plan)[step.check_name(check)]
    assert last.client(script).returncode == 0
    last.execute(f"SET SESSION gtid_next = '{waiting}'", "COMMIT")  # it will skip the second row
    stopped = last.client(script)
    assert stopped.returncode != 0
    assert "some of the arriving transactions already" in stopped.stderr


@pytest.mark.parametrize("case", ["deleted without a log", "and its applier stopped", "there"])
def test_a_row_that_its_source_lost_without_a_log_was_not_deleted(
    chain97: Topology, case: str
) -> None:
    """The last server skipped an INSERT. Both lack the row: only one of them may have had it."""
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    first.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, note INT)")
    chain97.settle()
    last.execute(
        last.dialect.stop_applier,
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "SET GLOBAL sql_replica_skip_counter = 1",
        last.dialect.start_applier,
    )
    skipped = faults.commit(first, "INSERT INTO d.t VALUES (1, 0)")
    wait_for(last, faults.commit(first, "INSERT INTO d.t VALUES (2, 0)"))
    if case != "there":
        middle.execute("SET SESSION sql_log_bin = 0", "DELETE FROM d.t WHERE id = 1")
    if case == "and its applier stopped":
        faults.commit(first, "UPDATE d.t SET note = 1 WHERE id = 1")
        faults.await_applier_stopped(middle)
    if case == "there":  # an operator wrote the row on the last server: nothing is missing
        last.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES (1, 0)")
    found = examine(chain97)
    [hole] = [each for each in found.audit.findings if each.code == "H8"]
    assert str(hole.gtid_set) == skipped
    steps = [each.action for each in found.plan().steps if hole.id in each.finding_ids]
    assert steps == (["InjectEmpty"] if case == "there" else [])
