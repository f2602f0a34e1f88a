"""Rows whose change other rows decide: no default plan rests on a comparison of them."""

import pytest

from compose.native.shapes import Pair, Topology
from tests.repair.live import examine, refusals, rows, run_plan, run_step

pytestmark = pytest.mark.slow  # a rare shape: make nightly

TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.parent (id INT PRIMARY KEY)",
    (
        "CREATE TABLE d.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES d.parent (id) ON DELETE CASCADE)"
    ),
    "CREATE TABLE d.prefix (id INT PRIMARY KEY, u VARCHAR(20), UNIQUE (u(3)))",
    "CREATE TABLE d.t (id INT PRIMARY KEY, note VARCHAR(9))",
    "INSERT INTO d.parent VALUES (1), (2)",
    "INSERT INTO d.child VALUES (10, 1)",
    "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
)


def split(pair: Pair, on_a: str, on_b: str) -> None:
    """Let both servers commit while neither receives from the other."""
    pair.a.execute(*TABLES)
    pair.settle()
    for server in pair.servers.values():
        server.execute(server.dialect.stop_replica)
    pair.a.execute(on_a)
    pair.b.execute(on_b)


@pytest.mark.parametrize(
    ("on_a", "on_b", "why"),
    [
        ("DELETE FROM d.parent WHERE id = 1", "INSERT INTO d.child VALUES (50, 1)", "foreign keys"),
        (
            "INSERT INTO d.prefix VALUES (100, 'abcX')",
            "INSERT INTO d.prefix VALUES (101, 'abcY')",
            "a unique key uses a column prefix",
        ),
    ],
)
def test_rows_bound_to_others_start_nothing_unasked(
    pair97: Pair, on_a: str, on_b: str, why: str
) -> None:
    split(pair97, on_a, on_b)
    plan = examine(pair97).plan()
    assert plan.steps == ()
    assert all(why in each.why for each in plan.not_planned if each.code in ("A7", "E1"))


def test_rows_that_the_log_does_not_hold_whole_start_nothing_unasked(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(*TABLES)
    pair97.settle()
    for server in (a, b):
        server.execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
    a.execute("STOP REPLICA")
    b.execute("UPDATE d.t SET note = 'b-old' WHERE id = 1")
    a.execute("UPDATE d.t SET note = 'a-newest' WHERE id = 1")
    plan = examine(pair97).plan()
    assert plan.steps == ()
    assert any("binlog_row_image is not FULL" in each.why for each in plan.not_planned)


def test_what_the_source_commits_behind_the_plan_is_not_fetched_unread(pair97: Pair) -> None:
    split(pair97, "INSERT INTO d.t VALUES (3, 'a')", "INSERT INTO d.t VALUES (4, 'b')")
    by_hand = "11111111-2222-3333-4444-555555555555:1"
    for gtid_next in (by_hand, "AUTOMATIC:late", "AUTOMATIC"):
        plan = examine(pair97).plan()
        assert [step.action for step in plan.steps] == ["StartChannel", "StartChannel"]
        assert refusals(pair97, plan) == []
        pair97[plan.steps[0].checks[0].server].execute(
            f"SET SESSION gtid_next = '{gtid_next}'",
            f"UPDATE d.t SET note = '{gtid_next[-4:]}' WHERE id = 2",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
        [refused] = refusals(pair97, plan)
        assert "their rows were not compared" in refused
    # So does what the started server itself executes.
    plan = examine(pair97).plan()
    pair97[plan.steps[0].server].execute(
        f"SET SESSION gtid_next = '{by_hand[:-1]}9'",
        "UPDATE d.t SET note = 'here' WHERE id = 2",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )
    done = run_step(pair97, plan, plan.steps[0])
    assert done.returncode != 0
    assert "that the plan did not see" in done.stderr


def test_a_parent_is_not_brought_back_without_its_children(pair56: Pair) -> None:
    a, b = pair56.a, pair56.b
    a.execute(*TABLES)
    pair56.settle()
    a.execute("STOP SLAVE")
    b.execute("DELETE FROM d.parent WHERE id = 1")
    plan = examine(pair56).plan({"E1": "undo_on_replica"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "foreign keys" in left.why


def test_a_channel_whose_rows_arrive_in_order_needs_no_comparison(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute(*TABLES)
    star97.settle()
    replica.execute("STOP REPLICA")
    source.execute("DELETE FROM d.parent WHERE id = 1")
    assert [step.action for step in examine(star97).plan().steps] == ["StartChannel"]
    source.execute("UPDATE d.t SET note = 'before' WHERE id = 1")
    plan = examine(star97).plan()
    source.execute("UPDATE d.t SET note = 'behind' WHERE id = 2")  # a source is written to always
    assert refusals(star97, plan) == []
    run_plan(star97, plan)
    assert rows(replica, "d.t") == rows(source, "d.t")


def test_a_redo_takes_no_child_along_that_it_did_not_see(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute(*TABLES)
    star97.settle()
    replica.execute("DELETE FROM d.parent WHERE id = 1")
    source.execute("INSERT INTO d.child VALUES (50, 1)")
    plan = examine(star97).plan({"E1": "redo_on_source"})
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert "would change rows on source that the plan has not read" in left.why
    assert rows(source, "d.child") == [(10, 1), (50, 1)]


def test_a_child_is_redone(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute(*TABLES)
    star97.settle()
    replica.execute("INSERT INTO d.child VALUES (60, 2)")
    run_plan(star97, examine(star97).plan({"E1": "redo_on_source"}))
    assert rows(source, "d.child") == [(10, 1), (60, 2)]


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_key_in_other_letters_is_another_row(shape: str, request: pytest.FixtureRequest) -> None:
    """Its collation calls them equal. 'M' was acknowledged, and must not become 'm' again."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(
        "CREATE DATABASE d CHARACTER SET utf8 COLLATE utf8_general_ci",
        "CREATE TABLE d.p (k VARCHAR(10) PRIMARY KEY, v VARCHAR(10))",
        "INSERT INTO d.p VALUES ('m', '1')",
    )
    pair.settle()
    a.execute(a.dialect.stop_replica)
    b.execute("UPDATE d.p SET v = 'b-old' WHERE k = 'm'")
    plan = examine(pair).plan()
    assert [step.action for step in plan.steps] == ["StartChannel"]
    for each in (a, b):  # unlogged: what a commits behind the plan stops the script before
        each.execute(
            "SET sql_log_bin = 0", "UPDATE d.p SET k = 'M' WHERE k = 'm'", "SET sql_log_bin = 1"
        )
    done = run_step(pair, plan, plan.steps[0])
    assert done.returncode != 0
    assert "not as they were when the plan was made" in done.stderr
    late = examine(pair).plan()
    assert late.steps == ()
    assert rows(a, "d.p") == [("M", "1")]


def test_what_the_receiver_deleted_under_other_letters_is_not_brought_back(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.p (k VARCHAR(10) PRIMARY KEY)")
    pair97.settle()
    a.execute("STOP REPLICA")
    b.execute("STOP REPLICA", "INSERT INTO d.p VALUES ('m')")
    a.execute("INSERT INTO d.p VALUES ('M')", "DELETE FROM d.p WHERE k = 'M'")
    plan = examine(pair97).plan()
    assert not [step for step in plan.steps if step.server == "a"]
    assert any("changed the same rows" in each.why for each in plan.not_planned)
