"""Derives the tables of a results run from evaluated clusters: DataFrame in, DataFrame out.

1. The evaluation is expensive and runs once. EVALUATED is written first, and all other tables are
   derived from its files. For a cluster without findings the nested columns are null, so a fleet of
   mostly healthy clusters has short rows to write and to read.
2. A step starts no job and reads no file; spark_audit/adapters/results.py does.
3. No result depends on how the rows were partitioned, or on their order.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.schema import CLUSTERS, FINDINGS, UNKNOWN
from spark_audit.summary import SEVERITIES, UNREAD_CODE, VERDICTS
from topology.catalogue.findings import Severity, Verdict
from topology.facts.accepted_findings import ACCEPTED_UNTIL

_COUNTS: Final = tuple(f"{severity.value}_count" for severity in SEVERITIES)


def findings_of(evaluated: DataFrame) -> DataFrame:
    """Return one row per finding of this run, without history."""
    found = evaluated.where(reduce(Column.__or__, (sf.col(name) > 0 for name in _COUNTS)))
    return found.select(sf.inline("findings")).select(*FINDINGS.names)


def unknown_of(evaluated: DataFrame) -> DataFrame:
    """Return one row per fact that was not read."""
    found = evaluated.where(sf.col("unknown_count") > 0)
    return found.select(sf.inline("unknown")).select(*UNKNOWN.names)


# -- order ----------------------------------------------------------------------------------------


def findings_in_order(findings: DataFrame) -> DataFrame:
    """Sort as a report lists its findings: Finding.order of topology/catalogue/findings.py."""
    empty_as_text = [sf.coalesce(name, sf.lit("")) for name in ("source", "replica", "channel")]
    return findings.orderBy("cluster", severity_rank(), "code", *empty_as_text, "id")


def worst_findings_first(findings: DataFrame) -> DataFrame:
    """Sort for a reader of the first rows: warnings and worse, without the unread facts."""
    loud = (sf.col("severity") != Severity.INFO.value) & (sf.col("code") != UNREAD_CODE)
    return findings.where(loud).orderBy(severity_rank(), "cluster", "code", "id")


def accepted_in_order(findings: DataFrame) -> DataFrame:
    """Return the findings that the policy accepts: those with its evidence."""
    is_accepted = sf.exists("evidence", lambda each: each["fact"] == ACCEPTED_UNTIL)
    return findings.where(is_accepted).orderBy("cluster", "code", "id")


def unknown_in_order(unknown: DataFrame) -> DataFrame:
    """Sort as a report lists the unread facts."""
    return unknown.orderBy(*UNKNOWN.names)


def worst_clusters_first(clusters: DataFrame) -> DataFrame:
    """Return the clusters that are not OK: by verdict, then by findings, then by name."""
    most = [sf.desc(name) for name in (*_COUNTS[:2], "unknown_count")]
    loud = clusters.where(sf.col("verdict") != Verdict.OK.value)
    return loud.orderBy(_rank("verdict", [each.value for each in VERDICTS]), *most, "cluster")


def severity_rank() -> Column:
    """Return 0 for the worst severity, 1 for the next, and so on."""
    return _rank("severity", [severity.value for severity in SEVERITIES])


def _rank(name: str, words: list[str]) -> Column:
    return sf.array_position(sf.array(*map(sf.lit, words)), sf.col(name))


# -- counts ---------------------------------------------------------------------------------------


def counts_of(
    *, clusters: DataFrame, findings: DataFrame, unknown: DataFrame, carried: DataFrame
) -> DataFrame:
    """Count and digest every table in one job: rows of COUNTS, as many as verdicts and codes."""
    of_clusters = clusters.groupBy("verdict").agg(
        *_counted(CLUSTERS.names),
        sf.sum("server_count").alias("servers"),
        # As a number, so that the driver's time zone has no influence.
        sf.unix_micros(sf.max("read_at")).alias("read_at_microseconds"),
    )
    of_findings = findings.groupBy("code", "severity").agg(*_counted(FINDINGS.names))
    of_unknown = unknown.agg(*_counted(UNKNOWN.names))
    of_carried = carried.agg(*_counted(FINDINGS.names))
    counts = reduce(
        lambda left, right: left.unionByName(right, allowMissingColumns=True),
        (
            counts.withColumn("table", sf.lit(table))
            for table, counts in (
                ("clusters", of_clusters),
                ("findings", of_findings),
                ("unknown", of_unknown),
                ("carried", of_carried),
            )
        ),
    )
    return counts.select(*COUNTS)


COUNTS: Final = (
    "table",
    "verdict",
    "code",
    "severity",
    "rows",
    "servers",
    "read_at_microseconds",
    "digest",
)


def _counted(names: list[str]) -> tuple[Column, ...]:
    return (sf.count("*").alias("rows"), digest_of(names).alias("digest"))


def digest_of(names: list[str]) -> Column:
    """Combine all rows into 64 bits, independent of their order.

    Exclusive or cannot overflow and needs no order. Two equal rows would cancel out, so every use
    of the digest also has the number of rows.
    """
    return sf.coalesce(sf.bit_xor(sf.xxhash64(*names)), sf.lit(0).cast("bigint"))
