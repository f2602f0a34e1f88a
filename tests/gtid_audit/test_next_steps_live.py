"""What a report proposes runs as it is printed, on real servers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.shown_commands import PROGRAM

SECRET = "hunter2SECRET"


def commands_in(report: str) -> list[list[str]]:
    """Return the words of each command below Next, as a shell splits the line."""
    steps = report[report.index("\nNext: ") + len("\nNext: ") :].splitlines()
    return [shlex.split(line)[1:] for line in steps if line.strip().startswith(f"{PROGRAM} ")]


@pytest.mark.parametrize("code", ["E1", "H1"])
def test_the_next_steps_of_a_finding_run(
    pair97: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    pair97.a.execute(f"CREATE USER auditor@'%' IDENTIFIED BY '{SECRET}'")
    pair97.a.execute("GRANT SELECT, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO auditor@'%'")
    pair97.settle()
    if code == "E1":
        gtids, table = faults.errant_transaction(pair97, on="b").errant, "errant.t"
    else:
        gtids, table = faults.position_bypass(pair97).skipped, "bypassed.t"
    monkeypatch.chdir(tmp_path)
    environment = {"GTID_AUDIT_PASSWORD": SECRET}
    dsns = [
        f"mysql://auditor@{each.host}:{each.port}/?ssl=required&get_server_public_key=1"
        for each in (pair97.a, pair97.b)
    ]
    report = run_cli("pair", *dsns, environment=environment)
    assert report.returncode == 2, report.stdout
    assert SECRET not in report.stdout
    show, *others, plan = commands_in(report.stdout)
    holder = dsns[code == "E1"]
    assert show == ["binlog", "show", gtids, holder]
    assert plan == ["repair", "plan", "--pair", *dsns, "--out", "plan"]
    for words in (show, *others, plan):
        done = run_cli(*words, environment=environment)
        assert done.returncode in range(4), (words, done.stderr)
        assert done.stderr == ""
        assert SECRET not in done.stdout
        if words == show:
            assert done.returncode == 0
            assert table in done.stdout
    assert (tmp_path / "plan" / "RUNBOOK.md").exists()


def test_what_a_report_asks_for_is_enough(pair97: Pair) -> None:
    """Each report asks for what it could not read; after a few there is nothing left to ask."""
    pair97.a.execute(f"CREATE USER auditor@'%' IDENTIFIED BY '{SECRET}'")
    pair97.settle()
    dsns = [
        f"mysql://auditor@{each.host}:{each.port}/?ssl=required" for each in (pair97.a, pair97.b)
    ]
    asked: list[str] = []
    for _ in range(4):
        done = run_cli("pair", *dsns, environment={"GTID_AUDIT_PASSWORD": SECRET})
        words = " ".join(done.stdout.split())
        wanted = re.findall(r"GRANT (\S[^:]*) TO the account of gtid-audit", words)
        if not wanted:
            break
        assert done.returncode == 3
        assert "On the primary, so that it reaches " in words
        for privilege in wanted:
            pair97.a.execute(f"GRANT {privilege} TO auditor@'%'")
        pair97.settle()
        asked += wanted
    assert done.returncode == 0, done.stdout
    assert sorted(asked) == [
        "REPLICATION CLIENT ON *.*",
        "REPLICATION SLAVE ON *.*",
        "SELECT ON performance_schema.*",
    ]
