"""Memory for the rows that the kernels write, and Arrow tables over the same memory.

1. A batch has a fixed number of rows. A ledger has as many batches as it needs, and its table has a
   chunk for each. All batches share one numbering of UUIDs and tags.
2. Nothing is copied for Arrow: its buffers are the NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from binlog.kernels import heads, walking
from binlog.ledger.ledger_columns import KINDS, LEDGER_SCHEMA, row_numbers
from binlog.log_times import MICROSECONDS
from binlog.transactions import Transaction

Numbers = NDArray[np.int64]
Shorts = NDArray[np.int32]

BATCH_ROWS: Final = 1 << 18
# The shortest transaction is one event with a header and the fixed part of a QUERY.
ROW_BYTES_MIN: Final = 32
# Five columns of eight bytes and two of four by the walk, five and three of the heads, and a flag.
_ROW_BYTES: Final = 5 * 8 + 2 * 4 + 5 * 8 + 3 * 4 + 1
_ALIGNED_ROWS: Final = 64  # aligns the start of each column for Arrow
_NAMES_FIRST: Final = 64  # the initial capacity of each dictionary
_SLOTS_PER_NAME: Final = 4

assert KINDS[walking.OTHER] == "other", "the kernel's kinds are TransactionKind's, in its order"
assert len(KINDS) == walking.IN_PAYLOAD


class RowBatch:
    """Memory for some rows; the two kernels write to separate columns.

    All columns are one allocation from Arrow's memory pool, which reuses freed memory. Getting new
    pages from the system would take as long as filling them.
    """

    def __init__(self, rows_max: int) -> None:
        self.rows = 0
        self.rows_max = rows_max = -(-rows_max // _ALIGNED_ROWS) * _ALIGNED_ROWS
        memory = np.frombuffer(pa.allocate_buffer(_ROW_BYTES * rows_max), np.uint8)
        at = 40 * rows_max
        self.walked: Numbers = memory[:at].view(np.int64).reshape(5, rows_max)
        self.heads: Numbers = memory[at : 2 * at].view(np.int64).reshape(5, rows_max)
        self.walked_shorts: Shorts = memory[2 * at :][: 8 * rows_max].view(np.int32)
        self.walked_shorts = self.walked_shorts.reshape(2, rows_max)
        self.heads_shorts: Shorts = memory[2 * at + 8 * rows_max :][: 12 * rows_max].view(np.int32)
        self.heads_shorts = self.heads_shorts.reshape(3, rows_max)
        self.complete = memory[-rows_max:]
        self.payloads: Numbers = np.empty((rows_max, 2), np.int64)
        # The addresses of the columns, in the order of the kernels' arguments.
        self.for_walk = (
            self.walked.ctypes.data,
            self.walked_shorts.ctypes.data,
            self.complete.ctypes.data,
            self.payloads.ctypes.data,
        )
        self.for_heads = (self.heads.ctypes.data, self.heads_shorts.ctypes.data)

    def close(self, *, end: int, kind: int, error: int) -> None:
        """Finish the row of an incomplete transaction."""
        row = self.rows
        self.walked[[walking.END, walking.BYTES], row] = end, end - self.walked[walking.START, row]
        self.walked_shorts[[walking.ROW_KIND, walking.ROW_ERROR], row] = kind, error
        self.complete[row] = 0
        self.rows += 1


class Names:
    """The UUIDs and tags of a ledger, by number."""

    def __init__(self) -> None:
        self.counts = np.zeros(heads.COUNTS_SIZE, np.int64)
        self._make_room(_NAMES_FIRST)

    def _make_room(self, names: int) -> None:
        self.keys = np.zeros((2, names, heads.NAME_WORDS), np.uint64)
        self.slots = np.full((2, _SLOTS_PER_NAME * names), -1, np.int32)

    def grow(self) -> None:
        """Increase the capacity four times; all names keep their numbers."""
        old, counts = self.keys, self.counts.copy()
        self._make_room(4 * old.shape[1])
        self.counts[heads.NAMES : heads.NAMES + 2] = 0
        self.counts[heads.IS_CROWDED] = 0
        for which in (heads.UUIDS, heads.TAGS):
            for name in old[which, : counts[heads.NAMES + which]]:
                self._number(which, name)

    def number_of(self, which: int, name: bytes) -> int:
        """Return the number of a UUID's or a tag's bytes; assign one to a new name."""
        words = np.frombuffer(name.ljust(8 * heads.NAME_WORDS, b"\0"), np.uint64)
        number = self._number(which, words)
        if number == heads.NO_SHORT:
            self.grow()
            number = self._number(which, words)
        return number

    def _number(self, which: int, words: NDArray[np.uint64]) -> int:
        both = np.zeros(2 * heads.NAME_WORDS, np.uint64)
        both[which * heads.NAME_WORDS :][: heads.NAME_WORDS] = words
        return int(heads.index_of(which, both, self.counts, self.keys, self.slots))

    def uuids(self) -> pa.Array:
        """Return the UUIDs as text, in the order of their numbers."""
        keys = self.keys[heads.UUIDS, : self.counts[heads.NAMES + heads.UUIDS], :2]
        return pa.array([str(UUID(bytes=key.tobytes())) for key in keys], pa.string())

    def tags(self) -> pa.Array:
        """Return the tags, in the order of their numbers."""
        keys = self.keys[heads.TAGS, : self.counts[heads.NAMES + heads.TAGS]]
        return pa.array([key.tobytes().rstrip(b"\0").decode() for key in keys], pa.string())


def put(batch: RowBatch, names: Names, each: Transaction) -> None:
    """Write a transaction that the decoder has read as the batch's next row."""
    row = batch.rows
    numbers = row_numbers(each)
    seconds = each.timestamp_seconds
    walked = (each.start, each.end, each.end - each.start, each.server_id, seconds * MICROSECONDS)
    batch.walked[:, row] = walked
    batch.walked_shorts[:, row] = KINDS.index(each.kind.value), each.error_code
    batch.complete[row] = each.is_complete
    gno = each.gtid.gno if each.gtid else None
    found = (
        gno,
        numbers.original_commit,
        numbers.immediate_commit,
        numbers.last_committed,
        numbers.sequence_number,
    )
    batch.heads[:, row] = [heads.ABSENT if value is None else value for value in found]
    uuid = tag = heads.NO_SHORT
    if each.gtid:
        uuid = names.number_of(heads.UUIDS, each.gtid.tsid.uuid.bytes)
        if each.gtid.tsid.tag:
            tag = names.number_of(heads.TAGS, each.gtid.tsid.tag.encode())
    version = heads.NO_SHORT if numbers.version is None else numbers.version
    batch.heads_shorts[:, row] = uuid, tag, version
    # Count any value as possibly missing: `_without` then checks every row.
    names.counts[heads.WITHOUT_GTID : heads.IS_CROWDED] += 1
    batch.rows += 1


