"""Every alert on the metrics: one for each code that an audit reports, and those on the audit.

1. An alert on a code fires for each finding above info, with the servers of the finding. Its
   severity is that of the finding: a policy may have changed it.
2. What could not be read has alerts of its own, whatever else was found: CRITICAL outweighs UNKNOWN
   in the verdict, and a comparison with NaN is false.
3. `expr` is what fires. `series` is the expression without its threshold: it has data whenever the
   metrics have, so a wrong name or label in it is noticed (a test runs both).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from topology.catalogue.findings import Severity
from topology.catalogue.verdict_table import CATALOGUE, CatalogueEntry

COMPONENT: Final = "gtid-audit"
# A finding that is critical at once needs a person now; the reading was repeated until two agreed.
# What is a warning may belong to maintenance.
_WAIT: Final = {Severity.CRITICAL: "", Severity.WARNING: "15m", Severity.INFO: "15m"}
# A service that restarts has no findings until its first audit ends: that is no recovery.
_KEPT: Final = "5m"
# Later than a daily audit and its delay: for files of audits without a schedule.
_FILE_SECONDS_MAX: Final = 26 * 3600
_DEADLINE_SECONDS_MIN: Final = 4 * 3600


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule. `severity` is empty if the series have it."""

    name: str
    expr: str
    series: str
    wait: str  # for how long the expression must be true; "": not at all
    kept: str  # for how long it fires after the expression is false
    severity: str
    summary: str
    description: str
    to_do: str  # for the runbook


def alerts() -> Iterator[Alert]:
    """Yield every alert: those of codes in the order of the catalogue, then the others."""
    for entry in CATALOGUE.values():
        if entry.has_rule and not entry.code.startswith("U"):
            yield _of_code(entry)
    yield from OF_THE_AUDIT


def name_of(code: str) -> str:
    """Return the name of the alert of a code."""
    return f"GtidAudit{code}"


def _of_code(entry: CatalogueEntry) -> Alert:
    metric = "gtid_audit_finding_transactions"
    series = f'{metric}{{code="{entry.code}", severity!="info"}}'
    return Alert(
        name=name_of(entry.code),
        # Without a comparison: NaN fires too. It is a finding that an earlier process found.
        expr=series,
        series=metric,
        wait=_WAIT[entry.severity],
        kept=_KEPT,
        severity="",
        summary=f"{{{{ $labels.cluster }}}}: {entry.code} {entry.name}"
        "{{ with $labels.replica }} on {{ . }}{{ end }}"
        "{{ with $labels.source }}, source {{ . }}{{ end }}",
        description='{{ if gt $value 0.0 }}Transactions: {{ printf "%.0f" $value }}. {{ end }}'
        f"{entry.means} Run 'gtid-audit explain {entry.code}', then 'gtid-audit repair plan"
        " --fleet FILE --cluster {{ $labels.cluster }}'.",
        to_do=f"`gtid-audit explain {entry.code}` explains it; `gtid-audit repair plan` plans"
        " the repair.",
    )


