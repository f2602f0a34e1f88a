"""The files of `make up`: their shape, and that what they mount exists."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from topology.adapters.inventory.fleet_file import load_fleet

COMPOSE = Path(__file__).parents[2] / "compose"


def read(path: str) -> Any:
    return yaml.safe_load((COMPOSE / path).read_text())


def test_compose_file_holds_together() -> None:
    file = read("docker-compose.yml")
    services = file["services"]
    assert set(services) == {"db1", "db2", "init", "auditor", "prometheus", "grafana"}
    named = set(file["volumes"])
    for name, service in services.items():
        assert ("image" in service) or ("build" in service)
        if "image" in service and "build" not in service:
            assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[^}]+\}", service["image"]), name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "published on loopback only"
        for needed in service.get("depends_on", ()):
            assert needed in services
        for volume in service.get("volumes", ()):
            host = volume.split(":")[0]
            assert host in named or (COMPOSE / host).exists(), f"{name}: {host}"
    assert (COMPOSE / ".." / services["auditor"]["build"]["dockerfile"]).resolve().exists()
    ids = {
        option
        for each in ("db1", "db2")
        for option in services[each]["command"]
        if "server-id" in option
    }
    assert len(ids) == 2


def test_the_scraped_port_is_the_one_the_auditor_listens_on() -> None:
    command = read("docker-compose.yml")["services"]["auditor"]["command"]
    port = command[command.index("--listen") + 1].rpartition(":")[2]
    targets = read("prometheus/prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]
    assert targets == [f"auditor:{port}"]


def test_the_fleet_file_of_the_stack_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = load_fleet(
        COMPOSE / "mysql/fleet.yaml", environment={"GTID_AUDIT_PASSWORD": "x"}, warn=pytest.fail
    )
    names = [target.name for target in fleet.clusters[0].targets]
    assert names == ["db1", "db2"]


def test_docker_takes_the_compose_file() -> None:
    docker = shutil.which("docker")
    if docker is None or b"compose" not in _output(docker, "compose", "version").lower():
        pytest.skip(
            "provider missing: docker with its compose plugin (apt-get install docker-compose-v2)"
        )
    assert (
        _output(docker, "compose", "-f", str(COMPOSE / "docker-compose.yml"), "config", "-q") == b""
    )


def _output(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return done.stdout if done.returncode == 0 else b""
