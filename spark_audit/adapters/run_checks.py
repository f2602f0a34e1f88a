"""Checks whether a stored run may be audited: its record, its rows and their times.

For a run on this machine the check is the local engine's. For any other place Spark counts the rows
and finds the times; it reads one column for that.
"""

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from binlog.log_times import EPOCH
from spark_audit.adapters.storage import Storage, storage_of
from spark_audit.schema import SNAPSHOTS
from topology.adapters.run_directory import RunName
from topology.adapters.stored_runs import (
    RECORD,
    UnreadableSnapshots,
    files_of_run,
    record_in,
    record_of_run,
    span_of_files,
)
from topology.documents.run_record import AgeLimit, ReadSpan, RunRecord, refusal


def refusal_of(session: SparkSession, run: str, limit: AgeLimit) -> str | None:
    """Return why a run must not be audited as the current state; None if it may be.

    Raises NoSnapshots and UnreadableSnapshots, also for a run that does not match its record.
    """
    name = RunName.of_place(run)
    if urlsplit(run).scheme in ("", "file"):
        folder = Path(run.removeprefix("file://"))
        record, span = record_of_run(folder), span_of_files(files_of_run(folder))
    else:
        storage, root = storage_of(run, session)
        record = record_at(storage, root)
        row_count, span = _rows_and_times(session, storage.address(root))
        if record is not None:
            mismatch = record.missing_beside(lambda file: storage.exists(f"{root}/{file}"))
            written = sum(record.files.values())
            if row_count != written:
                mismatch = f"it has {row_count:,} rows, but {written:,} were written"
            if mismatch is not None:
                raise UnreadableSnapshots(
                    f"{run}: {mismatch}. The run is damaged, or was not copied completely"
                )
    if record is not None and record.partial is not None:
        # Its results would become the latest of the fleet.
        return (
            f"{name.text} has only selected clusters ({', '.join(record.partial)}). Audit it with"
            " `gtid-audit audit --snapshots`, which stores its results separately"
        )
    return refusal(name.text, moment=name.moment, record=record, span=span, limit=limit)


def record_at(storage: Storage, run: str) -> RunRecord | None:
    """Return what a run records about itself; None if it has no record.

    Raises UnreadableSnapshots.
    """
    try:
        return record_in(storage.read_text(f"{run}/{RECORD}"), run=run)
    except FileNotFoundError:
        return None


def _rows_and_times(session: SparkSession, address: str) -> tuple[int, ReadSpan | None]:
    # As numbers, so that the driver's time zone has no influence.
    ended = sf.unix_micros("read_ended")
    rows = session.read.schema(SNAPSHOTS).parquet(address)
    (found,) = rows.agg(
        sf.count(sf.lit(1)).alias("rows"), sf.min(ended).alias("first"), sf.max(ended).alias("last")
    ).collect()
    if found["first"] is None:
        return found["rows"], None
    first, last = (EPOCH + timedelta(microseconds=found[name]) for name in ("first", "last"))
    return found["rows"], ReadSpan(first, last)