OF_THE_AUDIT: Final = (
    Alert(
        name="GtidAuditServerUnreachable",
        expr="gtid_audit_server_up == 0",
        series="gtid_audit_server_up",
        wait="2m",
        kept="",
        severity="warning",
        summary="{{ $labels.cluster }}: gtid-audit cannot reach {{ $labels.server }}",
        description="Nothing new is known about {{ $labels.server }}: alerts on what was found"
        " before go on, and no other one can fire for it. 'gtid-audit audit --fleet FILE"
        " --cluster {{ $labels.cluster }}' prints the"
        " error.",
        to_do="Check that mysqld runs, that the auditor's host reaches its port, and that the"
        " account may connect.",
    ),
    Alert(
        name="GtidAuditFactsUnread",
        expr="gtid_audit_unread_facts > 0"
        " unless on (job, instance, cluster, server) (gtid_audit_server_up == 0)",
        series="gtid_audit_unread_facts",
        wait="5m",
        kept="",
        severity="warning",
        summary="{{ $labels.cluster }}: facts of {{ $labels.server }} could not be read:"
        " {{ $value }}",
        description="The cluster is partly unknown, beside what was found: a fault may be hidden."
        " 'gtid-audit audit --fleet FILE --cluster {{ $labels.cluster }}' lists the facts and"
        " the reasons.",
        to_do="Most often a privilege is missing, or the server was too slow for the time limit.",
    ),
    Alert(
        name="GtidAuditDeadlineNear",
        expr='gtid_audit_finding_deadline_timestamp_seconds{severity!="info"} - time()'
        f" < {_DEADLINE_SECONDS_MIN}",
        series="gtid_audit_finding_deadline_timestamp_seconds - time()",
        wait="",
        kept="",
        severity="critical",
        summary="{{ $labels.cluster }}: {{ $labels.code }} can soon not be repaired from binary"
        " logs{{ with $labels.replica }}, replica {{ . }}{{ end }}",
        description="The binary logs that the repair needs can be deleted in"
        " {{ $value | humanizeDuration }}. Repair it now, or raise binlog_expire_logs_seconds on"
        " the server that has them.",
        to_do="Raise `binlog_expire_logs_seconds` on the server that has the logs, then repair.",
    ),
    Alert(
        name="GtidAuditStale",
        expr="time() - gtid_audit_last_audit_timestamp_seconds"
        " > 2 * gtid_audit_interval_seconds + 30"
        f" or (time() - gtid_audit_last_audit_timestamp_seconds > {_FILE_SECONDS_MAX}"
        " unless gtid_audit_interval_seconds)",
        series="time() - gtid_audit_last_audit_timestamp_seconds",
        wait="1m",
        kept="",
        severity="warning",
        summary="{{ $labels.cluster }}: the latest audit finished"
        " {{ $value | humanizeDuration }} ago",
        description="Two audits in a row did not finish, or the audit of cron did not run. All"
        " other metrics of the cluster are as old. /healthz of gtid-audit shows the reason.",
        to_do="Read /healthz and the log of `gtid-audit serve`, or of the scheduled job.",
    ),
    Alert(
        name="GtidAuditNeverFinished",
        expr="gtid_audit_build_info"
        " unless on (job, instance) gtid_audit_last_audit_timestamp_seconds",
        series="gtid_audit_build_info",
        wait="15m",
        kept="",
        severity="warning",
        summary="{{ $labels.instance }}: gtid-audit has not finished any audit",
        description="No cluster is watched. /healthz of gtid-audit shows the reason.",
        to_do="Read /healthz and the log of `gtid-audit serve`.",
    ),
    Alert(
        name="GtidAuditFailing",
        expr="increase(gtid_audit_audit_failures_total[15m]) > 0",
        series="increase(gtid_audit_audit_failures_total[15m])",
        wait="",
        kept="",
        severity="warning",
        summary="{{ $labels.cluster }}: audits fail",
        description="A defect of gtid-audit or of its configuration ended an audit. The log of"
        " 'gtid-audit serve' has the error.",
        to_do="Read the log of `gtid-audit serve`. The metrics show the last audit that finished.",
    ),
    Alert(
        name="GtidAuditConfiguration",
        expr="gtid_audit_configuration_loaded == 0",
        series="gtid_audit_configuration_loaded",
        wait="5m",
        kept="",
        severity="warning",
        summary="{{ $labels.instance }}: gtid-audit could not load its files again",
        description="The fleet file, the tokens or the certificate have an error. What was loaded"
        " before is in use: clusters that were added since are not watched. /readyz of gtid-audit"
        " shows the reason.",
        to_do="Read `/readyz`, correct the file, and send SIGHUP to `gtid-audit serve`.",
    ),
    Alert(
        name="GtidAuditSlow",
        expr="gtid_audit_audit_duration_seconds > gtid_audit_interval_seconds",
        series="gtid_audit_audit_duration_seconds - gtid_audit_interval_seconds",
        wait="15m",
        kept="",
        severity="warning",
        summary="{{ $labels.cluster }}: an audit takes {{ $value | humanizeDuration }}, longer"
        " than the interval",
        description="Findings are reported later than the interval promises. Raise --interval, or"
        " lower the time limit of a server.",
        to_do="Raise `--interval`, or find the server that uses up its time limit.",
    ),
    Alert(
        name="GtidAuditAbsent",
        expr="absent(gtid_audit_build_info)",
        series="gtid_audit_build_info",
        wait="5m",
        kept="",
        severity="warning",
        summary="Prometheus has no metrics of gtid-audit",
        description="gtid-audit serve is down or was never started, or Prometheus cannot reach it."
        " Until it is back, no alert of gtid-audit can fire.",
        to_do="Check the target in Prometheus, and that `gtid-audit serve` runs.",
    ),
)
