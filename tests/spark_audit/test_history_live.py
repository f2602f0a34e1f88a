"""A real hole, read twice: the second night's finding says it was there in the first."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid import GtidSet
from spark_audit.adapters.job import audit_stored
from spark_audit.adapters.results import Results
from spark_audit.adapters.trends import trends_of
from spark_audit.result_columns import FINDING_SCHEMA
from topology.adapters.collect import collect_cluster
from topology.adapters.parquet import read_snapshots, write_snapshots
from topology.adapters.snapshot_columns import records_of_table
from topology.catalogue.findings import Finding
from topology.documents.records import finding_from_record
from topology.policy import Policy
from topology.readings.target import ServerTarget

pytestmark = pytest.mark.spark


def a_night(spark: SparkSession, pair: Pair, directory: Path) -> Results:
    """Read the pair, store what was read, audit it."""
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in pair.servers.items()
    ]
    write_snapshots(directory, [collect_cluster("live", targets)])
    return audit_stored(spark, snapshots=str(directory), out=str(directory), policy=Policy())


def only(results: Results) -> Finding:
    rows = results.tables.findings.where("severity = 'critical'").toArrow()
    (record,) = records_of_table(rows.cast(FINDING_SCHEMA))
    return finding_from_record(record)


def executed(server: Server) -> GtidSet:
    ((text,),) = server.query("SELECT @@GLOBAL.gtid_executed")
    return GtidSet.parse(text)


def skip_more(pair: Pair, *, count: int) -> GtidSet:
    """Point b past the next transactions of a once more; return them."""
    source, replica = pair["a"], pair["b"]
    replica.execute(replica.dialect.stop_replica)
    before = executed(source)
    source.execute(*["INSERT INTO bypassed.t () VALUES ()"] * count)
    skipped = executed(source) - before
    log_file, log_pos = source.binary_log_position()
    source.execute("INSERT INTO bypassed.t () VALUES ()")
    replica.execute(
        replica.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        replica.dialect.start_replica,
    )
    wait_for(replica, str(executed(source) - before - skipped))
    return skipped


@pytest.mark.slow
def test_a_growing_hole_is_one_finding_since_the_first_night(
    spark: SparkSession, pair97: Pair, tmp_path: Path
) -> None:
    small = faults.position_bypass(pair97, skipped_count=2)
    before = only(a_night(spark, pair97, tmp_path))
    first_night = read_snapshots(tmp_path)[0].read_ended
    assert first_night is not None
    later = skip_more(pair97, count=5)
    second = a_night(spark, pair97, tmp_path)
    after = only(second)

    assert (before.code, after.code) == ("H1", "H1")
    assert before.gtid_set == GtidSet.parse(small.skipped)
    assert after.gtid_set == GtidSet.parse(small.skipped) | later
    assert after.id == before.id
    assert before.first_seen == before.last_seen == after.first_seen == first_night
    assert after.last_seen == read_snapshots(tmp_path)[0].read_ended
    assert after.last_seen > first_night

    with trends_of(spark, str(tmp_path)) as trends:
        assert len(trends.runs) == 2
        assert trends.findings is not None
        (trend,) = trends.findings.where(sf.col("id") == after.id).collect()
        assert [int(point["count"]) for point in trend["points"]] == [2, 7]
        assert trend["gtids_per_hour"] > 0
        counts = {row["server"]: row["points"] for row in trends.intervals.collect()}
        assert [int(point["count"]) for point in counts["b"]] == [2, 3]
        assert [int(point["count"]) for point in counts["a"]] == [1, 1]
