"""The packets of a dump, as they come from a socket, into events one behind the other.

1. Here are the packets' heads, lengths and numbers, and of an event only its header: how long it
   is, where it stands in its file, and whether it is one of a transaction's.
2. What is no event of a transaction is shown to the caller and not kept; of heartbeats only the
   position is. What is not as it should be stops the work: the decoder has the words for it.
3. Nothing is written beyond the end of `events`: FULL comes before.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gtid.jit import inlined, kernel
from gtid.kernels.words import Bytes, Numbers

# What `unframe` answers. MORE: all that was received has been read, up to the start of a packet.
# CONTROL: the last event, from state[EVENT] to state[END], is none of a transaction's. ODD: that
# one is not sound. PACKET: what starts at state[READ] is no event. FULL: `events` or `runs` are.
MORE, CONTROL, ODD, PACKET, FULL = range(5)

# `state`. READ: of what was received; END: of `events`; EVENT: where the last event starts there;
# SEQUENCE: of the next packet; LEFT: bytes of this packet still to come; GOES_ON: so does its event
# in the next packet; POSITION: in the file, as far as is known; EXPECTED: behind the last event
# that was kept; RUNS: how many there are; TRAILER: bytes of checksum behind each event.
READ, END, EVENT, SEQUENCE, LEFT, GOES_ON, POSITION, EXPECTED, RUNS, TRAILER = range(10)
STATE_SIZE: Final = 10

# A run: events that follow each other in the file as they do here. `runs` has where it starts here,
# and where in the file.
HERE, THERE = range(2)

_HEADER: Final = 19
_TYPE_AT, _LENGTH_AT, _POSITION_AT, _FLAGS_AT = 4, 9, 13, 17
_ARTIFICIAL: Final = 0x20
_HEARTBEAT, _HEARTBEAT_V2 = 27, 41
_HEAD_BYTES: Final = 4
_PACKET_BYTES_MAX: Final = 0xFFFFFF
_FIRST_POSITION: Final = 4
_NO_POSITION: Final = -1

# What belongs to a file or to the stream: STOP, ROTATE, FORMAT_DESCRIPTION, PREVIOUS_GTIDS.
_IS_CONTROL = np.zeros(256, np.bool_)
_IS_CONTROL[[3, 4, 15, 35]] = True


@kernel
def unframe(
    received: Bytes, received_end: int, events: Bytes, runs: NDArray[np.int64], state: Numbers
) -> int:
    """Put the events of packets one behind the other, from state[END] on."""
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
    """Copy bytes. Unsigned indices need no look at their sign: so many are copied at once."""
    for index in range(count):
        target[to + index] = source[at + index]


@inlined
def _read_head(received: Bytes, received_end: int, state: Numbers) -> int:
    """Read the head of a packet; CONTROL says that an event, or more of one, follows."""
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
    """See where the last event stands in its file; MORE says that it is one of a transaction's."""
    event = state[EVENT]
    size = state[END] - event
    if size < _HEADER or _four(events, event + _LENGTH_AT) != size:
        return ODD
    kind = events[event + _TYPE_AT]
    end = _widened(state[POSITION], _four(events, event + _POSITION_AT))
    is_wide_beat = kind == _HEARTBEAT_V2
    if is_wide_beat or kind == _HEARTBEAT:
        if is_wide_beat:
            end = _beat_position(events, event + _HEADER, state[END] - state[TRAILER])
            if end == _NO_POSITION:
                return ODD
        state[POSITION] = end
        state[END] = event
        return MORE
    if _IS_CONTROL[kind] or events[event + _FLAGS_AT] & _ARTIFICIAL:
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
    """Return a position of which the header has 32 bits: it only grows in a file."""
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
