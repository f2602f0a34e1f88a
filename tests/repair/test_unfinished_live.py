"""A plan fails after its first script; the next plan says what the first one left out."""

from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.repair.live import rows


def test_the_next_plan_says_what_an_unfinished_one_left_out(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    pair97.settle()
    b.execute("SET sql_log_bin = 0", "INSERT INTO d.t VALUES (1, 7)")
    left_out = faults.commit(a, "INSERT INTO d.t VALUES (1, 1)")
    faults.commit(a, "INSERT INTO d.t VALUES (2, 1)")
    faults.await_applier_stopped(b)
    journal = ("--journal", str(tmp_path / "journal"))
    first, second = tmp_path / "first", tmp_path / "second"
    chosen = ("--strategy", "A2=inject_empty", "--out", str(first))
    run(["repair", "plan", "--pair", a.dsn, b.dsn, *chosen])
    b.execute("SET sql_log_bin = 0", "INSERT INTO d.t VALUES (2, 7)")  # after it was planned
    assert run(["repair", "apply", str(first), "--yes", *journal]) == 2
    chosen = ("--strategy", "A2=resolve_conflict", "--out", str(second))
    run(["repair", "plan", "--pair", a.dsn, b.dsn, *chosen])
    capsys.readouterr()
    assert run(["repair", "apply", str(second), "--yes", *journal]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "which was not finished" in told
    assert f"what {left_out} did is left out" in told
    assert (rows(a, "d.t"), rows(b, "d.t")) == ([(1, 1), (2, 1)], [(1, 7), (2, 1)])
