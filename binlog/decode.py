"""Decodes binlog bytes into events.

1. This file does not know where bytes come from, or whether more will come.
2. `EventDecoder.next_event` returns an event or NEED_MORE_DATA, or raises `CorruptBinlog` (or
   `UnsupportedBinlog` for valid bytes that gtid-audit does not read). There is no other outcome.
3. Bytes passed one at a time produce the same events as bytes passed all at once.
4. Memory: the bytes of one event, at most EVENT_BYTES_MAX, plus the bytes received after it.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, Literal

from binlog.bodies import BODY_READERS, read_format_description
from binlog.cursor import Cursor, MalformedBody
from binlog.errors import CorruptBinlog, TruncatedBinlog, UnsupportedBinlog
from binlog.event_types import MARIADB_EVENTS, EventType
from binlog.events import (
    Body,
    ChecksumAlgorithm,
    Event,
    FormatDescription,
    Opaque,
    TransactionPayload,
)
from binlog.header import (
    EVENT_BYTES_MAX,
    FLAG_IGNORABLE,
    FLAG_IN_USE,
    HEADER_BYTES,
    EventHeader,
    parse_header,
)

# BINLOG_MAGIC, sql/log_event.h; Rpl_encryption_header::ENCRYPTION_MAGIC, sql/rpl_log_encryption.h.
MAGIC = b"\xfebin"
MAGIC_ENCRYPTED = b"\xfdbin"
FIRST_POSITION = len(MAGIC)
# The first bytes of compressed files: logs in archives are often compressed.
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zX": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}

# compression/base.h: ZSTD = 0, NONE = 255.
COMPRESSION_ZSTD = 0
COMPRESSION_NONE = 255
# A payload decompresses to at most max_allowed_packet bytes; this is that variable's maximum.
PAYLOAD_BYTES_MAX = 1024 * 1024 * 1024

_KNOWN_TYPES = frozenset(EventType) - {EventType.UNKNOWN}
# Event types that may precede the first format description: a dump begins with an artificial
# ROTATE, and a server may send a heartbeat at any time.
_BEFORE_DESCRIPTION = frozenset({EventType.ROTATE, EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
_NO_DESCRIPTION: Final = FormatDescription(4, "", 0, ChecksumAlgorithm.NONE, b"", is_in_use=False)
_FLAGS_AT = HEADER_BYTES - 2


class NeedMoreData(Enum):
    """The decoder's result when the next event is not complete."""

    NEED_MORE_DATA = "need more data"


NEED_MORE_DATA: Final = NeedMoreData.NEED_MORE_DATA

# Receives compressed bytes and the maximum size of the result. Raises ValueError if the bytes are
# malformed or the result would be larger.
Decompress = Callable[[bytes, int], bytes]


def decode_event(
    raw: bytes,
    *,
    file: str,
    start: int,
    end: int,
    description: FormatDescription | None,
    checksum: ChecksumAlgorithm,
) -> Event:
    """Decode one whole event. `raw` is exactly its bytes, including the checksum.

    `checksum` is the algorithm for this event; a format description contains its own. Raises
    CorruptBinlog, UnsupportedBinlog.
    """
    header = parse_header(raw)
    assert header.event_bytes == len(raw)
    try:
        if header.type_code == EventType.FORMAT_DESCRIPTION:
            body: Body = read_format_description(Cursor(raw[HEADER_BYTES:]), header)
            assert isinstance(body, FormatDescription)
            if "mariadb" in body.server_version.lower():
                raise UnsupportedBinlog(file=file, what="written by MariaDB, whose GTIDs differ")
            checksum = body.checksum
            description = body
        _check_type(header, file=file, start=start, description=description)
        _check_sum(raw, header, checksum, file=file, start=start)
        if header.type_code != EventType.FORMAT_DESCRIPTION:
            content = Cursor(raw[HEADER_BYTES : len(raw) - checksum.trailer_bytes])
            body = _read_body(content, header, description or _NO_DESCRIPTION)
    except MalformedBody as error:
        raise CorruptBinlog(
            file=file,
            position=start + HEADER_BYTES + error.offset,
            what=f"{_name(header.type_code)} event at {start}: {error.what}",
        ) from error
    return Event(file, start, end, header, body)


