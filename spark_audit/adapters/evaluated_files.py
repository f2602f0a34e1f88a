"""Writes the table of evaluated clusters on the executors: no row passes through the JVM.

How it works
------------
Spark may run a task twice, or give up on a task that then continues and finishes. Both attempts
write a file. Only one of the two may get into the table, or its clusters would be there twice.

    _writing-…/_attempts/<uuid>.parquet       every attempt of every task writes here
    _writing-…/clusters/part-00000.parquet    the driver moves one file per task here

1. An attempt writes one file under a random name into `_attempts`. Two attempts never write to the
   same file. Readers of Parquet directories ignore names that begin with an underscore.
2. The attempt then returns one row as its answer: task number, file name, number of rows. Spark
   passes on the answer of exactly one attempt per task.
3. The driver moves the files of these answers into the table, and deletes `_attempts` with all
   other files in it.

Invariant: the table has one file per task, in the order of the tasks, and one file for the clusters
that the driver adds. So the number of rows is known, and results.py compares it with what it reads
back. An executor on a machine that does not see the directory finds no `_attempts`. It fails with
UnwritableTable.

Writing through Spark's own committer would solve the same problem. But then each evaluated row
would travel from Python to the JVM as Arrow, and be encoded as Parquet there.
"""

import gc
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_audit.adapters.stored_pieces import Piece, evaluate_piece, tasks_of
from spark_audit.evaluated_rows import evaluated_rows, rows_of_audits
from spark_audit.result_columns import EVALUATED_SCHEMA
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import EVALUATED
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy

_ATTEMPTS: Final = "_attempts"  # readers of Parquet directories ignore this name
_REPEATED: Final = ["verdict", "findings.list.element.code", "findings.list.element.severity"]
_ANSWER: Final = "task long, file string, rows long"


class UnwritableTable(OSError):
    """A task could not write to the directory of the driver: perhaps it is not mounted there."""


def evaluated_files(
    session: SparkSession,
    pieces: Sequence[Piece],
    *,
    policy: Policy,
    beside: Beside = NOTHING,
    more: Sequence[ClusterAudit] = (),
) -> Callable[[str], int]:
    """Return a function that writes the table into a new directory, and returns the row count.

    Every executor must reach that directory under the same path. `beside` is what is known about
    some clusters in addition to their rows; `more` are evaluations that come from elsewhere.
    The function raises UnreadableSnapshots and UnwritableTable, within Spark's error, and OSError.
    """

    def write(directory: str) -> int:
        table = Path(directory.removeprefix("file://"))
        attempts = table.with_name(_ATTEMPTS)
        attempts.mkdir(parents=True)
        written = _evaluate_on_executors(session, pieces, attempts, policy=policy, beside=beside)
        written.append(_write(attempts, [rows_of_audits(more)]))
        table.mkdir()
        for number, (file, _) in enumerate(written):
            (attempts / file).rename(table / f"part-{number:05}.parquet")
        shutil.rmtree(attempts)
        return sum(count for _, count in written)

    return write


def _evaluate_on_executors(
    session: SparkSession,
    pieces: Sequence[Piece],
    attempts: Path,
    *,
    policy: Policy,
    beside: Beside,
) -> list[tuple[str, int]]:
    """Return the file of each task and its number of rows, in task order."""

    def write(task: int, evaluated: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        try:
            file, rows = _write(attempts, evaluated)
        except OSError as error:
            raise UnwritableTable(f"{attempts}: {error.strerror or error}") from error
        yield pa.RecordBatch.from_pydict({"task": [task], "file": [file], "rows": [rows]})

    if not pieces:
        return []
    written = _in_tasks(session, pieces, write, _ANSWER, policy=policy, beside=beside)
    answers = written.toArrow().sort_by("task")
    return list(zip(answers["file"].to_pylist(), answers["rows"].to_pylist(), strict=True))


def evaluated_frame(
    session: SparkSession, pieces: Sequence[Piece], *, policy: Policy, beside: Beside = NOTHING
) -> DataFrame:
    """Evaluate the pieces on the executors, which read the files: EVALUATED, not yet written.

    This is for a directory of results that executors cannot write to in place.
    """

    def rows_of(_task: int, evaluated: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        for rows in evaluated:
            yield from rows.to_batches()

    return _in_tasks(session, pieces, rows_of, EVALUATED, policy=policy, beside=beside)


def _in_tasks(
    session: SparkSession,
    pieces: Sequence[Piece],
    work: Callable[[int, Iterator[pa.Table]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
    *,
    policy: Policy,
    beside: Beside,
) -> DataFrame:
    """Evaluate the pieces in tasks that exchange nothing; return what `work` makes of each task.

    `work` gets the number of the task, and rows of EVALUATED_SCHEMA, piece by piece.
    """
    tasks = tasks_of(pieces)

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settle_process()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                evaluated = (
                    evaluated_rows(evaluate_piece(piece, policy=policy, beside=beside))
                    for piece in tasks[task]
                )
                yield from work(task, evaluated)

    numbers = session.range(0, len(tasks), 1, numPartitions=max(1, len(tasks)))
    return numbers.mapInArrow(evaluate, schema=schema)


@lru_cache(maxsize=1)
def _settle_process() -> None:
    """Exclude imported modules from garbage collection, once: it takes a tenth of the time."""
    gc.freeze()


def _write(directory: Path, evaluated: Iterable[pa.Table]) -> tuple[str, int]:
    """Write one file and return its name and its number of rows.

    Clusters with findings come last, in a row group of their own. A reader that looks for them
    skips the others.
    """
    name = f"{uuid4().hex}.parquet"
    silent, others = [EVALUATED_SCHEMA.empty_table()], [EVALUATED_SCHEMA.empty_table()]
    for rows in evaluated:
        is_silent = pc.and_(pc.is_null(rows["findings"]), pc.is_null(rows["unknown"]))
        silent.append(rows.filter(is_silent))
        others.append(rows.filter(pc.invert(is_silent)))
    count = 0
    with pq.ParquetWriter(
        directory / name, EVALUATED_SCHEMA, compression="zstd", use_dictionary=_REPEATED
    ) as writer:
        for parts in (silent, others):
            together = pa.concat_tables(parts)
            writer.write_table(together)
            count += together.num_rows
    return name, count
