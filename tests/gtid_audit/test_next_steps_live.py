"""What a report proposes runs as it is printed, on real servers."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair, Topology
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


def test_three_servers_are_planned_and_repaired_as_they_were_audited(
    star97: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of two of them would not know whether the third one has the transaction."""
    monkeypatch.chdir(tmp_path)
    star97["source"].execute("CREATE DATABASE errant", "CREATE TABLE errant.t (id INT PRIMARY KEY)")
    star97.settle()
    star97["replica1"].execute("INSERT INTO errant.t VALUES (1)")
    dsns = [each.dsn for each in star97.servers.values()]
    report = run_cli("audit", *dsns)
    assert report.returncode == 2, report.stdout
    plan = commands_in(report.stdout)[-1]
    assert plan == ["repair", "plan", *dsns, "--out", "plan"]
    done = run_cli(*plan, "--strategy", "E1=redo_on_source")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert shlex.split(document["command"])[3:] == [*dsns, "--again", "plan"]
    again = run_cli(*shlex.split(document["command"])[1:], "--json")
    assert json.loads(again.stdout)["id"] == document["id"]
    applied = run_cli("repair", "apply", "plan", "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert run_cli("audit", *dsns).returncode == 0
    assert {each.value("COUNT(*) FROM errant.t") for each in star97.servers.values()} == {1}


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
