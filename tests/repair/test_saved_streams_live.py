"""Content above the limits of a plan is saved beside its scripts, or the plan says what is not."""

from __future__ import annotations

import re
import shlex
import stat
from pathlib import Path

import pytest

from compose.native.shapes import Pair
from gtid_audit.cli import run
from repair.adapters import collected_transactions, transactions_for_plan
from tests.repair.live import await_clean, executed, rows


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected_transactions, "TRANSACTIONS_REPLAYED_MAX", 3)


def errant(pair: Pair, *more: str) -> list[tuple[object, ...]]:
    """Ten errant transactions on b, which a cannot receive; return the rows then."""
    pair.a.execute("CREATE DATABASE own", "CREATE TABLE own.t (id INT PRIMARY KEY, v VARCHAR(9))")
    pair.settle()
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    inserted = (f"INSERT INTO own.t VALUES ({each}, 'é')" for each in range(8))
    pair.b.execute(*inserted, "UPDATE own.t SET v = 'ü' WHERE id = 3", *more)
    return rows(pair.b, "own.t")


def planned(pair: Pair, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Plan to leave the transactions out; return what was printed."""
    dsns = ("--pair", pair.a.dsn, pair.b.dsn)
    run(["repair", "plan", *dsns, "--strategy", "E1=inject_empty", "--out", str(out)])
    printed = capsys.readouterr()
    return " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize("read_max", [10_000, 5])
def test_what_is_left_out_is_saved_whatever_its_size(
    read_max: int,
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also above the number of transactions that a plan reads, and with bytes of any kind."""
    monkeypatch.setattr(transactions_for_plan, "TRANSACTIONS_READ_MAX", read_max)
    wanted = errant(pair97, "INSERT INTO own.t VALUES (9, 'a\\r\\0b')")
    out = tmp_path / "plan"
    assert "NOT saved" not in planned(pair97, out, capsys)
    [saved] = out.glob("content-of-E1-*.sql")
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert saved.name in (out / "RUNBOOK.md").read_text()
    planned(pair97, out, capsys)  # the same plan again: nothing is written
    for script in sorted(out.glob("0*.sql")):
        [server] = (each for each in (pair97.a, pair97.b) if str(each.port) in script.name)
        assert server.client(script.read_text()).returncode == 0
    await_clean(pair97)
    assert rows(pair97.a, "own.t") == [], "left out, as it was chosen"
    done = pair97.a.client(saved.read_bytes().decode(), "--binary-mode")
    assert done.returncode == 0, done.stderr
    assert rows(pair97.a, "own.t") == wanted


def test_what_no_sql_can_express_is_named_with_the_reason(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errant(
        pair97,
        "CREATE TABLE own.j (id INT PRIMARY KEY, b BLOB, j JSON)",
        "INSERT INTO own.j VALUES (1, 'b', NULL)",
        "UPDATE own.j SET j = JSON_OBJECT('bytes', b)",
    )
    out = tmp_path / "plan"
    said = planned(pair97, out, capsys)
    assert "NOT saved" in said
    assert "a JSON document contains" in said
    assert "Copy the binary logs of" in said
    assert not list(out.glob("content-of-*"))


def test_what_is_too_much_for_a_redo_is_redone_by_the_named_command(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    wanted = errant(pair97)
    capsys.readouterr()
    run(["repair", "plan", "--pair", a.dsn, b.dsn, "--strategy", "E1=redo_on_source"])
    said = " ".join(capsys.readouterr().out.split())
    assert "was not read as SQL: more than 3 transactions. Where a log has it" in said
    named = re.search("`gtid-audit (binlog show .*? --redo .*?) > FILE`", said)
    assert named is not None
    assert run(shlex.split(named[1].replace("SERVER", b.dsn))) == 0
    done = a.client(capsys.readouterr().out, "--binary-mode")
    assert done.returncode == 0, done.stderr
    assert (rows(a, "own.t"), executed(a)) == (wanted, executed(b))
