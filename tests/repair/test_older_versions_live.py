"""A row that both servers changed since, beside a missing one, on real servers."""

import pytest

from compose import faults_plans
from compose.faults import commit, table_on
from compose.native.shapes import Pair, wait_for
from repair import Plan
from tests.repair.live import examine, executed, rows, run_plan

INSERT = "INSERT INTO versions.t VALUES (10, 'missing')"


def _skip_two(pair: Pair, image: str) -> None:
    """Skip an insert and an update by file position, then let a later update of the row arrive."""
    form = f"SET SESSION binlog_row_image = '{image}'"
    table_on(pair.a, pair.b, "versions")
    wait_for(pair.b, commit(pair.a, "INSERT INTO versions.t VALUES (1, 'first')"))
    older = "UPDATE versions.t SET note = 'second' WHERE id = 1"
    newer = "UPDATE versions.t SET note = 'third' WHERE id = 1"
    faults_plans.bypass(pair.a, pair.b, skipped=(form, INSERT, older), applied=(form, newer))


def _why(plan: Plan) -> str:
    [left] = [each for each in plan.not_planned if each.code == "H1"]
    return left.why


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_no_fetch_replaces_a_row_that_both_changed_since(pair97: Pair, image: str) -> None:
    _skip_two(pair97, image)
    a, b = pair97.a, pair97.b
    assert (rows(a, "versions.t"), rows(b, "versions.t")) == (
        [(1, "third"), (10, "missing")],
        [(1, "third")],
    )
    plan = examine(pair97).plan({"H1": "refetch"})
    run_plan(pair97, plan)  # without the refusal, b gets row 1 as 'second'
    assert rows(b, "versions.t") == [(1, "third")]
    assert not plan.steps
    assert "row versions.t `id` = 1 was changed since, and equal on b and a" in _why(plan)
    # The way that the refusal shows.
    b.execute("SET SESSION sql_log_bin = 0", INSERT)
    run_plan(pair97, examine(pair97).plan({"H1": "inject_empty"}))
    wait_for(b, executed(a))
    assert rows(a, "versions.t") == rows(b, "versions.t") == [(1, "third"), (10, "missing")]


@pytest.mark.parametrize(("waiting", "is_refused"), [(2, True), (1, False)])
def test_what_waits_counts_only_if_it_changes_the_row(
    pair97: Pair, waiting: int, *, is_refused: bool
) -> None:
    """After STOP REPLICA, later transactions wait. One that changes the row makes it uncertain."""
    _skip_two(pair97, "FULL")
    a, b = pair97.a, pair97.b
    wait_for(b, commit(a, "INSERT INTO versions.t VALUES (2, 'other')"))
    b.execute(b.dialect.stop_replica)
    for note in ("fourth", "third" if waiting == 1 else "other"):
        a.execute(f"UPDATE versions.t SET note = '{note}' WHERE id = {waiting}")
    assert rows(b, "versions.t") == [(1, "third"), (2, "other")]
    plan = examine(pair97).plan({"H1": "refetch"})
    assert is_refused is not bool(plan.steps)
    assert is_refused is ("was changed since, and equal on b and a" in str(plan.not_planned))
    assert is_refused is not bool(plan.unreported)
