"""Every command that reads logs, on logs of every shape: what is wrong with a log is no defect."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gtid_audit.cli import run
from repair.adapters.collected_transactions import Collected
from tests.binlog.builders import UUID_A
from tests.binlog.ledger_shapes import SHAPES, of_8_0
from tests.binlog.logs_in_memory import read_transactions

SET = f"{UUID_A}:1-9:dba:1-9"
# {log} is the one with a shape, {sound} another server's, {tmp} a folder.
COMMANDS = (
    ("scan", "{log}", "--json"),
    ("scan", "{log}", "--verify", "--details", "--digests", "--format", "jsonl"),
    ("scan", "{log}", "--out", "{tmp}/ledger.parquet"),
    ("scan", "{folder}"),
    ("locate", SET, "{log}", "--json"),
    ("locate", SET, "{folder}"),
    ("show", SET, "{log}"),
    ("show", SET, "{log}", "--json"),
    ("show", SET, "{log}", "--redo"),
    ("show", SET, "{log}", "--undo"),
    ("compare", "{log}", "{sound}", "--json"),
    ("compare", "{sound}", "{log}", "--everywhere", "--json"),
    ("compare", "{log}", "{sound}", "--only", SET),
    ("schema", "follow", "{log}", "--server", str(UUID_A), "--store", "{tmp}/store"),
    ("schema", "follow", "{folder}", "--server", str(UUID_A), "--store", "{tmp}/store2"),
)
STATUSES = {0, 1, 2, 3, 64}


@pytest.mark.slow  # fifteen commands for each of forty shapes
@pytest.mark.parametrize("name", SHAPES)
def test_no_log_makes_a_command_fail(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {each: tmp_path / each for each in ("folder", "one", "tmp", "other")}
    for folder in places.values():
        folder.mkdir()
    log = places["one"] / "binlog.000002"
    sound = places["other"] / "binlog.000001"
    log.write_bytes(SHAPES[name]())
    sound.write_bytes(of_8_0())
    # In the folder it stands between two sound logs.
    for number, data in enumerate((of_8_0(), SHAPES[name](), of_8_0()), start=1):
        (places["folder"] / f"binlog.{number:06}").write_bytes(data)
    for command in COMMANDS:
        arguments = [each.format(log=log, sound=sound, **places) for each in command]
        status = run(["--debug", "binlog", *arguments])
        said = capsys.readouterr()
        assert status in STATUSES, (command, said.err)
        assert "Traceback" not in said.out + said.err, command
        if status == 3:
            assert said.out + said.err, command


def test_a_compressed_archive_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "binlog.000001"
    for start, name in ((b"\x1f\x8b\x08\0", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")):
        log.write_bytes(start + bytes(100))
        for command in ("scan", "show"):
            wanted = () if command == "scan" else (SET,)
            assert run(["binlog", command, *wanted, str(log)]) == 3
            said = capsys.readouterr()
            assert f"compressed with {name}: decompress it first" in said.out + said.err


def test_a_moment_without_a_date_is_shown_as_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "binlog.000001"
    log.write_bytes(SHAPES["times without a date"]())
    assert run(["binlog", "scan", str(log)]) == 0
    assert "9,223,372,036,854,775,807 µs after 1970 (no date)" in capsys.readouterr().out
    assert run(["binlog", "show", f"{UUID_A}:dba:2", str(log)]) == 0
    assert "253,402,300,800,000,000 µs after 1970 (no date)" in capsys.readouterr().out


def test_a_plan_takes_the_time_of_the_log_where_a_moment_has_no_date(tmp_path: Path) -> None:
    log = tmp_path / "binlog.000001"
    log.write_bytes(SHAPES["times without a date"]())
    collected = Collected()
    read = list(read_transactions(log))
    for transaction in read:
        collected.add(transaction)
    logged = [datetime.fromtimestamp(each.timestamp_seconds, UTC) for each in read]
    assert collected.moments[1].year == 3111
    assert collected.moments[2:] == logged[2:]


def test_a_first_run_that_was_refused_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Later the same file is whole: it must not be taken for another log of that name."""
    log, store = tmp_path / "binlog.000001", tmp_path / "store"
    follow = [
        "binlog",
        "schema",
        "follow",
        str(log),
        "--server",
        str(UUID_A),
        "--store",
        str(store),
    ]
    for broken in (SHAPES["gzip"](), b"\xfebin", SHAPES["no binlog"](), SHAPES["encrypted"]()):
        log.write_bytes(broken)
        run(follow)
    log.write_bytes(of_8_0())
    assert run(follow) in (0, 3)
    assert "reset" not in capsys.readouterr().err
    assert run(["binlog", "schema", "list", "--store", str(store)]) == 0
    assert "binlog.000001" in capsys.readouterr().out


def test_a_damaged_table_map_is_an_error_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "binlog.000001"
    log.write_bytes(SHAPES["a TABLE_MAP with damaged metadata"]())
    follow = ["binlog", "schema", "follow", str(log), "--server", str(UUID_A)]
    assert run([*follow, "--store", str(tmp_path / "store")]) == 3
    assert "binlog.000001: at byte" in capsys.readouterr().err
