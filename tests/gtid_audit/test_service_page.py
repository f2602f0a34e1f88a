"""docs/service.md: its curl commands and their output, its log line; and the unit of systemd."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gtid_audit import clock
from gtid_audit.service.access import OPEN_PATHS
from gtid_audit.service.api_paths import API_PATHS
from gtid_audit.service.guarded_connections import (
    ANSWER_SECONDS_MAX,
    CONNECTIONS_MAX,
    REQUEST_SECONDS_MAX,
)
from gtid_audit.service.log_watcher import LogWatcher
from gtid_audit.service.log_words import LogFormat
from gtid_audit.service.procedure_metrics import SERVICE_METRICS
from gtid_audit.service.service_log import ServiceLog
from tests.gtid_audit.build import healthy, holed
from tests.gtid_audit.served import audit_all, service_of, web_server
from tests.snapshots import NOON

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "service.md").read_text()
UNIT = re.findall(
    r"^```ini\n(.*?)^```$", (DOCS / "service-systemd.md").read_text(), re.MULTILINE | re.DOTALL
)
EXAMPLES = re.findall(r"^```\n\$ (curl .*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The fleet of the page: orders has a hole, stock has none."""
    with web_server(audit_all(service_of(holed("orders"), healthy("stock")))) as (server, _):
        yield server.address.port


def as_shown(text: str) -> list[str]:
    """Return the lines of an output, JSON with an indent."""
    if text.startswith("{"):
        text = json.dumps(json.loads(text), indent=4, ensure_ascii=False)
    return text.splitlines()


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_a_command_prints_what_the_page_shows(port: int, command: str, shown: str) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("provider missing: curl; install it with: apt-get install curl")
    words = [each.replace(":9717/", f":{port}/") for each in shlex.split(command)]
    done = subprocess.run([curl, *words[1:]], capture_output=True, text=True, check=True)
    printed = as_shown(done.stdout)
    at = 0
    is_cut = not shown.startswith("{") and "…" in shown
    for line in shown.splitlines():
        if line.strip() == "…":
            is_cut = True
            continue
        found = printed.index(line, at)
        assert is_cut or found == at, line
        at, is_cut = found + 1, False


def test_the_page_has_the_examples_and_every_path() -> None:
    assert len(EXAMPLES) == 4
    for each in API_PATHS:
        assert each.path.replace("{id}", "ID") in PAGE
        row = re.search(rf"^\| `{re.escape(each.path)}` \| (.*) \|$", PAGE, re.MULTILINE)
        assert row is None or all(f"`{one.name}`" in row[1] for one in each.parameters)
    assert all(f"`{path}`" in PAGE for path in OPEN_PATHS)
    assert all(f"| `{name}` | " in PAGE for name in SERVICE_METRICS)
    assert f"longer than {REQUEST_SECONDS_MAX:.0f} seconds" in " ".join(PAGE.split())
    assert f"does not read for {ANSWER_SECONDS_MAX:.0f}." in " ".join(PAGE.split())
    assert f"at most {CONNECTIONS_MAX} connections" in PAGE


def test_the_log_line_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON)
    service = service_of(holed("orders"))
    service._watcher = LogWatcher(ServiceLog(LogFormat.JSON))
    audit_all(service)
    lines = capsys.readouterr().err.splitlines()
    [shown] = re.findall(r'^    (\{"time": .*), …$', PAGE, re.MULTILINE)
    assert [each for each in lines if each.startswith(shown)], lines


def test_the_unit_is_one(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("provider missing: systemd-analyze; install it with: apt-get install systemd")
    [text] = UNIT
    unit = tmp_path / "gtid-audit.service"
    unit.write_text(text.replace("/usr/local/bin/gtid-audit", "/bin/true"))
    done = subprocess.run(
        [analyze, "verify", str(unit)], capture_output=True, text=True, check=False
    )
    complaints = [each for each in done.stderr.splitlines() if "gtid-audit.service" in each]
    assert complaints == []


def test_the_unit_calls_serve_with_options_that_exist() -> None:
    from typer.main import get_command

    from gtid_audit.cli import app
    from tests.tidy.test_options_named import options_of

    [start] = re.findall(r"^ExecStart=(.*)$", UNIT[0], re.MULTILINE)
    words = [each for each in shlex.split(start) if each.startswith("--")]
    assert set(words) <= set(options_of(get_command(app)))  # type: ignore[arg-type]
