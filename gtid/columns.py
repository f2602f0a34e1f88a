"""Columns of GTID sets, one set in each row: the semantics of GtidSet without an object per set.

1. A column is immutable and canonical: each row equals the GtidSet of the same text.
2. Text is read from Arrow's buffers and written to Arrow's buffers. All loops over rows are in
   gtid/kernels; this module only holds the arrays and calls the kernels.
3. A row that is null, or whose text is malformed, is null in every result. It does not affect other
   rows. `error` returns what was wrong with its text.
4. Importing this file loads NumPy, Numba and PyArrow (the extra `columns`). Therefore no other
   module imports it when `gtid` is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gtid.arrow_text import flat_text, text_buffers, validity
from gtid.boundary_sequence import Boundaries, settled
from gtid.errors import GtidError, MalformedGtidSet
from gtid.gtid_set import GtidSet, set_of_ranges
from gtid.gtid_text import INTERVALS_MAX, TEXT_BYTES_MAX, TSIDS_MAX
from gtid.kernels import combining, folding, measuring, reading, writing
from gtid.kernels.eight_bytes import Bytes, Flags, Numbers, Words
from gtid.kernels.keys import KEY_WORDS
from gtid.layout import Arrays, Limits, key_text, read_texts

_STRING_BYTES_MAX: Final = 2**31 - 1  # Arrow's `string` has 32-bit offsets
_COUNT: Final = pa.decimal128(38, 0)
_NO_LIMITS: Final = {"text_bytes_max": 2**62, "intervals_max": 2**62, "tsids_max": 2**62}


class _Faults(NamedTuple):
    """The errors in the text that a column was read from, by row."""

    texts: pa.Array
    codes: Bytes
    places: Numbers
    limits: Limits


@final
class GtidSetColumn:
    """An immutable column of GTID sets.

    Operators combine two columns of the same length, row by row: `|` union, `&` intersection, `-`
    subtraction, `^` symmetric difference.

    >>> column = GtidSetColumn.parse(pa.array(["3E11FA47-71CA-11E1-9E33-C80AA9429562:1-3:2-5"]))
    >>> column.to_arrow().to_pylist()
    ['3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5']
    """

    __slots__ = ("_arrays", "_exact", "_faults", "_valid")

    def __init__(
        self,
        arrays: Arrays,
        valid: Flags,
        *,
        exact: Flags | None = None,
        faults: _Faults | None = None,
    ) -> None:
        """Wrap arrays that follow the layout. For this module only."""
        self._arrays = arrays.trimmed()
        self._valid = valid
        self._exact = valid if exact is None else exact
        for each in (self._valid, self._exact):
            each.flags.writeable = False
        self._faults = faults

    # -- constructors -----------------------------------------------------------------------

    @classmethod
    def parse(
        cls,
        texts: pa.Array | pa.ChunkedArray,
        *,
        text_bytes_max: int = TEXT_BYTES_MAX,
        intervals_max: int = INTERVALS_MAX,
        tsids_max: int = TSIDS_MAX,
    ) -> GtidSetColumn:
        """Read a column of text: `string` or `large_string`, or a type that casts to it.

        A null row stays null. A row that is malformed or above the limits becomes null, too; see
        `error`. The limits apply to each row, as in GtidSet.parse. Raises pyarrow.ArrowInvalid for
        other types.
        """
        array = flat_text(texts)
        data, offsets = text_buffers(array)
        valid = np.array(array.is_valid(), dtype=np.bool_)
        limits = Limits(text_bytes_max, intervals_max, tsids_max)
        read = read_texts(data.ctypes.data, offsets, valid, limits)
        kept = _Faults(array, read.faults, read.places, limits) if read.faults.any() else None
        return cls(read.arrays, valid, exact=read.truths & reading.EXACT != 0, faults=kept)

    @classmethod
    def from_sets(cls, sets: Iterable[GtidSet | None]) -> GtidSetColumn:
        """Make a column of these sets; None becomes a null row."""
        texts = [None if each is None else str(each) for each in sets]
        return cls.parse(pa.array(texts, pa.large_string()), **_NO_LIMITS)

    # -- rows, errors and text --------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._valid)

    def __repr__(self) -> str:
        nulls = len(self) - int(self._valid.sum())
        return f"<GtidSetColumn of {len(self)} rows, {nulls} null>"

    def row(self, row: int) -> GtidSet | None:
        """Return one row as a GtidSet; None if it is null."""
        text = self.take(np.array([range(len(self))[row]])).to_arrow()[0].as_py()
        if text is None:
            return None
        return GtidSet.parse(text, **_NO_LIMITS)

    def exact_sets(self, rows: Numbers) -> list[GtidSet | None]:
        """Return these rows as sets; None for those that are not `is_exact`."""
        taken = self.take(rows)._arrays  # noqa: SLF001 - an object of this class
        places, keys, run_bounds, bounds = (each.tolist() for each in taken)
        texts: dict[tuple[int, ...], str] = {}
        sets: list[GtidSet | None] = []
        for row, exact in enumerate(self._exact[rows].tolist()):
            ranges: dict[str, Boundaries] = {}
            for run in range(places[row], places[row + 1]):
                words = tuple(keys[run])
                text = texts.get(words)
                if text is None:
                    text = texts[words] = key_text(words)
                ranges[text] = settled(bounds[run_bounds[run] : run_bounds[run + 1]])
            sets.append(set_of_ranges(ranges) if exact else None)
        return sets

    def is_null(self) -> pa.BooleanArray:
        """Return for each row whether it is null."""
        return pa.array(~self._valid)

    def is_exact(self) -> NDArray[np.bool_]:
        """Return for each row whether the text it was read from is canonical, byte for byte.

        In a column that was not read from text this holds for every row. It never holds for a null
        row.
        """
        return self._exact

    def error(self, row: int) -> GtidError | None:
        """Return what GtidSet.parse would raise for the text of this row, if anything."""
        if self._faults is None or not self._faults.codes[row]:
            return None
        faults = self._faults
        raw = faults.texts[row].as_buffer().to_pybytes()
        text = raw.decode()
        code = int(faults.codes[row])
        if code == reading.TOO_LARGE:
            return _refusal(text, faults.limits)
        # Arrow counts bytes; characters before the first fault may take more than one byte.
        place = len(raw[: int(faults.places[row])].decode(errors="ignore"))
        return MalformedGtidSet.at(text, position=place, expected=reading.EXPECTED[code])

    def errors(self) -> pa.StringArray:
        """Return the message of each row's error; null where there is none."""
        messages: list[str | None] = [None] * len(self)
        if self._faults is not None:
            for row in np.flatnonzero(self._faults.codes):
                messages[row] = str(self.error(int(row)))
        return pa.array(messages, pa.string())

    def to_arrow(self) -> pa.StringArray | pa.LargeStringArray:
        """Write MySQL's canonical form; as `large_string` if all rows take more than 2 GiB."""
        arrays = self._arrays
        room = len(arrays.keys) * writing.RUN_CHARS_MAX
        room += len(arrays.bounds) // 2 * writing.INTERVAL_CHARS_MAX
        text, offsets = np.empty(room, np.uint8), np.empty(len(self) + 1, np.int64)
        written = writing.write_rows(*arrays, self._valid, text, offsets)
        kind = pa.string()
        if written <= _STRING_BYTES_MAX:
            offsets = offsets.astype(np.int32)
        else:
            kind = pa.large_string()
        buffers = [validity(self._valid), pa.py_buffer(offsets), pa.py_buffer(text[:written])]
        return pa.Array.from_buffers(kind, len(self), buffers)

    # -- two columns ------------------------------------------------------------------------

    def __or__(self, other: GtidSetColumn) -> GtidSetColumn:
        return self._combined(other, combining.LEFT_ONLY | combining.RIGHT_ONLY | combining.BOTH)

    def __and__(self, other: GtidSetColumn) -> GtidSetColumn:
        return self._combined(other, combining.BOTH)

    def __sub__(self, other: GtidSetColumn) -> GtidSetColumn:
        return self._combined(other, combining.LEFT_ONLY)

    def __xor__(self, other: GtidSetColumn) -> GtidSetColumn:
        return self._combined(other, combining.LEFT_ONLY | combining.RIGHT_ONLY)

    def is_subset(self, other: GtidSetColumn) -> pa.BooleanArray:
        """Return for each row whether `other` contains every GTID of it."""
        return self._nothing_of(other, combining.LEFT_ONLY)

    def equals(self, other: GtidSetColumn) -> pa.BooleanArray:
        """Return for each row whether both columns contain the same GTIDs."""
        return self._nothing_of(other, combining.LEFT_ONLY | combining.RIGHT_ONLY)

    def is_disjoint(self, other: GtidSetColumn) -> pa.BooleanArray:
        """Return for each row whether no GTID is in both."""
        return self._nothing_of(other, combining.BOTH)

    def is_subset_at(self, rows: Numbers, other: GtidSetColumn, other_rows: Numbers) -> Flags:
        """Return whether row `rows[i]` is a subset of row `other_rows[i]` of `other`, for each i.

        Rows may be repeated and paired in any order. No row may be null.
        """
        assert self._valid[rows].all(), "a null is no subset"
        assert other._valid[other_rows].all(), "a null holds nothing"
        return ~self._found(combining.LEFT_ONLY, rows, other, other_rows)

    # -- one column -------------------------------------------------------------------------

    def holes(self) -> GtidSetColumn:
        """Return the gaps of each TSID: the numbers missing between its lowest and highest."""
        arrays = self._arrays
        made = self._room_for(arrays)
        measuring.holes_of_rows(*arrays, *made)
        return GtidSetColumn(made, self._valid)

    def filled(self) -> GtidSetColumn:
        """Return, for each TSID, the interval from 1 to its highest number."""
        arrays = self._arrays
        made = arrays._replace(
            run_bounds=2 * np.arange(len(arrays.run_bounds), dtype=np.int64),
            bounds=np.empty(2 * len(arrays.keys), np.int64),
        )
        measuring.filled_runs(arrays.run_bounds, arrays.bounds, made.bounds)
        return GtidSetColumn(made, self._valid)

    def from_uuid(self, high: Words, low: Words) -> GtidSetColumn:
        """Keep the GTIDs that one server committed: in each row, those of that row's UUID words."""
        return self._of_uuid(high, low, wanted=True)

    def without_uuid(self, high: Words, low: Words) -> GtidSetColumn:
        """Keep all GTIDs of each row except those that one server committed."""
        return self._of_uuid(high, low, wanted=False)

    def take(self, rows: NDArray[np.int64]) -> GtidSetColumn:
        """Return the rows with these numbers, in this order; a negative number yields a null row.

        Raises IndexError for a number above that of the last row.
        """
        chosen = np.asarray(rows, np.int64)
        valid = (chosen >= 0) & self._valid[np.maximum(chosen, 0)] if len(chosen) else chosen >= 0
        arrays = self._arrays
        of_chosen = np.where(chosen >= 0, chosen, 0)
        runs = arrays.rows[of_chosen + 1] - arrays.rows[of_chosen]
        bounds = (
            arrays.run_bounds[arrays.rows[of_chosen + 1]]
            - arrays.run_bounds[arrays.rows[of_chosen]]
        )
        made = Arrays.with_room(rows=len(chosen), runs=int(runs.sum()), bounds=int(bounds.sum()))
        measuring.take_rows(chosen, *arrays, *made)
        return GtidSetColumn(made, valid)

    def gtid_count(self) -> pa.Decimal128Array:
        """Count the GTIDs of each row, exactly; a count may exceed 64 bits."""
        arrays = self._arrays
        counts = np.empty((len(self), 2), np.uint64)
        measuring.count_rows(arrays.rows, arrays.run_bounds, arrays.bounds, counts)
        buffers = [validity(self._valid), pa.py_buffer(counts)]
        return pa.Array.from_buffers(_COUNT, len(self), buffers)

    def interval_count(self) -> pa.Int64Array:
        """Count the intervals of each row."""
        arrays = self._arrays
        bounds = arrays.run_bounds[arrays.rows]
        return pa.array(np.diff(bounds) // 2, mask=~self._valid)

    def tsid_count(self) -> pa.Int64Array:
        """Count the TSIDs of each row."""
        return pa.array(np.diff(self._arrays.rows), mask=~self._valid)

    def union_all(self) -> GtidSet:
        """Unite all rows; ignore null rows."""
        arrays = self._arrays
        made = Arrays(
            np.array([0, len(arrays.keys)]),
            np.vstack([arrays.keys, np.zeros((1, KEY_WORDS), np.uint64)]),
            arrays.run_bounds.copy(),
            arrays.bounds.copy(),
        )
        run, bound = folding.fold_row(0, len(arrays.keys), len(arrays.bounds), *made[1:])
        made.rows[1], made.run_bounds[run] = run, bound
        united = GtidSetColumn(made, np.ones(1, np.bool_)).row(0)
        assert united is not None, "the one row is valid"
        return united

    # -- implementation ---------------------------------------------------------------------

    def _combined(self, other: GtidSetColumn, table: int) -> GtidSetColumn:
        valid = self._both_valid(other)
        ours, theirs = self._arrays, other._arrays
        made = Arrays.with_room(
            rows=len(self),
            runs=len(ours.keys) + len(theirs.keys),
            bounds=len(ours.bounds) + len(theirs.bounds),
        )
        combining.combine_rows(table, *ours, *theirs, valid, *made)
        return GtidSetColumn(made, valid)

    def _nothing_of(self, other: GtidSetColumn, table: int) -> pa.BooleanArray:
        valid = self._both_valid(other)
        rows = np.arange(len(self))
        return pa.array(~self._found(table, rows, other, rows), mask=~valid)

    def _found(self, table: int, rows: Numbers, other: GtidSetColumn, other_rows: Numbers) -> Flags:
        found = np.empty(len(rows), np.bool_)
        combining.find_rows(table, *self._arrays, rows, *other._arrays, other_rows, found)
        return found

    def _both_valid(self, other: GtidSetColumn) -> Flags:
        if len(self) != len(other):
            raise ValueError(f"columns of {len(self)} and {len(other)} rows")
        return self._valid & other._valid

    def _of_uuid(self, high: Words, low: Words, *, wanted: bool) -> GtidSetColumn:
        made = self._room_for(self._arrays)
        kept = np.full(len(self), wanted)
        measuring.keep_uuid(high, low, kept, *self._arrays, *made)
        return GtidSetColumn(made, self._valid)

    def _room_for(self, arrays: Arrays) -> Arrays:
        return Arrays.with_room(rows=len(self), runs=len(arrays.keys), bounds=len(arrays.bounds))


def _refusal(text: str, limits: Limits) -> GtidError:
    try:
        GtidSet.parse(
            text,
            text_bytes_max=limits.text_bytes,
            intervals_max=limits.intervals,
            tsids_max=limits.tsids,
        )
    except GtidError as error:
        return error
    raise AssertionError("the kernel and the parser have the same limits")
