"""The generated fleet: healthy clusters are clean, broken ones give what their kind says."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.fleet import kinds_of, main, rows_from, write_fleet
from benchmarks.generate.kinds import HEALTHY, KINDS, draw_numbers
from benchmarks.generate.numbers import GeneratedFleet
from benchmarks.generate.rows import table_of
from gtid import GtidSet
from topology.adapters.parquet import read_snapshots
from topology.adapters.run_directory import COMPLETE
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table
from topology.adapters.stored_runs import RECORD, files_of_run, latest_run
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.documents.records import (
    MalformedRecord,
    Record,
    cluster_from_servers,
    snapshot_from_record,
)
from topology.readings.snapshot import ClusterSnapshot

MANY = 1_000_000
SETS = ("gtid_executed", "gtid_purged", "gtid_owned")


def clusters_of(table: pa.Table) -> Iterator[tuple[str, list[Record]]]:
    for name, rows in groupby(records_of_table(table), lambda record: str(record["cluster"])):
        yield name, list(rows)


def snapshot_of(name: str, records: list[Record]) -> ClusterSnapshot:
    return cluster_from_servers(name, map(snapshot_from_record, records))


@pytest.mark.slow
def test_a_healthy_fleet_gives_no_finding() -> None:
    fleet = GeneratedFleet(pairs=MANY, busy_rate=0, fault_rate=0, three_servers_rate=0.3)
    numbers, kind = draw_numbers(fleet, first=700, count=100)
    assert (kind == HEALTHY).all()
    assert numbers.dual.any()
    assert (numbers.three & numbers.star).any()
    assert (numbers.three & ~numbers.star).any()
    evaluated = 0
    for name, records in clusters_of(table_of(numbers)):
        audit = audit_cluster(snapshot_of(name, records))
        assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())
        evaluated += 1
    assert evaluated == 100


@pytest.mark.long
def test_every_kind_gives_its_finding_and_no_other() -> None:
    fleet = GeneratedFleet(pairs=MANY, seed=11, busy_rate=0.35, fault_rate=0.65)
    numbers, kind = draw_numbers(fleet, first=0, count=250)
    seen = set()
    for (name, records), row in zip(clusters_of(table_of(numbers)), kind.tolist(), strict=True):
        expected = KINDS[row].code
        if expected is None:
            with pytest.raises(MalformedRecord, match="gtid_executed: expected a number"):
                snapshot_of(name, records)
        else:
            found = audit_cluster(snapshot_of(name, records)).findings
            codes = {expected, KINDS[row].beside} - {None}
            assert {finding.code for finding in found} == codes, (name, KINDS[row].name)
            assert len(found) == len(codes)
        seen.add(row)
    assert seen == set(range(len(KINDS)))


@pytest.mark.long
def test_the_sets_are_canonical_and_are_what_they_should_be() -> None:
    fleet = GeneratedFleet(pairs=MANY, busy_rate=0, fault_rate=0)
    table = rows_from(fleet, first=123_456, count=300)
    for column in SETS:
        for text in table[column].to_pylist():
            assert str(GtidSet.parse(text)) == text
    tsids, holes = set(), set()
    for name, records in clusters_of(table):
        snapshot = snapshot_of(name, records)
        for server in (*snapshot.first, *snapshot.last):
            executed, purged = server.gtid_executed, server.gtid_purged
            assert executed is not None
            assert purged is not None
            assert purged < executed
            tsids.add(executed.tsid_count)
            holes.add(executed.interval_count - executed.tsid_count)
            for channel in server.channels or ():
                assert channel.gtid_retrieved
                assert channel.received_to is not None
    assert tsids == {2, 3, 4, 5, 6}
    assert holes == {0, 1, 2, 3, 4, 5}


@pytest.mark.long
def test_readings_and_servers_differ() -> None:
    table = rows_from(GeneratedFleet(pairs=MANY, busy_rate=0, fault_rate=0), first=0, count=200)
    equal = 0
    for name, records in clusters_of(table):
        snapshot = snapshot_of(name, records)
        assert snapshot.first[0].gtid_executed != snapshot.last[0].gtid_executed
        equal += snapshot.last[0].gtid_executed == snapshot.last[1].gtid_executed
    assert equal < 20


def test_the_rows_do_not_depend_on_the_chunks() -> None:
    fleet = GeneratedFleet(pairs=MANY, busy_rate=0.2, fault_rate=0.2)
    whole = rows_from(fleet, first=90, count=60)
    parts = [rows_from(fleet, first=first, count=count) for first, count in ((90, 1), (91, 59))]
    assert pa.concat_tables(parts).equals(whole)
    assert not rows_from(GeneratedFleet(pairs=MANY, seed=8), first=90, count=60).equals(whole)


@pytest.mark.long
@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_written_fleet_is_a_run_like_any_other(tmp_path: Path, processes: int) -> None:
    fleet = GeneratedFleet(pairs=50, three_servers_rate=0.5)
    run = write_fleet(
        tmp_path, fleet, processes=processes, clusters_per_row_group=7, clusters_per_file=20
    )
    assert latest_run(tmp_path) == run
    assert sorted(path.name for path in run.iterdir()) == [
        COMPLETE,
        RECORD,
        *(f"part-0000{number}.parquet" for number in range(3)),
    ]
    snapshots = read_snapshots(tmp_path)
    assert len(snapshots) == 50
    ended = datetime.strptime(run.name, "run=%Y%m%dT%H%M%S.%f%z")
    assert max(snapshot.read_ended for snapshot in snapshots if snapshot.read_ended) == ended
    names: list[str] = []
    for file in files_of_run(run):
        with pq.ParquetFile(file) as opened:
            for group in range(opened.num_row_groups):
                column = opened.read_row_group(group, columns=["cluster"])["cluster"]
                names += [name for name, _ in groupby(column.to_pylist())]
    assert names == sorted(set(names)), "a cluster is in one row group, and its rows are together"
    written = pq.read_table(run, schema=SNAPSHOT_SCHEMA, partitioning=None)
    assert written.equals(rows_from(fleet, first=0, count=50))


def test_a_run_is_not_overwritten_and_nothing_is_left_of_the_attempt(tmp_path: Path) -> None:
    run = write_fleet(tmp_path, GeneratedFleet(pairs=3))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match="already"):
        write_fleet(tmp_path, GeneratedFleet(pairs=3))
    assert sorted(tmp_path.rglob("*")) == before
    assert latest_run(tmp_path) == run


def test_kinds_are_as_frequent_as_asked() -> None:
    healthy, *counts = kinds_of(GeneratedFleet(pairs=300_000, busy_rate=0.01, fault_rate=0.005))
    busy = sum(count for count, kind in zip(counts, KINDS, strict=True) if kind.busy)
    assert healthy + sum(counts) == 300_000
    assert 2_750 < busy < 3_250
    assert 1_350 < sum(counts) - busy < 1_650
    assert all(counts), "every kind occurs"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"pairs": 0}, "at least one"),
        ({"pairs": 1, "uuids": (1, 2)}, "two UUIDs"),
        ({"pairs": 1, "uuids": (5, 4)}, "two UUIDs"),
        ({"pairs": 1, "holes": (0, 101)}, "0 to 100 holes"),
        ({"pairs": 1, "busy_rate": 0.6, "fault_rate": 0.6}, "a rate"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        GeneratedFleet(**parameters)


def test_the_command_writes_what_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = ("--busy-rate", "0.5", "--fault-rate", "0.25")
    main(["--pairs", "40", "--out", str(tmp_path), "--uuids", "3-3", "--holes", "2-4", *rates])
    run, *counts = capsys.readouterr().out.splitlines()
    assert Path(run) == latest_run(tmp_path)
    assert len(counts) == 1 + len(KINDS)
    assert sum(int(line.split()[0]) for line in counts) == 40
    texts = pq.read_table(run, columns=["gtid_executed"], partitioning=None)["gtid_executed"]
    assert {text.count(",") for text in texts.to_pylist() if text} == {2}


@pytest.mark.parametrize("given", ["6", "6-2", "a-b"])
def test_the_command_refuses_what_is_no_range(
    tmp_path: Path, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--pairs", "4", "--out", str(tmp_path / "new"), "--uuids", given])
    assert "error" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
