"""The page at /: the verdict of each cluster, and its findings. Plain HTML.

1. Every text is escaped. The page has no script and loads nothing: the policy that is sent with it
   forbids both, and permits only the style that is in the page.
2. Clusters that need attention come first. The page shows a limited number; the API has all.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape
from typing import Final

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.service.api_documents import verdict_now
from gtid_audit.service.cluster_results import ClusterResult, ServiceResults
from gtid_audit.service.finding_changes import OpenFinding
from gtid_audit.service.procedure_source import ProceduresRead
from topology.catalogue.findings import Finding, Verdict

CLUSTERS_SHOWN_MAX: Final = 200
FINDINGS_SHOWN_MAX: Final = 20  # of one cluster
PROCEDURES_SHOWN_MAX: Final = 10
_WORST_FIRST: Final = (Verdict.CRITICAL, Verdict.UNKNOWN, Verdict.WARNING, Verdict.OK)
_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0 }
tr { border-bottom: 1px solid #ddd }
ul { margin: 0; padding-left: 1.1rem }
.v { font-weight: 600; white-space: nowrap }
.OK { color: #1a7f37 } .WARNING { color: #9a6700 } .CRITICAL { color: #cf222e }
.UNKNOWN { color: #8250df } .quiet { color: #666 }
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def page(results: ServiceResults, procedures: ProceduresRead) -> str:
    """Return the page."""
    return "".join(_pieces(results, procedures))


def _pieces(results: ServiceResults, procedures: ProceduresRead) -> Iterator[str]:
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>gtid-audit</title>'
        '<meta name="viewport" content="width=device-width"><meta http-equiv="refresh"'
        f' content="60"><style>{_STYLE}</style></head><body><h1>gtid-audit</h1>'
    )
    ordered = sorted(
        results.clusters, key=lambda each: _WORST_FIRST.index(verdict_now(each, results))
    )
    yield f"<p>{counted(len(ordered), 'cluster')}"
    counts = [
        (verdict, sum(verdict_now(each, results) is verdict for each in ordered))
        for verdict in _WORST_FIRST
    ]
    yield from (f" · {_verdict(verdict)} {count}" for verdict, count in counts if count)
    yield "</p>"
    if results.configuration.problem is not None:
        yield (
            f'<p class="CRITICAL">Could not be loaded again:'
            f" {_text(results.configuration.problem)}</p>"
        )
    yield "<table><tr><th>verdict<th>cluster<th>read<th>findings</tr>"
    yield from (_row(each, results) for each in ordered[:CLUSTERS_SHOWN_MAX])
    yield "</table>"
    if len(ordered) > CLUSTERS_SHOWN_MAX:
        rest = counted(len(ordered) - CLUSTERS_SHOWN_MAX, "more cluster")
        yield f'<p class="quiet">… and {rest}: /api/v1/clusters</p>'
    yield from _procedures(procedures)
    yield "</body></html>\n"


def _row(result: ClusterResult, results: ServiceResults) -> str:
    verdict, ended = verdict_now(result, results), result.ended
    notes = []
    if ended is None:
        notes.append("not audited yet")
    elif results.is_stale(result):
        notes.append(f"the last audit is too old; it said {ended.audit.verdict.value}")
    if result.failure is not None:
        notes.append(f"the last audit failed: {result.failure}")
    findings = () if ended is None else ended.audit.findings
    items = [
        *(_text(each) for each in notes),
        *map(_finding, findings[:FINDINGS_SHOWN_MAX]),
    ]
    if len(findings) > FINDINGS_SHOWN_MAX:
        items.append(f"… and {len(findings) - FINDINGS_SHOWN_MAX} more")
    lasting = () if ended is None else ended.lasting
    items += map(_not_seen_again, lasting[:FINDINGS_SHOWN_MAX])
    if len(lasting) > FINDINGS_SHOWN_MAX:
        items.append(f"… and {len(lasting) - FINDINGS_SHOWN_MAX} more that were not looked for")
    if ended is not None and ended.audit.unknown:
        items.append(f"{counted(len(ended.audit.unknown), 'fact')} not read")
    read_at = None if ended is None else ended.audit.read_at
    return (
        f"<tr><td>{_verdict(verdict)}<td>{_text(result.cluster)}<td>{_moment(read_at)}"
        f"<td>{_list(items)}</tr>"
    )


def _finding(finding: Finding) -> str:
    ends = " → ".join(each for each in (finding.source, finding.replica) if each)
    count = finding.gtid_set.gtid_count
    size = f", {counted(count, 'transaction')}" if count else ""
    return (
        f'<span class="v">{_text(finding.code)}</span> {_text(finding.name)}'
        f" ({finding.severity.value}, {finding.grade.value}): {_text(ends)}{size},"
        f" since {_moment(finding.first_seen)}"
        f' <span class="quiet">{_text(finding.id)}</span>'
    )


def _not_seen_again(finding: OpenFinding) -> str:
    ends = " → ".join(each for each in (finding.source, finding.replica) if each)
    return (
        f'<span class="v">{_text(finding.code)}</span> {_text(finding.name)}'
        f" ({finding.severity.value}): {_text(ends)}, last seen {_moment(finding.last_seen)}:"
        " something was not read since"
        f' <span class="quiet">{_text(finding.id)}</span>'
    )


def _procedures(read: ProceduresRead) -> Iterator[str]:
    if read.problem is not None:
        yield f"<h2>Repairs</h2><p>The journal cannot be read: {_text(read.problem)}</p>"
    if not read.procedures:
        return
    yield "<h2>Repairs</h2><table><tr><th>state<th>cluster<th>started<th>scripts<th>id</tr>"
    for each in read.procedures[:PROCEDURES_SHOWN_MAX]:
        yield (
            f"<tr><td>{_text(each.state.value)}<td>{_text(each.cluster)}"
            f"<td>{_moment(each.started_at)}<td>{each.scripts_done} of {each.scripts_total}"
            f"<td>{_text(each.id)}</tr>"
        )
    yield "</table>"


def _verdict(verdict: Verdict) -> str:
    return f'<span class="v {verdict.value}">{verdict.value}</span>'


def _list(items: Iterable[str]) -> str:
    inner = "".join(f"<li>{each}" for each in items)
    return f"<ul>{inner}</ul>" if inner else ""


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _text(text: str) -> str:
    return escape(printable(text))
