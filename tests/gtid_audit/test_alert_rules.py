"""Alert rules, run by promtool: each fires, does not fire, and resolves. Routes, by amtool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compose.native.monitoring_programs import MonitoringPrograms
from gtid_audit.monitoring.alert_rules import RECORDED, rules_file
from gtid_audit.monitoring.alert_table import OF_THE_AUDIT, Alert, alerts
from gtid_audit.monitoring.monitoring_files import FILES
from tests.gtid_audit.build import half_read, healthy, holed
from tests.gtid_audit.programs import free_port, output_of, programs_or_skip, running, with_share_of
from tests.gtid_audit.scraped import states_of, text_of
from topology.catalogue.verdict_table import CATALOGUE

pytestmark = pytest.mark.long
RULES = "prometheus/gtid-audit.rules.yml"
OF_CODES = [each for each in alerts() if each not in OF_THE_AUDIT]
PLACE = {"source": "a", "replica": "b", "channel": ""}
# The labels that Prometheus and the fleet file add to each series.
TARGET = {"instance": "auditor:9717", "job": "gtid-audit", "team": "pay"}


@pytest.fixture(scope="module")
def programs() -> MonitoringPrograms:
    return programs_or_skip()


def series(metric: str, values: str, **labels: str) -> dict[str, str]:
    own = {name: value for name, value in ({**labels, **TARGET}).items() if value}
    text = ",".join(f'{name}="{value}"' for name, value in own.items())
    return {"series": f"{metric}{{{text}}}", "values": values}


def expected(alert: Alert, value: str, **labels: str) -> dict[str, Any]:
    """Return an alert that fires, with its texts as Prometheus fills them in."""
    own = {name: text for name, text in ({**labels, **TARGET}).items() if text}
    severity = {"severity": alert.severity} if alert.severity else {}

    def filled(text: str) -> str:
        text = re.sub(
            r"{{ with \$labels.(\w+) }}(.*?){{ end }}",
            lambda found: found[2].replace("{{ . }}", own[found[1]]) if own.get(found[1]) else "",
            text,
        )
        text = re.sub(r"{{ if gt \$value 0.0 }}(.*?){{ end }}", r"\1" if value != "0" else "", text)
        text = re.sub(r"{{ \$labels.(\w+) }}", lambda found: own.get(found[1], ""), text)
        return re.sub(r'{{ (?:printf "%.0f" )?\$value }}', value, text)

    return {
        "exp_labels": {"component": "gtid-audit", **own, **severity},
        "exp_annotations": {
            "summary": filled(alert.summary),
            "description": filled(alert.description),
            "runbook_url": f"http://127.0.0.1:9717/runbook#{alert.name}",
        },
    }


def at(minute: int, alert: Alert, *firing: dict[str, Any]) -> dict[str, Any]:
    return {"eval_time": f"{minute}m", "alertname": alert.name, "exp_alerts": list(firing)}


def run_rules(
    programs: MonitoringPrograms, folder: Path, tests: list[dict[str, Any]], every: str = "1m"
) -> None:
    document = yaml.safe_load(rules_file())
    named = {each["alertname"] for test in tests for each in test["alert_rule_test"]}
    [_, group] = document["groups"]
    group["rules"] = [each for each in group["rules"] if each["alert"] in named]
    (folder / "rules.yml").write_text(yaml.safe_dump(document, allow_unicode=True))
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": every,
        "tests": [{"interval": every, **each} for each in tests],
    }
    (folder / "tests.yml").write_text(yaml.safe_dump(document, allow_unicode=True))
    assert "SUCCESS" in output_of(programs, "promtool", "test", "rules", "tests.yml", cwd=folder)


def test_alerts_of_codes_fire_with_their_servers_and_resolve(
    programs: MonitoringPrograms, tmp_path: Path
) -> None:
    """From minute 3 to 33 there is a finding, and all the time one that is only info."""
    # All in one test: promtool evaluates every rule at every minute of each test.
    inputs, expectations = [], []
    for alert in OF_CODES:
        code = alert.name.removeprefix("GtidAudit")
        severity = "critical" if CATALOGUE[code].severity.value == "critical" else "warning"
        labels = {"cluster": "shop", "code": code, "severity": severity, **PLACE}
        fires = expected(alert, "3", **labels)
        waits = 15 if alert.wait else 0
        metric = "gtid_audit_finding_transactions"
        inputs += [
            series(metric, "_x2 3x30 stale _x60", **labels),
            # Accepted, or info by the rule: never an alert.
            series(metric, "5x60", **{**labels, "severity": "info", "replica": "c"}),
        ]
        expectations += [
            at(1, alert),
            *([at(10, alert)] if waits else []),
            at(4 + waits, alert, fires),
            at(36, alert, fires),  # a restart of the service is no recovery
            at(45, alert),
        ]
    assert len(inputs) == 2 * sum(
        entry.has_rule and not code.startswith("U") for code, entry in CATALOGUE.items()
    )
    run_rules(programs, tmp_path, [{"input_series": inputs, "alert_rule_test": expectations}])


def test_a_finding_without_transactions_and_source_has_a_readable_text(
    programs: MonitoringPrograms, tmp_path: Path
) -> None:
    [alert] = [each for each in OF_CODES if each.name == "GtidAuditA3"]
    labels = {"cluster": "shop", "code": "A3", "severity": "critical", "replica": "b"}
    fires = expected(alert, "0", **labels)
    assert fires["exp_annotations"]["summary"] == "shop: A3 applier stopped by an error on b"
    assert not fires["exp_annotations"]["description"].startswith("Transactions")
    finding = series("gtid_audit_finding_transactions", "0x10", **labels)
    test = {"input_series": [finding], "alert_rule_test": [at(5, alert, fires)]}
    run_rules(programs, tmp_path, [test])


def of_the_audit(name: str) -> Alert:
    [found] = [each for each in OF_THE_AUDIT if each.name == name]
    return found


def test_what_is_not_known_alerts_beside_a_critical_finding(
    programs: MonitoringPrograms, tmp_path: Path
) -> None:
    down = of_the_audit("GtidAuditServerUnreachable")
    unread = of_the_audit("GtidAuditFactsUnread")
    h1 = next(each for each in OF_CODES if each.name == "GtidAuditH1")
    finding = {"cluster": "shop", "code": "H1", "severity": "critical", **PLACE}
    up, facts = "gtid_audit_server_up", "gtid_audit_unread_facts"
    test = {
        "input_series": [
            series("gtid_audit_finding_transactions", "3x60", **finding),
            series("gtid_audit_verdict", "1x60", cluster="shop", verdict="CRITICAL"),
            series("gtid_audit_verdict", "0x60", cluster="shop", verdict="UNKNOWN"),
            series(up, "1x60", cluster="shop", server="a"),
            series(up, "1x4 0x30 1x26", cluster="shop", server="b"),
            series(facts, "2x60", cluster="shop", server="a"),
            series(facts, "0x4 1x30 0x26", cluster="shop", server="b"),
        ],
        "alert_rule_test": [
            at(3, down),
            at(3, unread),
            at(20, h1, expected(h1, "3", **finding)),
            at(20, down, expected(down, "0", cluster="shop", server="b")),
            # b is unreachable: its unread facts are no second alert.
            at(20, unread, expected(unread, "2", cluster="shop", server="a")),
            at(50, down),
        ],
    }
    run_rules(programs, tmp_path, [test])


def filled_in(alert: Alert, lasting: str, **labels: str) -> dict[str, Any]:
    found = expected(alert, "", **labels)
    for name, text in found["exp_annotations"].items():
        found["exp_annotations"][name] = text.replace("{{ $value | humanizeDuration }}", lasting)
    return found


def test_an_old_audit_alerts_by_its_own_interval(
    programs: MonitoringPrograms, tmp_path: Path
) -> None:
    stale = of_the_audit("GtidAuditStale")
    last, interval = "gtid_audit_last_audit_timestamp_seconds", "gtid_audit_interval_seconds"
    test = {
        "input_series": [
            # Every minute until minute 10, then again from minute 40 on.
            series(last, "0+60x10 600x29 2400+60x30", cluster="fast"),
            series(interval, "60x70", cluster="fast"),
            series(last, "0x70", cluster="slow"),
            series(interval, "3600x70", cluster="slow"),
        ],
        "alert_rule_test": [
            at(10, stale),
            at(12, stale),
            at(20, stale, filled_in(stale, "10m 0s", cluster="fast")),
            at(50, stale),
        ],
    }
    run_rules(programs, tmp_path, [test])


def test_a_file_that_cron_does_not_write_any_more_alerts(
    programs: MonitoringPrograms, tmp_path: Path
) -> None:
    """Without an interval, after a day and two hours."""
    stale = of_the_audit("GtidAuditStale")
    test = {
        "input_series": [series("gtid_audit_last_audit_timestamp_seconds", "0x90", cluster="cron")],
        "alert_rule_test": [
            at(1560, stale),
            at(1600, stale, filled_in(stale, "1d 2h 40m 0s", cluster="cron")),
        ],
    }
    run_rules(programs, tmp_path, [test], every="20m")


def test_the_other_alerts_on_the_audit(programs: MonitoringPrograms, tmp_path: Path) -> None:
    never, absent = of_the_audit("GtidAuditNeverFinished"), of_the_audit("GtidAuditAbsent")
    failing, slow = of_the_audit("GtidAuditFailing"), of_the_audit("GtidAuditSlow")
    near, loaded = of_the_audit("GtidAuditDeadlineNear"), of_the_audit("GtidAuditConfiguration")
    build = series("gtid_audit_build_info", "_x10 1x60 _x30", version="1.0")
    late = {"cluster": "shop", "code": "E1", "severity": "warning", **PLACE}
    nothing = {
        "exp_labels": {"component": "gtid-audit", "severity": "warning"},
        "exp_annotations": expected(absent, "1")["exp_annotations"],
    }
    tests = [
        {
            "input_series": [
                build,
                series("gtid_audit_last_audit_timestamp_seconds", "_x40 2400x60", cluster="shop"),
            ],
            "alert_rule_test": [
                at(3, absent),
                at(8, absent, nothing),
                at(12, absent),
                at(20, never),
                at(30, never, expected(never, "1", version="1.0")),
                at(45, never),
                at(90, absent, nothing),
            ],
        },
        {
            "input_series": [
                series("gtid_audit_audit_failures_total", "0x10 1x50", cluster="shop"),
                series("gtid_audit_audit_duration_seconds", "5x10 90x30 5x20", cluster="shop"),
                series("gtid_audit_interval_seconds", "60x60", cluster="shop"),
            ],
            "alert_rule_test": [
                at(9, failing),
                at(15, failing, expected(failing, "", cluster="shop")),
                at(40, failing),
                at(20, slow),
                at(35, slow, filled_in(slow, "1m 30s", cluster="shop")),
                at(50, slow),
            ],
        },
        {
            "input_series": [series("gtid_audit_configuration_loaded", "1x10 0x20 1x20")],
            "alert_rule_test": [
                at(14, loaded),
                at(20, loaded, expected(loaded, "0")),
                at(35, loaded),
            ],
        },
        {
            "input_series": [
                series("gtid_audit_finding_deadline_timestamp_seconds", "18000x150", **late),
                series(
                    "gtid_audit_finding_deadline_timestamp_seconds",
                    "18000x150",
                    **{**late, "severity": "info", "replica": "c"},
                ),
            ],
            "alert_rule_test": [
                at(50, near),
                at(120, near, filled_in(near, "3h 0m 0s", **{**late, "severity": "critical"})),
            ],
        },
    ]
    run_rules(programs, tmp_path, tests)


def test_promtool_accepts_the_files(programs: MonitoringPrograms) -> None:
    printed = output_of(programs, "promtool", "check", "rules", RULES, "--lint=all", cwd=FILES)
    assert f"{len(RECORDED) + len([*alerts()])} rules found" in printed
    compose = Path(__file__).parents[2] / "compose" / "prometheus"
    output_of(
        *(programs, "promtool", "check", "config", "--syntax-only", "prometheus.yml"), cwd=compose
    )


def test_promtool_accepts_the_metrics(programs: MonitoringPrograms, tmp_path: Path) -> None:
    """Names, types and help texts follow the conventions of Prometheus."""
    text = text_of(states_of(healthy("x"), holed("y"), half_read("z")))
    command = [*programs.command("promtool"), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


ROUTES = "alertmanager/alertmanager.yml"


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (("component=gtid-audit", "severity=critical", "team=payments"), "pager"),
        (("component=gtid-audit", "severity=warning", "team=payments"), "payments"),
        (("component=gtid-audit", "severity=warning", "team=stock"), "tickets"),
    ],
)
def test_routes(programs: MonitoringPrograms, labels: tuple[str, ...], receiver: str) -> None:
    output_of(programs, "amtool", "check-config", ROUTES, cwd=FILES)
    arguments = ("config", "routes", "test", f"--config.file={ROUTES}")
    assert output_of(programs, "amtool", *arguments, *labels, cwd=FILES).strip() == receiver


def test_inhibition(programs: MonitoringPrograms, tmp_path: Path) -> None:
    """A real Alertmanager: a critical finding hides the warnings of its replica, and nothing else."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        *with_share_of(programs),
        *programs.command("prometheus-alertmanager"),
        *(f"--config.file={FILES / ROUTES}", f"--web.listen-address=127.0.0.1:{port}"),
        *("--cluster.listen-address=", f"--storage.path={tmp_path / 'data'}"),
    ]
    common = ("component=gtid-audit", "cluster=shop")
    edge = (*common, "source=a", "replica=b")
    added = {
        "H1": (*edge, "severity=critical", "code=H1"),
        "C3": (*edge, "severity=warning", "code=C3"),
        "C6": (*common, "source=a", "replica=c", "severity=warning", "code=C6"),
        "ServerUnreachable": (*common, "server=b", "severity=warning"),
        "FactsUnread": (*common, "server=b", "severity=warning"),
        "Stale": (*common, "severity=warning"),
        "Slow": (*common, "severity=warning"),
    }
    with running(command, ready=f"{url}/-/ready", log=tmp_path / "log"):
        for name, labels in added.items():
            arguments = ("alert", "add", f"GtidAudit{name}", *labels, f"--alertmanager.url={url}")
            output_of(programs, "amtool", *arguments, cwd=tmp_path)
        ask = ("alert", "query", f"--alertmanager.url={url}", "-o", "simple")
        active = _names(output_of(programs, "amtool", *ask, "--active", cwd=tmp_path))
        inhibited = _names(output_of(programs, "amtool", *ask, "--inhibited", cwd=tmp_path))
    assert inhibited == {"C3", "Slow"}
    assert active == added.keys() - inhibited


def _names(printed: str) -> set[str]:
    return set(re.findall(r"^GtidAudit(\w+)", printed, re.MULTILINE))
