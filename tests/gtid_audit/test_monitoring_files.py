"""The files for Prometheus, Alertmanager and Grafana: current, written by a command, and linked."""

import re
from pathlib import Path

import pytest

from gtid_audit.cli import run
from gtid_audit.monitoring.alert_rules import RECORDED, rules_file
from gtid_audit.monitoring.alert_table import OF_THE_AUDIT, alerts, name_of
from gtid_audit.monitoring.monitoring_files import FILES, monitoring_files
from gtid_audit.monitoring.runbook_page import runbook_page
from gtid_audit.service.metrics import METRICS
from gtid_audit.service.procedure_metrics import SERVICE_METRICS
from topology.catalogue.verdict_table import CATALOGUE

RULES = "prometheus/gtid-audit.rules.yml"


def test_the_committed_files_are_current() -> None:
    stored = {
        str(path.relative_to(FILES)): path.read_text()
        for path in FILES.rglob("*")
        if path.is_file()
    }
    assert stored == monitoring_files(), "run: make docs"


def test_alerts_use_metrics_and_labels_that_exist() -> None:
    for alert in alerts():
        names = set(re.findall(r"gtid_audit_\w+", alert.expr))
        assert names
        assert names <= METRICS.keys() | SERVICE_METRICS.keys(), alert.name
        for metric, braces in re.findall(r"(gtid_audit_\w+)\{([^}]*)\}", alert.expr):
            assert set(re.findall(r"(\w+)!?=", braces)) <= set(METRICS[metric].labels), alert.name
        assert alert.severity in {"", "warning", "critical"}
        assert alert.to_do


def test_the_page_has_every_alert_and_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    rows = dict(re.findall(r"^\| `([\w:]+)`(.*)$", page, re.MULTILINE))
    of_codes = {name_of(code) for code in CATALOGUE}
    named = {alert.name for alert in OF_THE_AUDIT}
    assert rows.keys() - of_codes - {"component"} == named | RECORDED.keys()
    for alert in OF_THE_AUDIT:
        after, severity = rows[alert.name].rstrip("| ").split(" | ")[-2:]
        assert after == (alert.wait.replace("m", " minutes") or "at once").replace(
            "1 minutes", "1 minute"
        )
        assert severity == alert.severity
    for name in monitoring_files():
        assert f"`{re.sub(r'/gtid-audit-.*json', '/*.json', name)}`" in page


def test_every_alert_has_its_place_in_the_runbook() -> None:
    page = runbook_page()
    anchors = re.findall(r'id="(\w+)"', page)
    assert len(anchors) == len(set(anchors))
    assert {alert.name for alert in alerts()} <= set(anchors)
    assert "$" not in page
    assert "<code>binlog_expire_logs_seconds</code>" in page


def test_the_command_writes_them_with_the_runbook_of_the_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://audit.example/runbook"
    assert run(("monitoring", "--out", str(tmp_path), "--runbook-url", f"{url}/")) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [str(tmp_path / name) for name in monitoring_files()]
    text = "".join(Path(name).read_text() for name in printed)
    assert f"{url}#GtidAuditH1" in text
    assert "127.0.0.1" not in text
    assert run(("monitoring", "--out", str(tmp_path), "--json")) == 0
    assert (tmp_path / RULES).read_text() == rules_file(), "replaced"


@pytest.mark.parametrize("url", ["audit.example", "ftp://x", "http://x/{{ 1 }}", "http://x/#y", ""])
def test_what_is_no_address_of_a_runbook(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("monitoring", "--out", str(tmp_path), "--runbook-url", url)) == 64
    assert "--runbook-url: expected http" in capsys.readouterr().err


def test_a_directory_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(("monitoring", "--out", str(tmp_path / "file"))) == 64
    assert "file" in capsys.readouterr().err
