"""Joins the findings of one run with those of earlier runs, to find when each was first seen.

A finding is the fact it states, and its `id` is that of the fact, not of its size (rule 3 of
topology/catalogue/findings.py). So across runs:

1. A finding that the previous run also had keeps its `first_seen`. It inherits nothing else.
2. A finding that the previous run did not have is new, even if an older run had it: the run in
   between looked for it, and did not find it.
3. Exception: the run in between could not look. A run disproves nothing about a cluster if it could
   not read all facts of it, or does not have it at all. The cluster's earlier findings are then
   *carried*, unchanged, in a separate table. A later run that finds them again keeps their
   `first_seen`. Carried findings are not findings of the run, and no report shows them as such.
4. No run disproves the findings of NOT_LOOKED_FOR_AGAIN: contents are compared once after a
   restart. A later run that has no such finding has not looked.
5. Carried findings are dropped CARRIED_DAYS_MAX days after they were last seen, by the time of the
   runs: clusters leave a fleet for good.
6. The name of a run, which is its time, decides which run is earlier. No clock is read.

Example: a finding of cluster c, and what four runs record about it.

    run  c in the run           findings    carried
    1    found                  since 1
    2    a server unreachable               since 1   run 2 cannot disprove it (rule 3)
    3    found                  since 1               it keeps its first_seen
    4    read, not found                              it has ended; if found again, it starts again
"""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.schema import FINDINGS
from topology.finding_history import CARRIED_DAYS_MAX, NOT_LOOKED_FOR_AGAIN


def with_first_seen(findings: DataFrame, *, known: DataFrame) -> DataFrame:
    """Return the findings of a run; one that is in `known` gets its `first_seen` from there."""
    before = known.select("id", sf.col("first_seen").alias("known_since"))
    since = sf.coalesce(sf.least("known_since", "first_seen"), "first_seen")
    joined = findings.join(before, on="id", how="left").withColumn("first_seen", since)
    return joined.select(*FINDINGS.names)


def carried_over(
    known: DataFrame, *, findings: DataFrame, clusters: DataFrame, run_at: datetime
) -> DataFrame:
    """Return the known findings that are absent now and that this run could not disprove."""
    # Clusters are many and findings few: reduce the clusters before the joins.
    named = sf.broadcast(known.select("cluster").distinct())
    looked_at = (
        clusters.where(sf.col("unknown_count") == 0)
        .select("cluster")
        .join(named, on="cluster", how="left_semi")
    )
    oldest = sf.lit(run_at - timedelta(days=CARRIED_DAYS_MAX))
    is_asked = known["cluster"] == looked_at["cluster"]
    is_asked &= ~known["code"].isin(*NOT_LOOKED_FOR_AGAIN)
    return (
        known.join(looked_at, on=is_asked, how="left_anti")
        .join(findings.select("id"), on="id", how="left_anti")
        .where(sf.col("last_seen") >= oldest)
        .select(*FINDINGS.names)
    )
