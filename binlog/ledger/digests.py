"""Computes the digests of transactions in memory, with the kernel or else with the decoder.

1. Bytes are read by address: the caller keeps them in memory, unchanged.
2. A compressed transaction is decompressed, and its content goes through the same kernel.
3. A missing digest means that the content was not read: it is cut off, damaged, or of an unknown
   kind. Decoding the transaction itself reports the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binlog.content.content_digest import digest_of
from binlog.decode import Decompress, events_in_payload
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import Event, FormatDescription, TransactionPayload
from binlog.kernels.digest import DIGEST, PAYLOAD, digest_ranges
from binlog.ledger.events_in_memory import Bytes, Offsets, events_of
from binlog.ledger.payloads import opened


@dataclass(frozen=True, slots=True)
class Digests:
    """One digest for each transaction; `known` is False if there is none."""

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
    """Digest the whole transactions that begin and end at these offsets in `data`.

    `description` is valid at each start. Raises nothing: a transaction without a digest is marked
    in the result.
    """
    assert len(starts) == len(ends)
    assert not len(starts) or (starts.min() >= 0 and ends.max() <= len(data))
    trailer = description.checksum.trailer_bytes
    values, answers = _by_kernel(data, starts, ends, description, trailer)
    known = answers == DIGEST
    for row in np.flatnonzero(~known).tolist():
        digest = None
        if answers[row] == PAYLOAD:
            digest = _of_payload(data[int(values[row]) : ends[row]], description, decompress)
        if digest is None:
            digest = _decoded(data[starts[row] : ends[row]], description, decompress)
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


def _of_payload(
    packed: Bytes, description: FormatDescription, decompress: Decompress | None
) -> int | None:
    """Digest the content of a compressed payload; None if the decoder must read it."""
    inside = opened(packed, description, decompress)
    if inside is None:
        return None
    whole = np.zeros(1, np.int64), np.full(1, len(inside), np.int64)
    values, answers = _by_kernel(inside, *whole, description, 0)
    return int(values[0]) if answers[0] == DIGEST else None


def _decoded(
    part: Bytes, description: FormatDescription, decompress: Decompress | None
) -> int | None:
    try:
        events = events_of(part, description)
        return digest_of(with_payloads_opened(events, description, decompress))
    except BinlogError:
        return None


def with_payloads_opened(
    events: Iterable[Event], description: FormatDescription, decompress: Decompress | None
) -> Iterator[Event]:
    """Yield a transaction's events; replace each payload that can be decompressed by its events."""
    for event in events:
        inner = None
        if isinstance(event.body, TransactionPayload):
            inner = events_in_payload(event, description=description, decompress=decompress)
        if inner is None:
            yield event
        else:
            yield from inner
