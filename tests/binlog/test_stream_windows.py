"""Packets into windows of events: however they are cut, nothing is lost, moved or made up."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from binlog.adapters.stream_windows import Pause, Windows
from binlog.errors import CorruptBinlog, DumpBroken, DumpRefused, LimitExceeded
from binlog.event_types import EventType
from tests.binlog.builders import Log, event, gtid_body
from tests.binlog.dumps import (
    END,
    answer,
    heartbeat,
    heartbeat_v2,
    packets,
    rotate_to,
    windows_over,
)

Placed = tuple[str, int, bytes]


def taken(windows: Windows, *, by: int | None = None) -> list[Placed]:
    """Take everything, or `by` events of each window at most, with the place in the file."""
    found: list[Placed] = []
    while True:
        pause = windows.fill()
        held = cut(windows.events.tobytes())
        some = held if by is None or pause is not Pause.FULL else held[:by]
        starts = np.cumsum([0, *(len(each) for each in some)])
        places = windows.places(starts[:-1].astype(np.int64)).tolist() if some else []
        found += [(windows.file, at, raw) for at, raw in zip(places, some, strict=True)]
        windows.take(int(starts[-1]))
        if pause is Pause.LOG_ENDS:
            assert not len(windows.events)
            return found


def cut(events: bytes) -> list[bytes]:
    found = []
    at = 0
    while at < len(events):
        size = int.from_bytes(events[at + 9 : at + 13], "little")
        found.append(events[at : at + size])
        at += size
    assert at == len(events)
    return found


def description() -> bytes:
    return bytes(Log())[4:]


def body_at(end: int, *, size: int = 60, fill: int = 7) -> bytes:
    return event(EventType.QUERY, bytes((fill,)) * (size - 23), end_log_pos=end % 2**32)


def two_files() -> tuple[list[bytes], list[Placed]]:
    """A dump that skips transactions, sends heartbeats for them, and goes on in another file."""
    first = len(description()) + 4
    kept = [("a.000001", at, body_at(at + 60, fill=at % 251)) for at in (first, first + 60, 5000)]
    more = [("a.000002", at, body_at(at + 90, size=90)) for at in (4, 94, 2**32 - 40, 2**32 + 500)]
    sent = [
        *(rotate_to("a.000001"), description(), heartbeat("a.000001", first)),
        *(raw for _, _, raw in kept[:2]),
        heartbeat_v2("a.000001", 5000),
        kept[2][2],
        event(EventType.ROTATE, struct.pack("<Q", 4) + b"a.000002", end_log_pos=5100),
        *(rotate_to("a.000002"), heartbeat("a.000002", 4)),
        *(raw for _, _, raw in more),
    ]
    return sent, kept + more


@pytest.mark.parametrize("bytes_at_once", [1, 2, 3, 5, 64, 1000, 1 << 20])
@pytest.mark.parametrize("window_bytes", [1, 100, 200, 1 << 16])
def test_however_the_bytes_come(bytes_at_once: int, window_bytes: int) -> None:
    sent, expected = two_files()
    data = answer(sent)
    windows = windows_over(data, bytes_at_once=bytes_at_once, window_bytes=window_bytes)
    assert taken(windows) == expected


@pytest.mark.parametrize("ahead_bytes", [1, 4, 5, 100, 300])
def test_what_was_read_ahead_is_not_lost(ahead_bytes: int) -> None:
    sent, expected = two_files()
    windows = windows_over(answer(sent), ahead_bytes=ahead_bytes)
    assert taken(windows) == expected


@pytest.mark.parametrize("seed", range(5))
def test_windows_taken_in_part(seed: int) -> None:
    """Events of many sizes and many gaps, more windows than one, and of each a few events."""
    rng = random.Random(seed)
    position = len(description()) + 4
    expected: list[Placed] = []
    for _ in range(500):
        position += rng.choice([0, 0, 0, 1, 10_000])
        size = rng.choice([23, 60, 61, 500, 3000])
        position += size
        raw = body_at(position, size=size, fill=rng.randrange(256))
        expected.append(("a.000001", position - size, raw))
    data = answer([rotate_to("a.000001"), description(), *(raw for _, _, raw in expected)])
    windows = windows_over(data, bytes_at_once=rng.choice([7, 999]), window_bytes=4000)
    assert taken(windows, by=rng.randint(1, 5)) == expected


def test_a_long_log_takes_no_more_memory_than_a_short_one() -> None:
    ends = range(100_000, 100_000 + 60 * 20_000, 60)
    data = answer([rotate_to("f"), description(), *(body_at(end) for end in ends)])
    windows = windows_over(data, window_bytes=4000)
    assert len(taken(windows)) == len(ends)
    assert len(windows._events) == 4000
    assert len(windows._runs) == 65_536


@pytest.mark.long
@pytest.mark.parametrize("size", [0xFFFFFE - 1, 0xFFFFFE, 0xFFFFFE + 1, 2 * 0xFFFFFF + 7])
def test_events_of_more_than_one_packet(size: int) -> None:
    """A packet of 16 MiB - 1 bytes goes on in the next, which may be empty."""
    large = body_at(4 + size, size=size)
    small = body_at(4 + size + 60)
    data = answer([rotate_to("f"), description(), large, small])
    assert taken(windows_over(data)) == [("f", 4, large), ("f", 4 + size, small)]


def test_no_more_memory_than_an_event_may_take() -> None:
    data = answer([rotate_to("f"), description(), body_at(10_000, size=5000)])
    windows = windows_over(data, window_bytes=100, event_bytes_max=1000)
    with pytest.raises(LimitExceeded, match="the limit of 1,000 bytes"):
        taken(windows)


def test_it_stops_when_told_to() -> None:
    sent, _ = two_files()
    windows = windows_over(answer(sent), stopped=lambda: True)
    assert windows.fill() is Pause.STOPPED
    assert not len(windows.events)


def test_it_stops_in_the_middle_of_the_servers_words() -> None:
    """An error has begun to come, and its end does not."""
    answers = iter([False])
    windows = windows_over(b"\x0d\0\0\1\xff\xd4", stopped=lambda: next(answers, True))
    assert windows.fill() is Pause.STOPPED


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (b"", DumpBroken, "closed the connection"),
        (b"\1\0\0", DumpBroken, "closed the connection"),
        (b"\1\0\0\7x", DumpBroken, "expected packet 1, found packet 7"),
        (b"\0\0\0\1", DumpBroken, "empty packet"),
        (b"\1\0\0\1\5", DumpBroken, "unknown kind 5"),
        (b"\xff\xff\xff\1\xfe" + bytes(9000), DumpBroken, "unknown kind 254"),
        (b"\x0d\0\0\1\xff\xd4\x04#HY000lost", DumpRefused, "1236: lost"),
        (b"\7\0\0\1\xff\xd4\x04lost", DumpRefused, "1236: lost"),
        (b"\2\0\0\1\0\0", CorruptBinlog, "a packet without an event"),
        (b"\1\0\0\1\0", CorruptBinlog, "a packet without an event"),
        (b"\x15\0\0\1\0" + bytes(20), CorruptBinlog, "found a length of 0"),
        (b"\x15\0\0\1\0" + bytes(9) + b"\x13" + bytes(10), CorruptBinlog, "in a packet of 20"),
    ],
)
@pytest.mark.parametrize("bytes_at_once", [1, 1 << 20])
def test_answers_no_server_should_give(
    data: bytes, error: type[Exception], text: str, bytes_at_once: int
) -> None:
    with pytest.raises(error, match=text):
        taken(windows_over(data, bytes_at_once=bytes_at_once))


@pytest.mark.parametrize("end_log_pos", [0, 43, 47])
def test_an_event_that_would_start_before_its_file(end_log_pos: int) -> None:
    raw = event(EventType.GTID, gtid_body(1), checksum=False, end_log_pos=end_log_pos)
    with pytest.raises(CorruptBinlog, match=f"an event of 44 bytes that ends at {end_log_pos}"):
        taken(windows_over(packets([b"\0" + raw, END])))


@pytest.mark.parametrize(
    "body",
    [b"", b"\1", b"\1\5x", b"\2\1\xfb", b"\2\3\xfc\0", b"\2\2\xfe\0", b"\1\1x\0", b"\3\xff\xff"],
)
def test_a_heartbeat_that_says_no_position(body: bytes) -> None:
    beat = event(EventType.HEARTBEAT_V2, body, end_log_pos=0)
    with pytest.raises(CorruptBinlog):
        taken(windows_over(answer([rotate_to("f"), description(), beat])))


@pytest.mark.parametrize(
    ("coded", "position"), [(b"\7", 7), (b"\xfc\0\1", 256), (b"\xfd\0\0\1", 65536)]
)
def test_heartbeats_of_small_positions(coded: bytes, position: int) -> None:
    body = b"\2" + bytes((len(coded),)) + coded + b"\0"
    windows = windows_over(
        answer([rotate_to("f"), event(EventType.HEARTBEAT_V2, body, end_log_pos=0)])
    )
    assert windows.fill() is Pause.LOG_ENDS
    assert windows.position == position
