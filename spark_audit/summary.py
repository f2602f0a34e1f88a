"""The summary of an audited run for the driver: some counts and the worst clusters.

1. It is small: its size does not depend on the number of clusters.
2. The same results give the same summary, byte for byte. So two evaluations of one run are compared
   by it: `content` has the number of rows of each table, and a digest that ignores their order.
3. This module knows neither files nor Spark.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from topology.catalogue.findings import Severity, Verdict, worst_verdict
from topology.documents.records import time_from_text, time_to_text
from topology.facts.accepted import AcceptedRepair
from topology.facts.accepted_findings import AcceptedFinding
from topology.policy import Policy

WORST_CLUSTERS_MAX: Final = 50  # one or two screens; the tables have the rest
SEVERITIES: Final = (Severity.CRITICAL, Severity.WARNING, Severity.INFO)  # worst first
VERDICTS: Final = (Verdict.CRITICAL, Verdict.UNKNOWN, Verdict.WARNING, Verdict.OK)  # worst first
UNREAD_CODE: Final = "U1"  # of facts that were not read, which are reported in a separate list
SPARK_DIGEST: Final = "spark"  # exclusive or of xxhash64 of the columns
LOCAL_DIGEST: Final = "local"  # exclusive or of SHA-256 of the rows as JSON, the first 64 bits
LAYOUT: Final = 1  # of the tables; raised when a column changes its meaning


class MalformedSummary(ValueError):
    """The text is not the summary of a run."""


@dataclass(frozen=True, slots=True)
class CodeCount:
    """The number of findings with one code and one severity."""

    code: str
    severity: Severity
    findings: int


@dataclass(frozen=True, slots=True)
class WorstCluster:
    """One of the clusters to look at first."""

    cluster: str
    verdict: Verdict
    server_count: int
    critical_count: int
    warning_count: int
    info_count: int
    unknown_count: int

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "WorstCluster":
        """Take the fields from a row of CLUSTERS."""
        found = {each.name: row[each.name] for each in fields(cls)}
        return cls(**found | {"verdict": Verdict(row["verdict"])})


@dataclass(frozen=True, slots=True)
class TableContent:
    """The number of rows of a table, and a digest that ignores their order."""

    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """One audited run in a few lines."""

    run: str  # its name, `run=20260102T120011.000000Z`: when the last reading in it ended
    previous: str | None  # the previous results, whose history continues; None for the first
    policy: str  # digest of the policy that evaluated
    # The number of clusters whose contents were compared; None: contents were not compared.
    contents_compared: int | None
    audited_at: datetime | None
    clusters: tuple[tuple[Verdict, int], ...]  # every verdict, in the order of Verdict
    server_count: int
    unknown_count: int
    findings: tuple[CodeCount, ...]  # by code, then worst first
    worst: tuple[WorstCluster, ...]  # at most WORST_CLUSTERS_MAX, worst first, none that is OK
    content: tuple[TableContent, ...]
    digest_by: str = SPARK_DIGEST  # which engine's digests these are

    def __post_init__(self) -> None:
        if [verdict for verdict, _ in self.clusters] != list(Verdict):
            raise ValueError("a summary counts every verdict once, in their order")
        if len(self.worst) > WORST_CLUSTERS_MAX:
            raise ValueError(f"a summary lists at most {WORST_CLUSTERS_MAX} clusters")

    @property
    def cluster_count(self) -> int:
        """Return the number of clusters."""
        return sum(count for _, count in self.clusters)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all clusters; UNKNOWN if there are none."""
        present = [verdict for verdict, count in self.clusters if count]
        return worst_verdict(present) if present else Verdict.UNKNOWN

    def to_text(self) -> str:
        """Write the summary as one JSON document."""
        return json.dumps({"layout": LAYOUT} | _plain(self), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str) -> "FleetSummary":
        """Read what `to_text` writes. Raises MalformedSummary."""
        try:
            found = json.loads(text)
            if found.pop("layout") != LAYOUT:
                raise MalformedSummary(f"expected tables of layout {LAYOUT}")
            found.setdefault("contents_compared", None)  # from a version that compared no contents
            at = found.pop("audited_at")
            return cls(
                audited_at=None if at is None else time_from_text(at),
                clusters=tuple((Verdict(name), count) for name, count in found.pop("clusters")),
                findings=tuple(
                    CodeCount(each["code"], Severity(each["severity"]), each["findings"])
                    for each in found.pop("findings")
                ),
                worst=tuple(
                    WorstCluster(**each | {"verdict": Verdict(each["verdict"])})
                    for each in found.pop("worst")
                ),
                content=tuple(TableContent(**each) for each in found.pop("content")),
                **found,
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise MalformedSummary(f"not the summary of a run: {error}") from error
        except ValueError as error:
            raise MalformedSummary(str(error)) from error


def policy_digest(policy: Policy) -> str:
    """Return sixteen hexadecimal digits that differ between different policies."""
    said = {each.name: _canonical(getattr(policy, each.name)) for each in fields(policy)}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _canonical(value: object) -> object:
    match value:
        case frozenset():
            return sorted(str(_canonical(item)) for item in value)
        case tuple() | list():
            return [_canonical(item) for item in value]
        case Mapping():
            return {str(key): _canonical(item) for key, item in value.items()}
        case UUID():
            return str(value)
        case AcceptedRepair() | AcceptedFinding():
            return value.to_text()
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(f"a policy holds plain values, not {type(value).__name__}")


def _plain(summary: FleetSummary) -> dict[str, Any]:
    plain = asdict(summary)
    at = summary.audited_at
    plain["audited_at"] = None if at is None else time_to_text(at)
    plain["clusters"] = [[verdict.value, count] for verdict, count in summary.clusters]
    for each in plain["findings"]:
        each["severity"] = each["severity"].value
    for each in plain["worst"]:
        each["verdict"] = each["verdict"].value
    return plain
