"""Trends over several runs: DataFrame in, DataFrame out, each with a named schema.

1. A rate needs at least two readings. No forecast goes further than HORIZON_DAYS: after that, a
   straight line through a few nights is a guess.
2. Rates are least-squares slopes over the points in time order. So they do not depend on how the
   rows were partitioned.
3. F1 and F2 are trends, not findings: they need history, which the rules do not have. A row has its
   code, so that `explain` can explain it.
4. A fact that was not read proves nothing. A UUID can retire only if every server was read in every
   run that counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_audit.schema import FINDING_TREND, INTERVAL_TREND, RETIREMENTS

HORIZON_DAYS: Final = 365
BACKLOG_CODES: Final = ("T1", "T2", "T3")  # differences that close without a repair
_SECONDS_PER_HOUR: Final = 3_600


@dataclass(frozen=True, slots=True)
class TrendPolicy:
    """The limits at which a trend is reported.

    intervals_max: a server keeps the intervals of a UUID as a linked list and walks it for every
        commit (Gtid_set::Interval in sql/rpl_gtid.h). Every binary log begins with the whole set,
        and every status row repeats it. 10,000 intervals are about 150 kB of text each time.
    quiet_runs: for this many runs a UUID's part must not have changed before it can retire. Seven
        nightly runs include a weekend, and the jobs that run only then.
    """

    intervals_max: int = 10_000
    quiet_runs: int = 7

    def __post_init__(self) -> None:
        if self.intervals_max < 1:
            raise ValueError(f"intervals_max: expected 1 or more, found {self.intervals_max}")
        if self.quiet_runs < 2:  # noqa: PLR2004 - one reading cannot show that nothing changes
            raise ValueError(f"quiet_runs: expected 2 or more, found {self.quiet_runs}")


def interval_trend(readings: DataFrame, *, policy: TrendPolicy) -> DataFrame:
    """Return INTERVAL_TREND of READINGS: F1, how fragmented each server's set is, and its trend."""
    read = readings.where(sf.col("interval_count").isNotNull())
    servers = read.groupBy("cluster", "server").agg(_points("read_at", "interval_count"))
    last, per_hour = sf.col("points")[sf.size("points") - 1], _slope_per_hour("points")
    limit = sf.lit(policy.intervals_max)
    trends = servers.withColumns({"last": last, "per_hour": per_hour}).withColumns(
        {
            "code": sf.lit("F1"),
            "interval_count": sf.col("last.count").cast("bigint"),
            "intervals_per_day": sf.col("per_hour") * 24,
            "is_fragmented": sf.col("last.count") >= limit,
        }
    )
    hours_left = (limit - sf.col("last.count")).cast("double") / sf.col("per_hour")
    is_coming = ~sf.col("is_fragmented") & (sf.col("per_hour") > 0)
    coming = sf.when(is_coming, _after(sf.col("last.at"), hours_left))
    return trends.withColumn("fragmented_at", coming).to(INTERVAL_TREND)


def retirements(readings: DataFrame, *, policy: TrendPolicy) -> DataFrame:
    """Return RETIREMENTS of READINGS: F2, the UUIDs whose GTIDs no server needs any more.

    Proof, over the last `quiet_runs` runs of the cluster: every server was read in each run, with
    its channels. All servers have the UUID, with the same part of the set throughout. It is neither
    the UUID of one of them nor that of a source they receive from. The contents of backups are not
    known here.
    """
    newest = sf.slice(sf.sort_array(sf.collect_set("run"), asc=False), 1, policy.quiet_runs)
    recent = readings.groupBy("cluster").agg(newest.alias("recent"))
    counted = readings.join(recent, on="cluster", how="inner").where(
        (sf.size("recent") == policy.quiet_runs) & sf.array_contains("recent", sf.col("run"))
    )
    in_use = sf.array_append(sf.coalesce("source_uuids", sf.array()), sf.col("server_uuid"))
    is_read = sf.col("server_uuid").isNotNull() & sf.col("source_uuids").isNotNull()
    clusters = counted.groupBy("cluster").agg(
        sf.count("*").alias("readings"),
        sf.count_distinct("server").alias("servers"),
        sf.min("run").alias("first_run"),
        sf.max("run").alias("last_run"),
        sf.bool_and(is_read & sf.col("parts").isNotNull()).alias("is_read"),
        sf.flatten(sf.collect_set(in_use)).alias("in_use"),
    )
    parts = counted.select("cluster", sf.inline("parts")).groupBy("cluster", "uuid")
    held = parts.agg(
        sf.count("*").alias("held_in"),
        sf.min("digest").alias("digest"),
        sf.max("digest").alias("other_digest"),
        sf.max("gtid_count").alias("gtid_count"),
        sf.max("interval_count").alias("interval_count"),
    )
    proved = (
        sf.col("is_read")
        & (sf.col("held_in") == sf.col("readings"))
        & (sf.col("digest") == sf.col("other_digest"))
        & ~sf.array_contains("in_use", sf.col("uuid"))
    )
    found = held.join(clusters, on="cluster", how="inner").where(proved)
    said = {"code": sf.lit("F2"), "runs": sf.lit(policy.quiet_runs).cast("bigint")}
    return found.withColumns(said).to(RETIREMENTS)


