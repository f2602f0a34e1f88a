"""Stored runs: what is complete, which is taken, and what is said of a file that cannot be read."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from topology.adapters import parquet
from topology.adapters.parquet import PART, read_snapshots, write_snapshots
from topology.adapters.run_directory import COMPLETE
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, list_of
from topology.adapters.stored_runs import (
    RECORD,
    NoSnapshots,
    UnreadableSnapshots,
    files_of_run,
    latest_run,
)
from topology.documents.records import snapshot_to_record
from topology.readings.snapshot import ClusterSnapshot

Fleet = tuple[ClusterSnapshot, ...]


def everything_under(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_what_is_written_is_read_back_in_order(tmp_path: Path, fleet: Fleet) -> None:
    run = write_snapshots(tmp_path, iter(fleet))
    assert run == tmp_path / "day=2026-01-02" / "run=20260102T120001.040000Z"
    assert everything_under(run) == [COMPLETE, RECORD, PART]
    back = read_snapshots(tmp_path)
    assert back == tuple(sorted(fleet, key=lambda snapshot: snapshot.cluster))
    assert [snapshot_to_record(server) for cluster in back for server in cluster.last] == [
        snapshot_to_record(server)
        for cluster in sorted(fleet, key=lambda snapshot: snapshot.cluster)
        for server in cluster.last
    ]


def test_more_clusters_than_are_held_at_once_make_one_file(
    tmp_path: Path, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_CLUSTERS_PER_ROW_GROUP", 2)
    (file,) = files_of_run(write_snapshots(tmp_path, fleet))
    assert pq.read_metadata(file).num_row_groups == -(-len(fleet) // 2)
    assert len(read_snapshots(tmp_path)) == len(fleet)


def test_writing_the_same_run_again_changes_nothing(tmp_path: Path, fleet: Fleet) -> None:
    run = write_snapshots(tmp_path, fleet)
    before = (everything_under(tmp_path), (run / PART).read_bytes())
    assert write_snapshots(tmp_path, fleet) == run
    assert (everything_under(tmp_path), (run / PART).read_bytes()) == before


def test_another_run_of_the_same_moment_is_not_overwritten(tmp_path: Path, fleet: Fleet) -> None:
    hung = [snapshot for snapshot in fleet if snapshot.cluster == "hung"]
    run = write_snapshots(tmp_path, fleet)
    before = (run / PART).read_bytes()
    with pytest.raises(FileExistsError, match="another run"):
        write_snapshots(tmp_path, hung)
    assert (run / PART).read_bytes() == before
    assert len(everything_under(tmp_path)) == 5


def interrupted(fleet: Fleet) -> Iterator[ClusterSnapshot]:
    yield fleet[0]
    raise KeyboardInterrupt


def twice(fleet: Fleet) -> Iterator[ClusterSnapshot]:
    yield fleet[0]
    yield fleet[0]


def no_server(_fleet: Fleet) -> Iterator[ClusterSnapshot]:
    yield ClusterSnapshot("empty", (), ())


def nothing(_fleet: Fleet) -> Iterator[ClusterSnapshot]:
    return iter(())


@pytest.mark.parametrize(
    ("snapshots", "raised", "message"),
    [
        (interrupted, KeyboardInterrupt, "^$"),
        (twice, ValueError, "healthy: the cluster appears twice"),
        (no_server, ValueError, "empty: a cluster without servers"),
        (nothing, ValueError, "no cluster"),
    ],
)
def test_a_writer_that_fails_leaves_nothing(
    tmp_path: Path,
    fleet: Fleet,
    snapshots: Callable[[Fleet], Iterator[ClusterSnapshot]],
    raised: type[BaseException],
    message: str,
) -> None:
    with pytest.raises(raised, match=message):
        write_snapshots(tmp_path, snapshots(fleet))
    assert everything_under(tmp_path) == []


def a_day_later(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    day = timedelta(days=1)
    first, last = (
        tuple(
            replace(
                server, read_started=server.read_started + day, read_ended=server.read_ended + day
            )
            for server in servers
        )
        for servers in (snapshot.first, snapshot.last)
    )
    return ClusterSnapshot(snapshot.cluster, first, last)


def test_the_latest_complete_run_is_taken(tmp_path: Path, fleet: Fleet) -> None:
    older = write_snapshots(tmp_path, fleet)
    newer = write_snapshots(tmp_path, map(a_day_later, fleet))
    assert latest_run(tmp_path) == newer
    assert latest_run(older) == older  # a run may be named itself
    (newer / COMPLETE).unlink()
    assert latest_run(tmp_path) == older
    assert read_snapshots(tmp_path)[0].read_ended == max(
        server.read_ended for server in read_snapshots(older)[0].last
    )
    (older / COMPLETE).unlink()
    with pytest.raises(NoSnapshots, match=f"no complete run .*{older.name}, {newer.name}"):
        latest_run(tmp_path)


def test_what_a_dead_writer_left_is_not_read(tmp_path: Path, fleet: Fleet) -> None:
    run = write_snapshots(tmp_path, fleet)
    run.rename(tmp_path / "_writing-0123456789abcdef")
    with pytest.raises(NoSnapshots, match="no stored snapshots"):
        read_snapshots(tmp_path)


@pytest.mark.parametrize("missing", ["nowhere", "day=2026-01-02"])
def test_a_directory_without_runs_says_so(tmp_path: Path, missing: str) -> None:
    with pytest.raises(NoSnapshots, match="no stored snapshots"):
        read_snapshots(tmp_path / missing)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def blotted(file: Path) -> None:
    """Spoil the data and leave the foot."""
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 400 + content[404:])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def foreign(file: Path) -> None:
    pq.write_table(pa.table({"cluster": ["c"], "host": ["db1"]}), file)


def retyped(file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    column = table.schema.get_field_index("port")
    pq.write_table(table.set_column(column, "port", table["port"].cast(pa.string())), file)


def nameless(file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    column = table.schema.get_field_index("gtid_executed")
    spoiled = pa.array([*table["gtid_executed"].to_pylist()[:-1], "1-2-3"], pa.string())
    pq.write_table(table.set_column(column, "gtid_executed", spoiled), file)


def halved(file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.slice(0, table.num_rows - 1), file)


def older(file: Path) -> None:
    """Write the file again as the version before applier states and groups wrote it."""
    table = pq.read_table(file).drop_columns("group")
    kind = table.schema.field("channels").type.value_type
    old = pa.struct([part for part in kind.fields if part.name != "applier_state"])
    place = table.schema.get_field_index("channels")
    empty = pa.array([[]] * table.num_rows, list_of(old))
    pq.write_table(table.set_column(place, "channels", empty), file)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, f"{PART}: .*"),
        (empty, f"{PART}: .*"),
        (blotted, f"{PART}: .*"),
        (foreign, f"{PART}: the column name is missing"),
        (retyped, f"{PART}: expected the column port to be int32, found string"),
        (older, f"{PART}: an earlier version of gtid-audit wrote it, without the column"),
        (nameless, f"{PART}, row 44: gtid_executed: expected a UUID"),
        (halved, f"{PART} has 43 rows, and was written with 44. The run is damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    stored: Path, damage: Callable[[Path], None], message: str
) -> None:
    (file,) = files_of_run(latest_run(stored))
    damage(file)
    with pytest.raises(UnreadableSnapshots, match=message):
        read_snapshots(stored)


def test_a_run_without_a_file_is_no_run(stored: Path) -> None:
    (file,) = files_of_run(latest_run(stored))
    file.rename(file.with_name("_hidden.parquet"))
    with pytest.raises(NoSnapshots, match="has no Parquet file"):
        read_snapshots(stored)


def test_what_repeats_is_kept_as_a_dictionary_and_what_does_not_is_not(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with parquet.parquet_writer(path) as writer:
        writer.write_table(SNAPSHOT_SCHEMA.empty_table())
        writer.write_table(
            pa.table({name: [None] for name in SNAPSHOT_SCHEMA.names}, SNAPSHOT_SCHEMA)
        )
    metadata = pq.read_metadata(path)
    group = metadata.row_group(metadata.num_row_groups - 1)
    columns = [group.column(number) for number in range(group.num_columns)]
    kept = {column.path_in_schema: column.has_dictionary_page for column in columns}
    assert set(kept) >= parquet._DISTINCT
    assert {name for name, is_kept in kept.items() if not is_kept} >= parquet._DISTINCT
    assert kept["settings.list.element.name"]
