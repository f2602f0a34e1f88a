"""The log of `serve`: one line for each event, as JSON or as text, on standard error.

1. Standard output has the address and nothing else, so a program that starts `serve` can read it.
2. A line is written as a whole, whichever thread writes it.
3. Texts come from servers and files: control characters are escaped, so a text cannot forge a line,
   and accounts in addresses are removed.
4. A line has no GTID set. A set may have megabytes; the API has it, under the id of the finding.
"""

import json
import sys
import threading
from typing import Any, Final

from gtid_audit import clock
from gtid_audit.output import printable, without_credentials
from gtid_audit.service.cluster_results import ClusterResult
from gtid_audit.service.finding_changes import ChangeKind, FindingChange
from gtid_audit.service.log_words import LogFormat, LogLevel
from topology.catalogue.findings import Finding, Severity
from topology.documents.records import time_to_text

_LEVELS: Final = {
    Severity.INFO: LogLevel.INFO,
    Severity.WARNING: LogLevel.WARNING,
    Severity.CRITICAL: LogLevel.CRITICAL,
}
_WORDS: Final = {
    ChangeKind.CAME: "new finding",
    ChangeKind.CHANGED: "changed finding",
    ChangeKind.GONE: "finding is gone:",
}
_ORDER: Final = tuple(LogLevel)


class ServiceLog:
    """Writes the lines; leaves out those below a level."""

    def __init__(self, form: LogFormat, *, least: LogLevel = LogLevel.INFO) -> None:
        self._form = form
        self._least = _ORDER.index(least)
        self._lock = threading.Lock()

    def write(self, level: LogLevel, event: str, text: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Write an event: a word for programs, a sentence for people, and its fields."""
        if _ORDER.index(level) < self._least:
            return
        line = self._line(level, event, without_credentials(text), fields)
        with self._lock:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def change(self, change: FindingChange) -> None:
        """Write that a finding came, changed or went."""
        finding = change.finding
        fields = _fields(change)
        ends = " → ".join(each for each in (finding.source, finding.replica) if each)
        where = finding.cluster + (f": {ends}" if ends else "")
        text = f"{_WORDS[change.kind]} {finding.code} {finding.name}, {where}"
        if change.fields:
            text += f" ({', '.join(change.fields)})"
        # Its end has the level of its severity, too: who reads that it came must read that it went.
        self.write(_LEVELS[finding.severity], f"finding_{change.kind.value}", text, **fields)

    def failure(self, result: ClusterResult) -> None:
        """Write that an audit failed."""
        self.write(
            LogLevel.CRITICAL,
            "audit_failed",
            f"audit of {result.cluster} failed: {result.failure}",
            cluster=result.cluster,
            failures=result.failures_total,
        )

    def _line(self, level: LogLevel, event: str, text: str, fields: dict[str, Any]) -> str:
        at = time_to_text(clock.now())
        if self._form is LogFormat.TEXT:
            return printable(" ".join(f"{at} {level.value} {event} {text}".split()))
        document = {"time": at, "level": level.value, "event": event, "message": text, **fields}
        # JSON escapes C0; others would still control a terminal that shows the log.
        return printable(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _fields(change: FindingChange) -> dict[str, Any]:
    finding = change.finding
    fields: dict[str, Any] = {
        "id": finding.id,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "cluster": finding.cluster,
        "source": finding.source,
        "replica": finding.replica,
        "channel": finding.channel,
        "first_seen": time_to_text(finding.first_seen),
        "last_seen": time_to_text(finding.last_seen),
    }
    if change.kind is ChangeKind.CHANGED:
        fields["changed"] = list(change.fields)
    if change.kind is not ChangeKind.GONE and isinstance(finding, Finding):
        fields["grade"] = finding.grade.value
        fields["gtid_count"] = finding.gtid_set.gtid_count
        fields["deadline"] = None if finding.deadline is None else time_to_text(finding.deadline)
        fields["explanation"] = without_credentials(finding.explanation)
    return fields
