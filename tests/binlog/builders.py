"""Makes binlog bytes by hand, for what no server can be made to write. Little-endian throughout."""

from __future__ import annotations

import struct
import zlib
from uuid import UUID

import pytest

from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.events import Event
from binlog.scan import scan_events

MAGIC = b"\xfebin"
UUID_A = UUID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaff")
# post_header_len as 9.7.4 writes it, for event types 1 to 42.
POST_HEADERS = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)


NOON_SECONDS = 1_700_000_000


class Log:
    """A file in the making: each `add` appends one event and answers where it starts."""

    def __init__(
        self,
        *,
        version: str = "9.7.4",
        checksum: bool = True,
        flags: int = 0,
        ahead: int = 0,
        created: int = 0,
    ) -> None:
        """`ahead`: of a relay log, how far the source's positions are ahead of this file's.

        `created`: the time of the start that opened the file; 0 if a rotation did.
        """
        self.data = bytearray(MAGIC)
        self.ahead = ahead
        self.checksum = True  # a description always has room for one
        self.description(version=version, checksum=checksum, flags=flags, created=created)

    def description(self, *, version: str, checksum: bool, flags: int = 0, created: int = 0) -> int:
        """A description; `checksum` is what it announces for the events after it."""
        body = struct.pack("<H50sIB", 4, version.encode(), created, 19) + POST_HEADERS
        body += bytes((1 if checksum else 0,))
        at = len(self.data)
        self.data += description_event(body, at=at, flags=flags)
        self.checksum = checksum
        return at

    def add(
        self,
        kind: int,
        body: bytes,
        *,
        flags: int = 0,
        server_id: int = 7,
        at_seconds: int = NOON_SECONDS,
    ) -> int:
        at = len(self.data)
        self.data += event(
            kind,
            body,
            at=at + self.ahead,
            checksum=self.checksum,
            flags=flags,
            server_id=server_id,
            at_seconds=at_seconds,
        )
        return at

    def gtid(self, gno: int) -> int:
        return self.add(EventType.GTID, gtid_body(gno))

    def query(self, sql: str, *, error_code: int = 0, schema: str = "d") -> int:
        return self.add(EventType.QUERY, query_body(sql, error_code=error_code, schema=schema))

    def xid(self) -> int:
        return self.add(EventType.XID, struct.pack("<Q", 9))

    def __bytes__(self) -> bytes:
        return bytes(self.data)


def event(
    kind: int,
    body: bytes,
    *,
    at: int = 4,
    checksum: bool = True,
    flags: int = 0,
    server_id: int = 7,
    end_log_pos: int | None = None,
    at_seconds: int = NOON_SECONDS,
) -> bytes:
    size = 19 + len(body) + 4 * checksum
    end = (at + size) % 2**32 if end_log_pos is None else end_log_pos
    raw = struct.pack("<IBIIIH", at_seconds, kind, server_id, size, end, flags) + body
    return raw + struct.pack("<I", zlib.crc32(raw)) if checksum else raw


def description_event(body: bytes, *, at: int = 4, flags: int = 0) -> bytes:
    """The checksum of a description is made without LOG_EVENT_BINLOG_IN_USE_F."""
    sound = event(EventType.FORMAT_DESCRIPTION, body, at=at, flags=flags & ~1)
    return sound[:17] + struct.pack("<H", flags) + sound[19:]


def gtid_body(gno: int, *, uuid: UUID = UUID_A) -> bytes:
    """The 5.6 form: flags, UUID, GNO."""
    return b"\1" + uuid.bytes + struct.pack("<q", gno)


def query_body(
    sql: str | bytes, *, error_code: int = 0, schema: str = "d", variables: bytes = b""
) -> bytes:
    name = schema.encode()
    head = struct.pack("<IIBHH", 5, 1, len(name), error_code, len(variables))
    return head + variables + name + b"\0" + (sql.encode() if isinstance(sql, str) else sql)


def table_map_body(
    types: bytes, metadata: bytes, *, table_id: int = 70, schema: str = "d", table: str = "t"
) -> bytes:
    return (
        table_id.to_bytes(6, "little")
        + b"\1\0"
        + bytes((len(schema),))
        + schema.encode()
        + b"\0"
        + bytes((len(table),))
        + table.encode()
        + b"\0"
        + bytes((len(types),))
        + types
        + bytes((len(metadata),))
        + metadata
        + bytes((len(types) + 7) // 8)
    )


def rows_body(
    images: bytes, *, columns: int, table_id: int = 70, update: bool = False, version: int = 2
) -> bytes:
    bitmap = b"\xff" * ((columns + 7) // 8)
    extra = b"\2\0" if version == 2 else b""
    head = table_id.to_bytes(6, "little") + b"\1\0" + extra + bytes((columns,))
    return head + bitmap * (2 if update else 1) + images


def payload_body(content: bytes, *, compression: int, uncompressed_bytes: int) -> bytes:
    """Numbers below 251, or with the two-byte mark 0xfc."""

    def field(number: int, value: int) -> bytes:
        coded = bytes((value,)) if value < 251 else b"\xfc" + value.to_bytes(2, "little")
        return bytes((number, len(coded))) + coded

    return (
        field(2, compression) + field(3, uncompressed_bytes) + field(1, len(content)) + b"\0"
    ) + content


def decode(data: bytes) -> list[Event]:
    return list(scan_events([data], file="log"))


def body_of(kind: int, body: bytes, **header: int) -> object:
    log = Log()
    log.add(kind, body, **header)
    return decode(bytes(log))[-1].body


def failure(data: bytes) -> CorruptBinlog:
    with pytest.raises(CorruptBinlog) as caught:
        decode(data)
    assert caught.value.file == "log"
    assert str(caught.value).startswith(f"log: at byte {caught.value.position}: ")
    return caught.value
