"""More than two servers: contents are compared along the channels, and nowhere else.

A restart is due on every channel whose servers hold transactions of the restarted server.
"""

import json
from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Topology, follow, wait_for
from gtid import GtidSet
from gtid_audit.cli import run


def fleet_of(star: Topology, folder: Path) -> Path:
    """Write a fleet file with the servers of a star."""
    fleet = folder / "fleet.yaml"
    servers = "".join(
        f"      - {{name: {name}, host: 127.0.0.1, port: {server.port}}}\n"
        for name, server in star.servers.items()
    )
    fleet.write_text(
        f"defaults: {{user: root}}\nclusters:\n  - name: star\n    servers:\n{servers}"
    )
    return fleet


def test_a_source_is_compared_with_each_of_its_replicas(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = star97["source"]
    source.kill()
    source.start()
    source.execute("CREATE DATABASE after_the_start")
    star97.settle()
    status = run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    [compared] = found["contents"]
    assert sorted(map(sorted, compared["pairs"])) == [
        ["replica1", "source"],
        ["replica2", "source"],
    ]
    assert {start["server"] for start in compared["starts"]} == {"source"}, "others have no own"
    assert compared["compared_count"] >= 2
    assert (compared["differing_count"], compared["unread"]) == (0, [])
    reused = _tree_with_two_contents(star97)
    status = run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    [finding] = found["findings"]
    assert (status, finding["code"], finding["severity"]) == (2, "E4", "critical")
    assert (finding["grade"], GtidSet.parse(finding["gtid_set"])) == ("proved", reused)
    assert (finding["source"], finding["replica"]) == ("replica1", "replica2")


def _tree_with_two_contents(star: Topology) -> GtidSet:
    """Let the source reuse lost GTIDs, and replica1 follow it while replica2 has the lost ones.

    Then make it source → replica1 → replica2: no two servers differ about what either committed.
    """
    source, first, second = (star[name] for name in ("source", "replica1", "replica2"))
    dialect = source.dialect
    first.execute(dialect.stop_replica)
    lost = faults.lost_tail_crash(star, source="source", replica="replica2")
    reused = faults.commit(source, *["INSERT INTO lost.t (note) VALUES ('after the crash')"] * 3)
    assert GtidSet.parse(reused) == GtidSet.parse(lost.lost)
    later = faults.commit(source, "CREATE DATABASE later")
    first.execute(dialect.start_replica)
    wait_for(first, later)
    second.execute(dialect.stop_replica, dialect.reset_replica)
    follow(second, first)
    wait_for(second, later)
    for replica in (first, second):
        faults.await_status(replica, lambda status: status["Replica_IO_Running"] == "Yes")
    return GtidSet.parse(reused)


def test_two_replicas_with_one_errant_gtid_are_compared_with_each_other(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their source has nothing under the GTIDs, so no channel leads to the difference."""
    star97["source"].execute("CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)")
    star97.settle()
    uuid = "11111111-2222-3333-4444-555555555555"
    for row, name in enumerate(("replica1", "replica2")):
        star97[name].execute(
            f"SET SESSION gtid_next = '{uuid}:1'",
            "CREATE DATABASE same_on_both",
            f"SET SESSION gtid_next = '{uuid}:2'",
            f"INSERT INTO s.t VALUES ({901 + row})",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    run(["audit", "--fleet", str(fleet_of(star97, tmp_path)), "--json"])
    found = json.loads(capsys.readouterr().out)
    [finding] = [each for each in found["findings"] if each["code"] == "E4"]
    assert (finding["severity"], finding["gtid_set"]) == ("critical", f"{uuid}:2")
    assert {finding["source"], finding["replica"]} == {"replica1", "replica2"}
    assert "901" in str(finding["evidence"])
    assert "902" in str(finding["evidence"])
