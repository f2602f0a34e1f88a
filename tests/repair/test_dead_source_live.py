"""A plan for a replica whose source is dead: the applier goes on, the receiver cannot connect."""

from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from gtid_audit.cli import run
from tests.repair.live import rows


@pytest.fixture
def stopped(pair97: Pair) -> tuple[Pair, str]:
    """Stop the applier of b at a row that it has already, then kill a.

    Returns the pair, and a GTID that waits in the relay log of b.
    """
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    pair97.settle()
    b.execute("SET sql_log_bin = 0", "INSERT INTO d.t VALUES (1, 7)")
    a.execute("INSERT INTO d.t VALUES (1, 1)")
    waits = faults.commit(a, "INSERT INTO d.t VALUES (2, 1)")
    faults.await_applier_stopped(b)
    faults.await_status(
        b, lambda status: GtidSet.parse(waits) <= GtidSet.parse(status["Retrieved_Gtid_Set"])
    )
    a.kill()
    faults.await_status(b, lambda status: status["Last_IO_Errno"] == 2003)
    return pair97, waits


def test_the_applier_goes_on_without_its_source(stopped: tuple[Pair, str], tmp_path: Path) -> None:
    """What it left out is named, and the relay log is applied: b may be promoted."""
    (pair, waits), plan, journal = stopped, tmp_path / "plan", tmp_path / "journal"
    choice = ("--strategy", "A2=inject_empty", "--out", str(plan))
    run(["repair", "plan", "--pair", pair.a.dsn, pair.b.dsn, *choice])
    status = run(["repair", "apply", str(plan), "--yes", "--journal", str(journal)])
    assert status == 3, "all scripts ran; the dead source is not known to be well"
    wait_for(pair.b, waits)
    assert rows(pair.b, "d.t") == [(1, 7), (2, 1)]
    status = run(["repair", "apply", str(plan), "--yes", "--journal", str(journal)])
    assert status == 3, "a plan that is done changes nothing"
    assert rows(pair.b, "d.t") == [(1, 7), (2, 1)]


def test_a_server_of_the_plan_must_answer(
    stopped: tuple[Pair, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair, _), plan, journal = stopped, tmp_path / "plan", tmp_path / "journal"
    choice = ("--strategy", "A2=inject_empty", "--out", str(plan))
    run(["repair", "plan", "--pair", pair.a.dsn, pair.b.dsn, *choice])
    pair.b.kill()
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), "--yes", "--journal", str(journal)]) == 64
    told = " ".join(capsys.readouterr().err.split())
    assert "error 2003" in told
    assert "if that server stays away, plan again without it" in told
