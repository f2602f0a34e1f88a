"""Logs of every shape that a ledger has to know, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from binlog.event_types import EventType
from tests.binlog.builders import (
    UUID_A,
    Log,
    event,
    gtid_body,
    payload_body,
    query_body,
    rows_body,
    table_map_body,
)
from tests.binlog.mariadb_log import MARIADB_LOG

ROW = b"\0\1\0\0\0"


def net(value: int) -> bytes:
    if value < 251:
        return bytes((value,))
    mark, width = next(each for each in ((252, 2), (253, 3), (254, 8)) if value < 1 << 8 * each[1])
    return bytes((mark,)) + value.to_bytes(width, "little")


def varlen(value: int) -> bytes:
    """MySQL's serialization library: so many trailing ones as bytes follow."""
    for more in range(8):
        if value < 1 << 7 * (more + 1):
            return ((value << (more + 1)) | ((1 << more) - 1)).to_bytes(more + 1, "little")
    return b"\xff" + value.to_bytes(8, "little")


def gtid_of_8_0(
    gno: int,
    *,
    transaction_bytes: int | None,
    uuid: UUID = UUID_A,
    immediate: int = 1_700_000_000_123_456,
    original: int | None = None,
    immediate_version: int | None = 90_704,
    original_version: int | None = None,
) -> bytes:
    """As 5.7 (clock), 8.0.1 (times), 8.0.2 (length), 8.0.14 (versions) wrote it, one on another."""
    body = gtid_body(gno, uuid=uuid) + b"\2" + struct.pack("<qq", gno - 1, gno)
    body += (immediate | (original is not None) << 55).to_bytes(7, "little")
    if original is not None:
        body += original.to_bytes(7, "little")
    if transaction_bytes is not None:
        body += net(transaction_bytes)
        if immediate_version is not None:
            body += struct.pack("<I", immediate_version | (original_version is not None) << 31)
            if original_version is not None:
                body += struct.pack("<I", original_version)
    return body


def tagged(gno: int, *, tag: str = "dba", more: bytes = b"", **fields: Any) -> bytes:
    """A message of numbered fields; `fields` are f4 to f11, already as they are coded."""
    body = varlen(0) + varlen(0) + varlen(1) + b"".join(map(varlen, UUID_A.bytes))
    body += varlen(2) + varlen(gno << 1) + varlen(3) + varlen(len(tag)) + tag.encode()
    for name, value in sorted(fields.items(), key=lambda each: int(each[0][1:])):
        body += varlen(int(name[1:])) + varlen(value)
    body += more
    for width in range(1, 4):
        size = 2 + width + len(body)
        if len(varlen(size)) == width:
            return varlen(1) + varlen(size) + varlen(4) + body
    raise AssertionError


def rows(log: Log) -> None:
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    log.add(EventType.WRITE_ROWS, rows_body(ROW * 2, columns=1))


def whole(log: Log, gno: int, *, middle: Callable[[Log], object] = rows, **fields: Any) -> int:
    """A transaction of rows whose GTID event tells its right length; give where it starts."""
    scratch = Log()
    scratch.data, scratch.checksum = bytearray(), log.checksum
    scratch.query("BEGIN")
    middle(scratch)
    scratch.xid()
    body = gtid_of_8_0(gno, transaction_bytes=0, **fields)
    length = len(scratch.data) + 19 + len(body) + 4 * log.checksum
    body = gtid_of_8_0(gno, transaction_bytes=length + len(net(length)) - 1, **fields)
    start = log.add(EventType.GTID, body)
    log.query("BEGIN")
    middle(log)
    log.xid()
    return start


def of_8_0() -> bytes:
    log = Log()
    log.add(EventType.PREVIOUS_GTIDS, bytes(8))
    for gno in range(1, 8):
        whole(log, gno)
    whole(log, 8, original=5, original_version=80_036)
    whole(log, 9, original=0, original_version=999_999)
    whole(log, 2**63 - 2)
    log.add(EventType.ROTATE, bytes(8) + b"next")
    return bytes(log)


def two() -> bytes:
    log = Log()
    whole(log, 1)
    log.add(EventType.GTID_TAGGED, tagged(1))
    log.query("CREATE TABLE t (a INT)")
    return bytes(log)


def generations() -> bytes:
    log = Log(checksum=False)
    heads = [gtid_body(1), gtid_body(2) + b"\0", gtid_body(3) + b"\2" + struct.pack("<qq", 4, 5)]
    heads += [
        gtid_of_8_0(4, transaction_bytes=None),
        gtid_of_8_0(5, transaction_bytes=None) + b"\7",
    ]
    heads += [gtid_of_8_0(6, transaction_bytes=9, immediate_version=None)]
    heads += [gtid_of_8_0(7, transaction_bytes=1 << 40, original=7)]
    for head in heads:
        for type_code in (EventType.GTID, EventType.ANONYMOUS_GTID):
            log.add(type_code, head)
            log.query("BEGIN")
            rows(log)
            log.xid()
    return bytes(log)


