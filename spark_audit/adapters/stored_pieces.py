"""Stored runs, which the evaluating tasks read in place, a row group at a time.

1. The footer of a Parquet file says which names of clusters are in each row group. Row groups that
   may share a cluster make one piece; so no cluster is in two, which is all the evaluation asks.
2. A piece is evaluated as it is read: first the columns by which clean clusters are found, and the
   others only where there is a cluster that is not.
3. What cannot be read is UnreadableSnapshots with the name of the file, in whatever process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from gtid.kernels.words import Numbers
from spark_audit.clean_clusters import COLUMNS
from spark_audit.evaluate_batch import judge_batch
from spark_audit.run_context import NOTHING, Beside
from spark_audit.schema import AUDITS
from topology.adapters.stored_runs import UnreadableSnapshots
from topology.policy import Policy

# Rows whose clusters cannot be told apart by the row groups are held in memory together: 2 KB each.
PIECE_ROWS_MAX: Final = 200_000
# Rows to a task of Spark: a second of work or so.
TASK_ROWS: Final = 100_000

# Texts that are the same in row after row: read as numbers into a dictionary, in half the time.
_REPEATED: Final = ["settings.list.element.name", "settings.list.element.value"]


_OPEN_FILES_MAX: Final = 8  # by one process; tasks read file after file


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups, of files, that hold all rows of their clusters."""

    groups: tuple[tuple[str, int], ...]  # (file, row group)
    row_count: int


@dataclass(frozen=True, slots=True)
class _Group:
    """One row group: the names of its clusters lie between two."""

    lowest: str
    highest: str
    file: str
    number: int
    row_count: int


def pieces_of(files: Sequence[Path]) -> tuple[Piece, ...] | None:
    """Cut a run into pieces; None if its clusters are too mixed for that, or cannot be told apart.

    Reads only the footer of each file.
    """
    groups: list[_Group] = []
    for file in files:
        metadata = pq.read_metadata(file)
        column = metadata.schema.to_arrow_schema().get_field_index("cluster")
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            known = group.column(column).statistics
            if group.num_rows == 0:
                continue
            if known is None or not known.has_min_max or known.null_count != 0:
                return None
            groups.append(_Group(known.min, known.max, str(file), number, group.num_rows))
    pieces: list[Piece] = []
    together: list[_Group] = []
    highest = ""
    for each in sorted(groups, key=lambda group: (group.lowest, group.file, group.number)):
        if together and each.lowest > highest:
            pieces.append(_piece(together))
            together = []
        highest = max(highest, each.highest) if together else each.highest
        together.append(each)
    if together:
        pieces.append(_piece(together))
    mixed = any(len(piece.groups) > 1 and piece.row_count > PIECE_ROWS_MAX for piece in pieces)
    return None if mixed else tuple(pieces)


def judge_piece(piece: Piece, *, policy: Policy, beside: Beside = NOTHING) -> pa.Table:
    """Read and evaluate one piece: rows of AUDIT_SCHEMA. Raises UnreadableSnapshots."""
    rows = _rows(piece, COLUMNS)

    def fetch(chosen: Numbers, names: Sequence[str]) -> pa.Table:
        read = other.get(tuple(names))
        if read is None:
            read = other[tuple(names)] = _rows(piece, names)
        return read.take(chosen)

    other: dict[tuple[str, ...], pa.Table] = {}
    return judge_batch(rows, policy=policy, beside=beside, fetch=fetch)


def _rows(piece: Piece, names: Sequence[str]) -> pa.Table:
    """Read these columns of all rows of a piece."""
    return pa.concat_tables(_read(*group, columns=list(names)) for group in piece.groups)


def audits_of_pieces(
    session: SparkSession,
    pieces: Sequence[Piece],
    *,
    policy: Policy,
    beside: Beside = NOTHING,
) -> DataFrame:
    """Evaluate the pieces on the executors, which read the files: one row of AUDITS each.

    Nothing is exchanged between tasks.
    """
    tasks = tasks_of(pieces)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for piece in tasks[number]:
                    judged = judge_piece(piece, policy=policy, beside=beside)
                    yield from judged.to_batches()

    numbers = session.range(0, len(tasks), 1, numPartitions=max(1, len(tasks)))
    return numbers.mapInArrow(judge, schema=AUDITS).select(*AUDITS.names)


def tasks_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Deal pieces out to tasks of about TASK_ROWS, in their order."""
    tasks: list[list[Piece]] = []
    held = TASK_ROWS
    for piece in pieces:
        if held + piece.row_count > TASK_ROWS:
            tasks.append([])
            held = 0
        tasks[-1].append(piece)
        held += piece.row_count
    return tasks


def _piece(groups: Sequence[_Group]) -> Piece:
    # In one order for all columns, whatever the names: rows are taken by their number in a piece.
    chosen = sorted((group.file, group.number) for group in groups)
    return Piece(tuple(chosen), sum(group.row_count for group in groups))


def _read(file: str, group: int, *, columns: list[str]) -> pa.Table:
    try:
        state = Path(file).stat()
        opened = _opened(file, state.st_mtime_ns, state.st_size)
        return opened.read_row_group(group, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error


@lru_cache(maxsize=_OPEN_FILES_MAX)
def _opened(file: str, _changed_at: int, _size: int) -> pq.ParquetFile:
    """Open a file, or give it open as it was left: its footer alone takes 2 ms to read."""
    return pq.ParquetFile(file, read_dictionary=_REPEATED)
