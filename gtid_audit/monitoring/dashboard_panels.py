"""Panels of Grafana dashboards as values: what each shows, and where it is placed. Pure.

1. A panel is the JSON of Grafana's dashboard schema (version 41: Grafana 11.6 and later). Tests
   read each dashboard with Grafana's own types, and compare what comes back.
2. Every query goes to the data source of the variable `datasource`.
3. `placed` puts panels into rows from left to right, 24 columns wide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

COLUMNS: Final = 24
DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED, BLUE, PURPLE = "green", "orange", "red", "blue", "purple"


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """One PromQL expression; `now` asks for one value of each series instead of a range."""

    expr: str
    legend: str = ""
    now: bool = False


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A titled row of panels."""

    title: str
    panels: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """How a column of a table is shown: its title, unit, colors and link."""

    name: str  # the label, or "Value #A" of the first query
    title: str
    unit: str = ""
    thresholds: tuple[tuple[float | None, str], ...] = ()
    mappings: tuple[Json, ...] = ()
    link: tuple[str, str] | None = None  # title and address


@dataclass(frozen=True, slots=True)
class PanelField:
    """How the values of a panel are shown."""

    unit: str = "short"
    thresholds: tuple[tuple[float | None, str], ...] = ((None, GREEN),)
    mappings: tuple[Json, ...] = ()
    colors: tuple[tuple[str, str], ...] = ()  # of series by name


PLAIN: Final = PanelField()


def verdict_mappings() -> tuple[Json, ...]:
    """Return the texts and colors of the numbers 0 to 3, as the exit status has them."""
    names = ((0, "OK", GREEN), (1, "WARNING", YELLOW), (2, "CRITICAL", RED), (3, "UNKNOWN", PURPLE))
    return (value_mapping({str(number): (text, color) for number, text, color in names}),)


def value_mapping(texts: Mapping[str, tuple[str, str]]) -> Json:
    """Return a mapping of values to texts and colors."""
    options = {
        value: {"text": text, "color": color, "index": index}
        for index, (value, (text, color)) in enumerate(texts.items())
    }
    return {"type": "value", "options": options}


