"""Reads the previous GTIDs in the header of a file: a few kilobytes, and no event behind it."""

from __future__ import annotations

from pathlib import Path

from binlog.decode import NEED_MORE_DATA, EventDecoder
from binlog.event_types import EventType
from binlog.events import PreviousGtids
from binlog.header import HEADER_BYTES, parse_header
from gtid import GtidSet

HEAD_BYTES = 4096
# Event types that may precede the previous GTIDs. Some versions write a ROTATE in relay logs.
_HEAD_TYPES = frozenset({EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.ROTATE})


def previous_gtids_of(path: Path) -> GtidSet | None:
    """Return the previous GTIDs in the header of a file; None if it has none (yet).

    Raises CorruptBinlog, UnsupportedBinlog, OSError.
    """
    decoder = EventDecoder(file=path.name)
    received = bytearray()
    with path.open("rb") as file:
        while chunk := file.read(max(HEAD_BYTES, len(received))):
            received += chunk
            decoder.receive(chunk)
            while _is_head(received, decoder.position):
                event = decoder.next_event()
                if event is NEED_MORE_DATA:
                    break
                if isinstance(event.body, PreviousGtids):
                    return event.body.gtids
            else:
                return None
    return None


def _is_head(received: bytes | bytearray, position: int) -> bool:
    """Return whether the event at a position may belong to the header; True if not yet known."""
    if position == 0 or len(received) - position < HEADER_BYTES:
        return True
    return parse_header(received, position).type_code in _HEAD_TYPES