def with_tags() -> bytes:
    log = Log()
    times: dict[str, Any] = {
        "f6": 1_700_000_000_000_000,
        "f7": 3,
        "f8": 250,  # as long as it is
        "f9": 90_704,
        "f10": 80_300,
    }
    for body in (
        tagged(1),
        tagged(2, f4=2, f5=4),
        tagged(3, tag="DBA", **times),
        tagged(4, tag="a" * 32, f6=7, f8=4),
        tagged(5, tag="", f9=999_999),
        tagged(6, f11=1, more=varlen(12) + b"later"),
        tagged(7, f4=3, f5=1, f6=(1 << 55) - 1),
    ):
        log.add(EventType.GTID_TAGGED, body)
        log.query("BEGIN")
        rows(log)
        log.xid()
    return bytes(log)


def without_gtids() -> bytes:
    log = Log(version="5.5.62", checksum=False)
    log.checksum = False
    log.data[4:] = log.data[4:]
    for begin in ("BEGIN", "begin  ", "XA START 'x'"):
        log.query(begin)
        log.add(EventType.INTVAR, b"\2" + bytes(8))
        log.query("INSERT INTO t VALUES (NULL)", error_code=1062)
        log.query("ROLLBACK TO a")
        log.query("XA END 'x'")
        log.xid()
    log.query("CREATE TABLE t (a INT)")
    log.add(EventType.USER_VAR, b"x")
    log.query("CREATE TABLE u (a INT)", error_code=1050)
    log.add(EventType.STOP, b"")
    return bytes(log)


def statements() -> bytes:
    log = Log()
    texts = ["BEGIN", "commit", "Rollback \n", "ROLLBACK TO x", "BEGINNING", "XA", "XA COMMIT 'x'"]
    texts += [
        "xa\trollback",
        "XA ENDS",
        "XA END",
        "XA STARTED",
        "XA BEGIN",
        "XACT",
        "",
        "B",
        "BEGIN;",
    ]
    texts += ["XA  START 'x'", "XA\x0bPREPARE 'x'", "COMMIT\x1c", "COMMITS", "XA START_"]
    for gno, text in enumerate(texts, 1):
        log.gtid(gno)
        log.query(text, error_code=gno % 3)
        log.query("INSERT INTO t VALUES (1)", error_code=7)
        log.query("COMMIT")
    return bytes(log)


def endings() -> bytes:
    log = Log()
    log.gtid(1)
    log.add(EventType.XA_PREPARE, b"\0" + bytes(12))
    log.gtid(2)
    log.add(EventType.INCIDENT, b"\1\0\4lost")
    log.gtid(3)
    log.query("BEGIN")
    log.add(EventType.VIEW_CHANGE, bytes(60))
    log.query("COMMIT")
    log.gtid(4)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    log.xid()
    log.gtid(5)
    rows(log)
    log.query("INSERT INTO t VALUES (1)", error_code=3)
    log.gtid(6)
    log.add(EventType.TRANSACTION_CONTEXT, bytes(20))
    log.add(150, b"", flags=0x80)
    log.add(EventType.HEARTBEAT, b"x")
    log.add(EventType.INTVAR, b"", flags=0x20)
    log.query("BEGIN")
    log.add(EventType.INCIDENT, b"\1\0\4lost")
    log.xid()
    log.add(EventType.EXECUTE_LOAD_QUERY, load_query("LOAD DATA"))
    log.gtid(7)
    return bytes(log)


def load_query(sql: str) -> bytes:
    body = query_body(sql)
    return body[:13] + bytes(13) + body[13:]


def payload(*events: tuple[int, bytes]) -> bytes:
    inner = b"".join(event(kind, body, checksum=False, end_log_pos=0) for kind, body in events)
    return payload_body(inner, compression=255, uncompressed_bytes=len(inner))


