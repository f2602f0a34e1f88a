"""Writes binary logs of a 9.7 server by the gigabyte: transactions all alike but for their numbers.

What is written here is laid out by hand, so mysqlbinlog is asked about it before it is measured:
`check` has it compare every checksum and print every transaction.
"""

import re
import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

SERVER_UUID = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
_SERVER_ID = 7
_BEGUN_AT = 1_700_000_000
_MICROSECONDS_APART = 250
_VERSION = 90_704
# The length of the fixed part of each type of event, as 9.7.4 writes it.
_POST_HEADERS = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)
_GTID, _QUERY, _TABLE_MAP, _WRITE_ROWS, _XID = 33, 2, 19, 30, 16
_FORMAT_DESCRIPTION, _PREVIOUS_GTIDS = 15, 35
_CHECKSUM_BYTES = 4
_ROWS_PER_BLOCK = 20_000
# flags2, sql_mode, catalog, three character sets: what a server writes behind BEGIN.
_STATUS_VARIABLES = bytes.fromhex("00000000000120004547000000000603737464042d002d00ff00")


@dataclass(frozen=True, slots=True)
class LogShape:
    """How many transactions, and of what: `events` row events of one row of `text_bytes` each."""

    transactions: int
    events: int
    text_bytes: int


def write_binlog(path: Path, shape: LogShape) -> None:
    """Write one file; what is there under the name is only replaced when all is written."""
    hidden = path.with_suffix(".writing")
    head = b"\xfebin"
    description = struct.pack("<H50sIB", 4, b"9.7.4", 0, 19) + _POST_HEADERS + b"\x01"
    for type_code, body in ((_FORMAT_DESCRIPTION, description), (_PREVIOUS_GTIDS, bytes(8))):
        head += _event(type_code, body, at=len(head))
    events = _events_of(shape)
    with hidden.open("wb") as file:
        file.write(head)
        for first in range(0, shape.transactions, _ROWS_PER_BLOCK):
            count = min(_ROWS_PER_BLOCK, shape.transactions - first)
            file.write(_block(events, first=first, count=count, head_bytes=len(head)).data)
    hidden.rename(path)


def _event(type_code: int, body: bytes, *, at: int) -> bytes:
    size = 19 + len(body) + _CHECKSUM_BYTES
    raw = struct.pack("<IBIIIH", _BEGUN_AT, type_code, _SERVER_ID, size, at + size, 0) + body
    return raw + struct.pack("<I", zlib.crc32(raw))


def _events_of(shape: LogShape) -> tuple[bytes, ...]:
    """Return the events of one transaction, as yet without numbers, positions and checksums."""
    begin = struct.pack("<IIBHH", 8, 0, 1, 0, len(_STATUS_VARIABLES))
    begin += _STATUS_VARIABLES + b"d\0BEGIN"
    table = struct.pack("<IHH", 90, 0, 1) + b"\x01d\0\x01t\0" + b"\x02\x03\x0f\x02\xff\xff\x02"
    row = b"\0" + struct.pack("<IH", 7, shape.text_bytes) + b"x" * shape.text_bytes
    rows = struct.pack("<IHH", 90, 0, 1) + b"\x02\0" + b"\x02\xff" + row
    bodies = [(_QUERY, begin)]
    for _ in range(shape.events):
        bodies += [(_TABLE_MAP, table), (_WRITE_ROWS, rows)]
    bodies.append((_XID, bytes(8)))
    events = tuple(_event(type_code, body, at=0) for type_code, body in bodies)
    rest = sum(len(event) for event in events)
    for width in (1, 3, 4):  # the length is part of what it counts, and its own width varies
        gtid = _gtid(rest, width)
        if gtid is not None:
            return (gtid, *events)
    raise AssertionError("a transaction of 16 MB or more")


def _gtid(rest: int, width: int) -> bytes | None:
    """Return a GTID event whose length takes `width` bytes, if that is what it takes."""
    body = b"\0" + SERVER_UUID.bytes + bytes(8) + b"\x02" + bytes(16) + bytes(7)
    length = rest + 19 + len(body) + width + 4 + _CHECKSUM_BYTES
    coded = {
        1: bytes((length & 0xFF,)),
        3: b"\xfc" + struct.pack("<H", length & 0xFFFF),
        4: b"\xfd" + struct.pack("<I", length)[:3],
    }[width]
    if (width == 1 and length >= 251) or (width == 3 and length > 0xFFFF):
        return None
    return _event(_GTID, body + coded + struct.pack("<I", _VERSION), at=0)


def _block(
    events: Sequence[bytes], *, first: int, count: int, head_bytes: int
) -> NDArray[np.uint8]:
    """Return `count` transactions from number `first` on, each a row of bytes."""
    one = np.frombuffer(b"".join(events), np.uint8)
    block = np.tile(one, (count, 1))
    number = np.arange(first, first + count, dtype=np.int64)
    _put(block, 19 + 17, number + 1, 8)  # gno
    _put(block, 19 + 26, number, 8)  # last_committed
    _put(block, 19 + 34, number + 1, 8)  # sequence_number
    _put(block, 19 + 42, _BEGUN_AT * 1_000_000 + number * _MICROSECONDS_APART, 7)
    at = 0
    for event in events:
        end = at + len(event)
        _put(block, at, _BEGUN_AT + number * _MICROSECONDS_APART // 1_000_000, 4)
        _put(block, at + 13, (head_bytes + number * len(one) + end) & 0xFFFFFFFF, 4)
        covered = np.ascontiguousarray(block[:, at : end - _CHECKSUM_BYTES])
        sums = np.fromiter(map(zlib.crc32, covered), np.int64, count)
        _put(block, end - _CHECKSUM_BYTES, sums, _CHECKSUM_BYTES)
        at = end
    return block


def _put(block: NDArray[np.uint8], at: int, values: NDArray[np.int64], width: int) -> None:
    block[:, at : at + width] = values.reshape(-1, 1).view(np.uint8)[:, :width]


def check(path: Path, shape: LogShape, mysqlbinlog: Sequence[str]) -> None:
    """Have mysqlbinlog compare every checksum and print every transaction."""
    command = [*mysqlbinlog, "--verify-binlog-checksum", str(path)]
    numbers = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            numbers += bool(re.match(rf"SET @@SESSION.GTID_NEXT= '{SERVER_UUID}:\d+'", line))
    assert process.returncode == 0, f"mysqlbinlog cannot read {path}"
    assert numbers == shape.transactions
