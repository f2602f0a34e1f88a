"""Finds the files of an archive that do not continue the one before them.

1. Of each file, the header and the last bytes are read. The GTIDs of a whole file are read only if
   its last event does not name the next file (binlog/locating/continuity.py).
2. The last event is searched for backward from the end: ROTATE and STOP are short, and a header has
   the event's length and the position of its end. Zeros after it, or a damaged end, are no event.
3. A file that cannot be read shows no break. Reading its events reports the damage.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import read_events, read_file_head
from binlog.adapters.wanted_events import is_relay_log
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import FormatDescription, Rotate
from binlog.header import HEADER_BYTES, POSITION_MASK, parse_header
from binlog.locating.continuity import LogBreak, LogEnds, break_between
from binlog.scan import scan_events
from binlog.transactions import fold_transactions
from gtid import GtidSet

# A ROTATE has a header, a position (8), a name of at most 512 bytes, and a checksum (4).
_END_BYTES: Final = HEADER_BYTES + 8 + 512 + 4
# For fewer bytes, decoding every event takes less time than loading the kernels.
_LARGE_BYTES: Final = 256 << 10


def breaks_in(paths: Sequence[Path]) -> dict[int, LogBreak]:
    """Return the breaks, by the index of the file after each. Paths are in the order of the logs.

    Raises OSError.
    """
    ends = [_readable_ends(path) for path in paths] if len(paths) > 1 else []
    found = {}
    for number, (before, after) in enumerate(pairwise(ends), start=1):
        if before is None or after is None:
            continue
        try:
            gtids_before = partial(gtids_in, paths[number - 1])
            broken = break_between(before, after, gtids_before=gtids_before)
        except BinlogError:
            continue
        if broken is not None:
            found[number] = broken
    return found


def gtids_in(path: Path) -> GtidSet:
    """Return the GTIDs of the whole transactions in a file. Raises BinlogError, OSError."""
    has_ledgers = find_spec("numba") is not None and find_spec("pyarrow") is not None
    if not has_ledgers or path.stat().st_size < _LARGE_BYTES:
        groups = fold_transactions(read_events(path), decompress=find_decompressor())
        return GtidSet.of(each.gtid for each in groups if each.is_complete and each.gtid)
    from binlog.adapters.ledger_files import ledger_of_file
    from binlog.ledger.ledger_sets import gtids_of

    ledger = ledger_of_file(path)
    if ledger.error is not None:
        raise ledger.error
    return gtids_of(ledger.rows.filter(ledger.rows["is_complete"]))


def _readable_ends(path: Path) -> LogEnds | None:
    try:
        head = read_file_head(path)
        return LogEnds(
            path.name,
            head.previous_gtids,
            _next_file(path, head.description),
            is_relay_log=is_relay_log(path),
        )
    except BinlogError:
        return None


def _next_file(path: Path, description: FormatDescription) -> str:
    """Return the name in the ROTATE at the end of a file; empty if another event is its end."""
    size = path.stat().st_size
    begin = max(0, size - _END_BYTES)
    data = b"".join(read_between(path, begin, size))
    for at in range(len(data) - HEADER_BYTES + 1):
        header = parse_header(data, at)
        if (
            header.type_code == EventType.ROTATE
            and header.event_bytes == len(data) - at
            and header.end_log_pos == size & POSITION_MASK
        ):
            events = scan_events(
                [data[at:]], file=path.name, position=begin + at, description=description
            )
            return next(
                (each.body.next_file for each in events if isinstance(each.body, Rotate)), ""
            )
    return ""
