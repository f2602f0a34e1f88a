"""Rows that a server changed and changed back, before it gets what changed them earlier."""

from __future__ import annotations

import pytest

from compose.faults import commit, move_past, table_on
from compose.native.shapes import Pair, wait_for
from repair.model.actions import AutoPositionOn, StartChannel
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


def passed_an_update(pair: Pair) -> None:
    """Let `b` pass an update of row 1 by file position; `a` no longer applies what `b` commits."""
    a, b = pair.a, pair.b
    table_on(a, b, "own")
    commit(a, "INSERT INTO own.t VALUES (1, 'older'), (2, 'older')")
    pair.settle()
    a.execute(a.dialect.stop_replica)
    b.execute(b.dialect.stop_replica)
    commit(a, "UPDATE own.t SET note = 'passed' WHERE id = 1")
    move_past(a, b)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("key", [1, 2])
def test_what_the_source_waits_for_may_have_changed_a_gap(
    shape: str, key: int, request: pytest.FixtureRequest
) -> None:
    """Only where another row was changed and changed back is the gap fetched by default."""
    pair: Pair = request.getfixturevalue(shape)
    passed_an_update(pair)
    for value in ("newer", "older"):
        commit(pair.b, f"UPDATE own.t SET note = '{value}' WHERE id = {key}")
    examination = examine(pair)
    assert "H1" in examination.codes
    plan = examination.plan()
    fetched = [step for step in plan.steps if isinstance(step.effect, AutoPositionOn)]
    if key == 1:
        assert fetched == []
        [left] = [each.why for each in plan.not_planned if each.code == "H1"]
        assert "which the other side does not have, changed the same rows" in left
        return
    assert len(fetched) == 1
    run_plan(pair, plan)
    wait_for(pair.b, executed(pair.a))
    assert rows(pair.b, "own.t") == [(1, "passed"), (2, "older")]


@pytest.mark.parametrize("key", [1, 2])
def test_a_redo_is_refused_on_a_source_whose_later_work_waits(pair97: Pair, key: int) -> None:
    """`b` would execute that work afterwards, and end with the newer version of row 1."""
    a, b = pair97.a, pair97.b
    table_on(a, b, "own")
    commit(a, "INSERT INTO own.t VALUES (1, 'older'), (2, 'older')")
    pair97.settle()
    delayed = "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600"
    b.execute(b.dialect.stop_replica, delayed, b.dialect.start_replica)
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    commit(b, "UPDATE own.t SET note = 'errant' WHERE id = 1")
    for value in ("newer", "older"):
        commit(a, f"UPDATE own.t SET note = '{value}' WHERE id = {key}")
    found = examine(pair97)
    plan = found.plan({"E1": "redo_on_source"})
    assert [step.action for step in plan.steps] == ["RedoTransactions"] * (key == 2)
    if key == 1:
        [left] = [each.why for each in plan.not_planned if each.code == "E1"]
        assert "changed the same rows: redone now" in left
    undone = found.plan({"E1": "undo_on_replica"})
    assert [step.action for step in undone.steps] == ["UndoRows", "InjectEmpty"]
    run_plan(pair97, undone)
    b.execute(b.dialect.stop_replica, delayed.replace("3600", "0"), b.dialect.start_replica)
    wait_for(b, executed(a))
    assert rows(a, "own.t") == rows(b, "own.t") == [(1, "older"), (2, "older")]
