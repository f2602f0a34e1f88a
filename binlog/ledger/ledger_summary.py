"""Sums up ledgers, file by file, in bounded memory: what `binlog scan` shows of any number of rows.

1. Rows are processed as columns and then dropped. Kept are one line per file, at most SLICES_MAX
   time slices, which become wider as the logs get longer, and the largest transactions.
2. The time of a transaction is its commit on this server. Before 8.0.1 it is the time when its
   first event was logged.
3. This module reads and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlog.errors import BinlogError
from binlog.ledger.ledger_columns import FileLedger
from binlog.ledger.ledger_sets import gtids_of
from binlog.log_times import MICROSECONDS
from gtid import GtidSet

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST_MAX: Final = 5
SLICES_MAX: Final = 4096
TABLES_MAX: Final = 10_000  # different tables with row counts
_COUNTS: Final = ("rows_written", "rows_updated", "rows_deleted")


@dataclass(slots=True)
class FileSummary:
    """One file. Times are microseconds since 1970 (UTC); `end` is the first byte not read."""

    file: str
    server_version: str | None = None
    checksum: str | None = None
    previous_gtids: GtidSet | None = None
    gtids: GtidSet = field(default_factory=GtidSet)
    transactions: int = 0
    bytes: int = 0
    end: int = 0
    first_at: int | None = None
    last_at: int | None = None
    error: BinlogError | None = None


@dataclass(frozen=True, slots=True)
class KindTotals:
    """The number of transactions of one kind, and their bytes."""

    transactions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Large:
    """One of the largest transactions. `gtid` is None if it has none."""

    file: str
    start: int
    bytes: int
    kind: str
    gtid: str | None


class Timeline:
    """Transactions and bytes over time, in slices of equal width in seconds."""

    def __init__(self) -> None:
        self.seconds = 1
        # Slice number (start time / seconds) -> transactions, bytes.
        self.slices: dict[int, tuple[int, int]] = {}

    def add(self, moments: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
        """Count transactions at their commit times (microseconds)."""
        numbers = moments // (MICROSECONDS * self.seconds)
        # Widen before counting: one slice per second of a year could be one slice per row.
        while len(found := np.unique(numbers)) > SLICES_MAX:
            self._widen()
            numbers //= 2
        places = np.searchsorted(found, numbers)
        counts = np.bincount(places, minlength=len(found))
        # Floating point is exact here: no log has 2^53 bytes.
        sums = np.bincount(places, weights=sizes, minlength=len(found)).astype(np.int64)
        for number, count, size in zip(found.tolist(), counts.tolist(), sums.tolist(), strict=True):
            self._count(number, count, size)
        while len(self.slices) > SLICES_MAX:
            self._widen()

    def cells(self, count_max: int) -> tuple[tuple[int, int], ...]:
        """Return (transactions, bytes) for at most that many parts of the whole time, in order."""
        if not self.slices:
            return ()
        first, width = min(self.slices), self._width(count_max)
        cells = [(0, 0)] * ((max(self.slices) - first) // width + 1)
        for number, (transactions, size) in self.slices.items():
            cell = (number - first) // width
            cells[cell] = (cells[cell][0] + transactions, cells[cell][1] + size)
        return tuple(cells)

    def cell_seconds(self, count_max: int) -> int:
        """Return the length of each of these parts."""
        return self._width(count_max) * self.seconds

    def _width(self, count_max: int) -> int:
        """Return how many slices each of at most that many parts has, rounded up."""
        return -(-(max(self.slices) - min(self.slices) + 1) // count_max)

    def _count(self, number: int, transactions: int, size: int) -> None:
        before = self.slices.get(number, (0, 0))
        self.slices[number] = (before[0] + transactions, before[1] + size)

    def _widen(self) -> None:
        old, self.slices = self.slices, {}
        self.seconds *= 2
        for number, (transactions, size) in old.items():
            self._count(number // 2, transactions, size)


@dataclass(slots=True)
class LedgerSummary:
    """The sums so far. `add` takes the ledgers in log order."""

    files: list[FileSummary] = field(default_factory=list)
    kinds: dict[str, KindTotals] = field(default_factory=dict)
    anonymous: int = 0
    incomplete: int = 0
    with_errors: int = 0
    largest: list[Large] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)
    # (schema, table, kind of change) -> rows. Only with details.
    tables: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    tables_left_out: bool = False

    @property
    def transactions(self) -> int:
        """Return the number of transactions."""
        return sum(each.transactions for each in self.files)

    @property
    def bytes(self) -> int:
        """Return the bytes of all transactions, without file headers and other events."""
        return sum(each.bytes for each in self.files)

    @property
    def gtids(self) -> GtidSet:
        """Return the GTIDs of all files."""
        return GtidSet.union_of(each.gtids for each in self.files)

    @property
    def errors(self) -> list[BinlogError]:
        """Return the errors for what could not be read."""
        return [each.error for each in self.files if each.error is not None]

    @property
    def span(self) -> tuple[int, int] | None:
        """Return the first and the last commit time, in microseconds."""
        firsts = [each.first_at for each in self.files if each.first_at is not None]
        lasts = [each.last_at for each in self.files if each.last_at is not None]
        return (min(firsts), max(lasts)) if firsts and lasts else None

    def add(self, ledger: FileLedger, *, file: str | None = None) -> None:
        """Count one ledger, or one piece of one; the pieces of a file come one after another."""
        name = file or ledger.file
        if not self.files or self.files[-1].file != name:
            self.files.append(FileSummary(name))
        summary = self.files[-1]
        if ledger.head is not None:
            summary.server_version = ledger.head.description.server_version
            summary.checksum = ledger.head.description.checksum.name
            summary.previous_gtids = ledger.head.previous_gtids
        summary.end = ledger.end
        summary.error = ledger.error or summary.error
        if ledger.rows.num_rows:
            self._add_rows(summary, ledger.rows)

    def _add_rows(self, summary: FileSummary, rows: pa.Table) -> None:
        sizes = rows["bytes"].to_numpy()
        moments = (
            pc.coalesce(rows["immediate_commit_at"], rows["logged_at"]).cast(pa.int64()).to_numpy()
        )
        summary.gtids |= gtids_of(rows)
        summary.transactions += rows.num_rows
        summary.bytes += int(sizes.sum())
        known = [each for each in (summary.first_at, summary.last_at) if each is not None]
        summary.first_at = min([int(moments.min()), *known])
        summary.last_at = max([int(moments.max()), *known])
        self.timeline.add(moments, sizes)
        self.anonymous += rows["gno"].null_count
        self.incomplete += pc.sum(pc.invert(rows["is_complete"])).as_py() or 0
        self.with_errors += pc.sum(pc.not_equal(rows["error_code"], 0)).as_py() or 0
        self._add_kinds(rows)
        self._add_largest(summary.file, rows, sizes)
        if "tables" in rows.column_names:
            self._add_tables(rows)

    def _add_kinds(self, rows: pa.Table) -> None:
        plain = pa.table({"kind": rows["kind"].cast(pa.string()), "bytes": rows["bytes"]})
        grouped = plain.group_by("kind").aggregate([("bytes", "count"), ("bytes", "sum")])
        for kind, count, size in zip(
            *(grouped[name].to_pylist() for name in ("kind", "bytes_count", "bytes_sum")),
            strict=True,
        ):
            before = self.kinds.get(kind, KindTotals(0, 0))
            self.kinds[kind] = KindTotals(before.transactions + count, before.bytes + size)

    def _add_largest(self, file: str, rows: pa.Table, sizes: npt.NDArray[np.int64]) -> None:
        count = min(LARGEST_MAX, rows.num_rows)
        least = np.partition(sizes, -count)[-count]
        larger = np.flatnonzero(sizes > least)
        equal = np.flatnonzero(sizes == least)[: count - len(larger)]  # the earliest of them
        places = np.sort(np.concatenate((larger, equal)))
        # Only these columns: a commit time may be outside the range of Python's dates.
        largest = rows.select(["uuid", "tag", "gno", "start", "bytes", "kind"]).take(places)
        self.largest += [_large(file, row) for row in largest.to_pylist()]
        self.largest.sort(key=lambda large: -large.bytes)  # stable: earlier ones first
        del self.largest[LARGEST_MAX:]

    def _add_tables(self, rows: pa.Table) -> None:
        changes = pc.list_flatten(rows["tables"]).combine_chunks()
        columns = dict(zip((f.name for f in changes.type), changes.flatten(), strict=True))
        grouped = (
            pa.table(columns)
            .group_by(["schema", "table"])
            .aggregate([(name, "sum") for name in _COUNTS])
        )
        for each in grouped.to_pylist():
            for name in _COUNTS:
                key = (each["schema"], each["table"], name)
                if len(self.tables) >= TABLES_MAX * len(_COUNTS) and key not in self.tables:
                    self.tables_left_out = True
                    continue
                self.tables[key] += each[f"{name}_sum"]

    def rows_by_table(self) -> list[tuple[str, str, dict[str, int]]]:
        """Return rows written, updated and deleted of each table, the most changed first."""
        names = sorted({(schema, table) for schema, table, _ in self.tables})
        found = [
            (schema, table, {name: self.tables[schema, table, name] for name in _COUNTS})
            for schema, table in names
        ]
        return sorted(found, key=lambda each: -sum(each[2].values()))


def _large(file: str, row: dict[str, Any]) -> Large:
    parts = [row["uuid"], *([row["tag"]] if row["tag"] else []), str(row["gno"])]
    gtid = ":".join(parts) if row["uuid"] else None
    return Large(file, row["start"], row["bytes"], row["kind"], gtid)
