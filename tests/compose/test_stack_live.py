"""The stack of `make up` runs: a fault raises its alert in Prometheus, and its repair ends it.

It needs a Docker engine and the images: `make engine images` brings both on Debian. The names of
alerts are read from the rules, whose waiting times are shortened in a copy.
"""

import base64
import json
import re
import shlex
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from compose.containers.stack import COMPOSE_FOLDER, SHAPES, Stack
from compose.containers.stack_faults import FAULTS
from compose.native.installation import ProviderMissing
from compose.native.server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROJECT = "gtid-audit-test"
PAGE = (COMPOSE_FOLDER.parent / "docs/stack.md").read_text()
RULES = COMPOSE_FOLDER.parent / "gtid_audit/monitoring/files/prometheus"
SECONDS_MAX = 150
PORTS = ("DB1", "DB2", "AUDITOR", "PROMETHEUS", "ALERTMANAGER", "GRAFANA")
_TIMES = re.compile(r"^(\s*)(for|keep_firing_for): .*$", re.MULTILINE)
_INTERVALS = re.compile(r"^(\s*)(scrape_interval|evaluation_interval): .*$", re.MULTILINE)


def hurried(source: Path, copied: Path) -> str:
    """Copy files of Prometheus; alerts wait 2 s instead of minutes. Return the new folder."""
    shutil.copytree(source, copied)
    copied.chmod(0o755)
    for path in copied.iterdir():
        text = _TIMES.sub(r"\1\2: 2s", path.read_text())
        path.write_text(_INTERVALS.sub(r"\1\2: 2s", text))
        path.chmod(0o644)
    return str(copied)


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    try:
        made = Stack(PROJECT)
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    made.down()  # what an interrupted run left
    made.folder.mkdir(parents=True)
    ports = {f"{name}_PORT": str(free_port("127.0.0.1")) for name in PORTS}
    folders = {
        "PROMETHEUS_FOLDER": hurried(COMPOSE_FOLDER / "prometheus", made.folder / "prometheus"),
        "RULES_FOLDER": hurried(RULES, made.folder / "rules"),
    }
    made = Stack(PROJECT, variables={**ports, **folders})
    try:
        try:
            made.up(["pair"])
        except ProviderMissing as missing:
            pytest.skip(f"provider missing: {missing}")
        yield made
    finally:
        made.down()


def alerts_of_rules() -> set[str]:
    """The names of all alerts in the rule files that Prometheus loads."""
    config = yaml.safe_load((COMPOSE_FOLDER / "prometheus" / "prometheus.yml").read_text())
    assert config["rule_files"] == ["/etc/gtid-audit/*.rules.yml"]
    files = RULES.glob("*.rules.yml")
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


def asked(stack: Stack, service: str, port: int, path: str) -> Any:
    address = stack.compose("port", service, str(port)).strip()
    assert address.startswith("127.0.0.1:"), "published on loopback only"
    return json.loads(read(f"http://{address}{path}"))


def read(address: str, **headers: str) -> bytes:
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def firing(stack: Stack) -> list[dict[str, str]]:
    """The labels of the alerts about the pair that fire now, in Prometheus."""
    alerts = asked(stack, "prometheus", 9090, "/api/v1/alerts")["data"]["alerts"]
    assert {each["labels"]["alertname"] for each in alerts} <= alerts_of_rules()
    return [each["labels"] for each in alerts if each["state"] == "firing"]


def received(stack: Stack) -> set[str]:
    """The names of the alerts that Alertmanager shows."""
    return {
        each["labels"]["alertname"]
        for each in asked(stack, "alertmanager", 9093, "/api/v2/alerts?active=true")
    }


