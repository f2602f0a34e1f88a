"""The dashboards as values of Grafana's TypeScript types: an unknown field is an error of tsc.

@grafana/schema is a newer version of Grafana than grafana-foundation-sdk has on PyPI, and has the
types of each panel's options.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compose.native.npm import PinnedPackage
from gtid_audit.monitoring.dashboards import dashboards
from tests.typescript import compile_or_skip

pytestmark = pytest.mark.slow
SCHEMA = PinnedPackage(
    "@grafana/schema",
    "13.2.3",
    "sha512-rk8FEO7yuFfRTK/JD39747SZFQ+iCTQbpm6Mh2OjnqGx/g/uQQFx56t64eCLXWEyoR68ru4cigcGKrXk+ozrLg==",
)
OPTIONS = {
    "stat": ("stat", "StatPanelCfg"),
    "timeseries": ("timeseries", "TimeSeriesPanelCfg"),
    "table": ("table", "TablePanelCfg"),
    "state-timeline": ("statetimeline", "StateTimelinePanelCfg"),
}
# The types have enumerations where JSON has their values.
LOOSE = (
    "type Loose<T> = T extends string ? `${T}` : T extends number ? T"
    " : T extends object ? {[K in keyof T]: Loose<T[K]>} : T;"
)
# What the data source adds (test_dashboards.py) is in no type.
EXTRA = ("definition", "titleFormat", "textFormat", "tagKeys", "useValueForTime")


def without_datasource(board: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard without the fields that only the data source knows."""
    lists: list[dict[str, Any]] = [*board["templating"]["list"], *board["annotations"]["list"]]
    for each in lists:
        for name in EXTRA:
            each.pop(name, None)
        if "target" in each:
            each["target"] = {"refId": each["target"]["refId"]}
    return board


def code_of(boards: list[dict[str, Any]]) -> str:
    lines = ["import type {Dashboard} from '@grafana/schema';", LOOSE]
    for folder, name in OPTIONS.values():
        place = f"@grafana/schema/dist/esm/raw/composable/{folder}/panelcfg/x/{name}_types.gen"
        lines.append(f"import type * as {folder} from '{place}';")
    for number, board in enumerate(boards):
        lines.append(f"export const b{number}: Loose<Dashboard> = {json.dumps(board)};")
        for panel in board["panels"]:
            if panel["type"] == "row":
                continue
            kind, name = OPTIONS[panel["type"]][0], f"o{number}_{panel['id']}"
            options = json.dumps(panel["options"])
            lines.append(f"export const {name}: Partial<Loose<{kind}.Options>> = {options};")
            custom = panel["fieldConfig"]["defaults"].get("custom")
            if custom is not None and kind == "timeseries":
                config = json.dumps(custom)
                lines.append(
                    f"export const c{name}: Partial<Loose<{kind}.FieldConfig>> = {config};"
                )
    return "\n".join(lines)


def test_every_dashboard_is_of_grafanas_types(tmp_path: Path) -> None:
    boards = [without_datasource(json.loads(text)) for text in dashboards("http://x").values()]
    (tmp_path / "right.ts").write_text(code_of(boards))
    boards[0]["panels"][1]["options"]["colourMode"] = "x"
    boards[1]["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    (tmp_path / "wrong.ts").write_text(code_of(boards))
    errors = compile_or_skip(tmp_path, SCHEMA)
    assert "right.ts" not in errors, errors
    unknown = set(re.findall(r"^wrong\.ts.*'\"?(\w+)\"?' does not exist", errors, re.MULTILINE))
    assert unknown == {"colourMode", "units"}, errors
