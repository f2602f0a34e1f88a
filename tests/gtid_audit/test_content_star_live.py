"""More than two servers: contents are compared along the channels, and nowhere else."""

import json
from pathlib import Path

import pytest

from compose.native.shapes import Topology
from gtid_audit.cli import run


def test_a_source_is_compared_with_each_of_its_replicas(
    star97: Topology, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = star97["source"]
    source.kill()
    source.start()
    source.execute("CREATE DATABASE after_the_start")
    star97.settle()
    fleet = tmp_path / "fleet.yaml"
    servers = "".join(
        f"      - {{name: {name}, host: 127.0.0.1, port: {server.port}}}\n"
        for name, server in star97.servers.items()
    )
    fleet.write_text(
        f"defaults: {{user: root}}\nclusters:\n  - name: star\n    servers:\n{servers}"
    )
    status = run(["audit", "--fleet", str(fleet), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (status, found["findings"], found["unknown"]) == (0, [], [])
    [compared] = found["contents"]
    assert sorted(map(sorted, compared["pairs"])) == [
        ["replica1", "source"],
        ["replica2", "source"],
    ]
    assert {start["server"] for start in compared["starts"]} == set(star97.servers)
    assert compared["compared_count"] >= 2
    assert (compared["differing_count"], compared["unread"]) == (0, [])
