"""A redo that creates triggers and events: what they do is in the log already."""

import re

import pytest

from compose.native.shapes import Pair, wait_for
from gtid_audit.cli import run
from repair.sql.replay_script import Direction
from tests.repair.live import examine, executed, rows, run_plan
from tests.repair.row_rounds import definitions, replayed, script
from tests.repair.row_rounds import executed as executed_set

pytestmark = pytest.mark.slow  # a rare shape: make nightly

TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.seen (x INT)",
    "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
)
ADDS = "CREATE TRIGGER d.adds BEFORE INSERT ON d.t FOR EACH ROW SET NEW.n = NEW.n + 1"
NOTES = "CREATE TRIGGER d.notes AFTER INSERT ON `d`.`t` FOR EACH ROW INSERT INTO d.seen VALUES (7)"
# Fires at once, and each day again.
EVENT = "CREATE EVENT d.each_day ON SCHEDULE EVERY 1 DAY DO INSERT INTO d.seen VALUES (99)"


@pytest.fixture(params=["pair97", "pair56"])
def one_way(request: pytest.FixtureRequest) -> Pair:
    pair: Pair = request.getfixturevalue(request.param)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    pair.a.execute(*TABLES)
    wait_for(pair.b, executed(pair.a))
    return pair


def why_not(pair: Pair) -> str:
    plan = examine(pair).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    return left.why


@pytest.mark.parametrize("trigger", [ADDS, NOTES])
def test_rows_are_not_written_through_a_trigger_that_is_created_before_them(
    one_way: Pair, trigger: str
) -> None:
    """The log has what the trigger wrote; the script once wrote it, and fired the trigger."""
    one_way.b.execute(trigger, "INSERT INTO d.t VALUES (30, 1)")
    assert "would fire this trigger" in why_not(one_way)


def test_a_trigger_that_no_row_fires_is_created_again(one_way: Pair) -> None:
    a, b = one_way.a, one_way.b
    b.execute("INSERT INTO d.t VALUES (1, 1)", ADDS, "INSERT INTO d.seen VALUES (1)")
    run_plan(one_way, examine(one_way).plan({"E1": "redo_on_source"}))
    wait_for(b, executed(a))
    assert rows(a, "d.t") == [(1, 1)]
    a.execute("INSERT INTO d.t VALUES (2, 1)")
    wait_for(b, executed(a))
    assert rows(a, "d.t") == rows(b, "d.t") == [(1, 1), (2, 2)]


def test_an_event_is_not_created_where_it_would_run_as_well(one_way: Pair) -> None:
    one_way.b.execute(EVENT)
    assert "would do its work twice" in why_not(one_way)


def test_a_script_made_by_hand_stops_where_a_trigger_is_there_by_now(one_way: Pair) -> None:
    a, b = one_way.a, one_way.b
    before = executed_set(b)
    b.execute(NOTES, "INSERT INTO d.t VALUES (30, 1)")
    known = definitions(b, "d")
    transactions = replayed(b, executed_set(b) - before, Direction.REDO, known, keeps_gtids=True)
    done = a.client(script(Direction.REDO, transactions))
    assert done.returncode != 0
    assert "d.t now has a trigger" in done.stderr
    assert rows(a, "d.t") == rows(a, "d.seen") == []
    a.execute("SET SESSION sql_log_bin = 0", "DROP TRIGGER d.notes")
    done = a.client(script(Direction.REDO, transactions[1:]))
    assert done.returncode == 0, done.stderr
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    assert rows(a, "d.seen") == rows(b, "d.seen") == [(7,)]


def test_what_is_harmless_beside_data_is_named(one_way: Pair) -> None:
    """It once was called not read, and too many."""
    a, b = one_way.a, one_way.b
    b.execute("FLUSH TABLES", "INSERT INTO d.t VALUES (1, 1)")
    text = why_not(one_way)
    assert "is empty or harmless (FLUSH, heartbeats)" in text
    flush = next(iter((executed_set(b) - executed_set(a)).gtids()))
    statements = [each.replace("(the GTID)", str(flush)) for each in re.findall("`([^`]+)`", text)]
    a.execute(*statements)
    run_plan(one_way, examine(one_way).plan({"E1": "redo_on_source"}))
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    assert rows(a, "d.t") == [(1, 1)]


def test_savepoints_are_the_same_content_whatever_database_was_in_use(one_way: Pair) -> None:
    """A script has none in use; that was once E4 (critical) for ever."""
    a, b = one_way.a, one_way.b
    insert = "INSERT INTO d.t VALUES"
    nested = ("SAVEPOINT s", f"{insert} (2, 1)", "ROLLBACK TO s", f"{insert} (3, 1)")
    b.execute("USE d", "BEGIN", f"{insert} (1, 1)", *nested, "COMMIT")
    run_plan(one_way, examine(one_way).plan({"E1": "redo_on_source"}))
    assert rows(a, "d.t") == rows(b, "d.t") == [(1, 1), (3, 1)]
    assert run(["binlog", "compare", a.dsn, b.dsn, "--everywhere"]) == 0
