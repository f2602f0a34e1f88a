"""Real servers that a command of the fleet file lists, through the commands that a user types."""

import json
import time
from pathlib import Path

from compose.native.server import free_port
from compose.native.shapes import Pair
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_live import SOON, await_metric, get, serving

TEXT = (
    "defaults: {user: root}\n"
    "clusters:\n  - {name: pair, servers_from: {command: [cat, list.json]}}\n"
)


def listed(folder: Path, ports: dict[str, int]) -> Path:
    servers = [{"name": name, "host": "127.0.0.1", "port": port} for name, port in ports.items()]
    (folder / "list.json").write_text(json.dumps({"servers": servers}))
    path = folder / "fleet.yaml"
    path.write_text(TEXT)
    path.chmod(0o600)
    return path


def test_listed_servers_are_audited_and_an_unreachable_one_is_unknown(
    pair97: Pair, tmp_path: Path
) -> None:
    ports = {"a": pair97.a.port, "b": pair97.b.port}
    fleet = str(listed(tmp_path, ports))
    done = run_cli("audit", "--fleet", fleet, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["clusters"][0]["cluster"] == "pair"
    assert run_cli("handshake", "--fleet", fleet, "--cluster", "pair").returncode == 0
    listed(tmp_path, {**ports, "c": free_port("127.0.0.1")})
    done = run_cli("audit", "--fleet", fleet, "--json")
    assert done.returncode == 3
    assert {each["server"] for each in json.loads(done.stdout)["unknown"]} == {"c"}


def test_a_command_that_fails_is_a_problem_of_the_file(pair97: Pair, tmp_path: Path) -> None:
    fleet = listed(tmp_path, {"a": pair97.a.port})
    (tmp_path / "list.json").unlink()
    done = run_cli("audit", "--fleet", str(fleet))
    assert (done.returncode, done.stdout) == (64, "")
    assert "clusters[0].servers_from: the output of cat: exit status 1: cat: list.json" in (
        done.stderr
    )


def test_the_service_lists_the_servers_again_before_each_audit(
    pair97: Pair, tmp_path: Path
) -> None:
    ports = {"a": pair97.a.port, "b": pair97.b.port}
    with serving(listed(tmp_path, ports)) as (_, url):
        await_metric(url, "gtid_audit_verdict", 1, cluster="pair", verdict="OK")
        listed(tmp_path, {**ports, "c": free_port("127.0.0.1")})
        await_metric(url, "gtid_audit_verdict", 1, cluster="pair", verdict="UNKNOWN")
        (tmp_path / "list.json").write_text("{}")
        await_failure(url)


def await_failure(url: str) -> None:
    """Wait until the service shows that the list could not be read."""
    deadline = time.monotonic() + SOON
    while "servers: is missing" not in (text := get(f"{url}/readyz")[1]):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
