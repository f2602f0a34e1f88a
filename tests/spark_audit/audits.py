"""Made-up evaluations, and DataFrames of them, for the tests of results, history and trends."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from gtid import GtidSet
from spark_audit.evaluated_rows import rows_of_audits
from spark_audit.schema import EVALUATED
from spark_audit.summary import FleetSummary
from topology.adapters.run_directory import RunName
from topology.catalogue.findings import (
    ClusterAudit,
    Evidence,
    Finding,
    Grade,
    Severity,
    Strategy,
    Unknown,
    Verdict,
    verdict_of,
)

NIGHT = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)
UUID_A = "aaaaaaaa-0000-0000-0000-000000000000"


def night(number: int) -> datetime:
    return NIGHT + timedelta(days=number)


def run_of(number: int) -> RunName:
    return RunName(f"run={night(number):%Y%m%dT%H%M%S.%fZ}")


def a_finding(cluster: str, *, at: datetime, code: str = "H1", gtids: str = "51-53") -> Finding:
    severity = {
        "H": Severity.CRITICAL,
        "E": Severity.CRITICAL,
        "C": Severity.WARNING,
        "T": Severity.INFO,
    }[code[0]]
    return Finding(
        code=code,
        name="bypassed by file position",
        severity=severity,
        grade=Grade.PROVED,
        cluster=cluster,
        source="a",
        replica="b",
        channel="",
        gtid_set=GtidSet.parse(f"{UUID_A}:{gtids}" if gtids else ""),
        first_seen=at,
        last_seen=at,
        evidence=(Evidence("auto_position", "0", "b", at),),
        explanation='b lacks these; "ä\n" is one line',
        strategies=(Strategy("refetch", automatic=False, risk="none", why="it is there"),),
    )


def an_audit(
    cluster: str, *, at: datetime, codes: Iterable[str] = (), unread: Iterable[str] = ()
) -> ClusterAudit:
    findings = [a_finding(cluster, at=at, code=code) for code in codes]
    unknown = tuple(Unknown(cluster, "b", fact, "timeout: no answer") for fact in sorted(unread))
    return ClusterAudit(
        cluster=cluster,
        verdict=verdict_of(findings=findings, unknown=unknown),
        servers=("a", "b"),
        findings=tuple(sorted(findings, key=lambda finding: finding.order)),
        unknown=unknown,
        read_at=at,
    )


def with_gtids(audit: ClusterAudit, gtids: str) -> ClusterAudit:
    """Let the findings be about other transactions: they stay the same findings."""
    grown = GtidSet.parse(f"{UUID_A}:{gtids}")
    return replace(audit, findings=tuple(replace(one, gtid_set=grown) for one in audit.findings))


def frame_of(session: SparkSession, audits: Iterable[ClusterAudit]) -> DataFrame:
    return session.createDataFrame(rows_of_audits(audits), EVALUATED)


def verdict_counts(**counts: int) -> tuple[tuple[Verdict, int], ...]:
    return tuple((verdict, counts.get(verdict.value, 0)) for verdict in Verdict)


def a_summary(verdict: Verdict) -> FleetSummary:
    """Make the summary of one cluster that was evaluated so."""
    return FleetSummary(
        run=run_of(0).text,
        previous=None,
        policy="0123456789abcdef",
        contents_compared=None,
        audited_at=None,
        clusters=verdict_counts(**{verdict.value: 1}),
        server_count=2,
        unknown_count=0,
        findings=(),
        worst=(),
        content=(),
    )