def _read_body(content: Cursor, header: EventHeader, description: FormatDescription) -> Body:
    if header.type_code not in BODY_READERS:
        return Opaque(content.rest())
    return BODY_READERS[header.type_code](content, header, description)


def _name(type_code: int) -> str:
    return EventType(type_code).name if type_code in _KNOWN_TYPES else f"type {type_code}"


def _check_type(
    header: EventHeader, *, file: str, start: int, description: FormatDescription | None
) -> None:
    if header.type_code in MARIADB_EVENTS:
        raise UnsupportedBinlog(file=file, what=f"event type {header.type_code} is MariaDB's")
    if header.type_code == EventType.START_V3:
        raise UnsupportedBinlog(file=file, what="written by a server older than MySQL 5.0")
    if header.type_code not in _KNOWN_TYPES and not header.flags & FLAG_IGNORABLE:
        raise CorruptBinlog(
            file=file,
            position=start,
            what=f"expected an event type, found {header.type_code}, which may not be ignored",
        )
    if description is None and header.type_code not in _BEFORE_DESCRIPTION:
        raise CorruptBinlog(
            file=file,
            position=start,
            what=f"expected a format description, found {_name(header.type_code)}",
        )


def _check_sum(
    raw: bytes, header: EventHeader, checksum: ChecksumAlgorithm, *, file: str, start: int
) -> None:
    """Verify the CRC. It is that of the event without the in-use flag (Log_event_footer)."""
    trailer = checksum.trailer_bytes
    if len(raw) < HEADER_BYTES + trailer:
        raise CorruptBinlog(file=file, position=start, what="an event too short for its checksum")
    if not trailer:
        return
    covered = raw[:-trailer]
    if header.type_code == EventType.FORMAT_DESCRIPTION and header.is_in_use:
        flags = header.flags & ~FLAG_IN_USE
        covered = covered[:_FLAGS_AT] + flags.to_bytes(2, "little") + covered[HEADER_BYTES:]
    stored = int.from_bytes(raw[-trailer:], "little")
    computed = zlib.crc32(covered)
    if stored != computed:
        raise CorruptBinlog(
            file=file,
            position=start,
            what=f"{_name(header.type_code)} event of {len(raw)} bytes: expected checksum "
            f"{stored:08x}, computed {computed:08x}",
        )


def check_event_bytes(header: EventHeader, *, file: str, start: int) -> None:
    """Reject an impossible event length before a caller waits for that many bytes."""
    if not HEADER_BYTES <= header.event_bytes <= EVENT_BYTES_MAX:
        raise CorruptBinlog(
            file=file,
            position=start,
            what=f"expected an event of {HEADER_BYTES} to {EVENT_BYTES_MAX} bytes, "
            f"found a length of {header.event_bytes}",
        )


