"""Compares every GTID that the logs of two servers contain: commit times first, then digests.

1. The ledgers are joined on the GTID, as columns. Two versions with equal digests, and with equal
   commit times or none, are the same transaction. All others are read and compared one by one
   (binlog/content/compare.py).
2. GTIDs that both servers executed, but that are not in the logs of one of them, are reported with
   a count.
3. Files and live servers are read in the same way. The log of a live server is read once, in full,
   and each transaction is digested as it arrives.
4. Memory: 29 bytes for each transaction of either side, and Arrow's memory for the join.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlog.adapters.compare_files import FilesCompared
from binlog.adapters.compare_server import ServerCompared
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut, Only
from binlog.content.reuse import Compared, ContentSearch, Unread, gtids_in_words
from binlog.errors import BinlogError
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_sets import gtids_of, words_of
from gtid import GtidSet, Tsid

Side: TypeAlias = "ServerCompared | FilesCompared"

# This many transactions are read together and then compared one by one.
CHUNK: Final = 1_000
# At most this many suspects are compared: with more, the two servers have nothing in common.
SUSPECTS_MAX: Final = 100_000
# `compare_newest` reads this many transactions of each TSID.
NEWEST_MAX: Final = 10_000


def compare_all(left: Side, right: Side) -> Compared:
    """Compare the transactions in both logs. The result lists what could not be read."""
    search = ContentSearch(left, right)
    _compare(search, (left, right), None)
    return search.result()


def compare_newest(search: ContentSearch, left: ServerCompared, right: ServerCompared) -> int:
    """Compare the newest transactions of each TSID that both servers have; return the number.

    Older transactions are not compared; a note reports how many there are.
    """
    held = [side.state.executed - side.state.purged for side in (left, right)]
    common = held[0] & held[1]
    newest = last_of_each_tsid(common, NEWEST_MAX)
    if older := common - newest:
        text = (
            f"{gtids_in_words(older)}: older than the newest {NEWEST_MAX:,} of each UUID;"
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


def _compare(search: ContentSearch, both: tuple[Side, Side], wanted: GtidSet | None) -> None:
    """Compare two logs: all of their transactions, or, on two servers, only the wanted ones."""
    left, right = both
    tsids: dict[tuple[str, str | None], int] = {}
    sides = []
    for side in both:
        tables = []
        try:
            if isinstance(side, FilesCompared) and (doubt := side.doubt()):
                search.note(doubt)
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
    is_whole = pc.and_(joined["is_complete_left"], joined["is_complete_right"])
    whole = joined.filter(is_whole)
    is_suspect = _is_suspect(whole)
    search.agree(_gtids(whole.filter(pc.invert(is_suspect)), names))
    halves = _gtids(joined.filter(pc.invert(is_whole)), names) - _gtids(whole, names)
    suspects = _gtids(whole.filter(is_suspect), names) | halves
    if suspects.gtid_count > SUSPECTS_MAX:
        rest = suspects - suspects.first(SUSPECTS_MAX)
        suspects -= rest
        search.cut()
        text = f"more than {SUSPECTS_MAX:,} to compare one by one: {gtids_in_words(rest)}"
        search.note(Unread(f"{left.name}, {right.name}", text))
    while suspects:
        chunk = suspects.first(CHUNK)
        suspects -= chunk
        search.compare(chunk)


def _note_absent(search: ContentSearch, sides: tuple[Side, Side], held: list[GtidSet]) -> None:
    """Report the GTIDs that both servers executed and that one of them has in no log."""
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
            text = f"purged, or never in these logs: {gtids_in_words(absent)}"
            search.note(Unread(side.name, text, is_lasting=True))


def _ledger(side: Side, wanted: GtidSet | None) -> Iterator[pa.Table]:
    """Yield the rows of a log; for a server, up to the GTIDs it had when the comparison began.

    If clients write to a server faster than it is read, its log would never end.
    """
    if isinstance(side, FilesCompared):
        yield from side.ledgers()
        return
    wish = AllBut(side.state.purged) if wanted is None else Only(wanted)
    left = side.state.executed - side.state.purged if wanted is None else wanted
    for batch in ledger_of_server(
        side.connect,
        wish,
        LedgerRequest(digests=True),
        timeout_seconds_max=side.timeout_seconds_max,
    ):
        yield batch.rows
        left -= batch.gtids
        if not left:
            return


def _numbered(rows: pa.Table, tsids: dict[tuple[str, str | None], int]) -> pa.Table:
    """Keep the columns to join and compare; number the TSIDs, in the same way on both sides."""
    rows = rows.filter(pc.is_valid(rows["gno"]))
    uuid_codes, uuids = words_of(rows["uuid"])
    tag_codes, tags = words_of(rows["tag"])
    stride = len(tags) + 1
    kinds, places = np.unique(uuid_codes * stride + tag_codes + 1, return_inverse=True)
    numbers = np.zeros(len(kinds), np.int32)
    for at, kind in enumerate(kinds.tolist()):
        uuid, tag = divmod(kind, stride)
        key = (uuids[uuid], tags[tag - 1] if tag else None)
        numbers[at] = tsids.setdefault(key, len(tsids))
    return pa.table(
        {
            "tsid": pa.array(numbers[places], pa.int32()),
            "gno": rows["gno"],
            "moment": pc.cast(rows["original_commit_at"], pa.int64()),
            "digest": rows["digest"],
            "is_complete": rows["is_complete"],
        }
    )


def _is_suspect(joined: pa.Table) -> pa.ChunkedArray:
    """Return for each row whether its two versions may differ.

    If a digest is missing, the contents may differ. If a commit time is missing, the digests alone
    decide.
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