def finding_trend(findings: DataFrame) -> DataFrame:
    """Return FINDING_TREND of FINDINGS of several runs: how the set of each grows or shrinks.

    A finding that ended and came back is listed twice, because it began anew. `is_open`: the
    finding is in the latest run. `clears_at` is the forecast for a backlog that shrinks.
    """
    latest = findings.agg(sf.max("run").alias("latest_run"))
    episodes = findings.groupBy("id", "first_seen").agg(
        *(sf.first(name).alias(name) for name in ("code", "cluster", "source", "replica")),
        sf.first("channel").alias("channel"),
        sf.max("last_seen").alias("last_seen"),
        sf.max("run").alias("last_run"),
        _points("last_seen", "gtid_count"),
    )
    last, per_hour = sf.col("points")[sf.size("points") - 1], _slope_per_hour("points")
    trends = episodes.crossJoin(sf.broadcast(latest)).withColumns(
        {
            "is_open": sf.col("last_run") == sf.col("latest_run"),
            "gtid_count": last["count"],
            "gtids_per_hour": per_hour,
        }
    )
    hours_left = sf.col("gtid_count").cast("double") / -sf.col("gtids_per_hour")
    shrinks = sf.col("code").isin(*BACKLOG_CODES) & (sf.col("gtids_per_hour") < 0)
    clears = sf.when(shrinks & sf.col("is_open"), _after(sf.col("last_seen"), hours_left))
    return trends.withColumn("clears_at", clears).to(FINDING_TREND)


# -- order: the most urgent first -----------------------------------------------------------------


def most_fragmented_first(trend: DataFrame) -> DataFrame:
    """Sort INTERVAL_TREND."""
    return trend.orderBy(sf.desc("interval_count"), "cluster", "server")


def retirements_in_order(found: DataFrame) -> DataFrame:
    """Sort RETIREMENTS."""
    return found.orderBy("cluster", "uuid")


def fastest_growing_first(trend: DataFrame) -> DataFrame:
    """Sort FINDING_TREND: open and growing findings first."""
    growth = sf.coalesce("gtids_per_hour", sf.lit(0.0))
    return trend.orderBy(sf.desc("is_open"), sf.desc(growth), "cluster", "code", "id", "first_seen")


# -- regression -----------------------------------------------------------------------------------


def _points(at: str, count: str) -> Column:
    """Collect (moment, count) in time order."""
    point = sf.struct(sf.col(at).alias("at"), sf.col(count).cast("decimal(38,0)").alias("count"))
    return sf.array_sort(sf.collect_list(point)).alias("points")


def _slope_per_hour(points: str) -> Column:
    """Return the least-squares slope; null for fewer than two moments.

    Both coordinates are relative to the first point: as doubles, a set of 2**63 GTIDs that grows by
    one would not change.
    """
    first = sf.col(points)[0]
    since = sf.unix_micros(first["at"])
    steps = sf.transform(
        points,
        lambda point: sf.struct(
            ((sf.unix_micros(point["at"]) - since) / (1e6 * _SECONDS_PER_HOUR)).alias("x"),
            (point["count"] - first["count"]).cast("double").alias("y"),
        ),
    )
    number = sf.size(points).cast("double")
    x, y = _sum(steps, lambda step: step["x"]), _sum(steps, lambda step: step["y"])
    xy = _sum(steps, lambda step: step["x"] * step["y"])
    xx = _sum(steps, lambda step: step["x"] * step["x"])
    spread = number * xx - x * x
    return sf.when(spread > 0, (number * xy - x * y) / spread)


def _sum(steps: Column, term: Callable[[Column], Column]) -> Column:
    """Add up in array order, so that the last bit is the same every time."""
    return sf.aggregate(steps, sf.lit(0.0), lambda total, step: total + term(step))


def _after(moment: Column, hours: Column) -> Column:
    """Return the moment that many hours later; null after the horizon."""
    microseconds = (hours * (1e6 * _SECONDS_PER_HOUR)).cast("bigint")
    later = sf.timestamp_micros(sf.unix_micros(moment) + microseconds)
    return sf.when(hours <= HORIZON_DAYS * 24, later)
