"""docs/repair-apply.md on real servers: its commands, its option file, its options and states."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from repair.applying.procedures_applied import ProcedureState
from tests.repair.live import executed

PAGE = (Path(__file__).parents[2] / "docs/repair-apply.md").read_text()


def blocks() -> list[str]:
    return re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)


def commands() -> list[list[str]]:
    text = "\n".join(blocks()).replace("\\\n", " ")
    return [
        shlex.split(line, comments=True)[1:]
        for line in text.splitlines()
        if line.startswith("gtid-audit ")
    ]


def test_every_state_is_listed() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.partition("| state |")[2].partition("`resume`")[0]))
    assert {each.value for each in ProcedureState} <= named


def test_the_commands_of_the_page(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each is run as it is written, with the addresses of these servers and the id of a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    faults.position_bypass(pair97)
    servers = [pair97.a, pair97.b]
    places = {
        f"mysql://admin@db{number}/?ssl=required": f"mysql://admin@{each.host}:{each.port}/?ssl=required"
        for number, each in enumerate(servers, start=1)
    }
    for each in servers:
        each.execute(
            "SET SESSION sql_log_bin = 0",
            "CREATE USER admin@'%' IDENTIFIED BY 'secret of the page'",
            "GRANT ALL ON *.* TO admin@'%'",
        )
    audited = [f"mysql://root@{each.host}:{each.port}/?ssl=required" for each in servers]
    words = ["--pair", *audited, "--strategy", "H1=inject_empty", "--out", "plan-1"]
    assert run(["repair", "plan", *words]) == 0
    [option_file] = [each for each in blocks() if each.startswith("[client]")]
    Path("admin.cnf").write_text(option_file.replace("…", "secret of the page"))
    Path("admin.cnf").chmod(0o600)

    first, second, *following = commands()
    assert first == ["repair", "apply", "plan-1", "--admin", "admin.cnf"]
    capsys.readouterr()
    assert run([*first, "--yes"]) == 0
    procedure = capsys.readouterr().out.split()[1]
    assert executed(pair97.a) == executed(pair97.b)
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", "secret of the page")
    assert run([*(places.get(word, word) for word in second), "--yes"]) == 0
    assert {command[1] for command in following} == {"list", "state", "stop", "resume"}
    for command in following:
        status = run([word.replace("68cdc2d8", procedure[:8]) for word in command])
        assert status == (64 if command[1] in ("stop", "resume") else 0), command


def test_the_options_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["repair", "apply", "--help"]) == 0
    there = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    table = PAGE.partition("| option |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) <= there
