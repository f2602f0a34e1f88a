"""The table of evaluated clusters, which executors write: no row passes through the JVM.

A task may run twice, or go on after it was given up for lost. So tasks write where nobody reads and
say what they have written; Spark hands on one answer for each task; and the driver moves the files
of these answers, and no others, into the table.
"""

import gc
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_audit.adapters.stored_pieces import Piece, judge_piece, tasks_of
from spark_audit.evaluate_batch import judged_rows
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import AUDIT_SCHEMA, JUDGED_SCHEMA
from topology.adapters.columns import table_of_records
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.records import audit_to_record

_ATTEMPTS: Final = "_attempts"  # a name that readers of tables pass over
_REPEATED: Final = ["verdict", "findings.list.element.code", "findings.list.element.severity"]
_ANSWER: Final = "task long, file string, rows long"


class UnwritableTable(OSError):
    """A task could not write to the address from the driver, which it may not reach."""


def judged_files(
    session: SparkSession,
    pieces: Sequence[Piece],
    *,
    policy: Policy,
    beside: Beside = NOTHING,
    more: Sequence[ClusterAudit] = (),
) -> Callable[[str], int]:
    """Return what writes the table into a new directory, which every executor must reach by path.

    It gives the number of rows. `beside` is what is known of some clusters beside their
    rows, `more` are evaluations that come from elsewhere. Raises UnreadableSnapshots and
    UnwritableTable, from within Spark's error, and OSError.
    """

    def write(directory: str) -> int:
        table = Path(directory.removeprefix("file://"))
        attempts = table.with_name(_ATTEMPTS)
        attempts.mkdir(parents=True)
        written = _judge_on_executors(session, pieces, attempts, policy=policy, beside=beside)
        rows = table_of_records([audit_to_record(audit) for audit in more], AUDIT_SCHEMA)
        written.append(_write(attempts, [rows]))
        table.mkdir()
        for number, (file, _) in enumerate(written):
            (attempts / file).rename(table / f"part-{number:05}.parquet")
        shutil.rmtree(attempts)
        return sum(count for _, count in written)

    return write


def _judge_on_executors(
    session: SparkSession,
    pieces: Sequence[Piece],
    attempts: Path,
    *,
    policy: Policy,
    beside: Beside,
) -> list[tuple[str, int]]:
    """Return the file of each task and its number of rows, in the order of the tasks."""
    tasks = tasks_of(pieces)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settle_process()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                judged = (judge_piece(piece, policy=policy, beside=beside) for piece in tasks[task])
                try:
                    file, rows = _write(attempts, judged)
                except OSError as error:
                    raise UnwritableTable(f"{attempts}: {error.strerror or error}") from error
                answer = {"task": [task], "file": [file], "rows": [rows]}
                yield pa.RecordBatch.from_pydict(answer)

    if not tasks:
        return []
    numbers = session.range(0, len(tasks), 1, numPartitions=len(tasks))
    answers = numbers.mapInArrow(judge, schema=_ANSWER).toArrow().sort_by("task")
    return list(zip(answers["file"].to_pylist(), answers["rows"].to_pylist(), strict=True))


@lru_cache(maxsize=1)
def _settle_process() -> None:
    """Spare what was imported from collections of garbage, once: they are a tenth of the work."""
    gc.freeze()


def _write(directory: Path, audits: Iterator[pa.Table] | Sequence[pa.Table]) -> tuple[str, int]:
    """Write one file and return its name and its number of rows.

    Clusters with findings come last, in a row group of their own: a reader that looks for them
    need not read the others.
    """
    name = f"{uuid4().hex}.parquet"
    silent, others = [JUDGED_SCHEMA.empty_table()], [JUDGED_SCHEMA.empty_table()]
    for each in audits:
        rows = judged_rows(each)
        is_silent = pc.and_(pc.is_null(rows["findings"]), pc.is_null(rows["unknown"]))
        silent.append(rows.filter(is_silent))
        others.append(rows.filter(pc.invert(is_silent)))
    count = 0
    with pq.ParquetWriter(
        directory / name, JUDGED_SCHEMA, compression="zstd", use_dictionary=_REPEATED
    ) as writer:
        for parts in (silent, others):
            together = pa.concat_tables(parts)
            writer.write_table(together)
            count += together.num_rows
    return name, count
