"""The events of a file without those of unwanted transactions, where that saves time.

1. In a large binary log, the ledger provides the positions of the wanted transactions, and only
   these are decoded. The ledger needs numba and pyarrow (the extra `columns`). Without them, in a
   small file, and in a relay log, every event is decoded and yielded. The wanted transactions are
   the same.
2. A relay log may contain several format descriptions, and may split a transaction between files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlog.adapters.byte_ranges import read_between
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError
from binlog.events import Event, FormatDescription, PreviousGtids
from binlog.header import HEADER_BYTES, parse_header
from binlog.scan import scan_events
from gtid import GtidSet

if TYPE_CHECKING:
    import pyarrow as pa

# For fewer bytes, decoding every event takes less time than loading the kernels.
_LARGE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Found:
    """The byte ranges of the wanted transactions, and the error that ends the ledger."""

    runs: tuple[tuple[int, int], ...]
    error: BinlogError | None


def wanted_events(path: Path, wanted: GtidSet) -> Iterator[Event]:
    """Yield at least the events in the header of a file and those of the wanted transactions.

    Raises CorruptBinlog, UnsupportedBinlog, OSError, after the events before the error.
    """
    everything = scan_events(read_between(path), file=path.name)
    if path.stat().st_size < _LARGE_BYTES or not _has_ledgers() or is_relay_log(path):
        yield from everything
        return
    found = _find(path, wanted)
    description = None
    for event in everything:
        if not isinstance(event.body, FormatDescription | PreviousGtids):
            break
        if isinstance(event.body, FormatDescription):
            description = event.body
        yield event
    for start, end in found.runs:
        yield from scan_events(
            read_between(path, start, end), file=path.name, position=start, description=description
        )
    if found.error is not None:
        raise found.error


def _has_ledgers() -> bool:
    return find_spec("numba") is not None and find_spec("pyarrow") is not None


def is_relay_log(path: Path) -> bool:
    """Return whether a receiver wrote the file."""
    head = b"".join(read_between(path, FIRST_POSITION, FIRST_POSITION + HEADER_BYTES))
    return len(head) == HEADER_BYTES and parse_header(head).is_of_relay_log


def _find(path: Path, wanted: GtidSet) -> _Found:
    import pyarrow as pa

    from binlog.adapters.ledger_files import ledger_of_file
    from binlog.ledger.ledger_sets import rows_in

    ledger = ledger_of_file(path)
    rows = ledger.rows.filter(pa.array(rows_in(ledger.rows, wanted)))
    return _Found(_runs(rows), ledger.error)


def _runs(rows: pa.Table) -> tuple[tuple[int, int], ...]:
    """Merge adjacent transactions into one range."""
    runs: list[tuple[int, int]] = []
    for start, end in zip(rows["start"].to_pylist(), rows["end"].to_pylist(), strict=True):
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return tuple(runs)
