"""The results of one audited run in memory: the local engine's counterpart of adapters/results.py.

1. Tables, summary and order are the same as Spark's. Tests compare the two.
2. topology/finding_history.py is spark_audit/first_seen.py for a list.
3. This module knows neither files nor Spark.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import xor
from typing import Final

from spark_audit.evaluated_rows import rows_of_audits
from spark_audit.result_columns import CLUSTER_SCHEMA
from spark_audit.summary import (
    LOCAL_DIGEST,
    SEVERITIES,
    UNREAD_CODE,
    VERDICTS,
    WORST_CLUSTERS_MAX,
    CodeCount,
    FleetSummary,
    TableContent,
    WorstCluster,
    policy_digest,
)
from topology.adapters.snapshot_columns import records_of_table
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Unknown, Verdict
from topology.documents.json_items import audit_items
from topology.documents.records import (
    Record,
    finding_to_record,
    unknown_to_record,
)
from topology.facts.accepted_findings import is_accepted
from topology.finding_history import with_history
from topology.policy import Policy

_DIGEST_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class LocalResults:
    """One audited run, as a page or a document shows it."""

    place: str  # the directory of the results; empty if they are not stored
    audits: tuple[ClusterAudit, ...]  # in order of name, findings with their history
    carried: tuple[Finding, ...]
    summary: FleetSummary

    def worst_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings above severity INFO, the worst first."""
        loud = [
            finding
            for finding in _findings(self.audits)
            if finding.severity is not Severity.INFO and finding.code != UNREAD_CODE
        ]
        loud.sort(key=lambda one: (_rank(one.severity), one.cluster, one.code, one.id))
        return tuple(loud[:limit])

    def accepted_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings that the policy accepts, in order."""
        accepted = [finding for finding in _findings(self.audits) if is_accepted(finding)]
        accepted.sort(key=lambda one: (one.cluster, one.code, one.id))
        return tuple(accepted[:limit])

    def first_unknown(self, limit: int) -> tuple[Unknown, ...]:
        """Return at most `limit` facts that were not read, in order."""
        return tuple(sorted(each for audit in self.audits for each in audit.unknown)[:limit])

    def report_items(self) -> dict[str, Iterator[str]]:
        """Return the three lists of a report as items (json_items.py), in report order."""
        findings = sorted(_findings(self.audits), key=lambda one: (*one.order, one.id))
        return audit_items(self.audits, findings)


def results_of(
    audits: Iterable[ClusterAudit],
    *,
    run: str,
    previous: str | None,
    known: Sequence[Finding],
    run_at: datetime,
    policy: Policy,
    contents_compared: int | None,
) -> LocalResults:
    """Combine evaluations with the findings of earlier runs.

    `known` are the findings of the previous run and those that it carried.
    """
    ordered = tuple(sorted(audits, key=lambda audit: audit.cluster))
    dated, carried = with_history(ordered, known=known, run_at=run_at)
    summary = _summary_of(
        dated,
        carried,
        run=run,
        previous=previous,
        policy=policy,
        contents_compared=contents_compared,
    )
    return LocalResults("", dated, carried, summary)


def contents_of_tables(tables: Mapping[str, Iterable[Record]]) -> tuple[TableContent, ...]:
    """Count the rows of each table, and combine them into a digest that ignores their order."""
    return tuple(_content(name, rows) for name, rows in tables.items())


def tables_of(
    audits: Sequence[ClusterAudit], carried: Sequence[Finding]
) -> dict[str, list[Record]]:
    """Return the rows of each table; those of `clusters` without the findings."""
    return {
        "clusters": records_of_table(rows_of_audits(audits).select(CLUSTER_SCHEMA.names)),
        "findings": [finding_to_record(one) for one in _findings(audits)],
        "unknown": [unknown_to_record(one) for audit in audits for one in audit.unknown],
        "carried": [finding_to_record(one) for one in carried],
    }


def _summary_of(
    audits: Sequence[ClusterAudit],
    carried: Sequence[Finding],
    *,
    run: str,
    previous: str | None,
    policy: Policy,
    contents_compared: int | None,
) -> FleetSummary:
    tables = tables_of(audits, carried)
    codes: dict[tuple[str, int], int] = {}
    for finding in _findings(audits):
        key = (finding.code, _rank(finding.severity))
        codes[key] = codes.get(key, 0) + 1
    verdicts = [audit.verdict for audit in audits]
    worst = sorted(
        (
            WorstCluster.of_row(row)
            for row in tables["clusters"]
            if row["verdict"] != Verdict.OK.value
        ),
        key=lambda one: (
            VERDICTS.index(one.verdict),
            -one.critical_count,
            -one.warning_count,
            -one.unknown_count,
            one.cluster,
        ),
    )
    return FleetSummary(
        run=run,
        previous=previous,
        policy=policy_digest(policy),
        contents_compared=contents_compared,
        audited_at=max((audit.read_at for audit in audits if audit.read_at), default=None),
        clusters=tuple((verdict, verdicts.count(verdict)) for verdict in Verdict),
        server_count=sum(len(audit.servers) for audit in audits),
        unknown_count=sum(len(audit.unknown) for audit in audits),
        findings=tuple(
            CodeCount(code, SEVERITIES[rank], codes[code, rank]) for code, rank in sorted(codes)
        ),
        worst=tuple(worst[:WORST_CLUSTERS_MAX]),
        content=contents_of_tables(tables),
        digest_by=LOCAL_DIGEST,
    )


def _content(table: str, rows: Iterable[Record]) -> TableContent:
    digests = [_digest(row) for row in rows]
    return TableContent(table, len(digests), f"{reduce(xor, digests, 0):016x}")


def _digest(row: Record) -> int:
    text = json.dumps(row, ensure_ascii=True, sort_keys=True)
    return int(hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS], 16)


def _findings(audits: Iterable[ClusterAudit]) -> Iterator[Finding]:
    return (finding for audit in audits for finding in audit.findings)


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
