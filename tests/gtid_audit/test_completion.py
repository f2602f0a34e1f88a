"""Completion, by the shells themselves: commands, options, values, codes, strategies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gtid_audit.cli import run
from tests.gtid_audit.build import GTID_AUDIT, run_cli
from tests.gtid_audit.shells import unpacked_program

CASES: Sequence[tuple[str, set[str]]] = (
    ("repair sta", {"state"}),
    ("explain J", {"J1", "J2", "J3", "J4"}),
    ("pair a b --allow", {"--allow-uuid"}),
    ("pair a b --format ", {"text", "json", "jsonl", "plugin", "svg", "html"}),
    ("explain j", {"j1", "j2", "j3", "j4"}),
    ("expl", {"explain"}),
    ("binlog scan x --format ", {"text", "json", "jsonl"}),
    ("audit --engine ", {"auto", "local", "spark"}),
    ("repair plan --strategy H1", {"H1=refetch", "H1=inject_empty"}),
    ("reconcile ", {"cluster", "database", "fleet", "server", "table"}),
    ("completion ", {"bash", "zsh", "fish"}),
)
# Each script prints the completions of the words in $LINE, one per line.
BASH = """
source <(gtid-audit completion bash)
read -ra COMP_WORDS <<< "$LINE"
[[ $LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
$(complete -p gtid-audit | sed 's/.*-F \\([^ ]*\\).*/\\1/') gtid-audit
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() { completer=$1 }
_arguments() { values=${1#*"(("}; print -rl -- ${(Q)${(z)${values%"))"}}} }
eval "$(gtid-audit completion zsh)"
words=("${(@s: :)LINE}"); CURRENT=$#words
$completer
"""
FISH = """
gtid-audit completion fish | source
complete --do-complete "$LINE"
"""


def completions(shell: Sequence[str], script: str, line: str, home: Path) -> set[str]:
    done = subprocess.run(
        [*shell, "-c", script],
        env={
            **{key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ},
            "PATH": f"{Path(GTID_AUDIT).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "LINE": f"gtid-audit {line}",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return {each.partition("\t")[0].partition(":")[0] for each in done.stdout.splitlines() if each}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [*CASES[:4], *(pytest.param(*each, marks=pytest.mark.slow) for each in CASES[4:])],
)
def test_bash(line: str, expected: set[str], tmp_path: Path) -> None:
    assert completions(["bash", "--norc"], BASH, line, tmp_path) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_zsh(line: str, expected: set[str], tmp_path: Path) -> None:
    assert completions([*unpacked_program("zsh"), "-f"], ZSH, line, tmp_path) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_fish(line: str, expected: set[str], tmp_path: Path) -> None:
    shell = [*unpacked_program("fish"), "--no-config"]
    assert completions(shell, FISH, line, tmp_path) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("completion", shell, "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["shell"], document["schema_version"]) == (shell, 1)
    assert f"_GTID_AUDIT_COMPLETE=complete_{shell}" in document["script"]
    assert not [name for name in os.environ if name.endswith("_COMPLETE")]
    assert run(("completion", shell)) == 0
    assert capsys.readouterr().out == document["script"]


def test_another_shell_is_64() -> None:
    done = run_cli("completion", "csh")
    assert (done.returncode, "SHELL" in done.stderr) == (64, True)
