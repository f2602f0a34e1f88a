"""The files of Prometheus and Alertmanager: rules, and an example of routes. Pure."""

from typing import Any, Final

import yaml

from gtid_audit.monitoring.alert_table import COMPONENT, Alert, alerts

# Where `gtid-audit serve` answers by default; an operator gives the address that people can open.
RUNBOOK_URL: Final = "http://127.0.0.1:9717/runbook"
RECORDED: Final = {
    "gtid_audit:audit_age_seconds": "time() - gtid_audit_last_audit_timestamp_seconds",
    "gtid_audit:finding_age_seconds": "time() - gtid_audit_finding_first_seen_timestamp_seconds",
    "gtid_audit:hole_age_seconds": "time() - gtid_audit_hole_first_seen_timestamp_seconds",
    "gtid_audit:deadline_seconds": "gtid_audit_finding_deadline_timestamp_seconds - time()",
    "verdict:gtid_audit_verdict:sum": "sum by (verdict) (gtid_audit_verdict)",
    "severity:gtid_audit_findings:count": ("count by (severity) (gtid_audit_finding_transactions)"),
}
_WIDTH: Final = 100
_HEAD: Final = """\
# Made by `gtid-audit monitoring`: do not edit. Runbook: {runbook}
"""
_ROUTES: Final = """\
# An example for Alertmanager: replace the receivers. `amtool check-config` checks it.
#
# Alerts on findings have the labels cluster, code, severity, source, replica and channel, and those
# that the fleet file gives to the cluster. All alerts have component="{component}".
route:
  receiver: tickets
  group_by: [cluster]
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 12h
  routes:
    - matchers: ['component="{component}"', 'severity="critical"']
      receiver: pager
      repeat_interval: 1h
    # A label of the fleet file leads to the team that owns the cluster.
    - matchers: ['component="{component}"', 'team="payments"']
      receiver: payments

receivers:
  - name: tickets
  - name: pager
  - name: payments

inhibit_rules:
  # A critical finding of a source and a replica is the cause or the consequence of its warnings.
  - source_matchers: ['component="{component}"', 'severity="critical"', 'code=~".+"']
    target_matchers: ['component="{component}"', 'severity="warning"', 'code=~".+"']
    equal: [cluster, source, replica]
  # Without any metrics no cluster is stale by itself.
  - source_matchers: ['alertname="GtidAuditAbsent"']
    target_matchers: ['alertname=~"GtidAuditStale|GtidAuditSlow|GtidAuditNeverFinished"']
  - source_matchers: ['alertname="GtidAuditStale"']
    target_matchers: ['alertname="GtidAuditSlow"']
    equal: [cluster]
  # No rule inhibits GtidAuditServerUnreachable and GtidAuditFactsUnread: what is not known matters
  # beside any finding.
"""


def rules_file(runbook: str = RUNBOOK_URL) -> str:
    """Return the rules as YAML; `runbook` is the address to which alerts link."""
    recorded = [{"record": name, "expr": expr} for name, expr in RECORDED.items()]
    document = {
        "groups": [
            {"name": "gtid-audit.recorded", "rules": recorded},
            {"name": "gtid-audit.alerts", "rules": [_rule(each, runbook) for each in alerts()]},
        ]
    }
    text = yaml.safe_dump(document, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return _HEAD.format(runbook=runbook) + text


def _rule(alert: Alert, runbook: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": alert.expr}
    if alert.wait:
        rule["for"] = alert.wait
    if alert.kept:
        rule["keep_firing_for"] = alert.kept
    rule["labels"] = {"component": COMPONENT}
    if alert.severity:
        rule["labels"]["severity"] = alert.severity
    rule["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": f"{runbook}#{alert.name}",
    }
    return rule


def alertmanager_file() -> str:
    """Return the example of routes and inhibition as YAML."""
    return _ROUTES.format(component=COMPONENT)
