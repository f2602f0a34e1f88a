"""Compressed payloads in memory: reads the kind of the transaction, or all of its content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import numpy as np

from binlog.bodies import BODY_READERS
from binlog.cursor import Cursor, MalformedBody
from binlog.decode import COMPRESSION_NONE, COMPRESSION_ZSTD, Decompress, payload_content
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import FormatDescription, TransactionPayload
from binlog.header import HEADER_BYTES, parse_header
from binlog.kernels import walking
from binlog.ledger.events_in_memory import Bytes, events_of

# Returns at most the requested number of first bytes of the content. Raises ValueError.
Peek = Callable[[bytes, int], bytes]

# The statement that begins the group and, nearly always, its first row event.
PEEK_BYTES: Final = 16 * 1024


class Peeker:
    """Reads the kinds of payloads. Without `peek`, their transactions are of kind OTHER."""

    def __init__(self, peek: Peek | None) -> None:
        self._peek = peek
        self._numbers = np.zeros((5, 1), np.int64)
        self._shorts = np.zeros((2, 1), np.int32)
        self._complete = np.zeros(1, np.uint8)
        self._payloads = np.zeros((1, 2), np.int64)

    def look_into(
        self, event: memoryview, description: FormatDescription
    ) -> tuple[int, int] | None:
        """Return the kind (see kernels.walking) and the error code of the transaction inside.

        `event` is the whole TRANSACTION_PAYLOAD event. None: the decoder must read it.
        """
        end = len(event) - description.checksum.trailer_bytes
        cursor = Cursor(cast("bytes", event[HEADER_BYTES:end]))  # a view: nothing is copied
        try:
            payload = BODY_READERS[EventType.TRANSACTION_PAYLOAD](
                cursor, parse_header(event), description
            )
            assert isinstance(payload, TransactionPayload)
            if payload.compression_type == COMPRESSION_NONE:
                content = bytes(payload.payload[:PEEK_BYTES])
            elif payload.compression_type != COMPRESSION_ZSTD or self._peek is None:
                return walking.OTHER, 0
            else:
                content = self._peek(payload.payload, PEEK_BYTES)
        except (MalformedBody, ValueError):
            return None
        return self._walk(content, description)

    def _walk(self, content: bytes, description: FormatDescription) -> tuple[int, int] | None:
        """Walk the events in the payload as those of an open group that ends with them."""
        data = np.frombuffer(content, np.uint8)
        state = np.zeros(walking.STATE_SIZE, np.int64)
        state[walking.ROWS_END] = state[walking.HOPS] = state[walking.IS_OPEN] = 1
        state[walking.QUERY_POST] = description.fixed_bytes(EventType.QUERY)
        state[walking.LOAD_POST] = description.fixed_bytes(EventType.EXECUTE_LOAD_QUERY)
        state[walking.HOP_END] = len(data)
        state[walking.FILE] = walking.NO_FILE
        answer = walking.walk(
            data.ctypes.data,
            len(data),
            state,
            (
                self._numbers.ctypes.data,
                self._shorts.ctypes.data,
                self._complete.ctypes.data,
                self._payloads.ctypes.data,
            ),
            1,
        )
        kind, error = int(state[walking.KIND]), int(state[walking.ERROR])
        is_decided = kind != walking.EMPTY or len(content) < PEEK_BYTES
        if answer != walking.NO_MORE or kind == walking.IN_PAYLOAD or not is_decided:
            return None
        return kind, error


def opened(
    packed: Bytes, description: FormatDescription, decompress: Decompress | None
) -> Bytes | None:
    """Return the content of a TRANSACTION_PAYLOAD event; None if the decoder must read it.

    The events in it have no checksums.
    """
    try:
        [event] = events_of(packed, description)
        content = payload_content(event, decompress=decompress)
    except BinlogError:
        return None
    return None if content is None else np.frombuffer(content, np.uint8)
