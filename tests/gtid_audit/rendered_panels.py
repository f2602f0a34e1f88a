"""Dashboards as a page of HTML and SVG: the panels, at their places, with what Prometheus answered.

It is for looking at the queries where no Grafana runs. It shows numbers, tables and lines, with the
texts and colors of the panel; it is no copy of Grafana.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

Answer = list[dict[str, Any]]  # `result` of Prometheus' API
COLUMN, LINE = 56, 30  # pixels of a column and a line of the grid
LINES = ("#3274d9", "#e0592a", "#56a64b", "#a352cc", "#f2cc0c", "#1f9e9e", "#b877d9", "#888888")
CSS = """
body { font: 12px sans-serif; background: #eee; margin: 8px; }
section { position: relative; } h1 { font-size: 18px; }
article { position: absolute; overflow: hidden; background: #fff; border: 1px solid #ccc;
  box-sizing: border-box; padding: 4px; }
article.row { background: none; border: 0; font-weight: bold; }
h2 { font-size: 12px; margin: 0 0 4px; } td, th { border: 1px solid #ddd; padding: 1px 5px; }
table { border-collapse: collapse; } .big { font-size: 22px; padding: 6px; display: inline-block; }
"""


def page_of(board: Mapping[str, Any], answers: Callable[[str, bool], Answer]) -> str:
    """Return a page; `answers` runs an expression, as a range or for now."""
    panels = [_panel(panel, answers) for panel in board["panels"]]
    bottom = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in board["panels"])
    return (
        f'<!DOCTYPE html><meta charset="utf-8"><style>{CSS}</style><h1>{escape(board["title"])}</h1>'
        f'<section style="height:{bottom * LINE}px">{"".join(panels)}</section>'
    )


def _panel(panel: Mapping[str, Any], answers: Callable[[str, bool], Answer]) -> str:
    place = panel["gridPos"]
    box = (
        f"left:{place['x'] * COLUMN}px;top:{place['y'] * LINE}px;"
        f"width:{place['w'] * COLUMN - 6}px;height:{place['h'] * LINE - 6}px"
    )
    if panel["type"] == "row":
        return f'<article class="row" style="{box}">{escape(panel["title"])}</article>'
    found = [answers(each["expr"], each["instant"]) for each in panel["targets"]]
    body = {
        "stat": _stat,
        "table": _table,
        "timeseries": _lines,
        "state-timeline": _states,
    }[panel["type"]](panel, found)
    return f'<article style="{box}"><h2>{escape(panel["title"])}</h2>{body}</article>'


def _shown(defaults: Mapping[str, Any], value: float | str) -> tuple[str, str]:
    """Return the text and the color of a value, by its mappings and thresholds."""
    for mapping in defaults.get("mappings", ()):
        key = f"{value:g}" if isinstance(value, float) else value
        if key in mapping["options"]:
            return mapping["options"][key]["text"], mapping["options"][key]["color"]
    if isinstance(value, str):
        return value, ""
    color = ""
    for step in defaults.get("thresholds", {}).get("steps", ()):
        if step["value"] is None or value >= step["value"]:
            color = step["color"]
    return _number(value, defaults.get("unit", "")), color


def _number(value: float, unit: str) -> str:
    if math.isnan(value) or math.isinf(value):
        return f"{value}"
    if unit.startswith("dateTime"):
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    if unit == "s":
        return f"{value / 86400:.1f} d" if abs(value) > 86400 else f"{value:.1f} s"
    return f"{value:,.6g}"


def _legend(panel: Mapping[str, Any], series: Mapping[str, Any], number: int = 0) -> str:
    text: str = panel["targets"][number]["legendFormat"]
    for name, value in {"channel": "", **series["metric"]}.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return "" if text == "__auto" else text


def _last(series: Mapping[str, Any]) -> float:
    return float(series["value"][1] if "value" in series else series["values"][-1][1])


def _stat(panel: Mapping[str, Any], found: Sequence[Answer]) -> str:
    colors = {
        each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
        for each in panel["fieldConfig"]["overrides"]
    }
    cells = []
    for series in found[0]:
        name = _legend(panel, series)
        text, color = _shown(panel["fieldConfig"]["defaults"], _last(series))
        shown = f"{name} {text}" if panel["options"]["textMode"] == "value_and_name" else text
        back = colors.get(name, color) or "#ddd"
        cells.append(f'<span class="big" style="background:{back}">{escape(shown)}</span> ')
    return "".join(cells)


def _rows(panel: Mapping[str, Any], found: Sequence[Answer]) -> tuple[list[str], list[list[Any]]]:
    """Return the titles and the rows of a table, as Grafana's transformations make them."""
    kinds = {each["id"]: each["options"] for each in panel["transformations"]}
    if (how := kinds.get("groupingToMatrix")) is not None:
        cells = {
            (each["metric"][how["rowField"]], each["metric"][how["columnField"]]): _last(each)
            for each in found[0]
        }
        columns = sorted({column for _, column in cells})
        lines = [
            [row, *(cells.get((row, column), "") for column in columns)]
            for row in sorted({row for row, _ in cells})
        ]
        return [f"{how['rowField']}\\{how['columnField']}", *columns], lines
    names = sorted(kinds["organize"]["indexByName"], key=kinds["organize"]["indexByName"].get)
    merged: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for letter, answer in zip("ABCDEFGHIJ", found, strict=False):
        for series in answer:
            labels = {key: text for key, text in series["metric"].items() if key != "__name__"}
            row = merged.setdefault(tuple(sorted(labels.items())), dict(labels))
            row["Value" if len(found) == 1 else f"Value #{letter}"] = _last(series)
    titles = kinds["organize"]["renameByName"]
    return [titles[name] for name in names], [
        [row.get(name, "") for name in names] for row in merged.values()
    ]


def _table(panel: Mapping[str, Any], found: Sequence[Answer]) -> str:
    titles, rows = _rows(panel, found)
    overrides = {
        each["matcher"]["options"]: {one["id"]: one["value"] for one in each["properties"]}
        for each in panel["fieldConfig"]["overrides"]
    }
    lines = "".join(f"<th>{escape(title)}</th>" for title in titles)
    for row in rows:
        cells = []
        for title, value in zip(titles, row, strict=True):
            own = overrides.get(title) or panel["fieldConfig"]["defaults"]
            text, color = _shown(own, value) if value != "" else ("", "")
            painted = "custom.cellOptions" in own or own.get("mappings")
            back = f' style="background:{color}"' if color and painted else ""
            cells.append(f"<td{back}>{escape(text)}</td>")
        lines += f"<tr>{''.join(cells)}</tr>"
    return f"<table>{lines}</table>"


def _lines(panel: Mapping[str, Any], found: Sequence[Answer]) -> str:
    points = [
        (float(at), float(value))
        for series in found[0]
        for at, value in series["values"]
        if math.isfinite(float(value))
    ]
    wide, high = panel["gridPos"]["w"] * COLUMN - 30, panel["gridPos"]["h"] * LINE - 90
    times, values = [at for at, _ in points], [value for _, value in points]
    if not points:
        return "only values that are not finite"
    first, last, low, top = min(times), max(times), min(0.0, *values), max(values)
    drawn, names = [], []
    for number, series in enumerate(found[0]):
        color = LINES[number % len(LINES)]
        line = " ".join(
            f"{(float(at) - first) / max(last - first, 1) * wide:.1f},"
            f"{high - (float(value) - low) / max(top - low, 1e-9) * high:.1f}"
            for at, value in series["values"]
            if math.isfinite(float(value))
        )
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        text = f"{_legend(panel, series)} = {_shown(panel['fieldConfig']['defaults'], _last(series))[0]}"
        names.append(f'<span style="color:{color}">{escape(text)}</span>')
    return (
        f"{top:,.6g}<svg width='{wide}' height='{high}'>{''.join(drawn)}</svg><br>{low:,.6g}<br>"
        f"{' · '.join(names)}"
    )


def _states(panel: Mapping[str, Any], found: Sequence[Answer]) -> str:
    lines = []
    for series in found[0]:
        cells = []
        for _, value in series["values"][-60:]:
            text, color = _shown(panel["fieldConfig"]["defaults"], float(value))
            cells.append(f'<td title="{escape(text)}" style="background:{color};padding:4px"></td>')
        text = _shown(panel["fieldConfig"]["defaults"], _last(series))[0]
        lines.append(
            f"<tr><td>{escape(_legend(panel, series))}: {escape(text)}</td>{''.join(cells)}</tr>"
        )
    return f"<table>{''.join(lines)}</table>"
