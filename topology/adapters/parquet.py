"""Stored snapshots: Parquet files in which a whole fleet, and its history, fits.

    directory/day=2026-01-02/run=20260102T030405.000006Z/part-00000.parquet
                                                         _SUCCESS

1. One row per server and phase, with the columns of SNAPSHOT_SCHEMA (columns.py).
2. A run is named for the moment its last reading ended: names sort as time does, and the same
   snapshots give the same run. `day=`/`run=` are what Spark takes for partitions.
3. A run is written under a hidden name (`_writing-…`), made durable, and renamed; a writer that
   dies leaves nothing that looks like a run. `_SUCCESS` comes last: without it a run is not read.
4. Small texts may lie beside the rows, under names that readers of tables pass over (`_…`).
5. Nothing here judges. A file or row that cannot be read is an error with its name.
"""

import filecmp
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from topology.adapters.columns import SNAPSHOT_SCHEMA, leaves_of, records_of_table, table_of_records
from topology.records import (
    MalformedRecord,
    Record,
    cluster_from_servers,
    snapshot_from_record,
    snapshot_to_record,
)
from topology.snapshot import ClusterSnapshot, ServerSnapshot

PART: Final = "part-00000.parquet"
COMPLETE: Final = "_SUCCESS"
_WRITING: Final = "_writing-"
_RUN = re.compile(r"run=\d{8}T\d{6}\.\d{6}Z")
# What is read at once, and what tasks are cut at: 0.1 GB for pairs; more is read no faster.
_CLUSTERS_PER_ROW_GROUP: Final = 5_000
_CLUSTERS_AT_ONCE: Final = 500  # as records, which take ten times the room of columns

# Columns whose values hardly ever repeat: no dictionary is made of them.
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


class NoSnapshots(Exception):
    """A directory without a complete run."""


class UnreadableSnapshots(Exception):
    """A file that is no snapshot file, or a row of it that is no snapshot."""


# -- writing --------------------------------------------------------------------------------------