class EventDecoder:
    """Splits a file's bytes into events. It counts positions itself and ignores end_log_pos.

    Start at `position` 0 with the magic number, or at the start of any event with the description
    that is valid there. A relay log may contain several descriptions; each is valid until the next.
    """

    def __init__(
        self, *, file: str, position: int = 0, description: FormatDescription | None = None
    ) -> None:
        assert position == 0 or position >= FIRST_POSITION
        self.file = file
        self.position = position
        self.description = description
        self._buffer = bytearray()
        self._at = 0  # Invariant: 0 <= _at <= len(_buffer); bytes before it have been decoded

    def receive(self, data: bytes) -> None:
        """Append the next bytes of the file, without decoding them."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next_event(self) -> Event | Literal[NeedMoreData.NEED_MORE_DATA]:
        """Return the next event of the bytes received."""
        if self.position == 0 and not self._read_magic():
            return NEED_MORE_DATA
        available = len(self._buffer) - self._at
        if available < HEADER_BYTES:
            return NEED_MORE_DATA
        header = parse_header(self._buffer, self._at)
        check_event_bytes(header, file=self.file, start=self.position)
        if available < header.event_bytes:
            return NEED_MORE_DATA
        raw = bytes(self._buffer[self._at : self._at + header.event_bytes])
        checksum = self.description.checksum if self.description else ChecksumAlgorithm.NONE
        event = decode_event(
            raw,
            file=self.file,
            start=self.position,
            end=self.position + header.event_bytes,
            description=self.description,
            checksum=checksum,
        )
        if isinstance(event.body, FormatDescription):
            self.description = event.body
        self._at += header.event_bytes
        self.position = event.end
        return event

    def finish(self) -> None:
        """End the input. Raises TruncatedBinlog if the last event is incomplete."""
        left = len(self._buffer) - self._at
        if left or self.position == 0:
            raise TruncatedBinlog(
                file=self.file,
                position=self.position,
                what=f"the file ends {left} bytes into an event",
                in_use=self.description is not None and self.description.is_in_use,
            )

    def _read_magic(self) -> bool:
        magic = bytes(self._buffer[: len(MAGIC)])
        if magic == MAGIC_ENCRYPTED:
            raise UnsupportedBinlog(
                file=self.file,
                what="encrypted (binlog_encryption=ON); read it from its server instead",
            )
        for start, name in _COMPRESSED.items():
            if magic.startswith(start):
                what = f"compressed with {name}: decompress it first"
                raise UnsupportedBinlog(file=self.file, what=what)
        if not MAGIC.startswith(magic) and not MAGIC_ENCRYPTED.startswith(magic):
            raise CorruptBinlog(
                file=self.file,
                position=0,
                what=f"expected the magic number {MAGIC!r}, found {magic!r}",
            )
        if len(magic) < len(MAGIC):
            return False
        self._at = self.position = FIRST_POSITION
        return True


def events_in_payload(
    event: Event, *, description: FormatDescription | None, decompress: Decompress | None
) -> Iterator[Event] | None:
    """Return the events in a TRANSACTION_PAYLOAD, or None if this machine cannot decompress it.

    These events have no checksum of their own (sql/binlog.cc, class Binlog_cache_compressor).
    Raises CorruptBinlog.
    """
    content = payload_content(event, decompress=decompress)
    return None if content is None else _inner_events(event, content, description)


def payload_content(event: Event, *, decompress: Decompress | None) -> bytes | None:
    """Return the bytes of the events in a TRANSACTION_PAYLOAD, or None; see events_in_payload."""
    payload = event.body
    assert isinstance(payload, TransactionPayload)
    if payload.compression_type == COMPRESSION_NONE:
        return payload.payload
    if payload.compression_type != COMPRESSION_ZSTD or decompress is None:
        return None
    said = payload.uncompressed_bytes or PAYLOAD_BYTES_MAX
    try:
        return decompress(payload.payload, min(said, PAYLOAD_BYTES_MAX))
    except ValueError as error:
        raise _payload_error(event, f"cannot be decompressed: {error}") from error


def _inner_events(
    event: Event, content: bytes, description: FormatDescription | None
) -> Iterator[Event]:
    at = 0
    while at < len(content):
        if len(content) - at < HEADER_BYTES:
            raise _payload_error(event, f"{len(content) - at} bytes are left, too few for an event")
        size = parse_header(content, at).event_bytes
        if not HEADER_BYTES <= size <= len(content) - at:
            raise _payload_error(event, f"an event inside claims a length of {size}")
        yield decode_event(
            content[at : at + size],
            file=event.file,
            start=event.start,
            end=event.end,
            description=description,
            checksum=ChecksumAlgorithm.NONE,
        )
        at += size


def _payload_error(event: Event, what: str) -> CorruptBinlog:
    return CorruptBinlog(file=event.file, position=event.start, what=f"compressed payload: {what}")
