"""The files of `make up`: their shape, and that every metric they name exists."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gtid_audit.service.metrics import METRICS
from topology.catalogue.findings import Severity
from topology.catalogue.verdict_table import CATALOGUE

COMPOSE = Path(__file__).parents[2] / "compose"
_METRIC = re.compile(r"\bmysql_gtid_[a-z_]+")
_LABELS = re.compile(r"(mysql_gtid_[a-z_]+)\{([^}]*)\}")


def read(path: str) -> Any:
    return yaml.safe_load((COMPOSE / path).read_text())


def expressions() -> dict[str, str]:
    """Every PromQL expression, by where it stands."""
    rules = read("prometheus/gtid-audit.rules.yml")["groups"][0]["rules"]
    found = {rule["alert"]: rule["expr"] for rule in rules}
    board = json.loads((COMPOSE / "grafana/dashboards/gtid-audit.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            found[panel["title"]] = target["expr"]
    for variable in board["templating"]["list"]:
        found[variable["name"]] = variable["query"]["query"]
    return found


@pytest.mark.parametrize("where", expressions())
def test_every_expression_names_metrics_and_labels_that_exist(where: str) -> None:
    expression = expressions()[where]
    assert _METRIC.findall(expression)
    assert set(_METRIC.findall(expression)) <= set(METRICS)
    for metric, selector in _LABELS.findall(expression):
        labels = {re.split(r"!?[=~]", part)[0].strip() for part in selector.split(",")}
        assert labels <= set(METRICS[metric][1])


def test_every_metric_is_used_or_its_absence_would_not_be_noticed() -> None:
    assert {name for text in expressions().values() for name in _METRIC.findall(text)} == set(
        METRICS
    )


def test_alerts_say_what_to_do() -> None:
    severities = {severity.value for severity in Severity}
    for rule in read("prometheus/gtid-audit.rules.yml")["groups"][0]["rules"]:
        assert rule["labels"]["severity"] in severities
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
    assert {entry.severity.value for entry in CATALOGUE.values()} <= severities


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = json.loads((COMPOSE / "grafana/dashboards/gtid-audit.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    source = read("grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["datasource"]["uid"] == source["uid"]
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert cells.isdisjoint(own), f"{panel['title']} lies over another"
        cells |= own


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", "gtid-audit.rules.yml"), ("check", "config", "prometheus.yml")],
)
def test_promtool_takes_the_rules(arguments: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("provider missing: promtool (apt-get install prometheus)")
    subprocess.run([promtool, *arguments], cwd=COMPOSE / "prometheus", check=True, timeout=60)
