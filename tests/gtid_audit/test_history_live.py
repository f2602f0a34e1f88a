"""`--history` on real servers: a fault appears, stays, is repaired, and comes back."""

import json
import re
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_live import address, await_metric, fleet_file, get, metric, serving
from topology.adapters.history_file import HistoryFile


def findings(code: str, *arguments: str) -> list[dict[str, Any]]:
    done = run_cli(*arguments, "--json")
    assert done.stderr == ""
    return [each for each in json.loads(done.stdout)["findings"] if each["code"] == code]


PAGE = (Path(__file__).parents[2] / "docs/history.md").read_text()


def test_the_commands_of_the_page(pair97: Pair, tmp_path: Path) -> None:
    shown = re.findall(r"^```\ngtid-audit (.*)$", PAGE, re.MULTILINE)
    places = {
        "mysql://root@db1/?ssl=required": pair97.a.dsn,
        "mysql://root@db2/?ssl=required": pair97.b.dsn,
        "history.sqlite3": str(tmp_path / "history.sqlite3"),
    }
    lines = [[places.get(word, word) for word in shlex.split(line)] for line in shown]
    assert [line[0] for line in lines] == ["pair", "history", "history"]
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    audits = [run_cli(*lines[0]) for _ in range(2)]
    assert [done.returncode for done in audits] == [1, 1]
    assert re.search(r"since *\d{4}-\d\d-\d\d", audits[1].stdout)
    listed = run_cli(*lines[1]).stdout.splitlines()
    [about] = re.findall(r"    (1 open finding), 1 ended\n( +since .* where)\n", PAGE)
    assert listed[0].startswith(about[0])
    assert listed[1].split() == about[1].split()
    assert "--forget" in lines[2]
    assert run_cli(*lines[2]).returncode == 1, "nothing is remembered of this GTID"
    pair97.b.execute("START REPLICA SQL_THREAD")


def test_since_when_a_pair_has_a_fault(pair97: Pair, tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    audit = ("pair", pair97.a.dsn, pair97.b.dsn, "--history", str(file))
    assert findings("A7", *audit) == []
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    [first] = findings("A7", *audit)
    assert first["first_seen"] == first["last_seen"]
    [lasting] = findings("A7", *audit)
    assert lasting["first_seen"] == first["first_seen"] < lasting["last_seen"]
    text = run_cli(*audit).stdout
    assert f" since {first['first_seen'][:19].replace('T', ' ')} UTC" in " ".join(text.split())
    pair97.b.execute("START REPLICA SQL_THREAD")
    pair97.settle()
    assert findings("A7", *audit) == []
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    [again] = findings("A7", *audit)
    assert again["first_seen"] == again["last_seen"] > lasting["last_seen"]
    pair97.b.execute("START REPLICA SQL_THREAD")
    listed = run_cli("history", str(file), "--json")
    episodes = [each for each in json.loads(listed.stdout)["episodes"] if each["code"] == "A7"]
    assert [(each["first_seen"], each["ending"]) for each in episodes] == [
        (again["first_seen"], None),
        (first["first_seen"], "not found"),
    ]
    shown = run_cli("history", str(file))
    assert (shown.returncode, shown.stdout.count(" A7 ")) == (0, 2)


@pytest.mark.slow
def test_a_server_that_hangs_ends_nothing(pair97: Pair, tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    audit = ("pair", pair97.a.dsn, pair97.b.dsn, "--history", str(file))
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    [first] = findings("A7", *audit)
    with faults.hung_server(pair97.b):
        assert run_cli(*audit, "--timeout", "1").returncode == 3
    [after] = findings("A7", *audit)
    assert after["first_seen"] == first["first_seen"]
    pair97.b.execute("START REPLICA SQL_THREAD")


def test_an_unusable_file_fails_before_a_server_is_read(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("not SQLite\n" * 50)
    with socket.create_server(("", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        pair = [f"mysql://x@127.0.0.{number}:{port}" for number in (1, 2)]
        done = run_cli("pair", *pair, "--history", str(file))
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (done.returncode, done.stdout) == (64, "")
    assert "not a SQLite file" in done.stderr
    assert file.read_text() == "not SQLite\n" * 50


@pytest.mark.slow
def test_a_fleet_keeps_its_history_with_and_without_parquet(pair97: Pair, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    fleet = str(
        fleet_file(tmp_path / "fleet.yaml", ("shop", [address(pair97.a), address(pair97.b)]))
    )
    out = tmp_path / "out"
    beside = out / "_history.sqlite3"
    [first] = findings("A7", "audit", "--fleet", fleet, "--out", str(out))
    [second] = findings("A7", "audit", "--fleet", fleet, "--history", str(beside))
    [third] = findings("A7", "audit", "--fleet", fleet, "--out", str(out))
    begun = first["first_seen"]
    assert [each["first_seen"] for each in (second, third)] == [begun, begun]
    [episode] = [each for each in HistoryFile(beside).episodes() if each.code == "A7"]
    assert episode.cluster == "shop"
    pair97.b.execute("START REPLICA SQL_THREAD")


def test_the_service_keeps_a_history_over_a_restart(pair97: Pair, tmp_path: Path) -> None:
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    fleet = fleet_file(tmp_path / "fleet.yaml", ("shop", [address(pair97.a), address(pair97.b)]))
    kept = ("--history", str(tmp_path / "history"))
    name = "gtid_audit_finding_first_seen_timestamp_seconds"

    def since() -> float:
        """Start the service, wait for an audit, and return since when it reports A7."""
        with serving(fleet, *kept) as (_, url):
            await_metric(url, "gtid_audit_verdict", 1.0, cluster="shop", verdict="WARNING")
            [found] = metric(get(f"{url}/metrics")[1], name, code="A7", cluster="shop")
            return found

    first = since()
    assert since() == first
    [episode] = [each for each in HistoryFile(tmp_path / "history").episodes() if each.code == "A7"]
    assert episode.first_seen.timestamp() == pytest.approx(first, abs=0.001)
    assert episode.last_seen > episode.first_seen
    pair97.b.execute("START REPLICA SQL_THREAD")
