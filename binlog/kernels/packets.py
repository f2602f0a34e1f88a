"""Extracts the events from a dump's packets, as received from a socket, into one buffer.

1. This kernel reads the packets' headers (length and sequence number). Of an event it reads only
   the header: its length, its position in its file, and whether it belongs to a transaction.
2. An event that does not belong to a transaction is passed to the caller and not kept. Of a
   heartbeat, only the position is kept. A malformed event stops the kernel: the decoder then raises
   the appropriate error.
3. The kernel never writes past the end of `events`: it returns FULL first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.event_types import EventType as Type
from binlog.header import FLAG_ARTIFICIAL, HEADER_BYTES
from gtid.jit import inlined, kernel
from gtid.kernels.eight_bytes import Bytes, Numbers

# The results of `unframe`. MORE: all received bytes were read, up to the start of a packet.
# CONTROL: the last event, from state[EVENT] to state[END], does not belong to a transaction. ODD:
# that event is malformed. PACKET: the packet at state[READ] is not an event. FULL: `events` or
# `runs` is full.
MORE, CONTROL, ODD, PACKET, FULL = range(5)

# The fields of `state`. READ: the received bytes that were read. END: the end of `events`. EVENT:
# the start of the last event there. SEQUENCE: the number of the next packet. LEFT: bytes of this
# packet that are still to be copied. GOES_ON: its event continues in the next packet. POSITION: the
# last known position in the file. EXPECTED: the position after the last event that was kept. RUNS:
# the number of runs. TRAILER: bytes of checksum at the end of each event.
READ, END, EVENT, SEQUENCE, LEFT, GOES_ON, POSITION, EXPECTED, RUNS, TRAILER = range(10)
STATE_SIZE: Final = 10

# A run: events that are contiguous both in the file and in `events`. `runs` has its start in
# `events` and its position in the file.
HERE, THERE = range(2)

_TYPE_AT, _LENGTH_AT, _POSITION_AT, _FLAGS_AT = 4, 9, 13, 17
_HEARTBEAT, _HEARTBEAT_V2 = int(Type.HEARTBEAT), int(Type.HEARTBEAT_V2)
_HEAD_BYTES: Final = 4
_PACKET_BYTES_MAX: Final = 0xFFFFFF
_FIRST_POSITION: Final = 4
_NO_POSITION: Final = -1

# Events that belong to a file or to the stream.
_IS_CONTROL = np.zeros(256, np.bool_)
_IS_CONTROL[[Type.STOP, Type.ROTATE, Type.FORMAT_DESCRIPTION, Type.PREVIOUS_GTIDS]] = True


@kernel
def unframe(
    received: Bytes, received_end: int, events: Bytes, runs: NDArray[np.int64], state: Numbers
) -> int:
    """Copy the events of the packets to `events`, contiguously, from state[END] on."""
    while True:
        if state[LEFT] == 0:
            answer = _read_head(received, received_end, state)
            if answer != CONTROL:
                return answer
        read, end = state[READ], state[END]
        count = min(state[LEFT], received_end - read, len(events) - end)
        _copy(received, np.uint64(read), events, np.uint64(end), np.uint64(count))
        state[READ] += count
        state[END] += count
        state[LEFT] -= count
        if state[LEFT]:
            return MORE if state[READ] == received_end else FULL
        if state[GOES_ON]:
            continue
        answer = _place(events, runs, state)
        if answer != MORE:
            return answer


@inlined
def _copy(source: Bytes, at: int, target: Bytes, to: int, count: int) -> None:
    """Copy bytes. Unsigned indices need no sign check, so the compiler vectorizes the loop."""
    for index in range(count):
        target[to + index] = source[at + index]


@inlined
def _read_head(received: Bytes, received_end: int, state: Numbers) -> int:
    """Read a packet's header; return CONTROL if an event, or more of one, follows."""
    read = state[READ]
    needed = _HEAD_BYTES if state[GOES_ON] else _HEAD_BYTES + 1
    if received_end - read < _HEAD_BYTES:
        return MORE
    length = received[read] | received[read + 1] << 8 | received[read + 2] << 16
    if received[read + 3] != state[SEQUENCE] or (length == 0 and not state[GOES_ON]):
        return PACKET
    if received_end - read < needed:
        return MORE
    goes_on = length == _PACKET_BYTES_MAX
    if not state[GOES_ON]:
        if received[read + _HEAD_BYTES] != 0:
            return PACKET
        length -= 1
        state[EVENT] = state[END]
    state[READ] += needed
    state[LEFT] = length
    state[GOES_ON] = goes_on
    state[SEQUENCE] = (state[SEQUENCE] + 1) & 255
    return CONTROL


@inlined
def _place(events: Bytes, runs: NDArray[np.int64], state: Numbers) -> int:
    """Find the last event's position in its file; return MORE if it belongs to a transaction."""
    event = state[EVENT]
    size = state[END] - event
    if size < HEADER_BYTES or _four(events, event + _LENGTH_AT) != size:
        return ODD
    kind = events[event + _TYPE_AT]
    end = _widened(state[POSITION], _four(events, event + _POSITION_AT))
    is_wide_beat = kind == _HEARTBEAT_V2
    if is_wide_beat or kind == _HEARTBEAT:
        if is_wide_beat:
            end = _beat_position(events, event + HEADER_BYTES, state[END] - state[TRAILER])
            if end == _NO_POSITION:
                return ODD
        state[POSITION] = end
        state[END] = event
        return MORE
    if _IS_CONTROL[kind] or events[event + _FLAGS_AT] & FLAG_ARTIFICIAL:
        return CONTROL
    if end < _FIRST_POSITION + size:
        return ODD
    if state[EXPECTED] != end - size or event == 0:
        runs[state[RUNS], HERE] = event
        runs[state[RUNS], THERE] = end - size
        state[RUNS] += 1
    state[POSITION] = state[EXPECTED] = end
    return FULL if state[RUNS] == len(runs) else MORE


@kernel
def _beat_position(events: Bytes, at: int, end: int) -> int:
    """Read the position of a HEARTBEAT_V2: fields of type, length and value (codecs/binary.cpp)."""
    while at + 2 < end and events[at] != 0:
        kind, size = events[at], np.int64(events[at + 1])
        at += 2
        if size > 250 or at + size > end:
            return _NO_POSITION
        if kind == 2 and size:
            first = np.int64(events[at])
            width = 0 if first < 251 else 2 if first == 252 else 3 if first == 253 else 8
            if first in (251, 255) or size != 1 + width:
                return _NO_POSITION
            value = first if width == 0 else np.int64(0)
            for index in range(width):
                value |= np.int64(events[at + 1 + index]) << (8 * index)
            return value
        at += size
    return _NO_POSITION


@inlined
def _widened(position: int, low: int) -> int:
    """Extend the 32 bits of a header's position to 64; positions only increase in a file."""
    wide = (position >> 32 << 32) + low
    return wide + (np.int64(1) << 32) if wide < position else wide


@inlined
def _four(events: Bytes, at: int) -> int:
    return (
        np.int64(events[at])
        | np.int64(events[at + 1]) << 8
        | np.int64(events[at + 2]) << 16
        | np.int64(events[at + 3]) << 24
    )
