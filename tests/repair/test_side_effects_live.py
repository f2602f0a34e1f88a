"""Tables whose triggers or foreign keys write more than a script does: refused when planned."""

import json
from typing import Any

import pytest

from compose.faults import await_applier_stopped
from compose.native.shapes import Pair, Topology
from gtid_audit.cli import run
from repair import Plan
from repair.render import render_files
from tests.repair.live import examine

pytestmark = pytest.mark.slow  # a rare shape: make nightly

TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.parent (id INT PRIMARY KEY, n INT)",
    (
        "CREATE TABLE d.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES d.parent (id) ON UPDATE CASCADE)"
    ),
    "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO d.parent VALUES (1, 1)",
    "INSERT INTO d.t VALUES (1, 1)",
)
TRIGGER = (
    "SET SESSION sql_log_bin = 0",
    "CREATE TRIGGER d.fires BEFORE UPDATE ON d.t FOR EACH ROW SET NEW.n = 0",
)
BY_HAND = "11111111-2222-3333-4444-555555555555:1"


def why(plan: Plan, code: str) -> str:
    assert plan.steps == ()
    [left] = [each for each in plan.not_planned if each.code == code]
    return left.why


@pytest.mark.parametrize(
    ("choice", "server"), [("redo_on_source", "source"), ("undo_on_replica", "replica1")]
)
def test_triggers_are_refused_where_they_would_fire(
    star97: Topology, choice: str, server: str
) -> None:
    star97["source"].execute(*TABLES)
    star97.settle()
    star97["replica1"].execute("UPDATE d.t SET n = 5 WHERE id = 1")
    for name in star97.servers:
        if name != server:
            star97[name].execute(*TRIGGER)
    plan = examine(star97).plan({"E1": choice})
    step = next(each for each in plan.steps if each.server == server)
    star97[server].execute(*TRIGGER)
    assert f"d.t on {server} has triggers" in why(examine(star97).plan({"E1": choice}), "E1")
    # Made before the trigger, the plan still stops in the script.
    done = star97[server].client(render_files(plan)[step.file_name])
    assert done.returncode != 0
    assert "d.t has triggers" in done.stderr


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("d.t", "has triggers, which would fire"),
        ("d.parent", "foreign keys of d.parent would change rows"),
    ],
)
def test_rows_that_differ_are_not_written_over_triggers_and_foreign_keys(
    pair97: Pair, capsys: pytest.CaptureFixture[str], table: str, reason: str
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(*TABLES)
    pair97.settle()
    for server in (a, b):
        server.execute("STOP REPLICA")
    for server, value in ((b, 2), (a, 3)):
        server.execute(
            f"SET SESSION gtid_next = '{BY_HAND}'",
            f"UPDATE {table} SET n = {value} WHERE id = 1",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    for server in (a, b):
        server.execute("START REPLICA")
        # Each is the other's source: their addresses decide which of them the plan would change.
        server.execute(*TRIGGER)
    capsys.readouterr()
    options = ("--json", "--content", "--strategy=E4=data_repair")
    assert run(["repair", "plan", "--pair", a.dsn, b.dsn, *options]) == 1
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    [left] = [each for each in plan["not_planned"] if each["code"] == "E4"]
    assert plan["steps"] == []
    assert reason in left["why"]


def test_a_conflict_is_not_resolved_over_triggers(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(*TABLES)
    pair97.settle()
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE d.t SET id = 2")
    b.execute(*TRIGGER)
    a.execute("UPDATE d.t SET n = 2 WHERE id = 1")
    await_applier_stopped(b)
    assert "d.t on b has triggers" in why(examine(pair97).plan({"A2": "resolve_conflict"}), "A2")
