"""Logs cut anywhere and changed anywhere: the ledger says what the decoder says, or less, and reads
not one byte beyond the log.

Every log stands at the very end of a page, and behind it is one that nobody may look at: a kernel
that did would end the process.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from binlog.adapters.compression import find_decompressor, find_peek
from binlog.events import ChecksumAlgorithm
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_window import WindowLedger, WindowPlace, ledger_of_window
from tests.binlog.ledger_shapes import SHAPES
from tests.binlog.ledger_twin import ledger_of_bytes

GUARDED = ("8.0", "tags", "statements", "endings", "payloads")
UNGUARDED = ("generations", "no GTIDs", "relay log")
_PAGES = 8
# How many changes of each log are tried every time, and how many at night.
FEW, MANY = 80, 3000
often = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])


class Fence:
    """Memory whose last byte has a forbidden page behind it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, (_PAGES + 1) * mmap.PAGESIZE)
        self._room = np.frombuffer(self._memory, np.uint8, count=_PAGES * mmap.PAGESIZE)
        libc = ctypes.CDLL(None, use_errno=True)
        behind = ctypes.c_void_p(self._room.ctypes.data + len(self._room))
        assert libc.mprotect(behind, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def put(self, data: bytes) -> NDArray[np.uint8]:
        assert len(data) <= len(self._room), "the log is larger than the memory for it"
        place = self._room[len(self._room) - len(data) :]
        place[:] = np.frombuffer(data, np.uint8)
        return place


@pytest.fixture(scope="module")
def fence() -> Fence:
    return Fence()


def read(fence: Fence, data: bytes, *, verify: bool) -> WindowLedger:
    return ledger_of_window(
        fence.put(data),
        WindowPlace("log"),
        LedgerRequest(verify=verify),
        decompress=find_decompressor(),
        peek=find_peek(),
    )


def said(ledger: Any) -> tuple[Any, ...]:
    return ledger.rows.to_pylist(), type(ledger.error), str(ledger.error), ledger.end


@pytest.mark.long
@often
@pytest.mark.parametrize("name", ["two", *GUARDED, *UNGUARDED])
def test_a_log_cut_anywhere(name: str, count: int, fence: Fence) -> None:
    data = SHAPES[name]()
    for size in range(0, len(data), 1 if name == "two" or count == MANY else len(data) // 60):
        twin = ledger_of_bytes(data[:size], file="log")
        if size == 4:
            assert twin.rows.num_rows == 0  # a file with a magic number has nothing else to say
            continue
        for verify in (False, True):
            assert said(read(fence, data[:size], verify=verify)) == said(twin), size


def changed(data: bytes, random_: random.Random) -> tuple[bytes, int]:
    """Change a log in one of many ways; give it and the first byte that may differ."""
    at = random_.randrange(4, len(data))
    size = random_.choice((1, 1, 1, 2, 4, 8, 40))
    rest = data[at + size :]
    match random_.randrange(6):
        case 0:
            new = random_.randbytes(size)
        case 1:
            new = bytes(size)
        case 2:
            new = b"\xff" * size
        case 3:
            new = bytes(byte ^ 1 << random_.randrange(8) for byte in data[at : at + size])
        case 4:
            new = b""
        case _:
            new, rest = data[at - 4 : at + size], data[at:]
    return data[:at] + new + rest, at


def changes(name: str, count: int) -> Iterator[tuple[int, bytes, int]]:
    data = SHAPES[name]()
    for seed in range(count):
        yield (seed, *changed(data, random.Random(f"{name} {seed}")))


@pytest.mark.long
@often
@pytest.mark.parametrize("name", GUARDED)
def test_a_log_changed_anywhere_where_checksums_tell(name: str, count: int, fence: Fence) -> None:
    for seed, data, _ in changes(name, count):
        twin = ledger_of_bytes(data, file="log")
        if twin.head and twin.head.description.checksum is ChecksumAlgorithm.CRC32:
            assert said(read(fence, data, verify=True)) == said(twin), seed


@often
@pytest.mark.parametrize("name", [*GUARDED, *UNGUARDED])
def test_what_stands_before_the_damage_is_as_it_was(name: str, count: int, fence: Fence) -> None:
    whole = ledger_of_bytes(SHAPES[name](), file="log").rows.to_pylist()
    for seed, data, at in changes(name, count):
        ledger = read(fence, data, verify=False)
        ledger.rows.validate(full=True)
        rows = ledger.rows.to_pylist()
        before = [each for each in whole if each["end"] <= at]
        # A change may give a transaction a new end, at the earliest where the damage is.
        told = [each for each in rows if each["end"] <= at and each["is_complete"]]
        assert told[: len(before)] == [each for each in before if each["is_complete"]], seed
        places = [place for each in rows for place in (each["start"], each["end"])]
        assert places == sorted(places), seed
        assert all(place <= len(data) for place in [*places, ledger.end]), seed


@pytest.mark.parametrize("make", [random.Random(1).randbytes, bytes], ids=["noise", "zeros"])
def test_what_was_never_a_log(make: Callable[[int], bytes], fence: Fence) -> None:
    head = SHAPES["description alone"]()
    for size in range(0, 2000, 19):
        data = head + make(size)
        assert said(read(fence, data, verify=True)) == said(ledger_of_bytes(data, file="log"))
        assert read(fence, data, verify=False).rows.num_rows == 0
