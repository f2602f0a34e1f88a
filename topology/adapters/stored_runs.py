"""The stored runs below a directory: the list of runs, the latest run, and its contents.

1. A reader ignores a run without `_SUCCESS`. A directory that cannot be listed is an error: it may
   hold a later run.
2. A run of selected clusters is the latest run of no directory.
3. A run that does not match its record (topology/documents/run_record.py) is not read.
4. This module reads only columns with times, names and addresses.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topology.adapters.run_directory import COMPLETE, RunName, is_run
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA
from topology.documents.run_record import MalformedRunRecord, NewerRunRecord, ReadSpan, RunRecord

RECORD: Final = "_run.json"
ADDRESS_COLUMNS: Final = ("cluster", "name", "host", "port")


class NoSnapshots(Exception):
    """A directory without a complete run."""


class UnreadableSnapshots(Exception):
    """A file that is not a snapshot file, or has a row that is not a snapshot."""


def latest_run(directory: Path) -> Path:
    """Return the newest complete run below `directory`, or `directory` itself if it is a run.

    A run of selected clusters is returned only if it is `directory` itself. Raises NoSnapshots,
    which lists the incomplete runs, and UnreadableSnapshots: a directory that cannot be listed may
    contain a later run.
    """
    if is_run(directory.resolve().name):
        if _is_complete(directory):
            return directory
        raise NoSnapshots(f"{directory}: no complete run (no {COMPLETE} in it)")
    if not directory.is_dir():
        raise NoSnapshots(f"{directory}: no such directory, so no stored snapshots")
    runs = sorted(_runs_below(directory), key=lambda run: run.name)
    complete = [run for run in runs if _is_complete(run)]
    for run in reversed(complete):
        record = record_of_run(run)
        if record is None or record.partial is None:
            return run
    if complete:
        raise NoSnapshots(
            f"{directory}: every complete run has only selected clusters; to audit one, use its own"
            f" directory: {complete[-1]}"
        )
    if runs:
        names = ", ".join(run.name for run in runs)
        raise NoSnapshots(f"{directory}: no complete run (no {COMPLETE} in {names})")
    raise NoSnapshots(f"{directory}: no stored snapshots (day=…/run=…) here")


def _runs_below(directory: Path) -> Iterator[Path]:
    try:
        days = [day for day in directory.iterdir() if day.name.startswith("day=") and day.is_dir()]
        for day in days:
            for run in day.iterdir():
                if not is_run(run.name) or not run.is_dir():
                    continue
                if day.name != f"day={moment_of_run(run):%Y-%m-%d}":
                    raise UnreadableSnapshots(
                        f"{run}: the run is in the directory of another day; move it back, or to"
                        " another place"
                    )
                yield run
    except OSError as error:
        raise UnreadableSnapshots(f"{error.filename}: {error.strerror or error}") from error


def _is_complete(run: Path) -> bool:
    try:
        return (run / COMPLETE).exists()
    except OSError as error:
        raise UnreadableSnapshots(f"{run}: {error.strerror or error}") from error


def moment_of_run(run: Path) -> datetime:
    """Return the time in the name of a run. Raises UnreadableSnapshots if it is no time."""
    try:
        return RunName(run.resolve().name).moment
    except ValueError as error:
        raise UnreadableSnapshots(f"{run}: the name of the run is not a time") from error


def record_of_run(run: Path) -> RunRecord | None:
    """Return the record of a run; None if it has none.

    Raises UnreadableSnapshots.
    """
    try:
        return record_in((run / RECORD).read_text(encoding="utf-8"), run=str(run))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSnapshots(f"{run / RECORD}: {error}") from error


def record_in(text: str, *, run: str) -> RunRecord:
    """Parse the text of a record. Raises UnreadableSnapshots."""
    try:
        return RunRecord.from_text(text)
    except NewerRunRecord as error:
        raise UnreadableSnapshots(f"{run}: {error}") from error
    except MalformedRunRecord as error:
        raise UnreadableSnapshots(f"{run}/{RECORD}: {error}") from error


def files_of_run(run: Path) -> tuple[Path, ...]:
    """Return the files of a run after checking that each has the columns of SNAPSHOT_SCHEMA.

    It reads only the footer of each file. Raises UnreadableSnapshots, also for a run that does not
    match its record, and NoSnapshots if there is no file.
    """
    record = record_of_run(run)  # first: a later version may have other columns
    files = tuple(sorted(file for file in run.glob("*.parquet") if file.name[0] not in "._"))
    if not files:
        raise NoSnapshots(f"{run}: the run has no Parquet file")
    rows = {file.name: _rows_of_file(file) for file in files}
    mismatch = None
    if record is not None:
        mismatch = record.mismatch(rows) or record.missing_beside(
            lambda name: (run / name).exists()
        )
    if mismatch is not None:
        raise UnreadableSnapshots(
            f"{run}: {mismatch}. The run is damaged, or was not copied completely"
        )
    return files


def _rows_of_file(file: Path) -> int:
    try:
        metadata = pq.read_metadata(file)
        found = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error
    for column in SNAPSHOT_SCHEMA:
        if column.name not in found.names:
            raise UnreadableSnapshots(f"{file}: the column {column.name} is missing")
        kind = found.field(column.name).type
        if kind != column.type and _is_older(kind, column.type):
            raise UnreadableSnapshots(
                f"{file}: an earlier version of gtid-audit wrote it, without the column"
                f" {column.name}, which the audit needs now. Take a new snapshot with `gtid-audit"
                " snapshot`."
            )
        if kind != column.type:
            raise UnreadableSnapshots(
                f"{file}: expected the column {column.name} to be {column.type}, found {kind}"
            )
    rows: int = metadata.num_rows
    return rows


def span_of_files(files: Sequence[Path]) -> ReadSpan | None:
    """Return when the readings in some files ended; None if the files contain no time.

    Raises UnreadableSnapshots.
    """
    found: list[tuple[datetime, datetime]] = []
    for file in files:
        extremes = pc.min_max(_columns(file, ["read_ended"])[0]).as_py()
        if extremes["min"] is not None:
            found.append((extremes["min"], extremes["max"]))
    if not found:
        return None
    return ReadSpan(min(first for first, _ in found), max(last for _, last in found))


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


def clusters_of_files(files: Sequence[Path]) -> tuple[str, ...]:
    """Return the names of the clusters in some files, in order. Raises UnreadableSnapshots."""
    found: set[str] = set()
    for file in files:
        found.update(name or "" for name in pc.unique(_columns(file, ["cluster"])[0]).to_pylist())
    return tuple(sorted(found))


def addresses_of_files(
    files: Sequence[Path], *, clusters: Sequence[str]
) -> dict[str, dict[str, tuple[str, int]]]:
    """Return host and port of each server of these clusters, by cluster and server name.

    Clusters without a row in the files are omitted. Raises UnreadableSnapshots.
    """
    return addresses_in(
        (_columns(file, list(ADDRESS_COLUMNS)) for file in files), clusters=clusters
    )


def addresses_in(
    tables: Iterable[pa.Table], *, clusters: Sequence[str]
) -> dict[str, dict[str, tuple[str, int]]]:
    """Return host and port of each server of these clusters, by cluster and server name.

    The tables have ADDRESS_COLUMNS. Clusters without a row in the tables are omitted.
    """
    wanted = pa.array(clusters, pa.string())
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for table in tables:
        chosen = table.filter(pc.is_in(table["cluster"], wanted))
        for row in chosen.group_by(chosen.column_names).aggregate([]).to_pylist():
            found.setdefault(row["cluster"], {})[row["name"]] = (row["host"], row["port"])
    return found


def _columns(file: Path, names: list[str]) -> pa.Table:
    try:
        return pq.read_table(file, columns=names, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error
