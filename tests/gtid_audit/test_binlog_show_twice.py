"""`binlog show` of an archive that has two transactions under one GTID."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlog.adapters import row_transactions
from binlog.event_types import EventType
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from tests.binlog.builders import UUID_A, Log

SECOND = f"{UUID_A}:2"


def archive(folder: Path, *, again: str) -> list[str]:
    """Return three files: the second and the third have GTID 2."""
    paths = []
    for number, previous, sql in (
        (1, "", "CREATE TABLE a (a INT)"),
        (2, "1", "DROP TABLE a"),
        (3, "1", again),
    ):
        log = Log()
        listed = GtidSet.parse(f"{UUID_A}:{previous}") if previous else GtidSet()
        log.add(EventType.PREVIOUS_GTIDS, encode(listed))
        log.gtid(min(number, 2))
        log.query(sql)
        paths.append(folder / f"binlog.{number:06}")
        paths[-1].write_bytes(bytes(log))
    return list(map(str, paths))


def test_both_are_shown_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it was: the older one only, and of a set the last one was not in these logs."""
    paths = archive(tmp_path, again="CREATE TABLE b (b INT)")
    for wanted in (SECOND, f"{UUID_A}:1-2"):
        assert run(["binlog", "show", wanted, *paths]) == 1
        said = capsys.readouterr()
        assert "DROP TABLE a" in said.out
        assert "CREATE TABLE b (b INT)" in said.out
        assert "binlog.000002 and binlog.000003 have two different transactions" in said.err


@pytest.mark.parametrize("large_bytes", [0, row_transactions.LARGE_BYTES])
@pytest.mark.parametrize("options", [("--redo",), ("--redo", "--keep-gtids"), ("--undo",)])
def test_no_script_is_written_of_them(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    large_bytes: int,
) -> None:
    monkeypatch.setattr(row_transactions, "LARGE_BYTES", large_bytes)
    paths = archive(tmp_path, again="CREATE TABLE b (b INT)")
    assert run(["binlog", "show", SECOND, *paths, *options]) == 3
    said = capsys.readouterr()
    assert "have two different transactions with the GTID" in said.err
    assert said.out == ""


@pytest.mark.parametrize("large_bytes", [0, row_transactions.LARGE_BYTES])
def test_the_same_one_in_two_files_is_written_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    large_bytes: int,
) -> None:
    monkeypatch.setattr(row_transactions, "LARGE_BYTES", large_bytes)
    paths = archive(tmp_path, again="DROP TABLE a")
    assert run(["binlog", "show", SECOND, *paths]) == 0
    assert capsys.readouterr().out.count("DROP TABLE a") == 1
    assert run(["binlog", "show", SECOND, *paths, "--redo"]) == 0
    assert "'redo of 1 transaction'" in capsys.readouterr().out
