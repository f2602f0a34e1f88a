"""Stored snapshots: Parquet files for a whole fleet and its history.

    directory/day=2026-01-02/run=20260102T030405.000006Z/part-00000.parquet
                                                         _run.json
                                                         _SUCCESS

1. One row per server and phase, with the columns of SNAPSHOT_SCHEMA (snapshot_columns.py).
2. A run is named after the time when its last reading ended. Names sort by time, and the same
   snapshots give the same run. Spark reads `day=` and `run=` as partitions.
3. A run is written as a draft and appears as a whole (run_directory.py). A writer that crashes
   leaves nothing that looks like a run.
4. Small text files may be stored with the rows, under names that readers of tables ignore (`_…`).
   The consumers of the clusters are one of them (stored_consumers.py).
   `_run.json` records the rows of each file and whether the run has the whole fleet
   (topology/documents/run_record.py). A run that does not match its record is not read.
5. A run of selected clusters is never the latest run of a directory: its record marks it.
6. This module evaluates nothing. A file or row that cannot be read raises an error that identifies
   it.
"""

import filecmp
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from topology.adapters.run_directory import (
    COMPLETE,
    LocalStorage,
    RunName,
    complete_draft,
    new_draft,
)
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, leaves_of, records_of_table
from topology.adapters.storable import rows_of
from topology.adapters.stored_consumers import consumers_beside, consumers_of_run
from topology.adapters.stored_runs import (
    RECORD,
    UnreadableSnapshots,
    files_of_run,
    latest_run,
)
from topology.documents.records import (
    MalformedRecord,
    Record,
    cluster_from_servers,
    snapshot_from_record,
)
from topology.documents.run_record import RunRecord
from topology.readings.consumers import ConsumerReading
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

PART: Final = "part-00000.parquet"
# The number of clusters that one read returns, and by which tasks are split. It takes 0.1 GB for
# pairs; reading more at once is not faster.
_CLUSTERS_PER_ROW_GROUP: Final = 5_000
_CLUSTERS_AT_ONCE: Final = 500  # as records, which take ten times the memory of columns

# Columns whose values hardly ever repeat: they get no dictionary.
_DISTINCT: Final = frozenset(
    {
        "name",
        "host",
        "gtid_executed",
        "gtid_purged",
        "gtid_owned",
        "read_started",
        "read_ended",
        "server_clock",
        "channels.list.element.gtid_retrieved",
    }
)


# -- writing --------------------------------------------------------------------------------------


def write_snapshots(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    *,
    beside: Mapping[str, str] = MappingProxyType({}),
    partial: Sequence[str] | None = None,
) -> Path:
    """Write one run of these clusters and return its directory. `beside` has texts by file name.

    `partial` lists the clusters if they were selected from a fleet; None means all of it.

    `snapshots` is consumed as it arrives; a thousand clusters are in memory at once. Writing a run
    that already exists, byte for byte, changes nothing.

    Raises:
        ValueError: there is no cluster, a cluster has no servers, or a cluster appears twice.
        FileExistsError: another run ended at the same microsecond, or an incomplete copy of this
            run exists.
    """
    storage = LocalStorage()
    directory.mkdir(parents=True, exist_ok=True)
    hidden = Path(new_draft(str(directory)))
    hidden.mkdir()
    try:
        consumers: dict[str, tuple[ConsumerReading, ...]] = {}
        ended, cluster_count = _write_part(hidden / PART, snapshots, consumers)
        rows = {PART: pq.read_metadata(hidden / PART).num_rows}
        selected = None if partial is None else tuple(partial)
        texts = {**beside, **consumers_beside(consumers)}
        record = RunRecord(cluster_count, rows, selected, tuple(texts))
        complete_draft(storage, str(hidden), {**texts, RECORD: record.to_text()})
        names = sorted(each.name for each in hidden.iterdir())
        run = directory / RunName.at(ended).path
        if _is_same_run(hidden, run, names):
            return run
        if run.exists():
            raise FileExistsError(f"{run}: another run, or an incomplete one, is already there")
        storage.rename(str(hidden), str(run))
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return run


