"""docs/accepted-findings.md on a real server: its fleet file, its command, and what alarms again."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_live import address, fleet_file
from topology.adapters.inventory.fleet_file import load_roster

PAGE = (Path(__file__).parents[2] / "docs/accepted-findings.md").read_text()


def test_the_fleet_file_of_the_page_is_one(tmp_path: Path) -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "fleet.yaml").write_text("defaults: {user: auditor}\n" + shown)
    entries = load_roster(tmp_path / "fleet.yaml", environment={}).policy.accepted_findings
    assert {(each.code, each.cluster, each.replica) for each in entries} == {
        ("C5", None, "*"),
        ("E1", "orders", "orders-2"),
    }
    keys = set(re.findall(r"`(\w+)`", PAGE.partition("## What")[0].partition("| key ")[2]))
    assert keys >= yaml.safe_load(shown)["clusters"][0]["accepted_findings"][0].keys()


def errant_on(server: Server) -> str:
    """Commit a transaction that no other server receives."""
    return faults.commit(server, f"CREATE DATABASE errant_{datetime.now(UTC):%H%M%S%f}")


def audit(fleet: Path, *more: str) -> tuple[int, dict[str, Any]]:
    done = run_cli("audit", "--fleet", str(fleet), "--no-content", "--json", *more)
    assert done.returncode < 64, done.stderr
    return done.returncode, json.loads(done.stdout)


def loud(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (each["code"], each["severity"])
        for each in document["findings"]
        if each["severity"] != "info"
    ]


def written(fleet: Path, into: Path) -> subprocess.CompletedProcess[str]:
    [command] = re.findall(r"^gtid-audit (audit --fleet .*)$", PAGE, re.MULTILINE)
    places = {"fleet.yaml": str(fleet), "baseline.yaml": str(into)}
    return run_cli(*(places.get(word, word) for word in command.split()), "--no-content")


def test_an_errant_transaction_is_accepted_until_there_is_one_more(
    pair97: Pair, tmp_path: Path
) -> None:
    pair97.a.execute("STOP REPLICA")
    pair97.a.execute("RESET REPLICA ALL")
    errant_on(pair97.b)
    fleet = fleet_file(tmp_path / "fleet.yaml", ("shop", [address(pair97.a), address(pair97.b)]))
    assert audit(fleet)[0] == 2
    done = written(fleet, tmp_path / "baseline.yaml")
    assert (done.returncode, "baseline.yaml: " in done.stderr) == (2, True)
    entries = yaml.safe_load((tmp_path / "baseline.yaml").read_text())["clusters"][0]
    today = datetime.now(UTC).date()

    def accept(last_day: str) -> None:
        for each in entries["accepted_findings"]:
            each.update(reason="known", ticket="OPS-1", expires=last_day)
        document = yaml.safe_load(fleet.read_text())
        document["clusters"][0]["accepted_findings"] = entries["accepted_findings"]
        fleet.write_text(yaml.safe_dump(document))

    accept((today + timedelta(days=1)).isoformat())
    status, document = audit(fleet)
    assert (status, loud(document)) == (0, [])
    [accepted] = [each for each in document["findings"] if each["code"] == "E1"]
    facts = {each["fact"]: each["value"] for each in accepted["evidence"]}
    assert facts["accepted in ticket"] == "OPS-1"
    assert facts["severity if it were not accepted"] == "critical"
    text = run_cli("audit", "--fleet", str(fleet), "--no-content").stdout
    assert "Accepted, and so only info: " in text
    more = errant_on(pair97.b)
    status, document = audit(fleet)
    assert (status, loud(document)) == (2, [("E1", "critical")])
    assert f"{more} is not in the accepted set" in json.dumps(document)
    accept((today - timedelta(days=1)).isoformat())
    status, document = audit(fleet)
    assert (status, ("E1", "critical") in loud(document)) == (2, True)
    assert "the acceptance ended on " in json.dumps(document)
