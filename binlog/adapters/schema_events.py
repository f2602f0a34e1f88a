"""Every event of logs from a place on, from files or a live server.

A compressed payload is replaced by its events. schema_defining finds the few events that matter to
definitions, and is much faster.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, takewhile
from pathlib import Path
from typing import Final

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import read_events, read_file_head
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import Connect, FromPlace, RequestLimits
from binlog.decode import FIRST_POSITION, events_in_payload
from binlog.errors import BinlogError
from binlog.events import (
    Event,
    FormatDescription,
    PreviousGtids,
    Rotate,
    TransactionPayload,
)
from binlog.scan import scan_events
from binlog.schema.table_history import Place

_STREAM_BYTES_MAX: Final = 1 << 62
_HEAD = (FormatDescription, PreviousGtids, Rotate)


class PayloadUnread(BinlogError):
    """A compressed transaction cannot be decompressed on this machine."""


def file_events(paths: Sequence[Path], start: Place) -> Iterator[Event]:
    """Return the events of files from a place in the first file on."""
    return open_payloads(
        chain.from_iterable(_events_of(path, position_in(path, start)) for path in paths)
    )


def server_events(
    connect: Connect, start: Place, *, timeout_seconds_max: float
) -> Generator[Event, None, None]:
    """Yield the events of a live server from a place to the end of its log."""
    bounds, wish = bounds_and_wish(start, timeout_seconds_max)
    with closing(dump_events(connect, wish, bounds, renews=True)) as events:
        yield from open_payloads(each for each in events if not _is_artificial(each))


def begun_at_seconds(events: Iterable[Event]) -> int:
    """Return the time of the first event of a log, in seconds since 1970 (UTC)."""
    return next(
        event.header.timestamp_seconds
        for event in events
        if isinstance(event.body, FormatDescription)
    )


def position_in(path: Path, start: Place) -> int:
    """Return where to begin in a file: at the place if it is in this file, else at 0."""
    return start.position if path.name == start.file else 0


def bounds_and_wish(start: Place, timeout_seconds_max: float) -> tuple[RequestLimits, FromPlace]:
    """Return the limits on each silence of the server, and the request for the dump."""
    bounds = RequestLimits.start(
        timeout_seconds_max=timeout_seconds_max, bytes_max=_STREAM_BYTES_MAX
    )
    return bounds, FromPlace(start.file, max(start.position, FIRST_POSITION))


def _is_artificial(event: Event) -> bool:
    """Return whether an event exists only in the dump. A repeated description is needed."""
    return event.start == event.end and not isinstance(event.body, FormatDescription)


def open_payloads(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events; replace each compressed payload by its events. Raises PayloadUnread."""
    description = None
    decompress = find_decompressor()
    for event in events:
        if isinstance(event.body, FormatDescription):
            description = event.body
        if not isinstance(event.body, TransactionPayload):
            yield event
            continue
        inner = events_in_payload(event, description=description, decompress=decompress)
        if inner is None:
            raise PayloadUnread(
                f"{event.file}:{event.start}: a compressed transaction, and zstandard is missing"
            )
        yield from (
            replace(each, file=event.file, start=event.start, end=event.end) for each in inner
        )


def _events_of(path: Path, position: int) -> Iterator[Event]:
    if position <= FIRST_POSITION:
        yield from read_events(path)
        return
    yield from descriptions_of(path)
    yield from scan_events(
        read_between(path, position),
        file=path.name,
        position=position,
        description=read_file_head(path).description,
    )


def descriptions_of(path: Path) -> Iterator[Event]:
    """Yield the format descriptions in a file's header; a relay log has two of them."""
    head = takewhile(lambda event: isinstance(event.body, _HEAD), read_events(path))
    yield from [event for event in head if isinstance(event.body, FormatDescription)]
