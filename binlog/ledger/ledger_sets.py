"""GTID sets of ledger rows, and the ledger rows of GTID sets.

1. Rows are processed as columns, without a Python object for each row.
2. A row without a GTID is in no set.
3. Tables may have any of the ledger's columns, but must have uuid, tag and gno.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from gtid import GtidSet, Tsid

if TYPE_CHECKING:
    import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


def gtids_of(rows: pa.Table) -> GtidSet:
    """Return the GTIDs of all rows."""
    gnos = _gnos(rows)
    return GtidSet.from_intervals(
        interval
        for tsid, places in _rows_by_tsid(rows)
        for interval in _intervals(tsid, gnos[places])
    )


def rows_in(rows: pa.Table, wanted: GtidSet) -> Flags:
    """Return for each row whether its GTID is in a set."""
    found = np.zeros(rows.num_rows, np.bool_)
    gnos = _gnos(rows)
    for tsid, places in _rows_by_tsid(rows):
        boundaries = _boundaries(wanted.from_tsid(tsid))
        if len(boundaries):
            # Ends are exclusive: a GNO is inside if an odd number of boundaries is at or below it.
            below = np.searchsorted(boundaries, gnos[places], side="right")
            found[places] = below % 2 == 1
    return found


def _intervals(tsid: Tsid, gnos: Numbers) -> Iterator[tuple[Tsid, int, int]]:
    """Yield the intervals of consecutive numbers; in a log they are usually already in order."""
    if (gnos[1:] <= gnos[:-1]).any():
        gnos = np.unique(gnos)
    breaks = np.flatnonzero(np.diff(gnos) != 1)
    starts = gnos[np.concatenate(([0], breaks + 1))]
    lasts = gnos[np.concatenate((breaks, [len(gnos) - 1]))]
    for start, last in zip(starts.tolist(), lasts.tolist(), strict=True):
        yield tsid, start, last + 1


def _boundaries(of_one_tsid: GtidSet) -> Numbers:
    pairs = ((start, end) for _, start, end in of_one_tsid.intervals())
    return np.fromiter(chain.from_iterable(pairs), np.int64, 2 * of_one_tsid.interval_count)


def _rows_by_tsid(rows: pa.Table) -> Iterator[tuple[Tsid, Numbers]]:
    """Yield each TSID and the numbers of its rows, at least one."""
    uuid_codes, uuids = words_of(rows["uuid"])
    tag_codes, tags = words_of(rows["tag"])
    codes = uuid_codes * (len(tags) + 1) + tag_codes + 1
    with_gtid = np.flatnonzero(uuid_codes >= 0)
    if not len(with_gtid):
        return
    order = with_gtid[np.argsort(codes[with_gtid], kind="stable")]
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    for places in np.split(order, edges):
        uuid, tag = divmod(int(codes[places[0]]), len(tags) + 1)
        yield Tsid(UUID(uuids[uuid]), tags[tag - 1] if tag else ""), places


def _gnos(rows: pa.Table) -> Numbers:
    """Return the GNOs, 0 if missing. With nulls, NumPy would convert them to floating point."""
    gnos: Numbers = rows["gno"].fill_null(0).to_numpy()
    return gnos


def words_of(column: pa.ChunkedArray) -> tuple[Numbers, list[str]]:
    """Return the dictionary index of each row (-1: none), and the dictionary."""
    whole = column.unify_dictionaries().combine_chunks()
    codes = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, whole.dictionary.to_pylist()
