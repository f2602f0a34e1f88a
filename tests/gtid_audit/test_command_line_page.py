"""docs/command-line.md: every command in it runs, and prints what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gtid_audit.commands.environment_names import NOT_FROM_ENVIRONMENT, PREFIX, SHARED
from tests.gtid_audit.build import GTID_AUDIT, run_cli
from tests.topology.pasted_texts import pair

pytestmark = pytest.mark.long  # real processes

PAGE = (Path(__file__).parents[2] / "docs/command-line.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SESSIONS = [each for each in BLOCKS if each.startswith("$ ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    (place / "readings").mkdir()
    texts = pair(
        Replica_SQL_Running="No",
        Last_SQL_Errno="1062",
        Last_SQL_Error="Duplicate entry '5' for key 'PRIMARY'",
    )
    for name, text in texts.items():
        (place / "readings" / f"{name}.txt").write_text(text)
    return place


def in_shell(command: str, folder: Path) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={
            **kept,
            "PATH": f"{Path(GTID_AUDIT).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "MANWIDTH": "80",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    ).stdout


def test_the_page_has_sessions() -> None:
    assert len(SESSIONS) == 6
    assert PAGE.count("$ gtid-audit") + PAGE.count("&& gtid-audit man") >= 5


@pytest.mark.parametrize("session", SESSIONS, ids=lambda each: each.splitlines()[0][2:40])
def test_a_session_prints_what_the_page_shows(session: str, folder: Path) -> None:
    if "man gtid-audit" in session and shutil.which("man") is None:
        pytest.skip("needs man")
    for part in session.removeprefix("$ ").split("\n$ "):
        command, _, expected = part.partition("\n")
        assert in_shell(command, folder) == (expected if expected.endswith("\n") else "")


def test_every_shared_variable_is_on_the_page() -> None:
    text = PAGE.partition("## Set options in the environment")[2].partition("\n\n*")[0]
    named = set(re.findall(r"`([A-Z_]+)`", text)) - {f"{PREFIX}_"}
    assert named == {each.removeprefix("--").replace("-", "_").upper() for each in SHARED}
    for option in NOT_FROM_ENVIRONMENT:
        assert f"`{option}`" in PAGE


def test_definitions_of_monitoring_systems_run() -> None:
    """The words of both definitions are a command that reads servers, and prints one line."""
    [icinga] = [each for each in BLOCKS if "CheckCommand" in each]
    [nagios] = [each for each in BLOCKS if "command_line" in each]
    words = re.findall(r'"([^"]*)"', icinga.partition("command = [")[2].partition("]")[0])
    line = re.search(r"command_line\s+(.*)", nagios)
    assert line is not None
    plain = line[1].replace("$ARG1$", "$dsn_a$").replace("$ARG2$", "$dsn_b$").replace('"', "")
    assert plain.split() == words
    dsns = {"$dsn_a$": "mysql://audit@127.0.0.1:1", "$dsn_b$": "mysql://audit@127.0.0.1:2"}
    done = run_cli(*(dsns.get(each, each) for each in words[1:]))
    assert (done.returncode, done.stdout.count("\n")) == (3, 1)
    assert done.stdout.startswith("GTID UNKNOWN - ")
