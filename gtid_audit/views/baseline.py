"""Writes the findings of an audit as entries to accept, for the fleet file.

The entries lack what only an operator knows: a reason and a last day. So the fleet file refuses
them until they were edited.
"""

import sys
from collections.abc import Iterator
from itertools import groupby

import yaml

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.report import AuditReport
from gtid_audit.views.report_text import moment_of
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted_findings import may_be_accepted, shown_by

_HEADER = """\
# Findings of {clusters}, read {moment}: {findings} to accept.
#
# Before you use them:
# 1. Delete each entry that is a fault to repair. What stays here raises no alarm.
# 2. Write a reason into each entry, the ticket if there is one, and by whom.
# 3. Write the last day of the acceptance into `expires`, as 2027-01-31 (UTC).
# 4. Copy the entries of each cluster to that cluster in the fleet file.
#
# The fleet file is refused while a reason or a day is empty. A finding alarms again with one
# transaction more than `set`, if its evidence is not `shows`, at a higher severity, and after the
# last day.
"""


def acceptable(report: AuditReport) -> tuple[Finding, ...]:
    """Return the findings that can be accepted: above info, and not about unread facts."""
    return tuple(filter(may_be_accepted, report.findings))


def not_acceptable(report: AuditReport) -> tuple[Finding, ...]:
    """Return the findings above info that no entry can accept; what was not read is no finding."""
    return tuple(
        each
        for each in report.findings
        if each.severity is not Severity.INFO
        and not each.code.startswith("U")
        and not may_be_accepted(each)
    )


def baseline_text(report: AuditReport) -> str:
    """Return the YAML text: the acceptable findings of each cluster, and what to edit."""
    findings = acceptable(report)
    lines = [
        _HEADER.format(
            clusters=counted(len(report.audits), "cluster"),
            moment=moment_of(report.audited_at),
            findings=counted(len(findings), "finding"),
        )
    ]
    if codes := sorted({each.code for each in not_acceptable(report)}):
        lines.append(f"# Not here, because no entry can accept it: {', '.join(codes)}.\n")
    lines += [
        f"# Not read completely, so it may have more findings: {_quoted(audit.cluster)}\n"
        for audit in report.audits
        if audit.unknown
    ]
    lines.append("clusters:\n" if findings else "clusters: []\n")
    for cluster, own in groupby(findings, key=lambda finding: finding.cluster):
        lines.append(f"  - name: {_quoted(cluster)}\n    accepted_findings:\n")
        lines += [line for finding in own for line in _entry(finding)]
    return "".join(lines)


def _entry(finding: Finding) -> Iterator[str]:
    # One line: a line end in a comment would end it.
    yield f"      # {finding.name}: {printable(' '.join(finding.explanation.split()))}\n"
    yield f"      - code: {finding.code}\n"
    if finding.source is None and finding.replica is not None:
        yield f"        server: {_quoted(finding.replica)}\n"
    else:
        places = {"source": finding.source, "replica": finding.replica}
        yield from (f"        {key}: {_quoted(name)}\n" for key, name in places.items() if name)
    if finding.channel:
        yield f"        channel: {_quoted(finding.channel)}\n"
    if finding.gtid_set:
        yield f"        set: {_quoted(str(finding.gtid_set))}\n"
    else:
        yield f"        shows: {_quoted(shown_by(finding))}\n"
    yield f"        severity: {finding.severity.value}\n"
    yield '        reason: ""\n'
    yield '        ticket: ""\n'
    yield '        by: ""\n'
    yield '        expires: ""\n'


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar on one line, with every odd character escaped."""
    return yaml.safe_dump(text, default_style='"', width=sys.maxsize).rstrip("\n")
