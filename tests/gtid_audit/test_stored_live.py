"""A fleet of real and odd servers, stored and audited: no OK about what nobody read."""

import json
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.fake_server import Peer, fake_server


def fleet_of(path: Path, **clusters: tuple[int, ...]) -> str:
    """Write a fleet file: the ports of each cluster's servers."""
    lines = ["defaults: {user: root}", "limits: {server_seconds_max: 3}", "clusters:"]
    for name, ports in clusters.items():
        lines += [f"  - name: {name}", "    servers:"]
        lines += [f"      - {{name: s{port}, host: 127.0.0.1, port: {port}}}" for port in ports]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def answered(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, str], dict[str, Any]]:
    status = run((*arguments, "--json"))
    document = json.loads(capsys.readouterr().out)
    verdicts = {each["cluster"]: each["verdict"] for each in document["clusters"]}
    return status, verdicts, document


def other_columns(peer: Peer) -> None:
    """Let a client in, and answer whatever it asks with a column nobody asked for."""
    peer.let_in()
    while peer.receive():
        peer.answer(["nobody_asked"], [["x"]])


def only_ok(peer: Peer) -> None:
    """Let a client in, and answer every question with OK instead of rows."""
    peer.let_in()
    while peer.receive():
        peer.send(b"\0\0\0\2\0\0\0")


@pytest.mark.parametrize("serve", [other_columns, only_ok])
def test_an_odd_server_is_unknown_and_every_other_server_is_stored(
    serve: Any, pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path / "runs")
    with fake_server(serve) as odd:
        ports = {"broken": (pair97.b.port, odd.port), "well": (pair97.a.port,)}
        file = fleet_of(tmp_path / "fleet.yaml", **ports)
        assert run(("snapshot", "--fleet", file, "--out", runs, "--no-content")) == 3
    capsys.readouterr()
    status, verdicts, document = answered(capsys, "audit", "--snapshots", runs, "--fleet", file)
    assert verdicts["broken"] == "UNKNOWN"
    assert set(verdicts) == {"broken", "well"}
    assert f"s{odd.port}" in {each["server"] for each in document["unknown"]}
    assert status == 3


def test_a_cluster_that_a_selected_run_left_out_is_seen_in_its_state_or_unknown(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The critical cluster of the fleet file is absent from the run of the other one."""
    faults.position_bypass(pair97)
    runs = str(tmp_path / "runs")
    with fake_server(lambda peer: peer.send(b"SSH-2.0-OpenSSH_9.2\r\n")) as no_mysql:
        pair = (pair97.a.port, pair97.b.port)
        file = fleet_of(tmp_path / "fleet.yaml", pair=pair, other=(no_mysql.port,))
        snapshot = ("snapshot", "--fleet", file, "--out", runs, "--no-content")
        assert run((*snapshot, "--cluster", "other")) == 3
        capsys.readouterr()
        assert run(("audit", "--snapshots", runs, "--fleet", file)) == 64
        (selected,) = (tmp_path / "runs" / "partial").glob("day=*/run=*")
        status, verdicts, _ = answered(
            capsys, "audit", "--snapshots", str(selected), "--fleet", file
        )
        assert (status, verdicts) == (3, {"other": "UNKNOWN", "pair": "UNKNOWN"})
        assert run(snapshot) == 3
        assert run((*snapshot, "--cluster", "other")) == 3
        capsys.readouterr()
    status, verdicts, _ = answered(capsys, "audit", "--snapshots", runs, "--fleet", file)
    assert (status, verdicts) == (2, {"other": "UNKNOWN", "pair": "CRITICAL"})
