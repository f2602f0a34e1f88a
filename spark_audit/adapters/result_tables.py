"""The tables of one results run as DataFrames, for a draft or for a complete run.

1. Every table is read by its named schema; the files do not determine it.
2. `summarise` brings only counts to the driver. Their number does not grow with the fleet.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import xor
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from binlog.log_times import EPOCH
from spark_audit import results_frames as steps
from spark_audit.schema import CLUSTERS, EVALUATED, FINDINGS, UNKNOWN
from spark_audit.summary import (
    SEVERITIES,
    WORST_CLUSTERS_MAX,
    CodeCount,
    FleetSummary,
    TableContent,
    WorstCluster,
    policy_digest,
)
from topology.adapters.run_directory import RunName
from topology.catalogue.findings import Severity, Verdict
from topology.policy import Policy

TABLES: Final = ("clusters", "findings", "unknown", "carried")
_DIGEST_MODULUS: Final = 2**64


@dataclass(frozen=True, slots=True)
class RunTables:
    """The tables below one address, in the form that Spark takes."""

    session: SparkSession
    address: str

    @property
    def evaluated(self) -> DataFrame:
        """Return EVALUATED: the clusters with their findings, before history is added."""
        return self._read("clusters", EVALUATED)

    @property
    def clusters(self) -> DataFrame:
        """Return one row of CLUSTERS per cluster."""
        return self._read("clusters", CLUSTERS)

    @property
    def findings(self) -> DataFrame:
        """Return one row of FINDINGS per finding, with its `first_seen` over all runs."""
        return self._read("findings", FINDINGS)

    @property
    def unknown(self) -> DataFrame:
        """Return one row of UNKNOWN per fact that was not read."""
        return self._read("unknown", UNKNOWN)

    @property
    def carried(self) -> DataFrame:
        """Return the FINDINGS of earlier runs that this run could not disprove (first_seen.py)."""
        return self._read("carried", FINDINGS)

    def _read(self, name: str, schema: StructType) -> DataFrame:
        return self.session.read.schema(schema).parquet(f"{self.address}/{name}")


def summarise(
    tables: RunTables,
    *,
    run: RunName,
    previous: RunName | None,
    policy: Policy,
    contents_compared: int | None,
) -> FleetSummary:
    """Count the written rows and return the summary."""
    by_table = _counts_by_table(tables)
    clusters = {Verdict(row["verdict"]): row["rows"] for row in by_table["clusters"]}
    worst: list[Row] = []
    if set(clusters) - {Verdict.OK}:
        worst = steps.worst_clusters_first(tables.clusters).limit(WORST_CLUSTERS_MAX).collect()
    codes = [
        CodeCount(row["code"], Severity(row["severity"]), row["rows"])
        for row in by_table["findings"]
    ]
    return FleetSummary(
        run=run.text,
        previous=None if previous is None else previous.text,
        policy=policy_digest(policy),
        contents_compared=contents_compared,
        audited_at=_latest_read(by_table["clusters"]),
        clusters=tuple((verdict, clusters.get(verdict, 0)) for verdict in Verdict),
        server_count=sum(row["servers"] for row in by_table["clusters"]),
        unknown_count=sum(row["rows"] for row in by_table["unknown"]),
        findings=tuple(
            sorted(codes, key=lambda each: (each.code, SEVERITIES.index(each.severity)))
        ),
        worst=tuple(WorstCluster.of_row(row.asDict()) for row in worst),
        content=tuple(_content(name, rows) for name, rows in by_table.items()),
    )


def contents_of(tables: RunTables) -> tuple[TableContent, ...]:
    """Count and digest the tables of a run."""
    return tuple(_content(name, rows) for name, rows in _counts_by_table(tables).items())


def _counts_by_table(tables: RunTables) -> dict[str, list[Row]]:
    counts = steps.counts_of(
        clusters=tables.clusters,
        findings=tables.findings,
        unknown=tables.unknown,
        carried=tables.carried,
    )
    by_table: dict[str, list[Row]] = {name: [] for name in TABLES}
    for row in counts.collect():
        by_table[row["table"]].append(row)
    return by_table


def _latest_read(rows: Iterable[Row]) -> datetime | None:
    known = [row["read_at_microseconds"] for row in rows]
    latest = max((each for each in known if each is not None), default=None)
    return None if latest is None else EPOCH + timedelta(microseconds=latest)


def _content(table: str, rows: Iterable[Row]) -> TableContent:
    seen = list(rows)
    digest = reduce(xor, (row["digest"] for row in seen), 0) % _DIGEST_MODULUS
    return TableContent(table, sum(row["rows"] for row in seen), f"{digest:016x}")
