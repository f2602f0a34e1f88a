"""docs/first-hour.md, done literally: account, pair, discovery, fleet file, service."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from compose.native.shapes import Pair
from tests.gtid_audit.programs import free_port, programs_or_skip, running
from tests.gtid_audit.test_monitoring_live import awaited
from tests.gtid_audit.test_readme_live import PASSWORD, account

PAGE = (Path(__file__).resolve().parents[2] / "docs/first-hour.md").read_text()


def test_the_page_installs_what_its_commands_need() -> None:
    """The commands of the page run in an environment that has nothing else."""
    [installed] = re.findall(r"pip install '\./gtid-audit\[(.*?)\]'", PAGE)
    needed = {
        extra
        for command, extra in (("serve", "serve"), ("binlog", "columns"), ("spark", "spark"))
        if re.search(rf"^gtid-audit {command} ", PAGE, re.MULTILINE)
    }
    assert set(installed.split(",")) == needed


def scrape(folder: Path, configuration: str, target: str) -> None:
    """Do step 6 of the page: its configuration and its files on a Prometheus, and its query."""
    programs = programs_or_skip()
    dashboards = [*(folder / "monitoring/grafana/dashboards").glob("*.json")]
    assert [json.loads(each.read_text())["title"] for each in dashboards]
    rules = folder / "monitoring/prometheus/gtid-audit.rules.yml"
    assert "monitoring/prometheus/gtid-audit.rules.yml" in PAGE
    (folder / rules.name).write_bytes(rules.read_bytes())
    assert configuration.count("127.0.0.1:9421") == 1
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"  # the default is a minute
        + configuration.replace("127.0.0.1:9421", target)
    )
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        *programs.command("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    [query] = re.findall(r"^\$ curl -s '127\.0\.0\.1:9090(/api/\S+)'$", PAGE, re.MULTILINE)
    with running(command, ready=f"{url}/-/ready", log=folder / "log"):
        asked = f"{url}{query}"
        awaited(lambda: answered(asked)["data"]["result"])
        [verdict] = answered(asked)["data"]["result"]
        assert (verdict["metric"]["cluster"], verdict["metric"]["verdict"]) == ("orders", "OK")
        groups = answered(f"{url}/api/v1/rules")["data"]["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
        assert "GtidAuditH1" in {rule["name"] for group in groups for rule in group["rules"]}


def answered(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_steps_of_the_page(pair97: Pair, tmp_path: Path) -> None:
    pair97.a.execute(*account())
    pair97.settle()
    commands = re.findall(
        r"^gtid-audit (?!:).*$",
        re.sub(r"^gtid-audit: .*", "", PAGE, flags=re.MULTILINE),
        re.MULTILINE,
    )
    assert commands.pop(0) == "gtid-audit --version"
    assert [line.split()[1] for line in commands] == [
        *("pair", "audit", "audit", "serve", "monitoring")
    ]
    fleet, prometheus = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    for name, server in (("db1", pair97.a), ("db2", pair97.b)):
        fleet = fleet.replace(f"{name}.example.com", f"127.0.0.1, port: {server.port}")
        commands = [line.replace(f"@{name}/", f"@127.0.0.1:{server.port}/") for line in commands]
    (tmp_path / "fleet.yaml").write_text(fleet)
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "GTID_AUDIT_PASSWORD": PASSWORD, "PYTHONPATH": root}
    program = [sys.executable, "-m", "gtid_audit"]
    for line in commands[:3]:
        words = [*program, *shlex.split(line)[1:]]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith(" OK   "), done.stdout
        if "--discover" in line:
            assert "names it as its source" in done.stderr
            assert "not connected to its source now is not found" in done.stderr
    words = [*program, *shlex.split(commands[3].replace("127.0.0.1:9421", "127.0.0.1:0"))[1:]]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as served:
        try:
            assert served.stdout is not None
            address = served.stdout.readline().removeprefix("listening on ").strip()
            with urlopen(f"{address}/metrics", timeout=30) as answer:
                assert answer.status == 200
            words = [*program, *shlex.split(commands[4])[1:]]
            subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
            scrape(tmp_path, prometheus, address.removeprefix("http://"))
        finally:
            served.terminate()
    assert served.returncode == 0
