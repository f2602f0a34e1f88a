"""Decodes transactions in memory event by event, for those that the kernels do not handle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlog.decode import FIRST_POSITION
from binlog.events import Event, FormatDescription
from binlog.scan import scan_events

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_CHUNK_BYTES: Final = 1 << 20


def events_of(
    data: Bytes,
    description: FormatDescription,
    *,
    file: str = "",
    position: int = FIRST_POSITION,
) -> Iterator[Event]:
    """Return the events of bytes that begin with an event; `description` is valid there.

    `file` and `position` are used in error messages. Raises BinlogError.
    """
    return scan_events(_chunks(data), file=file, position=position, description=description)


def _chunks(data: Bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _CHUNK_BYTES):
        yield data[at : at + _CHUNK_BYTES].tobytes()