def _write_part(
    path: Path,
    snapshots: Iterable[ClusterSnapshot],
    consumers: dict[str, tuple[ConsumerReading, ...]],
) -> tuple[datetime, int]:
    """Write one file; return when its last reading ended, and the number of clusters.

    The consumers of each cluster are added to `consumers`.
    """
    ended: datetime | None = None
    seen: set[str] = set()
    remaining = iter(snapshots)
    tables: list[pa.Table] = []
    with parquet_writer(path) as writer:
        while group := list(islice(remaining, min(_CLUSTERS_AT_ONCE, _CLUSTERS_PER_ROW_GROUP))):
            for snapshot in group:
                if snapshot.read_ended is None:
                    raise ValueError(f"{snapshot.cluster}: a cluster without servers has no rows")
                if snapshot.cluster in seen:
                    raise ValueError(f"{snapshot.cluster}: the cluster appears twice in one run")
                seen.add(snapshot.cluster)
                if snapshot.consumers:
                    consumers[snapshot.cluster] = snapshot.consumers
                ended = max(ended or snapshot.read_ended, snapshot.read_ended)
            tables.append(rows_of(group))
            if len(tables) * _CLUSTERS_AT_ONCE >= _CLUSTERS_PER_ROW_GROUP:
                _write_group(writer, tables)
        if tables:
            _write_group(writer, tables)
    if ended is None:
        raise ValueError("no cluster: there is nothing to write")
    return ended.astimezone(UTC), len(seen)


def parquet_writer(path: Path) -> pq.ParquetWriter:
    """Open a file of SNAPSHOT_SCHEMA for writing, a row group at a time."""
    leaves = [leaf for column in SNAPSHOT_SCHEMA for leaf in leaves_of(column.name, column.type)]
    return pq.ParquetWriter(
        path,
        SNAPSHOT_SCHEMA,
        compression="lz4",  # reading takes 25% less CPU than zstd, for 1.7 times the space
        use_dictionary=[leaf for leaf in leaves if leaf not in _DISTINCT],
    )


def _write_group(writer: pq.ParquetWriter, tables: list[pa.Table]) -> None:
    together = pa.concat_tables(tables)
    writer.write_table(together, row_group_size=together.num_rows)
    tables.clear()


def _is_same_run(one: Path, other: Path, names: Sequence[str]) -> bool:
    return (other / COMPLETE).exists() and not any(
        filecmp.cmpfiles(one, other, names, shallow=False)[1:]
    )


# -- reading --------------------------------------------------------------------------------------


def read_records(directory: Path) -> Iterator[tuple[str, Record]]:
    """Yield every row of the latest complete run as (location, record), without validation.

    Raises NoSnapshots and UnreadableSnapshots.
    """
    for file in files_of_run(latest_run(directory)):
        row = 0
        try:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(columns=SNAPSHOT_SCHEMA.names):
                    for record in records_of_table(batch):
                        row += 1
                        yield f"{file}, row {row}", record
        except (pa.ArrowException, OSError) as error:
            raise UnreadableSnapshots(f"{file}: {error}") from error


def read_snapshots(directory: Path) -> tuple[ClusterSnapshot, ...]:
    """Read the latest complete run, clusters in order of name.

    It returns all clusters or raises. A caller that wants the readable clusters although one is
    damaged evaluates records instead. Raises NoSnapshots and UnreadableSnapshots.
    """
    servers: dict[str, list[ServerSnapshot]] = {}
    for where, record in read_records(directory):
        try:
            server = snapshot_from_record(record)
        except MalformedRecord as error:
            raise UnreadableSnapshots(f"{where}: {error}") from error
        servers.setdefault(server.cluster, []).append(server)
    return _clusters_of(servers, directory)


def _clusters_of(
    servers: Mapping[str, Iterable[ServerSnapshot]], directory: Path
) -> tuple[ClusterSnapshot, ...]:
    run = latest_run(directory)
    consumers = consumers_of_run(run)
    try:
        return tuple(
            replace(
                cluster_from_servers(cluster, servers[cluster]),
                consumers=consumers.get(cluster, ()),
            )
            for cluster in sorted(servers)
        )
    except ValueError as error:
        raise UnreadableSnapshots(f"{run}: {error}") from error