def payloads() -> bytes:
    log = Log()
    begin, xa = (
        (EventType.QUERY, query_body("BEGIN")),
        (EventType.QUERY, query_body("XA START 'x'")),
    )
    table = (EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    some = (EventType.WRITE_ROWS, rows_body(ROW, columns=1))
    many = (EventType.WRITE_ROWS, rows_body(ROW * 5000, columns=1))
    end = (EventType.XID, bytes(8))
    failed = (EventType.QUERY, query_body("INSERT", error_code=9))
    for gno, events in enumerate(
        (
            (begin, table, some, end),
            (xa, table, some, (EventType.XA_PREPARE, b"\0" + bytes(12))),
            (begin, end),
            (begin, failed, end),
            (begin, table, many, end),
            (),
        ),
        1,
    ):
        log.gtid(gno)
        log.add(EventType.TRANSACTION_PAYLOAD, payload(*events))
    log.gtid(9)
    log.query("BEGIN")
    log.query("INSERT INTO t VALUES (1)")
    log.add(EventType.TRANSACTION_PAYLOAD, payload(failed, end))
    return bytes(log)


def bad_payload() -> bytes:
    log = Log()
    whole(log, 1)
    log.gtid(2)
    log.add(
        EventType.TRANSACTION_PAYLOAD, payload_body(b"zstd", compression=0, uncompressed_bytes=9)
    )
    whole(log, 3)
    return bytes(log)


def relay_log() -> bytes:
    log = Log(flags=0x40)
    log.add(EventType.PREVIOUS_GTIDS, bytes(8), flags=0x40)
    log.add(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000001", flags=0x20)
    log.description(version="8.0.36", checksum=False)
    whole(log, 1)
    log.query("BEGIN")
    log.description(version="5.6.24", checksum=True)
    rows(log)
    log.xid()
    whole(log, 2)
    return bytes(log)


def many_names() -> bytes:
    log = Log()
    for number in range(300):
        whole(log, number + 1, uuid=UUID(int=number % 200))
    for number in range(150):
        log.add(EventType.GTID_TAGGED, tagged(number + 1, tag=f"t{number % 100}"))
        log.query("CREATE TABLE t (a INT)")
    return bytes(log)


def _cut(number: int) -> Callable[[], bytes]:
    return lambda: of_8_0()[:-number]


def _then(made: Callable[[Log], object]) -> Callable[[], bytes]:
    def shape() -> bytes:
        log = Log()
        whole(log, 1)
        made(log)
        whole(log, 2)
        return bytes(log)

    return shape


def far_times() -> bytes:
    """Commit timestamps for which no calendar has a date: an event with tags has 64 bits for them."""
    log = Log()
    whole(log, 1)
    for number, at in enumerate((1 << 55, 253_402_300_800_000_000, (1 << 63) - 1, (1 << 64) - 1)):
        log.add(EventType.GTID_TAGGED, tagged(number + 1, f6=at, f7=at))
        log.query("BEGIN")
        rows(log)
        log.xid()
    return bytes(log)


def _damaged_metadata(log: Log) -> None:
    """A TABLE_MAP whose optional metadata breaks off: one field of 255 bytes that are not there."""
    log.gtid(2)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b"") + b"\x01\xfa")
    log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1))
    log.xid()


SHAPES: Mapping[str, Callable[[], bytes]] = {
    "8.0": of_8_0,
    "two": two,
    "generations": generations,
    "tags": with_tags,
    "no GTIDs": without_gtids,
    "statements": statements,
    "endings": endings,
    "payloads": payloads,
    "a payload that is none": bad_payload,
    "relay log": relay_log,
    "many names": many_names,
    "times without a date": far_times,
    "a TABLE_MAP with damaged metadata": _then(_damaged_metadata),
    "gzip": lambda: b"\x1f\x8b\x08" + bytes(40),
    "empty": lambda: b"",
    "half the magic number": lambda: b"\xfeb",
    "no binlog": lambda: b"nothing of the kind",
    "encrypted": lambda: b"\xfdbin" + bytes(508),
    "magic number alone": lambda: b"\xfebin",
    "description alone": lambda: bytes(Log()),
    "half a description": lambda: bytes(Log())[:60],
    "in use, cut": lambda: bytes(Log(flags=1)) + of_8_0()[127:-50],
    "cut in the last event": _cut(1),
    "cut in a header": _cut(40),
    "MariaDB": lambda: bytes(Log(version="10.11.6-MariaDB")),
    "MariaDB's own": lambda: MARIADB_LOG,
    "an event of MariaDB": _then(lambda log: log.add(162, bytes(20))),
    "an unknown event": _then(lambda log: log.add(99, b"")),
    "GNO 0": _then(lambda log: log.gtid(0)),
    "GNO too large": _then(lambda log: log.add(EventType.GTID, gtid_body(2**63 - 1))),
    "a short GTID": _then(lambda log: log.add(EventType.GTID, bytes(24))),
    "a tag that is none": _then(lambda log: log.add(EventType.GTID_TAGGED, tagged(1, tag="1x"))),
    "a tag too long": _then(lambda log: log.add(EventType.GTID_TAGGED, tagged(1, tag="x" * 33))),
    "a message too short": _then(lambda log: log.add(EventType.GTID_TAGGED, tagged(1)[:-1])),
    "a short QUERY": _then(lambda log: (log.gtid(2), log.add(EventType.QUERY, bytes(12)))),
    "a QUERY without its zero": _then(
        lambda log: (log.gtid(2), log.add(EventType.QUERY, query_body("x")[:-2] + b"xx"))
    ),
    "a tiny event": _then(lambda log: log.data.extend(struct.pack("<IBIIIH", 1, 2, 7, 18, 0, 0))),
    "a description of too few types": lambda: (
        b"\xfebin"
        + event(
            EventType.FORMAT_DESCRIPTION,
            struct.pack("<H50sIB", 4, b"5.5.1", 0, 19) + bytes(17),
            checksum=False,
        )
    ),
    "a huge event": _then(
        lambda log: log.data.extend(struct.pack("<IBIIIH", 1, 2, 7, 2**31, 0, 0))
    ),
}
