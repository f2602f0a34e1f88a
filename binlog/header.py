"""The common header of every event: nineteen bytes.

The layout is EVENT_TYPE_OFFSET … FLAGS_OFFSET, libs/mysql/binlog/event/binlog_event.h, unchanged
since 5.0. This file parses a single header; the decoder checks it against the rest of the file.
"""

import struct
from dataclasses import dataclass

HEADER_BYTES = 19
# end_log_pos has 32 bits: of a position, these are left in it.
POSITION_MASK = 0xFFFFFFFF

# max_log_event_size in binlog_event.h: no server writes a larger event.
EVENT_BYTES_MAX = 1024 * 1024 * 1024

# Flags: LOG_EVENT_BINLOG_IN_USE_F in binlog_event.h; LOG_EVENT_ARTIFICIAL_F, LOG_EVENT_RELAY_LOG_F
# and LOG_EVENT_IGNORABLE_F in sql/log_event.h. An artificial event is in the stream but in no file.
# An event that a receiver itself writes to its log has the relay-log flag.
FLAG_IN_USE = 0x1
FLAG_ARTIFICIAL = 0x20
FLAG_RELAY_LOG = 0x40
FLAG_IGNORABLE = 0x80

_HEADER = struct.Struct("<IBIIIH")

assert _HEADER.size == HEADER_BYTES


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The common header. `type_code` is a number, because servers may write unknown types."""

    timestamp_seconds: int
    type_code: int
    server_id: int
    event_bytes: int
    # Invariant: in a source's binlog, end_log_pos == (start + event_bytes) mod 2^32; 0 in
    # artificial events and inside a payload. In a relay log it is the *source's* coordinate.
    end_log_pos: int
    flags: int

    @property
    def is_artificial(self) -> bool:
        """Whether the sending server created the event for this stream; no file contains it."""
        return bool(self.flags & FLAG_ARTIFICIAL)

    @property
    def is_in_use(self) -> bool:
        """Whether the file was not closed when it was read; only in a format description."""
        return bool(self.flags & FLAG_IN_USE)

    @property
    def is_of_relay_log(self) -> bool:
        """Whether a receiver wrote the event. In a file's first description: it is a relay log."""
        return bool(self.flags & FLAG_RELAY_LOG)


def parse_header(data: bytes | bytearray | memoryview, offset: int = 0) -> EventHeader:
    """Read the header at `offset`; the caller has checked that all 19 bytes exist."""
    assert len(data) - offset >= HEADER_BYTES
    return EventHeader(*_HEADER.unpack_from(data, offset))