def stat(
    title: str,
    query: PanelQuery,
    *,
    width: int,
    values: PanelField = PLAIN,
    text: str = "",
    by_name: bool = False,
) -> Json:
    """Return one or several large numbers; `by_name` shows the name of each series, too."""
    made = _panel("stat", title, [query], size=(width, 5), text=text, values=values)
    made["options"] = {
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "value_and_name" if by_name else "value",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    return made


def timeseries(
    title: str, query: PanelQuery, *, width: int, values: PanelField = PLAIN, text: str = ""
) -> Json:
    """Return a graph over time."""
    made = _panel("timeseries", title, [query], size=(width, 8), text=text, values=values)
    made["fieldConfig"]["defaults"]["custom"] = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 10,
        "showPoints": "never",
        "spanNulls": False,
        "thresholdsStyle": {"mode": "line" if len(values.thresholds) > 1 else "off"},
    }
    made["options"] = {
        "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True}
        | {"calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return made


def state_timeline(
    title: str, query: PanelQuery, *, width: int, values: PanelField = PLAIN, text: str = ""
) -> Json:
    """Return bars whose color is the state at each time."""
    made = _panel("state-timeline", title, [query], size=(width, 8), text=text, values=values)
    made["options"] = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.9,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return made


def table(
    title: str,
    queries: Sequence[str],
    columns: Sequence[TableColumn],
    *,
    width: int,
    text: str = "",
) -> Json:
    """Return a table: one row for each set of labels, with the values of all queries."""
    asked = [PanelQuery(expr, now=True) for expr in queries]
    made = _panel("table", title, asked, size=(width, 9), text=text, values=PLAIN)
    made["transformations"] = [{"id": "merge", "options": {}}, _only(columns)]
    return _as_table(made, columns)


def matrix(
    title: str,
    query: str,
    *,
    rows: TableColumn,
    columns: str,
    values: PanelField,
    text: str = "",
) -> Json:
    """Return a heat map of two labels: a table with a colored cell for each pair of them."""
    asked = [PanelQuery(query, now=True)]
    made = _panel("table", title, asked, size=(COLUMNS, 9), text=text, values=values)
    options = {"rowField": rows.name, "columnField": columns, "valueField": "Value"}
    made["transformations"] = [
        {"id": "groupingToMatrix", "options": options | {"emptyValue": "empty"}}
    ]
    made["fieldConfig"]["defaults"]["custom"] = {
        "align": "center",
        "cellOptions": {"type": "color-background", "mode": "basic"},
    }
    # The first column is named after both labels.
    corner = TableColumn(f"{rows.name}\\{columns}", rows.title, link=rows.link)
    return _as_table(made, [corner])


def placed(rows: Iterable[PanelRow]) -> list[Json]:
    """Return the panels of all rows with their numbers and places."""
    found: list[Json] = []
    top = 0
    for row in rows:
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        found.append(
            {"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": place}
        )
        top += 1
        left = height = 0
        for panel in row.panels:
            size = panel["gridPos"]
            if left + size["w"] > COLUMNS:
                top, left, height = top + height, 0, 0
            found.append({**panel, "gridPos": {**size, "x": left, "y": top}})
            left, height = left + size["w"], max(height, size["h"])
        top += height
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _panel(
    kind: str,
    title: str,
    queries: Sequence[PanelQuery],
    *,
    size: tuple[int, int],
    text: str,
    values: PanelField,
) -> Json:
    targets = []
    for letter, query in zip("ABCDEFGHIJ", queries, strict=False):
        how = {"instant": True, "range": False} if query.now else {"instant": False, "range": True}
        form = "table" if query.now and kind == "table" else "time_series"
        targets.append(
            {
                "datasource": DATASOURCE,
                "refId": letter,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "editorMode": "code",
                "format": form,
                **how,
            }
        )
    return {
        "type": kind,
        "title": title,
        "description": text,
        "datasource": DATASOURCE,
        "gridPos": {"w": size[0], "h": size[1]},
        "targets": targets,
        "fieldConfig": {
            "defaults": {
                "unit": values.unit,
                "mappings": list(values.mappings),
                "thresholds": _thresholds(values.thresholds),
                "color": {"mode": "thresholds" if kind != "timeseries" else "palette-classic"},
            },
            "overrides": [
                {
                    "matcher": {"id": "byName", "options": name},
                    "properties": [
                        {"id": "color", "value": {"mode": "fixed", "fixedColor": color}}
                    ],
                }
                for name, color in values.colors
            ],
        },
    }


def _thresholds(steps: Sequence[tuple[float | None, str]]) -> Json:
    return {
        "mode": "absolute",
        "steps": [{"value": value, "color": color} for value, color in steps],
    }


def _only(columns: Sequence[TableColumn]) -> Json:
    """Return the transformation that keeps some columns, in their order, with their titles."""
    return {
        "id": "organize",
        "options": {
            "includeByName": {each.name: True for each in columns},
            "indexByName": {each.name: index for index, each in enumerate(columns)},
            "renameByName": {each.name: each.title for each in columns},
        },
    }


def _as_table(panel: Json, columns: Sequence[TableColumn]) -> Json:
    panel["options"] = {"showHeader": True, "cellHeight": "sm"}
    panel["fieldConfig"]["overrides"] = [
        made for made in (_override(each) for each in columns) if made["properties"]
    ]
    return panel


def _override(column: TableColumn) -> Json:
    properties: list[Json] = []
    if column.unit:
        properties.append({"id": "unit", "value": column.unit})
    if column.mappings:
        properties.append({"id": "mappings", "value": list(column.mappings)})
    if column.thresholds:
        properties.append({"id": "thresholds", "value": _thresholds(column.thresholds)})
    if column.thresholds or column.mappings:
        cell = {"type": "color-background", "mode": "basic"}
        properties.append({"id": "custom.cellOptions", "value": cell})
    if column.link is not None:
        title, url = column.link
        properties.append({"id": "links", "value": [{"title": title, "url": url}]})
    return {"matcher": {"id": "byName", "options": column.title}, "properties": properties}
