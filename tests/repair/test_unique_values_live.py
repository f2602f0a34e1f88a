"""A value of a unique key that a row has only between two skipped transactions."""

import pytest

from compose import faults, faults_plans
from compose.native.shapes import Pair, wait_for
from tests.repair.live import await_clean, examine, executed, rows, run_plan

pytestmark = pytest.mark.slow  # a rare shape: make nightly

WAS_X = {
    "inserted": (
        "INSERT INTO taken.t VALUES (5, 'x', 1)",
        "UPDATE taken.t SET word = 'z' WHERE id = 5",
    ),
    "updated, another letter case": (
        "UPDATE taken.t SET word = 'X' WHERE id = 1",
        "UPDATE taken.t SET word = 'y' WHERE id = 1",
    ),
    "deleted at the end": (
        "UPDATE taken.t SET word = 'x' WHERE id = 1",
        "DELETE FROM taken.t WHERE id = 1",
    ),
}


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize("skipped", WAS_X.values(), ids=list(WAS_X))
def test_it_is_compared_before_transactions_are_fetched(
    shape: str, skipped: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """The applier stopped with error 1062 behind a default plan."""
    pair: Pair = request.getfixturevalue(shape)
    faults_plans.bypass_with_value_taken(pair, skipped=skipped)
    plan = examine(pair).plan()
    assert plan.steps == ()
    assert any("another row has the same key word" in each.why for each in plan.not_planned)


def test_a_value_that_no_row_has_is_fetched(pair97: Pair) -> None:
    skipped = tuple(f"UPDATE taken.t SET word = 'x', n = {n} WHERE id = 1" for n in range(2, 250))
    faults_plans.bypass_with_value_taken(pair97, skipped=skipped)
    run_plan(pair97, examine(pair97).plan())
    await_clean(pair97)
    assert rows(pair97.a, "taken.t") == rows(pair97.b, "taken.t")


def test_a_key_of_an_expression_is_not_compared(pair97: Pair) -> None:
    pair97.a.execute(
        "CREATE DATABASE f",
        "CREATE TABLE f.t (id INT PRIMARY KEY, a INT, b INT, UNIQUE ((a + b)))",
    )
    pair97.settle()
    faults_plans.bypass(
        pair97.a,
        pair97.b,
        skipped=("INSERT INTO f.t VALUES (5, 2, 3)", "UPDATE f.t SET a = 100 WHERE id = 5"),
        applied=("INSERT INTO f.t VALUES (9, 3, 2)",),
    )
    plan = examine(pair97).plan()
    assert plan.steps == ()
    assert any("or an expression" in each.why for each in plan.not_planned), plan.not_planned


def test_a_value_of_a_generated_column_is_compared(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE g",
        (
            "CREATE TABLE g.t (id INT PRIMARY KEY, doc JSON, v INT AS (doc -> '$.x') VIRTUAL,"
            " UNIQUE (v))"
        ),
    )
    pair97.settle()
    documents = [f"JSON_OBJECT('x', {number})" for number in (5, 6)]
    faults_plans.bypass(
        a,
        b,
        skipped=(
            f"INSERT INTO g.t (id, doc) VALUES (5, {documents[0]})",
            f"UPDATE g.t SET doc = {documents[1]} WHERE id = 5",
        ),
        applied=(f"INSERT INTO g.t (id, doc) VALUES (9, {documents[0]})",),
    )
    plan = examine(pair97).plan()
    assert plan.steps == ()
    assert any("another row has the same key v" in each.why for each in plan.not_planned)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_row_that_moves_makes_room_for_itself(shape: str, request: pytest.FixtureRequest) -> None:
    """The row that stops the applier is the one at the new key, not the one that moves there."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(
        *(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d"),
        "CREATE TABLE d.t (id INT PRIMARY KEY, word VARCHAR(9) UNIQUE)",
        "INSERT INTO d.t VALUES (1, 'a')",
    )
    wait_for(b, executed(a))
    b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO d.t VALUES (5, 'y')")
    a.execute("UPDATE d.t SET id = 5 WHERE id = 1")
    faults.await_applier_stopped(b)
    run_plan(pair, examine(pair).plan({"A2": "resolve_conflict"}))
    wait_for(b, executed(a))
    assert rows(a, "d.t") == rows(b, "d.t") == [(5, "a")]


def test_it_is_compared_before_a_stopped_channel_is_started(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        *(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d"),
        "CREATE TABLE d.t (id INT PRIMARY KEY, word VARCHAR(9) UNIQUE)",
    )
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica, "INSERT INTO d.t VALUES (9, 'x')")
    a.execute("INSERT INTO d.t VALUES (5, 'x')", "UPDATE d.t SET word = 'z' WHERE id = 5")
    plan = examine(pair97).plan()
    assert plan.steps == ()
    assert any("another row has the same key word" in each.why for each in plan.not_planned)
