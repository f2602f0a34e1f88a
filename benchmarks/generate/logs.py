"""Binary logs made by hand: small files whose heads a search can go by."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from gtid import GtidSet, Tsid
from gtid.binary import encode

SOURCE = Tsid(UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562"))
_AT = 1_700_000_000
_DESCRIPTION, _GTID, _PREVIOUS_GTIDS, _QUERY, _XID = 15, 33, 35, 2, 16
# post_header_len as 9.7.4 writes it, for event types 1 to 42; then the checksum algorithm, CRC32.
_POST_HEADERS = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a28000001"
)


def write_logs(folder: Path, *, count: int, transactions: int) -> tuple[Sequence[Path], GtidSet]:
    """Write `count` files of that many transactions each; return them, and all they hold."""
    paths = [folder / f"binlog.{number + 1:06}" for number in range(count)]
    for number, path in enumerate(paths):
        first = 1 + number * transactions
        path.write_bytes(_log(first, first + transactions))
    return paths, _up_to(1 + count * transactions)


def _up_to(end: int) -> GtidSet:
    return GtidSet.from_intervals([(SOURCE, 1, end)])


def _log(first: int, end: int) -> bytes:
    log = bytearray(b"\xfebin")
    _add(log, _DESCRIPTION, struct.pack("<H50sIB", 4, b"9.7.4", _AT, 19) + _POST_HEADERS)
    _add(log, _PREVIOUS_GTIDS, encode(_up_to(first)))
    for gno in range(first, end):
        _add(log, _GTID, b"\1" + SOURCE.uuid.bytes + struct.pack("<q", gno))
        _add(log, _QUERY, struct.pack("<IIBHH", 5, 0, 1, 0, 0) + b"d\0BEGIN")
        _add(log, _XID, struct.pack("<Q", gno))
    return bytes(log)


def _add(log: bytearray, kind: int, body: bytes) -> None:
    size = 19 + len(body) + 4
    event = struct.pack("<IBIIIH", _AT, kind, 1, size, len(log) + size, 0) + body
    log += event + struct.pack("<I", zlib.crc32(event))
