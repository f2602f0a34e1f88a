"""The dashboards as values of Grafana's TypeScript types: an unknown field is an error of tsc.

@grafana/schema is a newer version of Grafana than grafana-foundation-sdk has on PyPI, and has the
types of each panel's options.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compose.native.cache import build_once, cache_root
from compose.native.installation import ProviderMissing
from compose.native.npm import PinnedPackage, unpack_package
from gtid_audit.monitoring.dashboards import dashboards

pytestmark = pytest.mark.slow
SCHEMA = PinnedPackage(
    "@grafana/schema",
    "13.2.3",
    "sha512-rk8FEO7yuFfRTK/JD39747SZFQ+iCTQbpm6Mh2OjnqGx/g/uQQFx56t64eCLXWEyoR68ru4cigcGKrXk+ozrLg==",
)
TYPESCRIPT = PinnedPackage(
    "typescript",
    "5.9.3",
    "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
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


def compiler(folder: Path) -> list[str]:
    """Return the command of tsc, with Grafana's types beside the code in `folder`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("provider missing: node (apt-get install nodejs)")
    modules = folder / "node_modules"
    try:
        for package in (SCHEMA, TYPESCRIPT):

            def build(into: Path, package: PinnedPackage = package) -> None:
                work = cache_root() / "download" / into.name
                unpack_package(package, into=into, work=work, progress=lambda _line: None)
                shutil.rmtree(work)

            name = f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}-npm"
            entry = build_once(name, build)
            (modules / package.name).parent.mkdir(parents=True, exist_ok=True)
            (modules / package.name).symlink_to(entry / "package")
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")
    options = ("--noEmit", "--strict", "--skipLibCheck", "--preserveSymlinks")
    return [
        *(node, str(modules / "typescript" / "bin" / "tsc"), *options),
        *("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"),
    ]


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
    command = compiler(tmp_path)
    boards = [without_datasource(json.loads(text)) for text in dashboards("http://x").values()]
    (tmp_path / "right.ts").write_text(code_of(boards))
    boards[0]["panels"][1]["options"]["colourMode"] = "x"
    boards[1]["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    (tmp_path / "wrong.ts").write_text(code_of(boards))
    done = subprocess.run(
        [*command, "right.ts", "wrong.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "right.ts" not in done.stdout, done.stdout
    unknown = set(
        re.findall(r"^wrong\.ts.*'\"?(\w+)\"?' does not exist", done.stdout, re.MULTILINE)
    )
    assert unknown == {"colourMode", "units"}, done.stdout
