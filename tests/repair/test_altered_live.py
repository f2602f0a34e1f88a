"""Plans about rows of a table that was altered since, on real servers.

The binary logs have binlog_row_metadata=MINIMAL: a row event says neither what its columns are
called nor which member of an ENUM a number is.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from compose.faults import commit, move_past, position_bypass
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid_audit.cli import run
from tests.repair.live import examine, executed, rows

_CHOOSE_ROWS = ("--strategy", "E4=data_repair")


def _plan(pair: Pair, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    run(["repair", "plan", "--pair", pair.a.dsn, pair.b.dsn, "--content", "--json", *options])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _why(plan: dict[str, Any], code: str) -> str:
    [left] = [each for each in plan["not_planned"] if each["code"] == code]
    return str(left["why"])


def _replicate(pair: Pair, statement: str) -> None:
    wait_for(pair.b, commit(pair.a, statement))


def _unlogged(server: Server, statement: str) -> None:
    server.execute("SET SESSION sql_log_bin = 0", statement)


def test_rows_of_an_altered_table_are_neither_repaired_nor_redone(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        a.dialect.stop_replica,
        a.dialect.reset_replica,
        "CREATE DATABASE altered",
        "CREATE TABLE altered.t (id INT PRIMARY KEY, paid INT, owed INT, state ENUM('open','shut'))",
        "INSERT INTO altered.t VALUES (1, 10, 20, 'open'), (2, 10, 20, 'open')",
    )
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica)
    reused = commit(a, "INSERT INTO altered.t VALUES (3, 1, 2, 'shut')")
    b.execute(
        f"SET gtid_next = '{reused}'",
        "INSERT INTO altered.t VALUES (3, 8, 9, 'open')",
        "SET gtid_next = 'AUTOMATIC'",
        b.dialect.start_replica,
    )
    # Planned before the members change, and run after it.
    plan = _plan(pair97, capsys, *_CHOOSE_ROWS, "--out", str(tmp_path))
    [step] = plan["steps"]
    _unlogged(b, "ALTER TABLE altered.t MODIFY state ENUM('shut','open')")
    done = b.client((tmp_path / step["script"]).read_text())
    assert "the members of state in altered.t changed since the plan was made" in done.stderr
    assert (3, 8, 9, "open") in rows(b, "altered.t")
    # Planned after a change that no log shows.
    plan = _plan(pair97, capsys, *_CHOOSE_ROWS)
    assert not plan["steps"]
    assert "altered.t: the members of state differ from the log" in _why(plan, "E4")
    _unlogged(b, "ALTER TABLE altered.t MODIFY state ENUM('open','shut')")
    # An errant update of two columns of one type, which then change places on both servers.
    commit(b, "UPDATE altered.t SET paid = 11, state = 'shut' WHERE id = 1")
    plan = _plan(pair97, capsys, "--strategy=E1=redo_on_source", *_CHOOSE_ROWS)
    assert [step["action"] for step in plan["steps"]] == ["RedoTransactions", "MakeRowsAlike"]
    _replicate(pair97, "ALTER TABLE altered.t MODIFY owed INT AFTER id")
    changed = "altered.t: its columns or partitions were changed at binlog.0"
    for strategy in ("redo_on_source", "undo_on_replica"):
        plan = _plan(pair97, capsys, f"--strategy=E1={strategy}", *_CHOOSE_ROWS)
        assert not plan["steps"]
        assert changed in _why(plan, "E1")
        assert changed in _why(plan, "E4")
    assert rows(b, "altered.t") == [(1, 20, 11, "shut"), (2, 20, 10, "open"), (3, 9, 8, "open")]


def test_transactions_before_an_alter_are_not_fetched_again_unasked(pair97: Pair) -> None:
    """Row events find columns by their places: fetched now, values would land in other columns."""
    fault = position_bypass(pair97)
    _replicate(pair97, "ALTER TABLE bypassed.t MODIFY note VARCHAR(40) FIRST")
    plan = examine(pair97).plan()
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "H1"]
    assert "bypassed.t: its columns or partitions were changed at binlog.0" in left.why
    assert fault.skipped not in executed(pair97.b)


def test_a_row_that_an_exchanged_partition_brought_is_not_the_one_of_a_gap(pair97: Pair) -> None:
    """The updated row is in the other table since, and the row that looks alike is another one."""
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE parted",
        "CREATE TABLE parted.t (id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY RANGE (id)"
        " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
        "CREATE TABLE parted.x (id INT PRIMARY KEY, v VARCHAR(9))",
        "INSERT INTO parted.t VALUES (1, 'old')",
    )
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica)
    commit(a, "UPDATE parted.t SET v = 'new' WHERE id = 1")
    move_past(a, b)
    a.execute("ALTER TABLE parted.t EXCHANGE PARTITION p0 WITH TABLE parted.x")
    _replicate(pair97, "INSERT INTO parted.t VALUES (1, 'new')")
    assert (rows(a, "parted.t"), rows(a, "parted.x")) == ([(1, "new")], [(1, "new")])
    assert (rows(b, "parted.t"), rows(b, "parted.x")) == ([(1, "new")], [(1, "old")])
    plan = examine(pair97).plan()
    assert not plan.steps
    [left] = [each for each in plan.not_planned if each.code == "H1"]
    assert "parted.t: its columns or partitions were changed at binlog.0" in left.why
