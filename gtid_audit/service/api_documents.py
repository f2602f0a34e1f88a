"""The documents of the API: made from the last results, without asking any server.

1. A cluster whose last audit is too old is UNKNOWN, and one that was never audited, too: `verdict`
   is about now, `last_verdict` about the time of `read_at`.
2. Findings and unread facts have the fields of all documents (topology/documents/records.py).
3. Statements and what scripts printed stay in the journal: they may have rows of tables.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from gtid_audit.service.cluster_results import ClusterResult, ServiceResults
from gtid_audit.service.finding_changes import OpenFinding
from gtid_audit.service.paging import ListPage, page_of
from gtid_audit.service.query_parameters import Parameters
from gtid_audit.views.handshakes import handshakes_of
from gtid_audit.views.procedure_text import list_document, procedure_document
from repair.applying.procedures_applied import AppliedProcedure, EventKind, ProcedureEvent
from topology.catalogue.findings import Finding, Severity, Verdict
from topology.documents.document_version import versioned
from topology.documents.label_records import LABELS
from topology.documents.records import Record, finding_to_record, time_to_text, unknown_to_record

# Events whose texts are SQL, or what a server printed.
_KEPT_IN_JOURNAL: Final = frozenset({EventKind.SENT, EventKind.ANSWERED})
_FINDING_SHAPE: Final = ("", 0, "", "", "", "")


def verdict_now(result: ClusterResult, results: ServiceResults) -> Verdict:
    """Return the verdict on the present state of a cluster."""
    if result.ended is None or results.is_stale(result):
        return Verdict.UNKNOWN
    return result.ended.audit.verdict


def clusters_document(results: ServiceResults, asked: Parameters) -> dict[str, Any]:
    """Return a page of the clusters that the parameters select. Raises BadParameter."""
    selected = [
        each
        for each in results.clusters
        if asked.admits("cluster", each.cluster)
        and asked.admits("verdict", verdict_now(each, results).value)
    ]
    page = page_of(
        selected,
        lambda each: (each.cluster,),
        shape=("",),
        cursor=asked.one("cursor"),
        limit=asked.limit,
    )
    state = results.configuration
    shown = {"loaded_at": time_to_text(state.loaded_at), "problem": state.problem}
    clusters = [_cluster(each, results) for each in page.items]
    return _paged(page, "clusters", clusters, configuration=shown)


def findings_document(results: ServiceResults, asked: Parameters) -> dict[str, Any]:
    """Return a page of the findings that the parameters select. Raises BadParameter."""
    selected = [
        finding
        for finding in _findings(results)
        if asked.admits("cluster", finding.cluster)
        and asked.admits("code", finding.code)
        and asked.admits("severity", finding.severity.value)
    ]
    page = page_of(
        selected,
        lambda each: each.order,
        shape=_FINDING_SHAPE,
        cursor=asked.one("cursor"),
        limit=asked.limit,
    )
    return _paged(page, "findings", [finding_to_record(each) for each in page.items])


def finding_document(results: ServiceResults, finding_id: str) -> dict[str, Any] | None:
    """Return one finding; None if no last audit has it."""
    found = next((each for each in _findings(results) if each.id == finding_id), None)
    return None if found is None else versioned({"finding": finding_to_record(found)})


def handshake_document(result: ClusterResult, promote: str | None) -> dict[str, Any]:
    """Return the handshakes of a cluster that was audited.

    Raises UsageProblem if the cluster has no server `promote`.
    """
    assert result.ended is not None, "checked by the caller"
    last = result.ended.audited
    shown = handshakes_of(last.snapshot, last.audit, last.policy, offered=None, promote=promote)
    return shown.document()


def procedures_document(
    procedures: Sequence[AppliedProcedure], asked: Parameters
) -> dict[str, Any]:
    """Return a page of the procedures that the parameters select. Raises BadParameter."""
    selected = sorted(
        (
            each
            for each in procedures
            if asked.admits("cluster", each.cluster) and asked.admits("state", each.state.value)
        ),
        key=_newest_first,
    )
    page = page_of(
        selected, _newest_first, shape=(0, ""), cursor=asked.one("cursor"), limit=asked.limit
    )
    return _paged(page, "procedures", list_document(page.items)["procedures"])


def one_procedure_document(
    procedure: AppliedProcedure, events: Sequence[ProcedureEvent]
) -> dict[str, Any]:
    """Return one procedure with its events, without statements and what they printed."""
    shown = [each for each in events if each.kind not in _KEPT_IN_JOURNAL]
    return versioned(
        {
            **procedure_document(procedure, shown),
            "statements_sent": sum(each.kind is EventKind.SENT for each in events),
        }
    )


def _newest_first(procedure: AppliedProcedure) -> tuple[int, str]:
    return -int(procedure.started_at.timestamp() * 1_000_000), procedure.id


def _findings(results: ServiceResults) -> list[Finding]:
    """Return the findings that are shown; clusters and findings are in order.

    Of those that another process found, and that no audit could look for since, only the history
    is known: `not_seen_again` of their cluster has them.
    """
    ended = (each.ended for each in results.clusters)
    shown = (one for each in ended if each is not None for one in each.shown)
    return sorted((one for one in shown if isinstance(one, Finding)), key=lambda one: one.order)


def _paged(
    page: ListPage[Any], name: str, records: Sequence[Any], **head: object
) -> dict[str, Any]:
    return versioned(
        {**head, "total": page.total, "next_cursor": page.next_cursor, name: list(records)}
    )


def _not_seen_again(finding: OpenFinding) -> Record:
    """Return a finding that the last audit could not look for, as it was last seen."""
    return {
        "id": finding.id,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "source": finding.source,
        "replica": finding.replica,
        "channel": finding.channel,
        "first_seen": time_to_text(finding.first_seen),
        "last_seen": time_to_text(finding.last_seen),
    }


def _cluster(result: ClusterResult, results: ServiceResults) -> Record:
    ended = result.ended
    audit = None if ended is None else ended.audit
    counts = Counter(each.severity for each in (() if ended is None else ended.shown))
    lasting = () if ended is None else ended.lasting
    return {
        "cluster": result.cluster,
        "verdict": verdict_now(result, results).value,
        "last_verdict": None if audit is None else audit.verdict.value,
        "is_stale": results.is_stale(result),
        "not_seen_again": [_not_seen_again(each) for each in lasting],
        "servers": list(result.servers),
        "labels": LABELS.write(result.labels),
        "read_at": None if audit is None or audit.read_at is None else time_to_text(audit.read_at),
        "audited_at": None if ended is None else time_to_text(ended.at),
        "audit_milliseconds": None if ended is None else round(ended.duration_seconds * 1000),
        "audits": result.audits_total,
        "failures": result.failures_total,
        "failure": result.failure,
        "findings": {each.value: counts[each] for each in Severity},
        "unknown": [] if audit is None else [unknown_to_record(each) for each in audit.unknown],
    }
