"""Compares every GTID that two servers' logs hold: commit times first, then digests.

1. Ledgers are joined on the GTID, as columns. Equal digests with equal moments (or without) are the
   same transaction. Of all others the two versions are read and compared one by one
   (binlog/content/compare.py).
2. What both servers executed and one of them no longer has in its logs is reported with a count.
3. Both are read from files and of live servers alike: a live server's log is read once, whole, and
   digested as it comes.
4. Memory: 28 bytes for each transaction of either side, and what Arrow needs for the join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from binlog.adapters.compare_files import FilesCompared
from binlog.adapters.compare_server import ServerCompared
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut, FromPlace
from binlog.content.reuse import Compared, Search, Unread, counted
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError
from binlog.ledger.sets import gtids_of
from gtid import GtidSet, Tsid

Side: TypeAlias = "ServerCompared | FilesCompared"

# Read and compared one by one, at once.
CHUNK: Final = 1_000
# Differences beyond this many are not looked for: two servers that have nothing in common.
SUSPECTS_MAX: Final = 100_000


def compare_all(left: Side, right: Side) -> Compared:
    """Compare what both logs hold. What cannot be read of either is in the result."""
    search = Search(left, right)
    _compare(search, (left, right), (None, None))
    return search.result()


def compare_recent(
    search: Search, left: ServerCompared, right: ServerCompared, *, bytes_max: int
) -> tuple[tuple[str, str], ...]:
    """Compare what both servers hold in their newest logs; return where each was begun.

    The newest log is read whatever its size. What lies before is reported as not compared.
    """
    begun = []
    for side in (left, right):
        first = _first_recent(side.state.log_bytes, bytes_max)
        names = side.state.log_names
        begun.append((side.name, names[first]))
        if first:
            text = f"only what is in {names[first]} and later logs was compared in full"
            search.note(Unread(side.name, text, is_lasting=True))
    wishes = tuple(FromPlace(file, FIRST_POSITION) for _, file in begun)
    _compare(search, (left, right), (wishes[0], wishes[1]))
    return tuple(begun)


def _first_recent(sizes: Sequence[int], bytes_max: int) -> int:
    """Return the number of the first of the newest logs that together are within a limit."""
    total = 0
    for number in reversed(range(len(sizes))):
        total += sizes[number]
        if total > bytes_max:
            return min(number + 1, len(sizes) - 1)
    return 0


def _compare(
    search: Search, both: tuple[Side, Side], wishes: tuple[FromPlace | None, FromPlace | None]
) -> None:
    """Compare two logs, each whole or from a place on."""
    left, right = both
    tsids: dict[tuple[str, str | None], int] = {}
    sides = []
    for side, wish in zip(both, wishes, strict=True):
        tables = []
        try:
            for table in _ledger(side, wish):
                tables.append(_numbered(table, tsids))
        except BinlogError as error:
            search.note(Unread(side.name, str(error)))
        sides.append(pa.concat_tables(tables) if tables else None)
    ours, theirs = sides
    names = [Tsid(UUID(uuid), tag or "") for uuid, tag in tsids]
    if wishes == (None, None):
        _note_absent(search, both, [_gtids(side, names) for side in sides])
    if ours is None or theirs is None:
        return
    joined = ours.join(
        theirs, keys=["tsid", "gno"], join_type="inner", left_suffix="_left", right_suffix="_right"
    )
    is_suspect = _is_suspect(joined)
    search.agree(_gtids(joined.filter(pc.invert(is_suspect)), names))
    wanted = _gtids(joined.filter(is_suspect), names)
    if wanted.gtid_count > SUSPECTS_MAX:
        rest = wanted - wanted.first(SUSPECTS_MAX)
        wanted -= rest
        search.cut()
        text = f"more than {SUSPECTS_MAX:,} to compare one by one: {counted(rest)}"
        search.note(Unread(f"{left.name}, {right.name}", text))
    while wanted:
        chunk = wanted.first(CHUNK)
        wanted -= chunk
        search.compare(chunk)


def _note_absent(search: Search, sides: tuple[Side, Side], held: list[GtidSet]) -> None:
    """Report what both servers have executed and one of them does not have in its logs."""
    known = []
    for side, gtids in zip(sides, held, strict=True):
        try:
            known.append(side.known() | gtids)
        except BinlogError as error:
            search.note(Unread(side.name, str(error)))
            return
    common = known[0] & known[1]
    for side, gtids in zip(sides, held, strict=True):
        if absent := common - gtids:
            text = f"purged, or never in these logs: {counted(absent)}"
            search.note(Unread(side.name, text, is_lasting=True))


def _ledger(side: Side, place: FromPlace | None) -> Iterator[pa.Table]:
    if isinstance(side, FilesCompared):
        yield from side.ledgers()
        return
    wish = place or AllBut(side.state.purged)
    for batch in ledger_of_server(
        side.connect, wish, timeout_seconds_max=side.timeout_seconds_max, digests=True
    ):
        yield batch.rows


def _numbered(rows: pa.Table, tsids: dict[tuple[str, str | None], int]) -> pa.Table:
    """Keep what is joined and compared, with a number for each TSID, the same on both sides."""
    rows = rows.filter(pc.and_(pc.is_valid(rows["gno"]), rows["is_complete"]))
    uuids, tags = (rows[name].unify_dictionaries().combine_chunks() for name in ("uuid", "tag"))
    stride = len(tags.dictionary) + 1
    kinds, places = np.unique(_codes(uuids) * stride + _codes(tags) + 1, return_inverse=True)
    numbers = np.zeros(len(kinds), np.int32)
    for at, kind in enumerate(kinds.tolist()):
        uuid, tag = divmod(kind, stride)
        key = (uuids.dictionary[uuid].as_py(), tags.dictionary[tag - 1].as_py() if tag else None)
        numbers[at] = tsids.setdefault(key, len(tsids))
    return pa.table(
        {
            "tsid": pa.array(numbers[places], pa.int32()),
            "gno": rows["gno"],
            "moment": pc.cast(rows["original_commit_at"], pa.int64()),
            "digest": rows["digest"],
        }
    )


def _is_suspect(joined: pa.Table) -> pa.ChunkedArray:
    """Return where two versions may not be the same.

    Without a digest of both, nothing is known of the contents; without a moment of both, nothing
    speaks against equal contents.
    """
    moments, digests = (
        pc.not_equal(joined[f"{name}_left"], joined[f"{name}_right"])
        for name in ("moment", "digest")
    )
    return pc.or_(pc.fill_null(moments, False), pc.fill_null(digests, True))


def _gtids(rows: pa.Table | None, names: list[Tsid]) -> GtidSet:
    """Return the GTIDs of rows."""
    if rows is None:
        return GtidSet()
    words = pa.array([str(name.uuid) for name in names])
    tags = pa.array([name.tag or None for name in names], pa.string())
    codes = rows["tsid"].combine_chunks()
    return gtids_of(
        pa.table(
            {
                "uuid": pa.DictionaryArray.from_arrays(codes, words),
                "tag": tags.take(codes).dictionary_encode(),
                "gno": rows["gno"],
            }
        )
    )


def _codes(words: pa.DictionaryArray) -> NDArray[np.int64]:
    """Return which word each row has, -1 where it has none."""
    codes: NDArray[np.int64] = words.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return codes
