"""The dashboards as Grafana reads them: its own types, places, links, and names that exist."""

import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from gtid_audit.monitoring.dashboards import HOME, dashboards
from gtid_audit.service.metrics import METRICS

RUNBOOK = "https://audit.example/runbook"
BOARDS: dict[str, Any] = {name: json.loads(text) for name, text in dashboards(RUNBOOK).items()}
# What the data source gives to a variable and to an annotation is in no schema of dashboards.
OF_THE_DATASOURCE = {
    ("templating", "definition"),
    *(("annotations", name) for name in ("expr", "interval", "refId")),  # of its query
    *(
        ("annotations", name)
        for name in ("titleFormat", "textFormat", "tagKeys", "useValueForTime")
    ),
}
register_default_plugins()


def lost(given: Any, back: Any, place: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return where a value did not come back as it was; Grafana may add defaults."""
    if isinstance(given, dict) and isinstance(back, dict):
        return [
            each
            for key, value in given.items()
            for each in (lost(value, back[key], (*place, key)) if key in back else [(*place, key)])
        ]
    if isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        return [
            each for one, other in zip(given, back, strict=True) for each in lost(one, other, place)
        ]
    return [] if given == back else [place]


@pytest.mark.parametrize("name", BOARDS)
def test_grafanas_own_types_keep_every_field(name: str) -> None:
    back = json.loads(JSONEncoder().encode(Dashboard.from_json(BOARDS[name])))
    gone = {(place[0], place[-1]) for place in lost(BOARDS[name], back)}
    assert gone == OF_THE_DATASOURCE


def test_an_unknown_field_is_noticed() -> None:
    board = json.loads(json.dumps(BOARDS[HOME]))
    board["panels"][1]["options"]["colourMode"] = "x"
    board["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    back = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    gone = {place[-1] for place in lost(board, back)}
    assert gone >= {"colourMode", "units"}


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_numbers_and_places_of_their_own(name: str) -> None:
    board = BOARDS[name]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert sum(panel["type"] == "row" for panel in panels) >= 2
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert cells.isdisjoint(own), f"{panel['title']} lies over another"
        cells |= own
    assert board["uid"] == name.removesuffix(".json")
    assert [each["name"] for each in board["templating"]["list"]] == ["datasource", "cluster"]


def expressions(board: Any) -> dict[str, str]:
    """Return every PromQL expression of a dashboard, by where it stands."""
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in board["panels"]
        for target in panel.get("targets", ())
    }
    return found | {each["name"]: each["target"]["expr"] for each in board["annotations"]["list"]}


@pytest.mark.parametrize("name", BOARDS)
def test_queries_use_metrics_and_labels_that_exist(name: str) -> None:
    for where, expr in expressions(BOARDS[name]).items():
        names = set(re.findall(r"\b(?:gtid_audit_\w+|ALERTS)\b", expr))
        assert names, where
        assert names <= METRICS.keys() | {"ALERTS"}, where
        for metric, braces in re.findall(r"(gtid_audit_\w+)\{([^}]*)\}", expr):
            labels = set(re.findall(r"(\w+)[!=]", braces))
            assert labels <= set(METRICS[metric].labels), where
            assert "cluster" in labels, where
    for panel in BOARDS[name]["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"


def test_every_metric_is_shown_or_its_absence_would_not_be_noticed() -> None:
    shown = {
        metric
        for board in BOARDS.values()
        for expr in expressions(board).values()
        for metric in re.findall(r"gtid_audit_\w+", expr)
    }
    assert shown == METRICS.keys()


def test_links_lead_from_the_fleet_to_a_cluster_and_to_the_runbook() -> None:
    text = json.dumps(BOARDS[HOME])
    urls = set(re.findall(r'"url": "([^"]+)"', text))
    assert f"{RUNBOOK}#GtidAudit${{__value.raw}}" in urls
    [cluster] = [url for url in urls if url.startswith("/d/")]
    uid = cluster.removeprefix("/d/").partition("?")[0]
    assert f"{uid}.json" in BOARDS
    for board in BOARDS.values():
        [menu] = board["links"]
        assert menu["tags"] == board["tags"]
        assert menu["includeVars"]


@pytest.mark.parametrize("name", BOARDS)
def test_columns_of_tables_are_labels_or_values(name: str) -> None:
    for panel in BOARDS[name]["panels"]:
        for each in panel.get("transformations", ()):
            if each["id"] != "organize":
                continue
            columns = set(each["options"]["includeByName"])
            one = len(panel["targets"]) == 1
            values = {"Value"} if one else {f"Value #{t['refId']}" for t in panel["targets"]}
            labels = {label for row in METRICS.values() for label in row.labels}
            assert columns <= values | labels | {"alertname", "instance"}, panel["title"]
            titles = {*each["options"]["renameByName"].values()}
            for override in panel["fieldConfig"]["overrides"]:
                assert override["matcher"]["options"] in titles