def write_snapshots(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    *,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write one run of these clusters and return its directory. `beside` has texts by file name.

    `snapshots` is consumed as it comes; a thousand clusters are in memory at once. Writing a run
    that is already there, byte for byte, changes nothing.

    Raises:
        ValueError: no cluster, a cluster without servers, or a cluster twice.
        FileExistsError: another run ended at the very same microsecond, or an incomplete copy of
            this one is in the way.
    """
    directory.mkdir(parents=True, exist_ok=True)
    hidden = directory / f"{_WRITING}{uuid4().hex}"
    hidden.mkdir()
    try:
        ended = _write_part(hidden / PART, snapshots)
        for name, text in beside.items():
            (hidden / name).write_text(text, encoding="utf-8")
        (hidden / COMPLETE).touch()
        names = sorted(each.name for each in hidden.iterdir())
        _make_durable(*(hidden / name for name in names), hidden)
        day = directory / f"day={ended:%Y-%m-%d}"
        day.mkdir(exist_ok=True)
        run = day / f"run={ended:%Y%m%dT%H%M%S.%fZ}"
        if _is_same_run(hidden, run, names):
            return run
        if run.exists():
            raise FileExistsError(f"{run}: another run, or an incomplete one, is already there")
        hidden.rename(run)
        _make_durable(day, directory)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return run


def _write_part(path: Path, snapshots: Iterable[ClusterSnapshot]) -> datetime:
    """Write one file and return when the last reading in it ended."""
    ended: datetime | None = None
    seen: set[str] = set()
    remaining = iter(snapshots)
    tables: list[pa.Table] = []
    with parquet_writer(path) as writer:
        while group := list(islice(remaining, min(_CLUSTERS_AT_ONCE, _CLUSTERS_PER_ROW_GROUP))):
            records: list[Record] = []
            for snapshot in group:
                if snapshot.read_ended is None:
                    raise ValueError(f"{snapshot.cluster}: a cluster without servers has no rows")
                if snapshot.cluster in seen:
                    raise ValueError(f"{snapshot.cluster}: the cluster appears twice in one run")
                seen.add(snapshot.cluster)
                records += map(snapshot_to_record, (*snapshot.first, *snapshot.last))
                ended = max(ended or snapshot.read_ended, snapshot.read_ended)
            tables.append(table_of_records(records, SNAPSHOT_SCHEMA))
            if len(tables) * _CLUSTERS_AT_ONCE >= _CLUSTERS_PER_ROW_GROUP:
                _write_group(writer, tables)
        if tables:
            _write_group(writer, tables)
    if ended is None:
        raise ValueError("no cluster: there is nothing to write")
    return ended.astimezone(UTC)


def parquet_writer(path: Path) -> pq.ParquetWriter:
    """Open a file of SNAPSHOT_SCHEMA for writing, a row group at a time."""
    leaves = [leaf for column in SNAPSHOT_SCHEMA for leaf in leaves_of(column.name, column.type)]
    return pq.ParquetWriter(
        path,
        SNAPSHOT_SCHEMA,
        compression="lz4",  # read with a quarter less work than zstd, for 1.7 times the room
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


def _make_durable(*paths: Path) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- reading --------------------------------------------------------------------------------------


def latest_run(directory: Path) -> Path:
    """Return the newest complete run below `directory`, or `directory` itself if it is a run.

    Raises NoSnapshots, which names the runs that are not complete.
    """
    if _RUN.fullmatch(directory.resolve().name):
        runs = [directory]
    else:
        runs = sorted(run for run in directory.glob("day=*/run=*") if _RUN.fullmatch(run.name))
    complete = [run for run in runs if (run / COMPLETE).exists()]
    if complete:
        return complete[-1]
    if runs:
        names = ", ".join(run.name for run in runs)
        raise NoSnapshots(f"{directory}: no complete run (no {COMPLETE} in {names})")
    raise NoSnapshots(f"{directory}: no stored snapshots (day=…/run=…) here")


def files_of_run(run: Path) -> tuple[Path, ...]:
    """Return the files of a run, each seen to hold the columns of SNAPSHOT_SCHEMA.

    Reads only the foot of each file. Raises UnreadableSnapshots, and NoSnapshots if there is none.
    """
    files = tuple(sorted(file for file in run.glob("*.parquet") if file.name[0] not in "._"))
    if not files:
        raise NoSnapshots(f"{run}: a run without a Parquet file")
    for file in files:
        try:
            found = pq.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableSnapshots(f"{file}: {error}") from error
        for column in SNAPSHOT_SCHEMA:
            if column.name not in found.names:
                raise UnreadableSnapshots(f"{file}: the column {column.name} is missing")
            kind = found.field(column.name).type
            if kind != column.type and _is_older(kind, column.type):
                raise UnreadableSnapshots(
                    f"{file}: an earlier version of gtid-audit wrote it, without facts of the"
                    f" column {column.name} that the audit needs now. Take a new run with"
                    " `gtid-audit snapshot`."
                )
            if kind != column.type:
                raise UnreadableSnapshots(
                    f"{file}: expected the column {column.name} to be {column.type}, found {kind}"
                )
    return files


def _is_older(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether `found` is `expected` without some fields of its records."""
    if pa.types.is_list(found) and pa.types.is_list(expected):
        return _is_older(found.value_type, expected.value_type)
    if pa.types.is_struct(found) and pa.types.is_struct(expected):
        known = {part.name: part.type for part in expected.fields}
        return all(
            part.name in known and _is_older(part.type, known[part.name]) for part in found.fields
        )
    return bool(found == expected)


def read_records(directory: Path) -> Iterator[tuple[str, Record]]:
    """Give every row of the latest complete run as (where it stands, record), unchecked.

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

    All or nothing: whoever wants the readable clusters although one is damaged judges records
    instead. Raises NoSnapshots and UnreadableSnapshots.
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
    try:
        return tuple(cluster_from_servers(cluster, servers[cluster]) for cluster in sorted(servers))
    except ValueError as error:
        raise UnreadableSnapshots(f"{latest_run(directory)}: {error}") from error
