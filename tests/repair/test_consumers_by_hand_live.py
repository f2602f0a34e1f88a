"""What P4 tells the operator to do, done literally on real servers, and what plans say of it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compose.native.installation import Clients
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit import exits
from gtid_audit.cli import run
from tests.topology.test_consumers_live import (
    executed,
    fleet_file,
    pairs97,
    purge,
    received,
    write,
)

__all__ = ["pairs97"]  # `pair97` takes its pairs, which had no tag, instead of those of the pool

pytestmark = [
    pytest.mark.mysql,
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
]


@pytest.fixture
def purged(pair97: Pair, tmp_path: Path) -> Pair:
    """A pair whose server a has purged what the set in offset.txt does not have."""
    pair97.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    (tmp_path / "offset.txt").write_text(str(executed(pair97.a)))
    write(pair97, 10)
    purge(pair97, pair97.a, 20)
    return pair97


def planned(fleet: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    run(("repair", "plan", "--fleet", fleet, "--cluster", "shop", "--json", *arguments))
    shown = capsys.readouterr()
    assert shown.out, shown.err
    document: dict[str, Any] = json.loads(shown.out)
    return document


def ways(document: dict[str, Any]) -> dict[str, str]:
    [left] = document["not_planned"]
    assert left["code"] == "P4"
    return dict(way.split(": ", 1) for way in left["by_hand"])


def verdict(fleet: str, capsys: pytest.CaptureFixture[str]) -> str:
    run(("audit", "--fleet", fleet, "--json", "--no-content"))
    found: str = json.loads(capsys.readouterr().out)["verdict"]
    return found


def test_a_consumer_is_moved_to_a_server_that_serves_it(
    purged: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = executed_in(tmp_path)
    fleet = fleet_file(tmp_path, purged, '{name: cdc, set: "@offset.txt", server: a}')
    text = ways(planned(fleet, capsys))["move_consumer"]
    assert text.startswith("stop cdc; in its configuration, replace the address of a by that of a")
    assert "do not change the set" in text
    assert "change `server` of cdc in the fleet file" in text
    assert received(purged.b, offered) == executed(purged.b) - offered
    fleet = fleet_file(tmp_path, purged, '{name: cdc, set: "@offset.txt", server: b}')
    assert verdict(fleet, capsys) == "WARNING", "a failover back to a would still break it"
    (tmp_path / "offset.txt").write_text(str(executed(purged.b)))
    assert verdict(fleet, capsys) == "OK", "it has read on"


def executed_in(path: Path) -> GtidSet:
    return GtidSet.parse((path / "offset.txt").read_text())


def test_a_new_backup_replaces_the_old_one(
    purged: Pair, mysql_clients: Clients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    purge(purged, purged.b, 30)
    fleet = fleet_file(tmp_path, purged, '{name: backup, set: "@offset.txt"}')
    found = ways(planned(fleet, capsys))
    text = found["new_snapshot"]
    assert found.keys() == {"new_snapshot"}
    assert "If backup is a backup, take a new one with its set" in text
    command = text.split("`")[1].split()
    assert command[0] == "mysqldump"
    server = purged.a
    way = ("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP")
    with (tmp_path / "new.sql").open("wb") as file:
        subprocess.run(
            [*mysql_clients.command("mysqldump"), *way, *command[1:], "--all-databases"],
            stdout=file,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )
    fleet = fleet_file(tmp_path, purged, '{name: backup, set: "@new.sql"}')
    assert verdict(fleet, capsys) == "OK"


def test_a_strategy_that_does_not_help_says_so(
    purged: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = fleet_file(tmp_path, purged, '{name: cdc, set: "@offset.txt", server: a}')
    arguments = ("--fleet", fleet, "--cluster", "shop", "--strategy", "P4=raise_retention")
    assert run(("repair", "plan", *arguments)) == exits.USAGE
    text = capsys.readouterr().err
    assert "this does not help: the binary logs that are needed were deleted" in text


def test_a_plan_for_another_finding_keeps_the_consumer_in_its_outlook(
    purged: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the steps the servers are as before for the consumer: the plan says so."""
    purged.b.execute("STOP REPLICA")
    write_without_b(purged)
    fleet = fleet_file(tmp_path, purged, '{name: cdc, set: "@offset.txt", server: a}')
    document = planned(fleet, capsys)
    assert [each["code"] for each in document["not_planned"]] == ["P4"]
    assert document["steps"], "the stopped channel is started"
    assert [each["code"] for each in document["afterwards"]] == ["P4"]


def write_without_b(pair: Pair) -> None:
    pair.a.execute("INSERT INTO d.t VALUES (900)")
