"""An undo where servers do not have the table: no script ends in error 1146."""

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from repair.render import render_files
from tests.repair.live import await_clean, examine, executed, refusals, rows, run_plan, run_step

pytestmark = pytest.mark.slow  # a rare shape: make nightly

BY_HAND = "11111111-2222-3333-4444-555555555555:1"


def unlogged(server: Server, *statements: str) -> None:
    server.execute("SET SESSION sql_log_bin = 0", *statements)


def test_rows_of_a_table_that_only_the_replica_has_are_undone(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE d")
    star97.settle()
    unlogged(replica, "CREATE TABLE d.own (id INT PRIMARY KEY)", "INSERT INTO d.own VALUES (1)")
    replica.execute("INSERT INTO d.own VALUES (2)")
    plan = examine(star97).plan({"E1": "undo_on_replica"})
    assert [(each.server, each.action) for each in plan.steps] == [
        ("replica1", "UndoRows"),
        ("source", "InjectEmpty"),
    ]
    for _ in range(2):
        assert refusals(star97, plan) == []
        run_plan(star97, plan)
    await_clean(star97)
    assert rows(replica, "d.own") == [(1,)]
    # An account that would not see the table does not know whether the rows came.
    unlogged(source, "CREATE USER blind@'%'")
    check = next(each for each in plan.steps[0].checks if each.server == "source")
    script = render_files(plan)[plan.steps[0].check_name(check)]
    blind = source.client(script, "--user=blind")
    assert "cannot see whether d.own exists" in blind.stderr
    # The table came, with the rows, behind the plan.
    unlogged(source, "CREATE TABLE d.own (id INT PRIMARY KEY)", "INSERT INTO d.own VALUES (2)")
    [refused] = refusals(star97, plan)
    assert "a row of d.own is as the transactions leave it" in refused


def test_nothing_is_undone_on_a_server_without_the_table(star97: Topology) -> None:
    star97["source"].execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    star97.settle()
    for name in ("replica1", "replica2"):
        star97[name].execute(
            f"SET SESSION gtid_next = '{BY_HAND}'",
            "INSERT INTO d.t VALUES (1)",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    before = examine(star97).plan({"E1": "undo_on_replica"})
    step = next(each for each in before.steps if each.server == "replica2")
    unlogged(star97["replica2"], "DROP TABLE d.t")
    plan = examine(star97).plan({"E1": "undo_on_replica"})
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.about == "source → replica1"]
    assert "replica2: d.t: its definition was not read: error 1146" in left.why
    # Made before the table was dropped, the plan stops in the script.
    done = run_step(star97, before, step)
    assert "replica2: d.t does not exist" in done.stderr
    refused = refusals(star97, before, before.steps[-1])
    assert any("replica2: d.t does not exist" in each for each in refused)


def test_a_table_of_its_own_is_asked_for_on_5_6(pair56: Pair) -> None:
    a, b = pair56.a, pair56.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d")
    wait_for(b, executed(a))
    unlogged(b, "CREATE TABLE d.own (id INT PRIMARY KEY)")
    b.execute("INSERT INTO d.own VALUES (1)")
    plan = examine(pair56).plan({"E1": "undo_on_replica"})
    for _ in range(2):
        for step in plan.steps:
            assert refusals(pair56, plan, step) == []
            assert run_step(pair56, plan, step).returncode == 0
    assert rows(b, "d.own") == []
    assert executed(a) == executed(b)
