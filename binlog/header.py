"""The nineteen bytes every event begins with.

Layout: EVENT_TYPE_OFFSET … FLAGS_OFFSET, libs/mysql/binlog/event/binlog_event.h; as it was in 5.0.
This file evaluates a header on its own; whether it fits its neighbours is the decoder's business.
"""

import struct
from dataclasses import dataclass

HEADER_BYTES = 19

# max_log_event_size in binlog_event.h: no server writes a larger event.
EVENT_BYTES_MAX = 1024 * 1024 * 1024

# Flags: LOG_EVENT_BINLOG_IN_USE_F in binlog_event.h; LOG_EVENT_ARTIFICIAL_F, LOG_EVENT_RELAY_LOG_F
# and LOG_EVENT_IGNORABLE_F in sql/log_event.h. An artificial event is in the stream but in no file;
# what a receiver itself writes into its log has the relay log's.
FLAG_IN_USE = 0x1
FLAG_ARTIFICIAL = 0x20
FLAG_RELAY_LOG = 0x40
FLAG_IGNORABLE = 0x80

_HEADER = struct.Struct("<IBIIIH")

assert _HEADER.size == HEADER_BYTES


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The common header. `type_code` stays a number: servers may write types we do not know."""

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
        """Made up by the sending server for this stream; no file contains it."""
        return bool(self.flags & FLAG_ARTIFICIAL)

    @property
    def is_in_use(self) -> bool:
        """Only in a format description: the file had not been closed when this was read."""
        return bool(self.flags & FLAG_IN_USE)

    @property
    def is_of_relay_log(self) -> bool:
        """Written by a receiver. Of the first description in a file: this is a relay log."""
        return bool(self.flags & FLAG_RELAY_LOG)


def parse_header(data: bytes | bytearray | memoryview, offset: int = 0) -> EventHeader:
    """Read the header at `offset`; the caller has made sure that its 19 bytes are there."""
    assert len(data) - offset >= HEADER_BYTES
    return EventHeader(*_HEADER.unpack_from(data, offset))
