"""Rows that exchange the values of a unique key: no order of UPDATEs sets them back."""

from pathlib import Path

import pytest

from compose.native.shapes import Pair
from repair import Plan
from repair.render import render_files
from tests.repair.live import examine, rows, run_plan
from tests.repair.test_interrupted_live import cut_everywhere
from tests.repair.test_row_repairs_live import planned, scripts

pytestmark = pytest.mark.slow  # a rare shape: make nightly

_ROWS = [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4)]
# 1 and 2 exchange n; 3 and 10 follow each other in both keys, by a letter's case and by a space.
_ROTATION = (
    "BEGIN",
    "UPDATE d.u SET n = 9 WHERE id = 1",
    "UPDATE d.u SET n = 1 WHERE id = 2",
    "UPDATE d.u SET n = 2 WHERE id = 1",
    "UPDATE d.u SET id = 10 WHERE id = 3",
    "INSERT INTO d.u VALUES (3, 'C', 3000)",
    "DELETE FROM d.u WHERE id = 4",
    "INSERT INTO d.u VALUES (5, 'D', 4)",
    "COMMIT",
)


def _with_rows(pair: Pair, engine: str = "InnoDB") -> None:
    pair.a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.u (id INT PRIMARY KEY, k VARCHAR(9) CHARACTER SET utf8mb4"
        f" COLLATE utf8mb4_bin, n INT, UNIQUE (k), UNIQUE (n)) ENGINE = {engine}",
        "INSERT INTO d.u VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)",
    )
    pair.settle()


def _errant(pair: Pair, engine: str = "InnoDB") -> Plan:
    """Plan to undo the rotation on b, which a's receiver does not bring."""
    _with_rows(pair, engine)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    pair.b.execute(*_ROTATION)
    return examine(pair).plan({"E1": "undo_on_replica"})


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_that_exchange_values_are_set_back(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    plan = _errant(pair)
    step = plan.steps[0]
    assert step.action == "UndoRows"
    cut_everywhere(pair, step, render_files(plan)[step.file_name])
    run_plan(pair, plan)
    assert rows(pair.b, "d.u") == rows(pair.a, "d.u") == _ROWS


def test_unique_keys_that_are_not_of_whole_columns(pair97: Pair) -> None:
    """Values of an expression, a generated column or a prefix are exchanged with their columns."""
    pair97.a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.e (id INT PRIMARY KEY, n INT, UNIQUE ((n * 2)))",
        "CREATE TABLE d.g (id INT PRIMARY KEY, n INT, m INT AS (n + 1) VIRTUAL, UNIQUE (m))",
        "CREATE TABLE d.p (id INT PRIMARY KEY, n VARCHAR(9), UNIQUE (n(1)))",
        *(f"INSERT INTO d.{table} (id, n) VALUES (1, 1), (2, 2)" for table in "egp"),
    )
    pair97.settle()
    pair97.a.execute(pair97.a.dialect.stop_replica, pair97.a.dialect.reset_replica)
    moves = ((1, 9), (2, 1), (1, 2))
    for table in "egp":
        changes = (f"UPDATE d.{table} SET n = {to} WHERE id = {at}" for at, to in moves)
        pair97.b.execute("BEGIN", *changes, "COMMIT")
    run_plan(pair97, examine(pair97).plan({"E1": "undo_on_replica"}))
    for table in "egp":
        assert rows(pair97.b, f"d.{table}") == rows(pair97.a, f"d.{table}")


def test_a_row_that_cannot_be_set_back_takes_none_along(pair97: Pair) -> None:
    """With --force the client goes on behind an error, and nothing may be gone at its end."""
    plan = _errant(pair97)
    step = plan.steps[0]
    before = rows(pair97.b, "d.u")
    pair97.b.execute(
        "SET SESSION sql_log_bin = 0",
        "CREATE TABLE d.child (u INT, FOREIGN KEY (u) REFERENCES d.u (id))",
        "INSERT INTO d.child VALUES (1)",
    )
    for options in ((), ("--force",)):
        done = pair97.b.client(render_files(plan)[step.file_name], *options)
        assert "ERROR 1451" in done.stderr
        assert "is done" not in done.stdout
        assert rows(pair97.b, "d.u") == before
    pair97.b.execute("SET SESSION sql_log_bin = 0", "DROP TABLE d.child")
    run_plan(pair97, plan)
    assert rows(pair97.b, "d.u") == _ROWS


def test_without_transactions_nothing_is_set_back(pair97: Pair) -> None:
    plan = _errant(pair97, "MyISAM")
    step = plan.steps[0]
    before = rows(pair97.b, "d.u")
    for options in ((), ("--force",)):
        done = pair97.b.client(render_files(plan)[step.file_name], *options)
        assert "its engine has no transactions" in done.stderr
        assert rows(pair97.b, "d.u") == before


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_that_were_exchanged_under_one_gtid_are_made_alike(
    shape: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    _with_rows(pair)
    for server in pair.servers.values():
        server.execute(server.dialect.stop_replica)
    under = f"SET gtid_next = '{pair.a.value('@@server_uuid')}:50'"
    pair.b.execute(under, *_ROTATION)
    pair.a.execute(
        under,
        "BEGIN",
        *(f"UPDATE d.u SET n = n + {more} WHERE id < 4 ORDER BY id" for more in (70, -70)),
        "COMMIT",
    )
    for server in pair.servers.values():
        server.execute(server.dialect.start_replica)
    status, plan = planned(pair, capsys, "--strategy", "E4=data_repair", "--out", str(tmp_path))
    assert status == 0, plan
    for script in scripts(plan):
        done = pair.b.client(script)
        assert done.returncode == 0, done.stderr
    assert rows(pair.b, "d.u") == rows(pair.a, "d.u") == _ROWS
