"""A start behind a source that ignores errors, where the replica changed a row and changed it back."""

from __future__ import annotations

import pytest

from compose.faults import commit, table_on
from compose.native.shapes import Pair, wait_for
from repair.model.actions import StartChannel
from tests.repair.live import await_clean, examine, executed, rows, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


def ignoring_and_stopped(pair: Pair) -> None:
    """Let `a` apply in IDEMPOTENT mode, and stop the channel of `b` with one row waiting."""
    a, b = pair.a, pair.b
    table_on(a, b, "own")
    pair.settle()
    mode = f"SET GLOBAL {a.dialect.words.replica_variable_prefix}exec_mode = 'IDEMPOTENT'"
    a.execute(a.dialect.stop_replica, mode, a.dialect.start_replica)
    b.execute(b.dialect.stop_replica)
    commit(a, "INSERT INTO own.t VALUES (2, 'older')")


def written_on_b(pair: Pair, key: int) -> None:
    """Insert and delete a row on `b`, and wait until `a` has applied both."""
    commit(
        pair.b,
        f"INSERT INTO own.t VALUES ({key}, 'newer')",
        f"DELETE FROM own.t WHERE id = {key}",
    )
    wait_for(pair.a, executed(pair.b))


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_row_that_was_deleted_since_is_not_restored_by_default(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    ignoring_and_stopped(pair)
    written_on_b(pair, 2)
    assert rows(pair.a, "own.t") == rows(pair.b, "own.t") == []
    examination = examine(pair)
    assert "C15" in examination.codes
    plan = examination.plan()
    assert plan.steps == ()
    assert any("were changed since on b" in each.why for each in plan.not_planned)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_start_is_planned_where_other_rows_were_changed(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """The benign twin: no server but the source changed the rows that wait."""
    pair: Pair = request.getfixturevalue(shape)
    ignoring_and_stopped(pair)
    written_on_b(pair, 3)
    plan = examine(pair).plan()
    [step] = plan.steps
    assert isinstance(step.effect, StartChannel)
    run_plan(pair, plan)
    wait_for(pair.b, executed(pair.a))
    assert rows(pair.a, "own.t") == rows(pair.b, "own.t") == [(2, "older")]
    strict = f"SET GLOBAL {pair.a.dialect.words.replica_variable_prefix}exec_mode = 'STRICT'"
    pair.a.execute(pair.a.dialect.stop_replica, strict, pair.a.dialect.start_replica)
    await_clean(pair)
