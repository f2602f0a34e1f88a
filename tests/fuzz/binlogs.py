"""What must hold of the readers of binlogs for any bytes at all.

1. The first byte says how the others become a file: with a sound head before them, or as they are;
   with checksums made right, or as they are. So whoever changes bytes reaches the bodies of events,
   and does not fail at the first checksum.
2. The answer is events, then perhaps CorruptBinlog or UnsupportedBinlog, with file and position
   within the bytes. Byte by byte gives the same as all at once.
3. The kernels read by address. They are given bytes behind which lies a page that nobody may read:
   whoever reads one byte too far ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from binlog.adapters.compression import find_decompressor, find_peek
from binlog.adapters.row_decoder import RowDecoder
from binlog.content.content_digest import digest_of
from binlog.errors import BinlogError, CorruptBinlog, LimitExceeded, UnsupportedBinlog
from binlog.events import Event, GtidLog
from binlog.header import HEADER_BYTES
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_window import WindowLedger, WindowPlace, ledger_of_window
from binlog.rows.values import rows_of_group
from binlog.scan import EventGroup, group_events, scan_events
from binlog.transactions import fold_transactions
from gtid import GtidSet
from tests.binlog.builders import Log
from tests.binlog.ledger_twin import ledger_of_bytes

FILE: Final = "fuzz"
WITH_HEAD, REPAIRED, OLD, NO_CHECKSUMS = 1, 2, 4, 8
_BYTE_BY_BYTE_MAX: Final = 3_200
_PAGE: Final = mmap.PAGESIZE
_PROT_NONE: Final = 0
_GROUP_BYTES_MAX: Final = 1 << 24
_DECODER: Final = RowDecoder()
_DECOMPRESS, _PEEK = find_decompressor(), find_peek()  # imported here, and not at somebody's cost

Bounded = Callable[[int], AbstractContextManager[None]]


@dataclass(frozen=True)
class Answer:
    events: tuple[Event, ...]
    error: BinlogError | None

    def said(self) -> tuple[object, ...]:
        """The words about a wrong magic number show as much of it as there was."""
        if isinstance(self.error, CorruptBinlog) and self.error.position == 0:
            return type(self.error), self.error.position
        return type(self.error), str(self.error)


def file_of(data: bytes) -> bytes:
    """Make a file of an input."""
    how, content = (data[0], data[1:]) if data else (0, b"")
    if how & WITH_HEAD:
        log = Log(version="5.6.24" if how & OLD else "9.7.4", checksum=not how & NO_CHECKSUMS)
        content = bytes(log) + content
    return _repaired(content) if how & REPAIRED else content


def _repaired(data: bytes) -> bytes:
    """Make checksum and position of every event right, as far as lengths lead to the next.

    Whether there are checksums is what the first description says, in its fifth byte from the end.
    """
    made = bytearray(data)
    at, has_checksums = 4, True
    while len(made) - at >= HEADER_BYTES:
        kind, size = made[at + 4], struct.unpack_from("<I", made, at + 9)[0]
        if not HEADER_BYTES + 4 <= size <= len(made) - at:
            break
        if kind == 15:
            has_checksums = made[at + size - 5] == 1
        if made[at + 13 : at + 17] != bytes(4):  # 0 says that the event is in no file
            struct.pack_into("<I", made, at + 13, at + size)
        if has_checksums:
            covered = bytearray(made[at : at + size - 4])
            if kind == 15:
                covered[17] &= 0xFE  # made before the file was marked in use
            struct.pack_into("<I", made, at + size - 4, zlib.crc32(covered))
        at += size
    return bytes(made)


def check(data: bytes, bounded_memory: Bounded) -> None:
    """Hold the readers to their answers, to each other, and to the length of the input."""
    file = file_of(data)
    with _traced(), bounded_memory(len(file)):
        whole = _answer([file])
        _fold(whole.events)
    if whole.error is not None:
        _check_error(whole.error, file)
    if len(file) <= _BYTE_BY_BYTE_MAX:
        singly = _answer(bytes((byte,)) for byte in file)
        assert singly.events == whole.events
        assert singly.said() == whole.said()
    _check_places(whole.events, file)
    groups = _groups(whole.events)
    _check_rows(groups)
    _check_ledgers(file, whole.events, groups)


def _answer(chunks: Iterable[bytes]) -> Answer:
    events: list[Event] = []
    try:
        events.extend(scan_events(chunks, file=FILE))
    except (CorruptBinlog, UnsupportedBinlog) as error:
        return Answer(tuple(events), error)
    return Answer(tuple(events), None)


def _fold(events: Iterable[Event]) -> None:
    try:
        for _ in fold_transactions(events, decompress=_DECOMPRESS):
            pass
    except CorruptBinlog as error:
        assert error.file == FILE  # noqa: PT017 - both ways out are fine


@contextmanager
def _traced() -> Iterator[None]:
    """Trace memory just here: to trace it everywhere takes most of the time there is."""
    if tracemalloc.is_tracing():
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def _check_error(error: BinlogError, file: bytes) -> None:
    assert isinstance(error, CorruptBinlog | UnsupportedBinlog)
    assert error.file == FILE
    if isinstance(error, CorruptBinlog):
        assert 0 <= error.position <= len(file)


def _check_places(events: tuple[Event, ...], file: bytes) -> None:
    """Events stand one behind the other, from the magic number on."""
    at = 4
    for event in events:
        assert event.start == at
        assert event.end == at + event.header.event_bytes <= len(file)
        at = event.end


def _groups(events: tuple[Event, ...]) -> tuple[EventGroup, ...]:
    """Return the transactions that have GTIDs, up to the first thing wrong."""
    wanted = GtidSet.of(
        event.body.gtid for event in events if isinstance(event.body, GtidLog) and event.body.gtid
    )
    groups: list[EventGroup] = []
    try:
        groups.extend(
            group_events(events, wanted, decompress=_DECOMPRESS, bytes_max=_GROUP_BYTES_MAX)
        )
    except (CorruptBinlog, LimitExceeded):
        return tuple(groups)
    return tuple(groups)


def _check_rows(groups: tuple[EventGroup, ...]) -> None:
    """Decode every value of every row."""
    for group in groups:
        try:
            for _ in rows_of_group(group, _DECODER):
                pass
        except CorruptBinlog as error:
            assert error.file == FILE  # noqa: PT017 - both ways out are fine


def _check_digests(rows: list[dict[str, Any]], groups: tuple[EventGroup, ...]) -> None:
    """Hold the digests of the kernel to those made of decoded events."""
    expected = {
        group.transaction.start: digest_of(group.events)
        for group in groups
        if group.transaction.is_complete
    }
    for row in rows:
        if row["is_complete"] and row["start"] in expected:
            assert row["digest"] == expected[row["start"]], row


def _check_ledgers(file: bytes, events: tuple[Event, ...], groups: tuple[EventGroup, ...]) -> None:
    """Hold the kernels to the decoder of every event, up to the first thing wrong.

    Whether positions fit is only looked at by verifying; lengths of transactions that do not fit,
    and errors of statements among rows, are what hopping cannot see.
    """
    sound = ledger_of_bytes(file, file=FILE, details=True)
    hopped = _ledger(file, verify=False, content=False)
    detailed = _ledger(file, verify=False, content=True)
    verified = _ledger(file, verify=True, content=True)
    for window in (hopped, detailed, verified):
        assert 0 <= window.end <= len(file)
        window.rows.validate(full=True)
        if window.error is not None:
            _check_error(window.error, file)
    rows = sound.rows.to_pylist()
    if sound.error is not None:
        rows = _without_open(rows)
    else:
        assert verified.error is None or "end_log_pos" in str(verified.error)
    found = verified.rows.to_pylist()
    if sound.error is None and verified.error is None:
        _check_digests(found, groups)
    for row in found:
        del row["digest"]
    if verified.error is not None and "end_log_pos" in str(verified.error):
        found = _without_open(found)
        rows = rows[: len(found)]
    assert found[: len(rows)] == rows
    if sound.error is None:
        assert len(found) == len(rows)
    if _hops_are_sound(rows, events):
        found = detailed.rows.drop_columns(["digest"]).to_pylist()
        assert found[: len(rows)] == rows
        for row in rows:
            del row["tables"], row["ddl"]
        assert hopped.rows.to_pylist()[: len(rows)] == rows


def _without_open(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out a last transaction that was not whole where reading ended."""
    return rows[:-1] if rows and not rows[-1]["is_complete"] else rows


