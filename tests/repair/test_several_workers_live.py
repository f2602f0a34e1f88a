"""Several workers of an applier stop at rows of their own, and others because of them (3030)."""

import pytest

from compose import faults
from compose.native.shapes import Pair, wait_for
from tests.repair.live import await_clean, examine, executed, rows, run_step

CONFLICTS = (5, 6, 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", [pytest.param("inject_empty", marks=pytest.mark.slow), "resolve_conflict"]
)
def test_each_conflict_is_planned_for_in_its_turn(pair97: Pair, strategy: str) -> None:
    """The error of the coordinator is often that of a worker that only followed (3030)."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE many", "CREATE TABLE many.t (id INT PRIMARY KEY, note CHAR(7))")
    wait_for(b, executed(a))
    stopped = [f"INSERT INTO many.t VALUES ({number}, 'replica')" for number in CONFLICTS]
    b.execute("STOP REPLICA SQL_THREAD", "SET SESSION sql_log_bin = 0", *stopped)
    a.execute(*(f"INSERT INTO many.t VALUES ({number}, 'source')" for number in range(1, 21)))
    b.execute("START REPLICA SQL_THREAD")
    for left in range(len(CONFLICTS), 0, -1):
        faults.await_applier_stopped(b)
        found = examine(pair97)
        assert found.codes == ["A2"]
        [finding] = [each for each in found.audit.findings if each.code == "A2"]
        assert 1 <= finding.gtid_set.gtid_count <= left
        plan = found.plan({"A2": strategy})
        assert plan.steps, [each.why for each in plan.not_planned]
        for step in plan.steps:
            done = run_step(pair97, plan, step)
            # The applier may stop at the next conflict before the script has seen it run.
            is_next = step is plan.steps[-1] and "audit and plan again: error" in done.stderr
            assert done.returncode == 0 or is_next, f"{done.stderr}{done.stdout}"
    wait_for(b, executed(a))
    await_clean(pair97)
    kept = "replica" if strategy == "inject_empty" else "source"
    assert rows(b, "many.t") == [
        (number, kept if number in CONFLICTS else "source") for number in range(1, 21)
    ]
