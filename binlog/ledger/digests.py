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
from binlog.ledger.events_in_memory import Bytes, TransactionBytes, events_of
from binlog.ledger.payloads import opened


@dataclass(frozen=True, slots=True)
class Digests:
    """One digest for each transaction; `known` is False if there is none."""

    values: NDArray[np.uint64]
    known: NDArray[np.bool_]


def digests_of(part: TransactionBytes) -> Digests:
    """Digest whole transactions.

    Raises nothing: a transaction without a digest is marked in the result.
    """
    values, answers = _by_kernel(part, part.description.checksum.trailer_bytes)
    known = answers == DIGEST
    for row in np.flatnonzero(~known).tolist():
        digest = None
        if answers[row] == PAYLOAD:
            digest = _of_payload(part, part.data[int(values[row]) : part.ends[row]])
        if digest is None:
            digest = _decoded(part, row)
        if digest is not None:
            values[row], known[row] = digest, True
    return Digests(values, known)


def _by_kernel(part: TransactionBytes, trailer: int) -> tuple[NDArray[np.uint64], Bytes]:
    digests = np.zeros(len(part), np.uint64)
    answers = np.zeros(len(part), np.uint8)
    post = part.description.fixed_bytes(EventType.QUERY)
    address = part.data.ctypes.data
    digest_ranges(address, part.starts, part.ends, trailer, post, digests, answers)
    return digests, answers


def _of_payload(part: TransactionBytes, packed: Bytes) -> int | None:
    """Digest the content of a compressed payload; None if the decoder must read it."""
    content = opened(packed, part.description, part.decompress)
    if content is None:
        return None
    values, answers = _by_kernel(part.inside(content), 0)
    return int(values[0]) if answers[0] == DIGEST else None


def _decoded(part: TransactionBytes, row: int) -> int | None:
    try:
        events = events_of(part.bytes_of(row), part.description)
        return digest_of(with_payloads_opened(events, part.description, part.decompress))
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
