"""Trends over made-up histories whose answers are known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from gtid import GtidSet
from spark_audit.result_columns import FINDING_SCHEMA
from spark_audit.schema import (
    FINDING_TREND,
    FINDINGS,
    INTERVAL_TREND,
    READINGS,
    RETIREMENTS,
    SNAPSHOTS,
)
from spark_audit.trend_readings import readings_of
from spark_audit.trends_frames import (
    HORIZON_DAYS,
    TrendPolicy,
    finding_trend,
    interval_trend,
    retirements,
)
from tests.snapshots import A, B, a_channel, a_cluster, a_server, with_facts
from tests.spark_audit.audits import UUID_A, a_finding, night, run_of
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, table_of_records
from topology.catalogue.findings import Finding
from topology.documents.records import finding_to_record, snapshot_to_record
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason

pytestmark = pytest.mark.spark
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEAD = UUID(int=0xDD << 120)
STRAY = UUID(int=0xEE << 120)
POLICY = TrendPolicy(intervals_max=4, quiet_runs=3)


def stored(session: SparkSession, runs: dict[int, list[ClusterSnapshot]]) -> DataFrame:
    """SNAPSHOTS with the name of their run, as they would be read from a directory."""
    tables = []
    for number, clusters in runs.items():
        servers = [each for cluster in clusters for each in (*cluster.first, *cluster.last)]
        moved = [
            replace(each, read_started=night(number), read_ended=night(number)) for each in servers
        ]
        table = table_of_records(map(snapshot_to_record, moved), SNAPSHOT_SCHEMA)
        run = pa.array([run_of(number).text] * table.num_rows)
        tables.append(table.append_column("run", run))
    schema = StructType([*SNAPSHOTS.fields, StructField("run", StringType())])
    return session.createDataFrame(pa.concat_tables(tables), schema)


def pair(name: str, *executed: str, **facts: Any) -> ClusterSnapshot:
    """Make db1 and db2, which receive from each other unless told otherwise."""
    uuids, letters = (A, B), ("db1", "db2")
    servers = [
        a_server(
            letters[number],
            uuids[number],
            text,
            **{"channels": (a_channel(letters[1 - number], uuids[1 - number]),)} | facts,
        )
        for number, text in enumerate(executed)
    ]
    return a_cluster(name, *servers)


def unread(server: ServerSnapshot) -> ServerSnapshot:
    fact = UnreadFact("gtid_executed", UnreadReason.TIMEOUT, "")
    return with_facts(server, gtid_executed=None, unread=(fact,))


def moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def rows_of(frame: DataFrame, *moments: str) -> list[Row]:
    """Bring rows here; the named moments as microseconds, so that no zone comes in."""
    return frame.withColumns({name: sf.unix_micros(name) for name in moments}).collect()


def test_a_reading_is_counted_and_digested_uuid_by_uuid(spark: SparkSession) -> None:
    text = f"{A}:1-3:5:dba:1-2,{B}:1-9"
    read = pair("c", text, f"{B}:1-9")
    empty = a_cluster("empty", a_server("db1", A, ""))
    lost = a_cluster("lost", unread(a_server("db1", A, "")))
    readings = readings_of(stored(spark, {0: [read, empty, lost]}))
    assert readings.schema == READINGS
    found = {(row["cluster"], row["server"]): row for row in readings.collect()}
    assert len(found) == 4, "the last reading of each server, and no other"
    first, second = found["c", "db1"], found["c", "db2"]
    assert (first["interval_count"], second["interval_count"]) == (4, 1)
    assert [part["uuid"] for part in first["parts"]] == [str(A), str(B)]
    assert [int(part["gtid_count"]) for part in first["parts"]] == [6, 9]
    assert [part["interval_count"] for part in first["parts"]] == [3, 1]
    assert first["parts"][1] == second["parts"][0]
    assert first["parts"][0]["digest"] != first["parts"][1]["digest"]
    assert first["source_uuids"] == [str(B)]
    assert (found["empty", "db1"]["interval_count"], found["empty", "db1"]["parts"]) == (0, [])
    assert found["lost", "db1"]["interval_count"] is None
    assert found["lost", "db1"]["parts"] is None


def intervals(count: int) -> str:
    return str(A) + "".join(f":{3 * number + 1}" for number in range(count)) if count else ""


def test_fragmentation_is_a_line_through_the_runs(spark: SparkSession) -> None:
    history = {
        number: [
            pair("grows", intervals(number + 1), intervals(1)),
            pair("is-there", intervals(9 - number), intervals(4)),
        ]
        for number in range(3)
    }
    history[3] = [a_cluster("grows", unread(a_server("db1", A, "")))]
    trend = interval_trend(readings_of(stored(spark, history)), policy=POLICY)
    assert trend.schema.simpleString() == INTERVAL_TREND.simpleString()
    found = {(row["cluster"], row["server"]): row for row in rows_of(trend, "fragmented_at")}
    grows = found["grows", "db1"]
    assert [int(point["count"]) for point in grows["points"]] == [1, 2, 3]
    assert (grows["code"], grows["interval_count"], grows["is_fragmented"]) == ("F1", 3, False)
    assert grows["intervals_per_day"] == pytest.approx(1.0)
    assert moment(grows["fragmented_at"]) == night(3)
    level = found["grows", "db2"]
    assert (level["intervals_per_day"], level["fragmented_at"]) == (0.0, None)
    shrinks, at_limit = found["is-there", "db1"], found["is-there", "db2"]
    assert shrinks["intervals_per_day"] == pytest.approx(-1.0)
    assert shrinks["is_fragmented"]
    assert at_limit["is_fragmented"]
    assert shrinks["fragmented_at"] is None


def test_one_reading_has_no_rate_and_a_slow_one_no_forecast(spark: SparkSession) -> None:
    far = HORIZON_DAYS
    history = {
        0: [pair("slow", intervals(1), ""), pair("new", "", "")],
        far: [pair("slow", intervals(2), "")],
    }
    slow_policy = replace(POLICY, intervals_max=1_000)
    trend = interval_trend(readings_of(stored(spark, history)), policy=slow_policy)
    found = {(row["cluster"], row["server"]): row for row in trend.collect()}
    assert found["new", "db1"]["intervals_per_day"] is None
    assert found["slow", "db1"]["intervals_per_day"] == pytest.approx(1 / far)
    assert found["slow", "db1"]["fragmented_at"] is None


def test_only_a_uuid_that_is_dead_everywhere_can_retire(spark: SparkSession) -> None:
    both = f"{A}:1-10,{B}:1-5,{DEAD}:1-7"

    def clusters(number: int) -> list[ClusterSnapshot]:
        grown = f"{A}:1-10,{B}:1-5,{STRAY}:1-{7 + number}"
        receiving = (a_channel("elsewhere", DEAD),)
        outside = pair("from-outside", f"{DEAD}:1-7", f"{DEAD}:1-7", channels=receiving)
        lost = pair("not-read-once", both, both)
        if number == 2:
            lost = a_cluster("not-read-once", lost.first[0], unread(lost.first[1]))
        return [
            pair("retires", both, both),
            pair("grows", grown, grown),
            pair("differs", both, f"{A}:1-10,{B}:1-5,{DEAD}:1-6"),
            pair("lacks", both, f"{A}:1-10,{B}:1-5"),
            pair("settled-late", f"{A}:1,{DEAD}:1-7", f"{A}:1,{DEAD}:1-7"),
            outside,
            lost,
            pair("channels-not-read", both, both, channels=None),
        ]

    history = {number: clusters(number) for number in range(1, 4)}
    history[0] = [pair("settled-late", f"{DEAD}:1-6", f"{DEAD}:1-6")]
    history[3].append(pair("new", both, both))
    found = retirements(readings_of(stored(spark, history)), policy=POLICY)
    assert found.schema.simpleString() == RETIREMENTS.simpleString()
    by_cluster = {row["cluster"]: row for row in found.collect()}
    assert sorted(by_cluster) == ["retires", "settled-late"]
    proof = by_cluster["retires"]
    assert (proof["code"], proof["uuid"], int(proof["gtid_count"])) == ("F2", str(DEAD), 7)
    assert (proof["servers"], proof["runs"], proof["interval_count"]) == (2, 3, 1)
    assert (proof["first_run"], proof["last_run"]) == (run_of(1).text, run_of(3).text)
    assert by_cluster["settled-late"]["uuid"] == str(DEAD)


def findings_frame(session: SparkSession, found: list[tuple[int, Finding]]) -> DataFrame:
    table = table_of_records([finding_to_record(one) for _, one in found], FINDING_SCHEMA)
    runs = pa.array([run_of(number).text for number, _ in found])
    schema = StructType([*FINDINGS.fields, StructField("run", StringType())])
    return session.createDataFrame(table.append_column("run", runs), schema)


def seen(
    cluster: str, number: int, gtids: str, *, code: str = "H1", since: int = 0
) -> tuple[int, Finding]:
    finding = a_finding(cluster, at=night(number), code=code)
    grown = GtidSet.parse(f"{UUID_A}:{gtids}")
    return number, replace(finding, gtid_set=grown, first_seen=night(since))


def test_a_missing_set_grows_and_a_backlog_clears(spark: SparkSession) -> None:
    vast = 2**62
    found = [
        *(seen("grows", number, f"1-{24 * (number + 1)}") for number in range(3)),
        *(seen("clears", number, f"1-{96 - 24 * number}", code="T2") for number in range(3)),
        *(seen("hole-shrinks", number, f"1-{96 - 24 * number}") for number in range(3)),
        *(seen("vast", number, f"1-{vast + 24 * number}") for number in range(3)),
        seen("back-again", 0, "1-9"),
        seen("back-again", 2, "1-3", since=2),
        seen("went", 1, "1-9", code="T2", since=1),
    ]
    trend = finding_trend(findings_frame(spark, found))
    assert trend.schema.simpleString() == FINDING_TREND.simpleString()
    rows = rows_of(trend, "clears_at", "first_seen", "last_seen")
    told = {(row["cluster"], moment(row["first_seen"])): row for row in rows}
    assert len(told) == len(rows) == 7
    grows = told["grows", night(0)]
    assert grows["gtids_per_hour"] == pytest.approx(1.0)
    assert (grows["is_open"], int(grows["gtid_count"]), grows["clears_at"]) == (True, 72, None)
    assert [int(point["count"]) for point in grows["points"]] == [24, 48, 72]
    clears = told["clears", night(0)]
    assert clears["gtids_per_hour"] == pytest.approx(-1.0)
    assert moment(clears["clears_at"]) == night(4)
    assert told["hole-shrinks", night(0)]["clears_at"] is None
    assert told["vast", night(0)]["gtids_per_hour"] == pytest.approx(1.0)
    assert not told["back-again", night(0)]["is_open"]
    assert told["back-again", night(2)]["is_open"]
    assert told["back-again", night(2)]["gtids_per_hour"] is None
    assert not told["went", night(1)]["is_open"]


@pytest.mark.parametrize("partitions", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_trends_do_not_depend_on_how_rows_are_spread(spark: SparkSession, partitions: int) -> None:
    history = {
        number: [pair("c", intervals(number**2 + 1), intervals(3) + f",{DEAD}:1-3")]
        for number in range(4)
    }
    rows = stored(spark, history)
    shuffled = rows.orderBy(sf.rand(seed=partitions)).repartition(partitions)
    for trend in (interval_trend, retirements):
        expected, told = (trend(readings_of(each), policy=POLICY) for each in (rows, shuffled))
        assert sorted(map(str, told.collect())) == sorted(map(str, expected.collect()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"intervals_max": 0}, "intervals_max: expected 1"),
        ({"quiet_runs": 1}, "quiet_runs: expected 2"),
    ],
)
def test_a_policy_without_sense_is_refused(changes: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrendPolicy(**changes)
