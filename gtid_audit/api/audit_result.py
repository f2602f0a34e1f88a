"""The result of `audit`, from memory or from a stored run."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gtid.counted_nouns import counted
from gtid_audit.api.api_errors import InvalidRequest
from gtid_audit.api.result_frames import arrow_of, pandas_of
from gtid_audit.views.verdict_answers import VerdictAnswer
from topology.catalogue.findings import ClusterAudit, Finding, Unknown, Verdict
from topology.documents.records import AUDIT, FINDING, UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

    from gtid_audit.views.report import AuditReport

Table = Literal["findings", "clusters", "unknown"]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit of any number of clusters.

    `verdict` is the worst of all clusters. `audited_at` is when the last reading ended, in UTC;
    None if no server was read. `clusters` are in order of name.
    """

    verdict: Verdict
    audited_at: datetime | None
    clusters: tuple[ClusterAudit, ...]
    _outcome: VerdictAnswer = field(repr=False, compare=False)

    @classmethod
    def of_report(cls, report: "AuditReport", outcome: VerdictAnswer) -> "AuditResult":
        """Return the result of a report; `outcome` writes its document."""
        return cls(report.verdict, report.audited_at, report.audits, outcome)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all clusters, the most severe first within each cluster."""
        return tuple(finding for each in self.clusters for finding in each.findings)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Return the facts that were not read, cluster by cluster."""
        return tuple(unknown for each in self.clusters for unknown in each.unknown)

    def document(self) -> dict[str, Any]:
        """Return the document of `gtid-audit audit --json`: docs/json.md lists its fields."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_json(self) -> str:
        """Return the document as text, with the bytes that the command writes."""
        return "".join(self._outcome.document())

    def to_arrow(self, table: Table = "findings") -> Any:  # noqa: ANN401 - pa.Table, of a package without types
        """Return a `pyarrow.Table`: one row for each finding, cluster, or fact not read.

        Raises MissingPackage without PyArrow (extra `columns`).
        """
        if table == "findings":
            return arrow_of(FINDING, self.findings)
        if table == "clusters":
            return arrow_of(AUDIT, self.clusters, without=("findings", "unknown"))
        if table == "unknown":
            return arrow_of(UNKNOWN, self.unknown)
        raise InvalidRequest("table: expected findings, clusters or unknown")

    def to_pandas(self, table: Table = "findings") -> "pd.DataFrame":
        """Return the same rows as a `pandas.DataFrame`. Raises MissingPackage (extra `pandas`)."""
        return pandas_of(self.to_arrow(table))

    def __repr__(self) -> str:
        counts = counted(len(self.clusters), "cluster"), counted(len(self.findings), "finding")
        return f"<AuditResult {self.verdict.value}: {', '.join(counts)}>"


def result_of_stored(directory: Path, max_age: timedelta | None) -> AuditResult:
    """Evaluate the latest stored run in this process. Raises UsageProblem."""
    from gtid_audit import clock
    from gtid_audit.tasks.stored_audit import answer_of_stored
    from gtid_audit.tasks.stored_run import StoredQuestion
    from gtid_audit.views.audit_results import InResults, Refused
    from gtid_audit.views.report import Engine
    from spark_audit.result_records import LocalResults
    from topology.documents.run_record import AgeLimit
    from topology.policy import Policy

    asked = StoredQuestion(directory, AgeLimit(clock.now(), max_age), Policy())
    with answer_of_stored(asked, engine=Engine.LOCAL) as answer:
        if isinstance(answer, Refused):
            return AuditResult.of_report(answer.report, answer)
        assert isinstance(answer, InResults), "a stored run is evaluated, or refused"
        assert isinstance(answer.results, LocalResults), "this process evaluated it"
        summary = answer.results.summary
        return AuditResult(summary.verdict, summary.audited_at, answer.results.audits, answer)
