"""Since when: joins the findings of one run with those of the runs before it.

A finding is the fact it states, and its `id` is that of the fact, not of its size (rule 3 of
topology/findings.py). So across runs:

1. A finding that the run before had too keeps its `first_seen`. Nothing else of it is inherited.
2. A finding that the run before did not have begins anew, even if an older run had it: the run
   between looked, and it was not there.
3. Unless that run could not look. A cluster of which something was not read, or which is not in the
   run at all, disproves nothing: its earlier findings are *carried*, untouched, in a table of their
   own, and a later run that finds them again keeps their `first_seen`. They are no findings of the
   run that carries them, and no report shows them as such.
4. Nor does any run disprove the findings of NOT_LOOKED_FOR_AGAIN: contents are compared behind
   starts, once, and a run that says nothing of them has not looked there.
5. What is carried is forgotten CARRIED_DAYS_MAX days after it was last seen, by the time of the
   runs: clusters leave a fleet for good.
6. "Before" is by the name of the run, which is the moment it speaks of. No clock is read.
"""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.schema import FINDINGS
from spark_audit.summary import CARRIED_DAYS_MAX, NOT_LOOKED_FOR_AGAIN


def with_first_seen(findings: DataFrame, *, known: DataFrame) -> DataFrame:
    """Return the findings of a run, each with the `first_seen` of its equal in `known`, if any."""
    before = known.select("id", sf.col("first_seen").alias("known_since"))
    since = sf.coalesce(sf.least("known_since", "first_seen"), "first_seen")
    joined = findings.join(before, on="id", how="left").withColumn("first_seen", since)
    return joined.select(*FINDINGS.names)


def carried_over(
    known: DataFrame, *, findings: DataFrame, clusters: DataFrame, run_at: datetime
) -> DataFrame:
    """Return what was known before, is not found now, and could not be disproved by this run."""
    # The clusters are many and the findings few: cut the many down before anything is joined.
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
