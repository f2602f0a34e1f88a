"""The manual page has every command and option, and man(1) reads it without a warning."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from gtid_audit.cli import app, run
from gtid_audit.commands.command_tree import described_commands
from gtid_audit.described_commands import DescribedCommand, DescribedParameter
from gtid_audit.views.manual_page import manual_page
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.shells import unpacked_program


@pytest.fixture(scope="module")
def page() -> str:
    done = run_cli("man")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_command_and_option_is_there(page: str) -> None:
    for command in described_commands(typer.main.get_command(app), "gtid-audit"):
        name = " ".join(command.path).replace("-", r"\-")
        assert f".SS {name}\n" in page
        section = page.partition(f".SS {name}\n")[2].partition(".S")[0]
        for option in command.options:
            assert option.long_name.replace("-", r"\-") in section, option


def test_it_is_the_same_every_time(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("man", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["manual"] == page


def test_texts_are_no_requests() -> None:
    option = DescribedParameter(("--x",), "--x", "V", ".so /etc/passwd \\n", True, False)
    command = DescribedCommand(("a",), "'quoted\n\n.second paragraph", "", (option,))
    lines = manual_page([command], [], version="1").splitlines()
    assert r"\&'quoted" in lines
    assert r"\&.second paragraph" in lines
    assert r"\&.so /etc/passwd \en" in lines
    assert [each for each in lines if each.startswith(("'", ".so"))] == []


@pytest.mark.skipif(
    shutil.which("man") is None or shutil.which("groff") is None, reason="needs man and groff"
)
def test_man_reads_it_without_a_warning(page: str, tmp_path: Path) -> None:
    file = tmp_path / "gtid-audit.1"
    file.write_text(page)
    done = subprocess.run(
        ["man", "--warnings=all", "--encoding=UTF-8", "--local-file", str(file)],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert "gtid-audit pair [OPTIONS] DSN_A DSN_B" in done.stdout
    assert r"\f" not in done.stdout


@pytest.mark.slow
def test_mandoc_accepts_it(page: str, tmp_path: Path) -> None:
    file = tmp_path / "gtid-audit.1"
    file.write_text(page)
    command = [*unpacked_program("mandoc"), "-T", "lint", "-W", "warning", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    said = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert said == [], "the page has no date: the same version gives the same bytes"
