"""The digests of many transactions in memory: by the kernel, and what that leaves to the decoder.

1. Bytes are read by address: whoever calls keeps them where they are, and unchanged.
2. A compressed transaction is opened, and what was in it goes through the same kernel.
3. No digest means that the content cannot be told: cut off, damaged, of a kind that is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binlog.content.digest import digest_of
from binlog.decode import (
    COMPRESSION_NONE,
    COMPRESSION_ZSTD,
    FIRST_POSITION,
    PAYLOAD_BYTES_MAX,
    Decompress,
    events_in_payload,
)
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import Event, FormatDescription, TransactionPayload
from binlog.kernels.digest import DIGEST, PAYLOAD, digest_ranges
from binlog.scan import scan_events

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Digests:
    """One digest for each transaction; `known` is False where there is none."""

    values: NDArray[np.uint64]
    known: NDArray[np.bool_]


def digests_of(
    data: Bytes,
    starts: Offsets,
    ends: Offsets,
    *,
    description: FormatDescription,
    decompress: Decompress | None,
) -> Digests:
    """Digest whole transactions, given by the offsets in `data` where they begin and end.

    `description` holds for all of them. What has no digest is in the answer; nothing is raised.
    """
    assert len(starts) == len(ends)
    assert not len(starts) or (starts.min() >= 0 and ends.max() <= len(data))
    values, answers = _by_kernel(
        data, starts, ends, description, description.checksum.trailer_bytes
    )
    known = answers == DIGEST
    for row in np.flatnonzero(~known).tolist():
        part = data[starts[row] : ends[row]]
        digest = (
            _opened(part, int(values[row] - starts[row]), description, decompress)
            if (answers[row] == PAYLOAD)
            else None
        )
        if digest is None:
            digest = _decoded(part, description, decompress)
        if digest is not None:
            values[row], known[row] = digest, True
    return Digests(values, known)


def _by_kernel(
    data: Bytes, starts: Offsets, ends: Offsets, description: FormatDescription, trailer: int
) -> tuple[NDArray[np.uint64], Bytes]:
    digests = np.zeros(len(starts), np.uint64)
    answers = np.zeros(len(starts), np.uint8)
    post = description.post_header_bytes[EventType.QUERY - 1]
    digest_ranges(data.ctypes.data, starts, ends, trailer, post, digests, answers)
    return digests, answers


def _opened(
    data: Bytes, at: int, description: FormatDescription, decompress: Decompress | None
) -> int | None:
    """Digest what is in the payload that begins at an offset; None if the decoder must look."""
    try:
        event = next(_events(data[at:], description))
        content = _content(event.body, decompress)
    except (BinlogError, ValueError, StopIteration):
        return None
    if content is None:
        return None
    inner = np.frombuffer(content, np.uint8)
    whole = np.zeros(1, np.int64), np.full(1, len(inner), np.int64)
    values, answers = _by_kernel(inner, *whole, description, 0)
    return int(values[0]) if answers[0] == DIGEST else None


def _content(payload: object, decompress: Decompress | None) -> bytes | None:
    assert isinstance(payload, TransactionPayload), "the kernel has said so"
    if payload.compression_type == COMPRESSION_NONE:
        return payload.payload
    if payload.compression_type != COMPRESSION_ZSTD or decompress is None:
        return None
    return decompress(payload.payload, payload.uncompressed_bytes or PAYLOAD_BYTES_MAX)


def _decoded(
    data: Bytes, description: FormatDescription, decompress: Decompress | None
) -> int | None:
    try:
        return digest_of(_with_payloads_opened(_events(data, description), description, decompress))
    except BinlogError:
        return None  # whoever reads the transaction itself is told what is wrong with it


def _with_payloads_opened(
    events: Iterator[Event], description: FormatDescription, decompress: Decompress | None
) -> Iterator[Event]:
    for event in events:
        inner = None
        if isinstance(event.body, TransactionPayload):
            inner = events_in_payload(event, description=description, decompress=decompress)
        if inner is None:
            yield event
        else:
            yield from inner


def _events(data: Bytes, description: FormatDescription) -> Iterator[Event]:
    # Where in its file it stands makes no difference to what it says.
    return scan_events((data.tobytes(),), file="", position=FIRST_POSITION, description=description)
