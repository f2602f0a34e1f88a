"""Every command that reads logs, on logs of every shape: what is wrong with a log is no defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtid_audit.cli import run
from tests.binlog.builders import UUID_A
from tests.binlog.ledger_shapes import SHAPES, of_8_0

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
