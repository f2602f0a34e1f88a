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

from collections.abc import Iterator
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from binlog.adapters.compare_files import FilesCompared
from binlog.adapters.compare_server import ServerCompared
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut, Only
from binlog.content.reuse import Compared, Search, Unread, counted
from binlog.errors import BinlogError
from binlog.ledger.sets import gtids_of
from gtid import GtidSet, Tsid

Side: TypeAlias = "ServerCompared | FilesCompared"

# Read and compared one by one, at once.
CHUNK: Final = 1_000
# Differences beyond this many are not looked for: two servers that have nothing in common.
SUSPECTS_MAX: Final = 100_000
# Of each TSID, what `compare_newest` reads.
NEWEST_MAX: Final = 10_000


def compare_all(left: Side, right: Side) -> Compared:
    """Compare what both logs hold. What cannot be read of either is in the result."""
    search = Search(left, right)
    _compare(search, (left, right), None)
    return search.result()


def compare_newest(search: Search, left: ServerCompared, right: ServerCompared) -> int:
    """Compare the newest transactions of each TSID that both servers hold; return how many.

    That there are older ones is reported: they are not compared.
    """
    held = [side.state.executed - side.state.purged for side in (left, right)]
    common = held[0] & held[1]
    newest = last_of_each_tsid(common, NEWEST_MAX)
    if older := common - newest:
        text = (
            f"{counted(older)}: older than the newest {NEWEST_MAX:,} of each UUID;"
            " `gtid-audit binlog compare --everywhere` compares them"
        )
        search.note(Unread(f"{left.name}, {right.name}", text, is_lasting=True))
    if newest:
        _compare(search, (left, right), newest)
    return newest.gtid_count


def last_of_each_tsid(gtids: GtidSet, size: int) -> GtidSet:
    """Return the `size` largest GNOs of each TSID."""
    kept = []
    left: dict[Tsid, int] = {}
    for tsid, start, end in reversed(list(gtids.intervals())):
        taken = min(left.setdefault(tsid, size), end - start)
        left[tsid] -= taken
        if taken:
            kept.append((tsid, end - taken, end))
    return GtidSet.from_intervals(kept)


def _compare(search: Search, both: tuple[Side, Side], wanted: GtidSet | None) -> None:
    """Compare two logs: all that they hold, or of two servers just some transactions."""
    left, right = both
    tsids: dict[tuple[str, str | None], int] = {}
    sides = []
    for side in both:
        tables = []
        try:
            for table in _ledger(side, wanted):
                tables.append(_numbered(table, tsids))
        except BinlogError as error:
            search.note(Unread(side.name, str(error)))
        sides.append(pa.concat_tables(tables) if tables else None)
    ours, theirs = sides
    names = [Tsid(UUID(uuid), tag or "") for uuid, tag in tsids]
    if wanted is None:
        _note_absent(search, both, [_gtids(side, names) for side in sides])
    if ours is None or theirs is None:
        return
    joined = ours.join(
        theirs, keys=["tsid", "gno"], join_type="inner", left_suffix="_left", right_suffix="_right"
    )
    is_suspect = _is_suspect(joined)
    search.agree(_gtids(joined.filter(pc.invert(is_suspect)), names))
    suspects = _gtids(joined.filter(is_suspect), names)
    if suspects.gtid_count > SUSPECTS_MAX:
        rest = suspects - suspects.first(SUSPECTS_MAX)
        suspects -= rest
        search.cut()
        text = f"more than {SUSPECTS_MAX:,} to compare one by one: {counted(rest)}"
        search.note(Unread(f"{left.name}, {right.name}", text))
    while suspects:
        chunk = suspects.first(CHUNK)
        suspects -= chunk
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


def _ledger(side: Side, wanted: GtidSet | None) -> Iterator[pa.Table]:
    """Yield the rows of a log; of a server's, until all has come that it had when it was asked.

    A server that is written to faster than it is read would never come to the end of its log.
    """
    if isinstance(side, FilesCompared):
        yield from side.ledgers()
        return
    wish = AllBut(side.state.purged) if wanted is None else Only(wanted)
    left = side.state.executed - side.state.purged if wanted is None else wanted
    for batch in ledger_of_server(
        side.connect, wish, timeout_seconds_max=side.timeout_seconds_max, digests=True
    ):
        yield batch.rows
        left -= batch.gtids
        if not left:
            return


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
