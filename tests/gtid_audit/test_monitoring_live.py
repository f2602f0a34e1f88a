"""Every query of the dashboards and every alert, on a real Prometheus that scrapes a real `serve`.

`GTID_AUDIT_PANELS=DIR` keeps the dashboards as pages (rendered_panels.py), to look at them.
"""

import json
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.monitoring.alert_rules import RECORDED
from gtid_audit.monitoring.alert_table import alerts
from gtid_audit.monitoring.monitoring_files import DASHBOARDS, FILES
from tests.gtid_audit.programs import SOON, free_port, programs_or_skip, running
from tests.gtid_audit.rendered_panels import Answer, page_of
from tests.gtid_audit.test_live import address, fleet_file, serving

# Scraping and auditing every second, a test of some seconds has the past that a query needs.
FASTER = {"$__rate_interval": "5s", "$__interval": "2s", "[15m]": "[5s]", "$cluster": ".*"}
BOARDS = {path.stem: json.loads(path.read_text()) for path in (FILES / DASHBOARDS).glob("*.json")}


@dataclass(frozen=True)
class Asked:
    """A Prometheus, by its address."""

    url: str
    since: float

    def answer(self, expr: str, now: bool) -> Answer:
        for name, value in FASTER.items():
            expr = expr.replace(name, value)
        if now:
            return self._get("query", query=expr)
        until = time.time()
        return self._get("query_range", query=expr, start=self.since, end=until, step=1)

    def _get(self, what: str, **parameters: Any) -> Answer:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{what}?{query}", timeout=SOON) as done:
            found: Answer = json.load(done)["data"]["result"]
        return found


def awaited(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def configured(folder: Path, target: str) -> Path:
    """Write the configuration of a Prometheus that scrapes and evaluates every second."""
    path = folder / "prometheus.yml"
    document = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FILES / "prometheus" / "gtid-audit.rules.yml")],
        "scrape_configs": [{"job_name": "gtid-audit", "static_configs": [{"targets": [target]}]}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_every_panel_and_every_alert_has_data(pair97: Pair, tmp_path: Path) -> None:
    programs = programs_or_skip()
    dead = f"127.0.0.1:{free_port()}"
    fleet = fleet_file(
        tmp_path / "fleet.yaml",
        ("pair", [address(pair97.a), address(pair97.b)]),
        ("lost", [dead, f"127.0.0.1:{free_port()}"]),
    )
    port = free_port()
    prometheus = Asked(f"http://127.0.0.1:{port}", time.time())
    with serving(fleet, "--interval", "1") as (_, url):
        command = [
            *programs.command("prometheus"),
            f"--config.file={configured(tmp_path, url.removeprefix('http://'))}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with running(command, ready=f"{prometheus.url}/-/ready", log=tmp_path / "log"):
            healthy = 'gtid_audit_verdict{cluster="pair", verdict="OK"} == 1'
            awaited(lambda: prometheus.answer(healthy, now=True))
            faults.position_bypass(pair97)
            fires = 'ALERTS{alertname="GtidAuditH1", alertstate="firing"}'
            awaited(lambda: prometheus.answer(fires, now=True))
            waits = 'ALERTS{alertname="GtidAuditServerUnreachable", cluster="lost"}'
            awaited(lambda: prometheus.answer(waits, now=True))
            _check_panels(prometheus)
            _check_rules(prometheus)
            _keep_pages(prometheus)
            pair97.b.execute(
                "STOP REPLICA",
                "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1",
                "START REPLICA",
            )
            awaited(lambda: prometheus.answer(healthy, now=True))
            for name, board in BOARDS.items():
                [_, go] = board["annotations"]["list"]
                _await_data(prometheus, f"{name}: {go['name']}", {**go["target"], "instant": False})


def _check_panels(prometheus: Asked) -> None:
    """Run every query of every dashboard until each has returned data."""
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                _await_data(prometheus, f"{name}: {panel['title']}", target)
        [come, _] = board["annotations"]["list"]
        _await_data(prometheus, f"{name}: {come['name']}", {**come["target"], "instant": False})
        [variable] = board["templating"]["list"][1:]
        metric = variable["definition"].removeprefix("label_values(").partition(",")[0]
        assert prometheus.answer(metric, now=True)


def _await_data(prometheus: Asked, where: str, target: dict[str, Any]) -> None:
    """A range may end one step before what has just begun or ended."""
    deadline = time.monotonic() + SOON
    while not prometheus.answer(target["expr"], now=target["instant"]):
        assert time.monotonic() < deadline, (where, target["expr"])
        time.sleep(0.2)


def _check_rules(prometheus: Asked) -> None:
    for record, expr in RECORDED.items():
        assert prometheus.answer(expr, now=True), record
        # Prometheus evaluates a rule some time after its expression has data.
        awaited(partial(prometheus.answer, record, now=True))
    for alert in alerts():
        prometheus.answer(alert.expr, now=True)  # an error is an exception
        assert prometheus.answer(alert.series, now=True), alert.name
    firing = prometheus.answer('ALERTS{alertname="GtidAuditH1"}', now=True)
    assert {(each["metric"]["source"], each["metric"]["replica"]) for each in firing} == {
        ("s0", "s1")
    }


def _keep_pages(prometheus: Asked) -> None:
    """Render every dashboard; keep the pages only where a person asked for them."""
    pages = {name: page_of(board, prometheus.answer) for name, board in BOARDS.items()}
    assert all("<article" in page for page in pages.values())
    if folder := os.environ.get("GTID_AUDIT_PANELS"):
        for name, page in pages.items():
            (Path(folder) / f"{name}.html").write_text(page)
