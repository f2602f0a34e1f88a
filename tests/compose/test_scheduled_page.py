"""docs/scheduled.md: its commands run, as far as they can without a running systemd or cluster.

`/etc` is a folder of the test. EXCEPTIONS has the commands that are not run, each with the reason
and with what is checked in its place.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compose.native.installation import ProviderMissing, require_tool
from tests.gtid_audit.build import GTID_AUDIT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scheduled.md").read_text()
# The PATH of a job on Debian (cron(8)): /usr/local/bin is not in it.
CRON_PATH = "/usr/bin:/bin"
EXCEPTIONS = {
    "systemctl daemon-reload": "needs systemd as process 1; `enable` below works on files",
    "journalctl": "needs the journal of a unit that ran; the unit's name is checked",
    "kubectl apply": "needs a cluster; test_deploy_files.py validates the manifests",
}


def block(heading: str) -> list[str]:
    """Return the commands of a section, without comments."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    text = section.partition("```\n")[2].partition("```")[0]
    return [line.partition("     #")[0].rstrip() for line in text.splitlines()]


def in_bash(command: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        ["bash", "-ec", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def tool(name: str, package: str) -> str:
    try:
        return require_tool(name, brought_by=f"apt-get install {package}", needed_for="this page")
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


def test_every_command_of_the_page_is_run_or_excepted() -> None:
    lines = [line for name in ("systemd", "cron", "Kubernetes") for line in block(name)]
    fenced = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert sum(len(each.splitlines()) for each in fenced) == len(lines) == 11
    run = ("install ", "cp ", "systemctl enable ", "*/10 ", "kubectl create ")
    assert [line for line in lines if not line.startswith((*run, *EXCEPTIONS))] == []
    assert [each for each in EXCEPTIONS if not any(line.startswith(each) for line in lines)] == []


def test_the_units_are_installed_and_enabled(tmp_path: Path) -> None:
    systemctl = tool("systemctl", "systemd")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    for line in block("systemd"):
        if line.startswith(("install ", "cp ")):
            in_bash(line.replace("/etc/", f"{tmp_path}/etc/"))
        elif line.startswith("systemctl enable "):
            words = [each for each in shlex.split(line)[1:] if each != "--now"]
            in_bash(shlex.join([systemctl, f"--root={tmp_path}", *words]))
        elif line.startswith("journalctl "):
            unit = line.partition("--unit=")[2]
            assert (tmp_path / f"etc/systemd/system/{unit}.service").exists()
    secret = tmp_path / "etc/gtid-audit/environment"
    assert secret.read_text() == "GTID_AUDIT_PASSWORD=…\n"
    assert secret.stat().st_mode & 0o777 == 0o600
    enabled = {each.name for each in tmp_path.rglob("*.wants/*")}
    assert enabled == {"gtid-audit.service", "gtid-audit.timer"}
    unit = (ROOT / "deploy/systemd/gtid-audit.service").read_text()
    assert "EnvironmentFile=/etc/gtid-audit/environment" in unit


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder in place of `/`, with a `mail` that keeps what it is given."""
    for name in ("etc/gtid-audit", "var/log", "var/lib", "bin", "usr/local/bin"):
        (tmp_path / name).mkdir(parents=True)
    mail = tmp_path / "bin/mail"
    mail.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/mailed\ncat >> {tmp_path}/mailed\n')
    mail.chmod(0o755)
    return tmp_path


def run_as_cron(machine: Path) -> str | None:
    """Run the line of the page as cron does, and return what was mailed, if anything."""
    (line,) = block("cron")
    times, command = line.split()[:5], line.split(maxsplit=5)[5]
    assert times == ["*/10", "*", "*", "*", "*"]
    assert "%" not in command, "cron would end the command there"
    for place in ("/usr/local/bin/", "/etc/", "/var/log/", "/var/lib/"):
        command = re.sub(rf"(?<!\S){place}", f"{machine}{place}", command)
    subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": f"{machine}/bin:{CRON_PATH}", "HOME": "/nonexistent", "LOGNAME": "dba"},
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    mailed = machine / "mailed"
    return mailed.read_text() if mailed.exists() else None


@pytest.mark.parametrize(
    ("status", "is_mailed"), [(0, False), (1, False), (2, True), (3, True), (64, True)]
)
def test_cron_mails_what_is_worse_than_a_warning(
    status: int, is_mailed: bool, machine: Path
) -> None:
    program = machine / "usr/local/bin/gtid-audit"
    program.write_text(f"#!/bin/sh\necho report of $1\nexit {status}\n")
    program.chmod(0o755)
    mailed = run_as_cron(machine)
    assert mailed == ("-s gtid-audit dba\nreport of audit\n" if is_mailed else None)


@pytest.mark.long
def test_cron_mails_the_real_report_of_servers_that_do_not_answer(machine: Path) -> None:
    (machine / "usr/local/bin/gtid-audit").symlink_to(GTID_AUDIT)
    (machine / "etc/gtid-audit/fleet.yaml").write_text(
        "defaults: {user: auditor}\nclusters:\n- name: orders\n  servers:\n"
        "  - {name: db1, host: 127.0.0.1, port: 1}\n"
    )
    mailed = run_as_cron(machine)
    assert mailed is not None
    assert mailed.startswith("-s gtid-audit dba\n UNKNOWN   orders · 1 server · 1 fact not read")
    assert "Can't connect to MySQL server" in mailed
    assert (machine / "var/lib/gtid-audit.sqlite").exists()


def test_kubernetes_gets_what_the_manifests_ask_for(tmp_path: Path) -> None:
    kubectl = tool("kubectl", "kubectl, of https://kubernetes.io/docs/tasks/tools")
    (tmp_path / "fleet.yaml").write_text("clusters: []\n")
    store = tmp_path / "pass"
    store.write_text('#!/bin/sh\n[ "$1" = show ] && echo secret\n')
    store.chmod(0o755)
    made: list[dict[str, Any]] = []
    for line in block("Kubernetes"):
        if line.startswith("kubectl create "):
            words = line.replace("fleet.yaml", f"{tmp_path}/fleet.yaml", 1)
            command = words.replace("kubectl", kubectl, 1) + " --dry-run=client --output=yaml"
            text = in_bash(command, PATH=f"{tmp_path}:{os.environ['PATH']}")
            made.append(yaml.safe_load(text))
        else:
            files = re.findall(r"--filename (\S+)", line)
            assert files
            assert all((ROOT / each).is_file() for each in files)
    config, secret = made
    assert (config["kind"], list(config["data"])) == ("ConfigMap", ["fleet.yaml"])
    assert (secret["kind"], list(secret["data"])) == ("Secret", ["password"])
    for name in ("cronjob", "deployment"):
        text = (ROOT / f"deploy/kubernetes/{name}.yaml").read_text()
        assert f"configMap: {{name: {config['metadata']['name']}}}" in text
        assert f"secretKeyRef: {{name: {secret['metadata']['name']}, key: password}}" in text
        assert "/etc/gtid-audit/fleet.yaml" in text


def test_the_files_that_the_page_names_exist() -> None:
    for name in re.findall(
        r"(?:deploy|tests|compose)/[\w./-]+", PAGE.replace("deploy/systemd/*", "")
    ):
        assert (ROOT / name.rstrip(".")).exists(), name
