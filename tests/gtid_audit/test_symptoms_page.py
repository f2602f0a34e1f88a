"""docs/symptoms.md: its texts are known, its alerts are all there, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Topology
from gtid_audit.exits import status_of
from gtid_audit.monitoring.alert_table import OF_THE_AUDIT
from tests.gtid_audit.build import run_cli
from topology.catalogue.explanations import explain
from topology.catalogue.findings import Verdict
from topology.catalogue.verdict_table import CATALOGUE

PAGE = (Path(__file__).parents[2] / "docs/symptoms.md").read_text()
VERDICTS = {status_of(each) for each in Verdict}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its first two lines."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def commands() -> list[str]:
    """Return the commands of all tables, each once."""
    found = re.findall(r"`((?:gtid-audit|curl) [^`]+)`(?= \| )", PAGE)
    return list(dict.fromkeys(found))


def test_explain_knows_each_text_and_its_code() -> None:
    table = rows("An error text on the replica")
    assert len(table) > 10
    assert [text for text, code, _, _ in table if explain(text.strip("`")).code != code] == []


def test_every_code_of_the_page_is_in_the_catalogue() -> None:
    named = set(re.findall(r"\b([A-Z][0-9]{1,2})\b", PAGE))
    assert named <= set(CATALOGUE)


def test_every_alert_of_the_auditor_is_there() -> None:
    named = {
        name for cell, *_ in rows("An alert of Prometheus") for name in re.findall(r"`(\w+)`", cell)
    }
    assert named == {each.name for each in OF_THE_AUDIT}


def test_each_row_has_a_command() -> None:
    tables = (
        "An error text on the replica",
        "No error, and something is wrong",
        "An alert of Prometheus",
    )
    for table in tables:
        assert all(row[-2].strip("`") in commands() for row in rows(table)), table
    assert len(commands()) > 10


@pytest.mark.slow
def test_every_command_ends_with_a_verdict(star97: Topology, tmp_path: Path) -> None:
    """The pair has a hole. An option or an operand that does not exist would end with 64."""
    names = list(star97.servers)
    gtid = faults.commit(star97[names[0]], "CREATE DATABASE shop")
    faults.position_bypass(star97, source=names[0], replica=names[1])
    wrong = []
    for command in commands():
        if command.startswith("curl "):
            continue  # test_service_page.py asks these paths
        here = command.replace("UUID:23", gtid).replace("--out plan", f"--out {tmp_path}/plan")
        for number, name in enumerate(names, 1):
            server = star97[name]
            here = here.replace(f" db{number}:3306", f" root@{server.host}:{server.port}")
            here = here.replace("--promote root@", "--promote ")  # a server's name has no user
        if "check-data" in here:
            here += " --behind-max 1"  # the hole stays
        done = run_cli(*shlex.split(here)[1:])
        if done.returncode not in VERDICTS:
            wrong.append((command, done.returncode, done.stderr[-300:]))
    assert not wrong, "\n".join(map(str, wrong))