def await_alerts(stack: Stack, *, code: str | None) -> list[dict[str, str]]:
    """Wait for an alert with this code; with None, until no alert fires. Return what fires."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found = firing(stack)
        if code is None and not found:
            return []
        wanted = [each for each in found if each.get("code") == code]
        if code is not None and wanted:
            return wanted
        assert time.monotonic() < deadline, (code, found)
        time.sleep(1)


@pytest.mark.parametrize(("name", "code"), [("conflict", "A2"), ("partition", "A4")])
def test_an_alert_fires_and_is_resolved(stack: Stack, name: str, code: str) -> None:
    await_alerts(stack, code=None)
    stack.inject(FAULTS[name])
    try:
        alerts = await_alerts(stack, code=code)
        assert {each["cluster"] for each in alerts} == {"pair"}
        deadline = time.monotonic() + SECONDS_MAX
        while alerts[0]["alertname"] not in received(stack):
            assert time.monotonic() < deadline
            time.sleep(1)
    finally:
        stack.repair(FAULTS[name])
    await_alerts(stack, code=None)


def test_a_server_that_does_not_answer_raises_an_alert(stack: Stack) -> None:
    await_alerts(stack, code=None)
    stack.inject(FAULTS["frozen"])
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while not firing(stack):
            assert time.monotonic() < deadline
            time.sleep(1)
    finally:
        stack.repair(FAULTS["frozen"])
    await_alerts(stack, code=None)


def test_the_auditor_shows_its_page_to_the_operator_only(stack: Stack) -> None:
    (address,) = [line for line in stack.addresses() if line.startswith("auditor: ")]
    url = address.removeprefix("auditor: ")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(url)
    password = f"any:{(stack.folder / 'token').read_text()}".encode()
    page = read(url, Authorization=f"Basic {base64.b64encode(password).decode()}")
    assert b"<title>" in page
    assert b"pair" in page


def test_no_secret_is_in_a_command_or_a_variable(stack: Stack) -> None:
    secrets = [(stack.folder / name).read_text() for name in ("root", "replication", "token")]
    containers = stack.compose("ps", "--all", "--quiet").split()
    shown = stack.docker("inspect", *containers) + stack.compose("logs")
    assert len(containers) >= 6
    assert not [secret for secret in secrets if secret in shown]


def test_the_auditor_writes_to_tmp_only_and_has_no_rights(stack: Stack) -> None:
    (inspected,) = json.loads(stack.docker("inspect", stack.container("auditor")))
    assert inspected["Config"]["User"] == "65532:65532"
    assert inspected["HostConfig"]["ReadonlyRootfs"]
    assert inspected["HostConfig"]["CapDrop"] == ["ALL"]
    program = "import json, numba, pyarrow; print(json.load(open('/usr/share/gtid-audit/sbom.cdx.json'))['bomFormat'])"
    said = stack.compose("exec", "--no-TTY", "auditor", "python3", "-c", program)
    assert said.strip() == "CycloneDX"


def test_the_image_of_the_auditor_is_small(stack: Stack) -> None:
    """It was 559 MB before slim_packages.py."""
    (inspected,) = json.loads(stack.docker("inspect", stack.container("auditor")))
    (image,) = json.loads(stack.docker("image", "inspect", inspected["Image"]))
    assert image["Size"] < 450_000_000
    (built,) = re.findall(r"It takes about (\d+) MB", PAGE)
    assert abs(image["Size"] / 1e6 - int(built)) < 20, "docs/stack.md has another size"


def test_the_commands_of_the_page_that_need_the_stack(stack: Stack) -> None:
    """The others are what this file does: up, a fault and its repair, down; and `make images`."""
    (connect,) = re.findall(r"^(docker compose --project-name .*\\\n.*)$", PAGE, re.MULTILINE)
    words = shlex.split(connect.replace("\\\n", " "))
    assert words[:6] == [
        *("docker", "compose", "--project-name", "gtid-audit"),
        *("--file", "compose/docker-compose.yml"),
    ]
    at = words.index("exec")
    shown = stack.compose(
        "exec", "--no-TTY", words[at + 1], *words[at + 2 : -1], f"{words[-1]} -e 'SELECT 42'"
    )
    assert "42" in shown
    (run,) = re.findall(r"^docker (run .*)$", PAGE, re.MULTILINE)
    assert "Usage: gtid-audit" in stack.docker(*shlex.split(run))
    listed = re.findall(r"^(\w+): http://127.0.0.1:\d+/$", PAGE, re.MULTILINE)
    services = {line.partition(":")[0] for line in stack.addresses()}
    assert services | {"grafana"} == set(listed)


def test_the_page_lists_every_fault_and_shape() -> None:
    tables = re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)
    assert {*FAULTS, *SHAPES} <= set(tables)


def test_down_leaves_nothing(stack: Stack) -> None:
    """The last test of this file: the fixture's own `down` finds nothing."""
    stack.down()
    label = f"label=com.docker.compose.project={PROJECT}"
    for kind in (("ps", "--all"), ("volume", "ls"), ("network", "ls")):
        assert stack.docker(*kind, "--quiet", "--filter", label).strip() == ""
    assert not stack.folder.exists()
