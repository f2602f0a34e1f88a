"""The files of `make up`, read without an engine: ports, images, secrets, shapes, the fleet file."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from compose.containers import engine, sbom
from compose.containers.auditor_image import closure
from compose.containers.stack import _IMAGES, COMPOSE_FOLDER, SHAPES
from compose.native.installation import ProviderMissing
from gtid_audit.commands.environment_names import SHARED, variables_of
from topology.adapters.inventory.fleet_file import load_fleet

SERVERS = {
    "pair": ["db1", "db2"],
    "chain": ["c1", "c2", "c3"],
    "multi-source": ["m1", "m2", "m3"],
    "group": ["g1", "g2", "g3"],
}


def compose_file() -> Any:
    return yaml.safe_load((COMPOSE_FOLDER / "docker-compose.yml").read_text())


def test_images_are_variables_and_ports_are_on_loopback() -> None:
    file = compose_file()
    for name, service in file["services"].items():
        found = re.fullmatch(r"\$\{([A-Z]+_IMAGE):-([^}]+)\}", service["image"])
        assert found is not None, name
        if found[1] != "AUDITOR_IMAGE":
            assert _IMAGES[found[1]][0] == found[2], "stack.py falls back from the same image"
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:${"), name
        for needed in service.get("depends_on", ()):
            assert needed in file["services"]


def test_every_service_that_stays_has_a_health_check() -> None:
    for name, service in compose_file()["services"].items():
        assert ("healthcheck" in service) == (not name.startswith(("init-", "load"))), name


def test_every_server_has_its_own_id_and_belongs_to_its_shape() -> None:
    services = compose_file()["services"]
    ids = [
        option
        for service in services.values()
        for option in service.get("command", ())
        if option.startswith("--server-id=")
    ]
    assert len(set(ids)) == len(ids) == sum(map(len, SERVERS.values()))
    assert SERVERS.keys() == SHAPES.keys()
    for shape, servers in SERVERS.items():
        assert services[f"init-{shape}"]["command"] == [shape, *servers]
        assert all(services[server]["profiles"] == [shape] for server in servers)
        assert set(SHAPES[shape]) <= set(servers)


def test_nothing_writes_or_audits_before_replication_is_set_up() -> None:
    services = compose_file()["services"]
    wanted = {f"init-{shape}" for shape in SERVERS}
    assert set(services["load"]["depends_on"]) == set(services["auditor"]["depends_on"]) == wanted


def test_the_auditor_has_nothing_that_it_does_not_need() -> None:
    auditor = compose_file()["services"]["auditor"]
    assert auditor["read_only"]
    assert auditor["cap_drop"] == ["ALL"]
    assert auditor["secrets"] == ["auditor", "token"]
    assert re.search(r"^USER [1-9][0-9]*:[1-9][0-9]*$", dockerfile(), re.MULTILINE)


def dockerfile() -> str:
    return (COMPOSE_FOLDER / "Dockerfile").read_text()


def test_every_wheel_that_the_image_installs_is_fetched() -> None:
    extras = set(re.findall(r"\[([a-z,]+)\]\"", dockerfile()))
    assert extras == {"columns,serve"}, "with wheels and without: the same"
    fetched = closure()
    assert {"pymysql", "click", "numba", "llvmlite", "pyarrow"} <= fetched
    assert {"starlette", "anyio", "uvicorn", "h11"} <= fetched, "of [serve]: `serve` is its command"
    assert not {"pyspark", "pytest"} & fetched


def test_secrets_are_files_outside_of_the_repository() -> None:
    file = compose_file()
    for secret in file["secrets"].values():
        assert secret["file"].startswith("${STACK_FOLDER:-../.cache/stack}/")
    assert "/.cache" in (COMPOSE_FOLDER.parent / ".gitignore").read_text().splitlines()
    for service in file["services"].values():
        for variable in service.get("environment", {}):
            assert "PASSWORD" not in variable or variable.endswith("_FILE")


def test_the_scraped_port_is_the_one_the_auditor_listens_on() -> None:
    command = compose_file()["services"]["auditor"]["command"]
    port = command[command.index("--listen") + 1].rpartition(":")[2]
    config = yaml.safe_load((COMPOSE_FOLDER / "prometheus" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    credentials = Path(job["authorization"]["credentials_file"])
    assert credentials.parent == Path("/run/secrets")
    assert credentials.name in compose_file()["services"]["prometheus"]["secrets"]
    assert job["static_configs"][0]["targets"] == [f"auditor:{port}"]


@pytest.mark.parametrize("shapes", [*([each] for each in SERVERS), list(SERVERS)])
def test_the_fleet_file_of_each_shape_is_one(shapes: list[str], tmp_path: Path) -> None:
    parts = [COMPOSE_FOLDER / "mysql" / "fleet" / f"{name}.yaml" for name in ("head", *shapes)]
    option_file = tmp_path / "auditor"
    option_file.write_text("[client]\npassword=x\n")
    option_file.chmod(0o600)
    text = "".join(path.read_text() for path in parts)
    fleet_file = tmp_path / "fleet.yaml"
    fleet_file.write_text(text.replace("/run/secrets/auditor", str(option_file)))
    fleet = load_fleet(fleet_file, environment={}, warn=pytest.fail)
    assert {each.name: [target.name for target in each.targets] for each in fleet.clusters} == {
        shape: SERVERS[shape] for shape in shapes
    }


def test_without_an_engine_everything_ends_at_once_with_what_brings_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("GTID_AUDIT_DOCKER_ENGINE", str(tmp_path))
    monkeypatch.setattr(engine, "_DEFAULT_SOCKET", tmp_path / "no.sock")
    with pytest.raises(ProviderMissing, match=r"make engine|apt-get install"):
        engine.docker_environment()


def test_no_variable_of_the_test_servers_sets_an_option() -> None:
    options = {variables_of((), option)[-1] for option in SHARED}
    texts = [path.read_text() for path in COMPOSE_FOLDER.rglob("*.py")]
    ours = {found for text in texts for found in re.findall(r"GTID_AUDIT_[A-Z_]+", text)}
    assert "GTID_AUDIT_DOCKER_ENGINE" in ours
    assert not ours & options


@pytest.mark.long
def test_the_commands_name_what_is_missing_and_fail(tmp_path: Path) -> None:
    if Path("/var/run/docker.sock").exists():
        pytest.skip("this machine has an engine at the default socket")
    variables = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(COMPOSE_FOLDER.parent),
        "GTID_AUDIT_DOCKER_ENGINE": str(tmp_path),
        "GTID_AUDIT_CACHE": str(tmp_path),
        "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
    }
    for arguments in (["stack", "up"], ["stack", "down"], ["make_images"], ["engine", "status"]):
        done = subprocess.run(
            [sys.executable, "-m", f"compose.containers.{arguments[0]}", *arguments[1:]],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1, arguments
        assert "make engine" in done.stderr
        assert "Traceback" not in done.stderr


def test_sbom_lists_python_and_debian_packages(tmp_path: Path) -> None:
    found = tmp_path / "site" / "Some.Thing-1.0+a.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: Some.Thing\nVersion: 1.0+a\n")
    listed = tmp_path / "list"
    listed.write_text("libc6 2.36-9+deb12u13\n")
    status = tmp_path / "status"
    status.write_text("Package: dash\nVersion: 0.5\n\nPackage: gone\nStatus: deinstall\n")

    def purls(debian_list: Path, dpkg_status: Path) -> list[str]:
        document = sbom.sbom_of(found.parent, debian_list=debian_list, dpkg_status=dpkg_status)
        return [each["purl"] for each in document["components"]]

    python = "pkg:pypi/some-thing@1.0%2Ba"
    assert purls(listed, status) == ["pkg:deb/debian/libc6@2.36-9%2Bdeb12u13", python]
    assert purls(tmp_path / "none", status) == ["pkg:deb/debian/dash@0.5", python]
    assert purls(tmp_path / "none", tmp_path / "none") == [python]


def test_docker_takes_the_compose_file() -> None:
    try:
        command = engine.compose_command() if engine.docker_environment() else []
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    file = COMPOSE_FOLDER / "docker-compose.yml"
    done = subprocess.run(
        [*command, "--profile=*", "--file", str(file), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout + done.stderr == ""
