"""Statements in errant transactions: what no guard checks, and what no listing may show."""

import pytest

from compose.native.shapes import Pair, wait_for
from repair.render import render_files
from tests.repair.live import examine, executed, rows, run_plan

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def test_a_statement_is_done_again_only_if_it_adds(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.n (id INT)", "INSERT INTO d.n VALUES (1)")
    pair97.settle()
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    b.execute("CREATE USER late@'%' IDENTIFIED BY 'guess'", "GRANT SELECT ON d.* TO late@'%'")
    show = "SELECT plugin, RIGHT(authentication_string, 43) FROM mysql.user WHERE user = 'late'"
    [(plugin, secret)] = b.query(show)
    redo, inject = {"E1": "redo_on_source"}, {"E1": "inject_empty"}
    found = examine(pair97)
    plans = [found.plan(choices) for choices in (None, redo, inject)]
    for plan in plans:
        files = render_files(plan)
        shown = "".join(text for name, text in files.items() if not name.endswith(".sql"))
        assert "CREATE USER" in shown
        assert str(secret) not in shown
    assert any(str(secret) in text for text in render_files(plans[1]).values())
    assert plans[2].saved
    run_plan(pair97, plans[1])
    assert a.query(show) == [(plugin, secret)]

    b.execute(
        "SET sql_log_bin = 0",
        "CREATE TABLE d.elsewhere (id INT PRIMARY KEY)",
        "SET sql_log_bin = 1",
        "INSERT INTO d.elsewhere VALUES (1)",
    )
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    assert any("all of their tables: d.elsewhere" in each.why for each in plan.not_planned)

    b.execute("TRUNCATE TABLE d.n")
    a.execute("INSERT INTO d.n VALUES (100)")
    wait_for(b, executed(a))
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "`TRUNCATE TABLE d.n`" in left.why
    assert rows(a, "d.n") == [(1,), (100,)]


def test_what_is_only_created_is_done_again_where_it_is_not_there(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d")
    pair97.settle()
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    redo = {"E1": "redo_on_source"}
    b.execute("CREATE TABLE d.n (id INT)")
    found = examine(pair97)
    a.execute("SET sql_log_bin = 0", "CREATE TABLE d.n (id BIGINT)")
    plan = examine(pair97).plan(redo)
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "a already has what they create (d.n exists already)" in left.why
    a.execute("SET sql_log_bin = 0", "DROP TABLE d.n")
    run_plan(pair97, found.plan(redo))
    assert rows(a, "d.n") == []

    b.execute("CREATE DATABASE e", "CREATE TABLE e.n (id INT)")
    found = examine(pair97)
    b.execute("SET sql_log_bin = 0", "DROP TABLE e.n")
    plan = examine(pair97).plan(redo)
    assert any("rows were changed since" in each.why for each in plan.not_planned)
    run_plan(pair97, found.plan(redo))
    assert rows(a, "e.n") == []
    assert executed(a) == executed(b)


def test_a_table_is_created_again_only_with_the_same_character_set(pair97: Pair) -> None:
    """No log has the default of a schema."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d CHARACTER SET utf8mb4")
    pair97.settle()
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("SET sql_log_bin = 0", "ALTER DATABASE d CHARACTER SET latin1")
    b.execute("CREATE TABLE d.n (name VARCHAR(9))")
    redo = {"E1": "redo_on_source"}
    plan = examine(pair97).plan(redo)
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "new tables of d get latin1_swedish_ci here, and utf8mb4_0900_ai_ci where" in left.why
    a.execute("SET sql_log_bin = 0", "ALTER DATABASE d CHARACTER SET utf8mb4")
    run_plan(pair97, examine(pair97).plan(redo))
    assert rows(a, "d.n") == []


def test_a_table_that_was_created_with_its_rows_is_not_redone(pair97: Pair) -> None:
    """One transaction since 8.0.21; its own statement is no later change of the table."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d")
    pair97.settle()
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    b.execute("CREATE TABLE d.n (id INT PRIMARY KEY) SELECT 1 AS id")
    found = examine(pair97)
    [left] = [
        each for each in found.plan({"E1": "redo_on_source"}).not_planned if each.code == "E1"
    ]
    assert "it creates and fills a table, which needs two GTIDs" in left.why
    [content] = found.transactions.contents.values()
    assert [(each.name, each.columns[0].name) for each in content.row_tables] == [("d.n", "id")]