def table_of(batches: list[RowBatch], names: Names, *, file: str) -> pa.Table:
    """Make the table of all rows over the batches' memory, which must not change afterwards."""
    words = _Words(pa.array([file], pa.string()), names.uuids(), names.tags(), names.counts)
    tables = [_table(batch, words) for batch in batches if batch.rows]
    return pa.concat_tables(tables) if tables else LEDGER_SCHEMA.empty_table()


@dataclass(frozen=True, slots=True)
class _Words:
    file: pa.Array
    uuids: pa.Array
    tags: pa.Array
    counts: Numbers


_KIND_WORDS: Final = pa.array(KINDS, pa.string())


def _table(batch: RowBatch, words: _Words) -> pa.Table:
    rows, without = batch.rows, words.counts
    walked = batch.walked[:, :rows]
    numbers, shorts = batch.heads[:, :rows], batch.heads_shorts[:, :rows]
    some = {
        "gno": (numbers[heads.GNO], without[heads.WITHOUT_GTID]),
        "original_commit_at": (numbers[heads.ORIGINAL], without[heads.WITHOUT_TIMES]),
        "immediate_commit_at": (numbers[heads.IMMEDIATE], without[heads.WITHOUT_TIMES]),
        "last_committed": (numbers[heads.LAST], without[heads.WITHOUT_CLOCK]),
        "sequence_number": (numbers[heads.SEQUENCE], without[heads.WITHOUT_CLOCK]),
        "original_server_version": (shorts[heads.VERSION], without[heads.WITHOUT_VERSION]),
    }
    all_there = {
        "start": walked[walking.START],
        "end": walked[walking.END],
        "bytes": walked[walking.BYTES],
        "server_id": walked[walking.SERVER_ID],
        "logged_at": walked[walking.LOGGED_AT],
        "error_code": batch.walked_shorts[walking.ROW_ERROR, :rows],
    }
    columns = {
        "file": _numbered(np.zeros(rows, np.int32), None, words.file),
        "uuid": _numbered(
            *_without(shorts[heads.UUID_INDEX], without[heads.WITHOUT_GTID]), words.uuids
        ),
        "tag": _numbered(
            *_without(shorts[heads.TAG_INDEX], without[heads.WITHOUT_TAG]), words.tags
        ),
        "kind": _numbered(batch.walked_shorts[walking.ROW_KIND, :rows], None, _KIND_WORDS),
        "is_complete": _flags(batch.complete[:rows]),
    }
    for name, (values, lack) in some.items():
        columns[name] = _array(LEDGER_SCHEMA.field(name).type, *_without(values, lack))
    for name, values in all_there.items():
        columns[name] = _array(LEDGER_SCHEMA.field(name).type, values, None)
    ordered = [columns[name] for name in LEDGER_SCHEMA.names]
    return pa.Table.from_arrays(ordered, schema=LEDGER_SCHEMA)


def _without(values: NDArray[Any], lack: int) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
    """Return the values and Arrow's validity bitmap; None if no value is missing."""
    if not lack:
        return values, None
    absent = heads.ABSENT if values.dtype == np.int64 else heads.NO_SHORT
    return values, np.packbits(values != absent, bitorder="little")


def _array(kind: pa.DataType, values: NDArray[Any], there: NDArray[np.uint8] | None) -> pa.Array:
    bitmap = None if there is None else pa.py_buffer(there)
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)])


def _numbered(
    indices: NDArray[np.int32], there: NDArray[np.uint8] | None, words: pa.Array
) -> pa.Array:
    return pa.DictionaryArray.from_arrays(_array(pa.int32(), indices, there), words, safe=False)


def _flags(values: NDArray[np.uint8]) -> pa.Array:
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])
