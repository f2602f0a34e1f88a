"""The Spark engine: stored snapshots in, results in Parquet out, evaluated on the executors.

1. The driver finds the run and reads the footer of each file. Executors read, group, evaluate and
   write the rows. The driver receives a summary, whose size does not depend on the fleet. Contents
   were compared when the servers were read; the driver reads these results from the run.
2. The findings are the same as the local engine's, byte for byte: both use
   spark_audit/evaluate_cluster.py.
3. If run and results are both on this machine, the executors evaluate and write without DataFrames.
   Any other run passes through DataFrames of EVALUATED. The rows are the same.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_audit.adapters.beside_rows import beside_rows
from spark_audit.adapters.evaluated_files import UnwritableTable, evaluated_files, evaluated_frame
from spark_audit.adapters.results import Results, write_results
from spark_audit.adapters.run_checks import record_at
from spark_audit.adapters.runs import runs_newest_first
from spark_audit.adapters.storage import storage_of
from spark_audit.adapters.stored_pieces import Piece, pieces_of
from spark_audit.evaluated_rows import rows_of_audits
from spark_audit.run_context import Gaps
from spark_audit.schema import EVALUATED, SNAPSHOTS
from spark_audit.transforms import evaluated_of
from topology.adapters.run_directory import RunName
from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots, files_of_run, latest_run
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy

# The file name in an error: in Spark's own message, and in ours from an executor.
_FILE_NOT_READ: Final = re.compile(
    r"(?:\[FAILED_READ_FILE[^]]*\]|\bUnreadableSnapshots:) (?P<said>.*)"
)
_NOT_WRITTEN: Final = re.compile(r"\bUnwritableTable: (?P<said>.*)")


def evaluated_run(
    session: SparkSession, run: str, *, policy: Policy, gaps: Gaps | None = None
) -> DataFrame:
    """Return EVALUATED of one complete snapshot run; nothing is evaluated yet.

    If the run is on this machine and its clusters are not mixed, executors read the files in place.
    All executors must then see these files. Any other run goes through Spark's reader and an
    exchange. `run` is a place in the sense of storage.py. Raises NoSnapshots and
    UnreadableSnapshots for a run on this machine; errors in other files appear when they are read.
    """
    beside, _ = beside_rows(session, run, gaps)
    pieces = _pieces_of_run(run)
    if pieces is not None:
        return evaluated_frame(session, pieces, policy=policy, beside=beside)
    rows = session.read.schema(SNAPSHOTS).parquet(*_files_of(run))
    return evaluated_of(rows, policy=policy, beside=beside)


def audit_stored(
    session: SparkSession,
    *,
    snapshots: str,
    out: str,
    policy: Policy,
    more: Sequence[ClusterAudit] = (),
    gaps: Gaps | None = None,
) -> Results:
    """Audit the latest complete run below `snapshots` and write the results below `out`.

    `more` are audits of clusters that should be in the run and are not; `gaps` are servers of its
    clusters that are not in it. A cluster that cannot be evaluated has the verdict UNKNOWN. Raises
    NoSnapshots, UnreadableSnapshots (topology/adapters/stored_runs.py), ResultsDiffer
    (result_place.py) and OSError.
    """
    run = latest_snapshots(session, snapshots)
    pieces = _pieces_of_run(run) if _is_here(out) else None
    beside, compared_count = beside_rows(session, run, gaps)
    audits: DataFrame | Callable[[str], int]
    if pieces is not None:
        audits = evaluated_files(session, pieces, policy=policy, beside=beside, more=more)
    else:
        audits = evaluated_run(session, run, policy=policy, gaps=gaps)
        if more:
            rows = rows_of_audits(more)
            audits = audits.unionByName(session.createDataFrame(rows, EVALUATED))
    with _readable():
        return write_results(
            session,
            audits,
            directory=out,
            run=RunName.of_place(run),
            policy=policy,
            contents_compared=compared_count,
        )


def latest_snapshots(session: SparkSession, directory: str) -> str:
    """Return the newest complete snapshot run below a place, or the place itself if it is a run.

    A run of selected clusters is used only if its own place is given. Raises NoSnapshots and
    UnreadableSnapshots.
    """
    if _is_here(directory):
        return str(latest_run(Path(directory.removeprefix("file://"))).resolve())
    storage, root = storage_of(directory, session)
    if root.rpartition("/")[2].startswith("run="):
        return root
    for run in runs_newest_first(storage, root):
        place = f"{root}/{run.path}"
        record = record_at(storage, place)
        if record is None or record.partial is None:
            return place
    raise NoSnapshots(f"{directory}: no complete run of a whole fleet (day=…/run=…) here")


def _pieces_of_run(run: str) -> tuple[Piece, ...] | None:
    return pieces_of(files_of_run(_folder(run))) if _is_here(run) else None


def _files_of(run: str) -> list[str]:
    if not _is_here(run):
        return [run]
    # With the scheme, because a cluster's default file system may be another one.
    return [f"file://{file.resolve()}" for file in files_of_run(_folder(run))]


def _folder(run: str) -> Path:
    return Path(run.removeprefix("file://"))


def _is_here(place: str) -> bool:
    return urlsplit(place).scheme in ("", "file")


@contextmanager
def _readable() -> Iterator[None]:
    """Report the file that an executor could not read or write, as the local engine does."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # Spark raises either of them
        unwritten = _NOT_WRITTEN.search(str(error))
        if unwritten is not None:
            raise UnwritableTable(unwritten["said"]) from error
        unread = _FILE_NOT_READ.search(str(error))
        if unread is None:
            raise
        raise UnreadableSnapshots(unread["said"]) from error
