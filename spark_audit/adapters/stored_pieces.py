"""Reads stored runs in place, a row group at a time, in the tasks that evaluate them.

How it works
------------
A rule may need all servers of a cluster, so all its rows must meet in one task. Spark's own reader
does not know which rows belong together: it needs an exchange of the whole run. But a stored run
usually keeps clusters together, and a footer has the lowest and highest name of each row group:

    file        row group   clusters            piece
    part-00000  0           alpha … delta       ┐ 1   (delta may be in both)
    part-00000  1           delta … golf        ┘
    part-00000  2           hotel … zulu        ─ 2

1. `pieces_of` sorts the row groups by their lowest name. A row group whose lowest name is above all
   earlier names begins a new piece; otherwise it joins the current one.
2. Invariant: no cluster is in two pieces. That is all that the evaluation needs, so pieces need no
   exchange.
3. If the clusters of a run are mixed, one piece would hold much of the run in memory. Then, and for
   files without statistics, the caller uses Spark's reader and an exchange.
4. A piece is evaluated while it is read: first the columns that show which clusters are clean, and
   the other columns only if a cluster needs them (evaluate_batch.py).
5. A file that cannot be read raises UnreadableSnapshots with its name, in any process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from gtid.kernels.eight_bytes import Numbers
from spark_audit.columns_for_rules import COLUMNS
from spark_audit.evaluate_batch import evaluate_rows
from spark_audit.run_context import NOTHING, Beside
from topology.adapters.stored_runs import UnreadableSnapshots
from topology.policy import Policy

# Row groups that may share clusters are held in memory together, up to this many rows of 2 KB each.
PIECE_ROWS_MAX: Final = 200_000
# Rows per task of Spark: about a second of work.
TASK_ROWS: Final = 100_000

# Columns with few distinct texts. Reading them as dictionaries halves the time.
_REPEATED: Final = ["settings.list.element.name", "settings.list.element.value"]


_OPEN_FILES_MAX: Final = 8  # per process; tasks read one file after another


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups, as (file, number), that hold all rows of their clusters."""

    groups: tuple[tuple[str, int], ...]  # (file, row group)
    row_count: int


@dataclass(frozen=True, slots=True)
class _Group:
    """One row group, with its lowest and its highest cluster name."""

    lowest: str
    highest: str
    file: str
    number: int
    row_count: int


def pieces_of(files: Sequence[Path]) -> tuple[Piece, ...] | None:
    """Split a run into pieces. Return None if its clusters are too mixed, or if names are unknown.

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


def evaluate_piece(piece: Piece, *, policy: Policy, beside: Beside = NOTHING) -> pa.Table:
    """Read and evaluate one piece: rows of AUDIT_SCHEMA. Raises UnreadableSnapshots."""
    rows = _rows(piece, COLUMNS)

    def fetch(chosen: Numbers, names: Sequence[str]) -> pa.Table:
        read = other.get(tuple(names))
        if read is None:
            read = other[tuple(names)] = _rows(piece, names)
        return read.take(chosen)

    other: dict[tuple[str, ...], pa.Table] = {}
    return evaluate_rows(rows, policy=policy, beside=beside, fetch=fetch)


def _rows(piece: Piece, names: Sequence[str]) -> pa.Table:
    """Read these columns, of all rows of a piece."""
    return pa.concat_tables(_read(*group, columns=list(names)) for group in piece.groups)


def tasks_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Assign pieces, in their order, to tasks of about TASK_ROWS."""
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
    # The same order for all columns, because rows are taken by their number in the piece.
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
    """Open a file, or return it open from the cache: reading its footer takes 2 ms."""
    return pq.ParquetFile(file, read_dictionary=_REPEATED)