def _hops_are_sound(rows: list[dict[str, Any]], events: tuple[Event, ...]) -> bool:
    """Return whether each transaction has its stated length, and no statement ended in an error."""
    ends = {row["start"]: row["end"] for row in rows}
    lengths = {
        event.start: event.body.transaction_bytes
        for event in events
        if isinstance(event.body, GtidLog) and event.body.transaction_bytes is not None
    }
    fit = all(ends.get(start) == start + length for start, length in lengths.items())
    return fit and not any(row["error_code"] for row in rows)


def _ledger(file: bytes, *, verify: bool, content: bool) -> WindowLedger:
    with _Guarded(file) as array:
        return ledger_of_window(
            array,
            WindowPlace(FILE),
            LedgerRequest(verify=verify, digests=content, details=content),
            decompress=_DECOMPRESS,
            peek=_PEEK,
        )


class _Guarded:
    """Bytes that end where a page ends, and behind it one that may not be touched."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __enter__(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        pages = -(-len(self._content) // _PAGE) * _PAGE
        self._mapped = mmap.mmap(-1, pages + _PAGE)
        first = pages - len(self._content)
        self._mapped[first:pages] = self._content
        self._whole = np.frombuffer(self._mapped, np.uint8)
        self._protect(pages, _PROT_NONE)
        return self._whole[first:pages]

    def __exit__(self, *_: object) -> None:
        self._protect(len(self._mapped) - _PAGE, mmap.PROT_READ | mmap.PROT_WRITE)

    def _protect(self, at: int, how: int) -> None:
        address = ctypes.c_void_p(self._whole.ctypes.data + at)
        failed = ctypes.CDLL(None, use_errno=True).mprotect(address, ctypes.c_size_t(_PAGE), how)
        assert not failed, f"mprotect: error {ctypes.get_errno()}"
