"""What transactions changed: the kernel says what the decoder says, or leaves it to the decoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from binlog.adapters.compression import find_decompressor, find_peek
from binlog.event_types import EventType
from binlog.kernels.row_ends import TABLES_MAX
from binlog.ledger import ledger_details as details
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_window import WindowLedger, WindowPlace, ledger_of_window
from binlog.transactions import STATEMENT_CHARACTERS_MAX
from tests.binlog.builders import (
    Log,
    event,
    gtid_body,
    payload_body,
    query_body,
    rows_body,
    table_map_body,
)
from tests.binlog.ledger_shapes import ROW, load_query
from tests.binlog.ledger_twin import ledger_of_bytes
from tests.binlog.material import Written

LONG, VARCHAR, JSON = 3, 15, 245
Events = list[tuple[int, bytes]]


def ledger(data: bytes, *, verify: bool = True) -> WindowLedger:
    return ledger_of_window(
        np.frombuffer(data, np.uint8),
        WindowPlace("log"),
        LedgerRequest(verify=verify, details=True, digests=True),
        decompress=find_decompressor(),
        peek=find_peek(),
    )


def same(data: bytes) -> list[dict[str, Any]]:
    """Hold the kernel to the decoder, damage included, and give the rows."""
    twin = ledger_of_bytes(data, file="log", details=True)
    found = ledger(data)
    found.rows.validate(full=True)
    rows = found.rows.drop_columns(["digest"])
    assert rows.schema == twin.rows.schema
    assert rows.to_pylist() == twin.rows.to_pylist()
    assert (str(found.error), found.end) == (str(twin.error), twin.end)
    told: list[dict[str, Any]] = rows.to_pylist()
    return told


def changes(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(table.values()) for table in row["tables"]]


@pytest.fixture
def _by_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the kernel did not know what to do")

    monkeypatch.setattr(details, "_decoded", refuse)


# ---- logs of servers


@pytest.mark.usefixtures("_by_kernel_alone")
def test_logs_of_servers_need_no_decoder(written: Written) -> None:
    rows = [row for path in written.files for row in ledger(path.read_bytes()).rows.to_pylist()]
    assert all(row["tables"] is not None for row in rows)
    assert any(len(row["tables"]) == 1 for row in rows)
    assert sum(row["ddl"] is not None for row in rows) >= 5


def test_logs_of_servers_cut_anywhere(written: Written) -> None:
    for path in written.files:
        data = path.read_bytes()
        for size in range(200, len(data), len(data) // 25):
            same(data[:size])


# ---- made-up ones


@dataclass(frozen=True)
class Change:
    """Some rows of one table, as one or more events."""

    table: str
    kind: EventType
    numbers: tuple[int | None, ...]
    table_id: int
    is_announced: bool
    old_form: bool

    def events(self) -> Events:
        made: Events = []
        if self.is_announced:
            metadata = struct.pack("<H", 300) + b"\4"
            types = bytes((LONG, VARCHAR, JSON))
            body = table_map_body(types, metadata, table_id=self.table_id, table=self.table)
            made.append((EventType.TABLE_MAP, body))
        is_partial = self.kind == EventType.PARTIAL_UPDATE_ROWS
        is_update = is_partial or self.kind == EventType.UPDATE_ROWS
        version = 1 if self.old_form and not is_partial else 2
        between = (b"\1\1", b"\0") if is_partial else (b"", b"")
        rows = [
            image(number) + (between[number is None] + image(7) if is_update else b"")
            for number in self.numbers
        ]
        body = rows_body(
            b"".join(rows), columns=3, table_id=self.table_id, update=is_update, version=version
        )
        made.append((self.kind - 7 if version == 1 else self.kind, body))
        return made


def image(number: int | None) -> bytes:
    if number is None:
        return b"\xff"
    text, document = b"x" * (number % 400), b"j" * (number % 5)
    head = b"\xf8" + struct.pack("<i", number)
    return head + struct.pack("<H", len(text)) + text + struct.pack("<I", len(document)) + document


KINDS = (
    EventType.WRITE_ROWS,
    EventType.UPDATE_ROWS,
    EventType.DELETE_ROWS,
    EventType.PARTIAL_UPDATE_ROWS,
)
CHANGES = st.builds(
    Change,
    table=st.sampled_from(("t", "u", "ü", "ta", "日本")),
    kind=st.sampled_from(KINDS),
    numbers=st.lists(st.none() | st.integers(0, 2**31 - 1), max_size=4).map(tuple),
    table_id=st.sampled_from((70, 71, 72)),
    is_announced=st.sampled_from((True, True, True, False)),
    old_form=st.booleans(),
)
STATEMENTS = st.sampled_from(("INSERT INTO t VALUES (1)", "SAVEPOINT a", "CREATE TABLE t (a INT)"))
PARTS: st.SearchStrategy[Change | str] = CHANGES | STATEMENTS
GROUPS = st.lists(st.lists(PARTS, max_size=5), max_size=4)


def events_of_group(parts: Sequence[Change | str]) -> Events:
    made: Events = [(EventType.QUERY, query_body("BEGIN"))]
    for part in parts:
        if isinstance(part, Change):
            made += part.events()
        else:
            made.append((EventType.QUERY, query_body(part)))
    return [*made, (EventType.XID, bytes(8))]


def log_of(groups: Sequence[Sequence[Change | str]], *, checksum: bool, packed: int) -> bytes:
    """Write transactions; every `packed`-th one compressed, by zstd and by nothing in turn."""
    log = Log(checksum=checksum)
    for number, parts in enumerate(groups, 1):
        log.add(EventType.GTID, gtid_body(number))
        events = events_of_group(parts)
        if packed and number % packed == 0:
            inner = b"".join(event(kind, body, checksum=False) for kind, body in events)
            content, how = (inner, 255) if number % 2 else (zstandard.compress(inner), 0)
            body = payload_body(content, compression=how, uncompressed_bytes=len(inner))
            events = [(EventType.TRANSACTION_PAYLOAD, body)]
        for kind, body in events:
            log.add(kind, body)
        if number % 3 == 0:
            log.query(f"CREATE TABLE t{number} (a INT)")
    return bytes(log)


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(GROUPS, st.booleans(), st.integers(0, 2))
def test_whatever_was_changed(
    groups: list[list[Change | str]], checksum: bool, packed: int
) -> None:
    same(log_of(groups, checksum=checksum, packed=packed))


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(GROUPS, st.data())
def test_damage_never_makes_the_kernel_say_something_else(
    groups: list[list[Change | str]], data: st.DataObject
) -> None:
    log = bytearray(log_of(groups, checksum=False, packed=0))
    start = int.from_bytes(log[4 + 9 : 4 + 13], "little") + 4
    for _ in range(data.draw(st.integers(1, 2)) if len(log) > start else 0):
        log[data.draw(st.integers(start, len(log) - 1))] = data.draw(st.integers(0, 255))
    twin = ledger_of_bytes(bytes(log), file="log", details=True)
    found = ledger(bytes(log))
    found.rows.validate(full=True)
    if twin.error is None and found.error is None:
        assert found.rows.drop_columns(["digest"]).to_pylist() == twin.rows.to_pylist()


def test_a_table_is_announced_again_and_again() -> None:
    """As other columns, by another id, in the next transaction not at all."""
    log = Log()
    two = table_map_body(bytes((LONG, LONG)), b"")
    one = table_map_body(bytes((LONG,)), b"")
    other_id = table_map_body(bytes((LONG,)), b"", table_id=9)
    once = (EventType.WRITE_ROWS, rows_body(ROW * 2, columns=1))
    wide = (EventType.WRITE_ROWS, rows_body(b"\0" + bytes(8), columns=2))
    other = (EventType.DELETE_ROWS, rows_body(ROW, columns=1, table_id=9))
    announced: Events = [
        (EventType.TABLE_MAP, one), once, (EventType.TABLE_MAP, two), wide,
        (EventType.TABLE_MAP, one), once, (EventType.TABLE_MAP, other_id), other,
    ]  # fmt: skip
    for number in (1, 2):
        log.gtid(number)
        log.query("BEGIN")
        for kind, body in announced:
            log.add(kind, body)
        log.xid()
    first, second = same(bytes(log))
    assert changes(first) == changes(second) == [("d", "t", 5, 0, 1)]
    log.gtid(3)
    log.query("BEGIN")
    log.add(*once)
    log.xid()
    assert "without a TABLE_MAP event" in str(ledger(bytes(log)).error)
    assert [row["is_complete"] for row in same(bytes(log))] == [True, True, False]


@pytest.mark.parametrize("count", [TABLES_MAX, TABLES_MAX + 1])
def test_many_tables(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    for number in (1, 2):
        log.gtid(number)
        log.query("BEGIN")
        for table in range(count):
            name = f"t{table * 7919 % count:04}"
            body = table_map_body(b"\x03", b"", table_id=table, table=name)
            log.add(EventType.TABLE_MAP, body)
            log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1, table_id=table))
        log.xid()
    for row in same(bytes(log)):
        assert changes(row) == [("d", f"t{table:04}", 1, 0, 0) for table in range(count)]
    decoder = Mock(wraps=details._decoded)
    monkeypatch.setattr(details, "_decoded", decoder)
    ledger(bytes(log))
    assert decoder.call_count == (2 if count > TABLES_MAX else 0)


def test_names_that_are_no_utf_8_are_shown_as_the_decoder_shows_them() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    for name in (b"a", b"\xff\xfe"):
        body = table_map_body(b"\x03", b"", table="XX"[: len(name)]).replace(b"X" * len(name), name)
        log.add(EventType.TABLE_MAP, body)
        log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1))
    log.xid()
    [row] = same(bytes(log))
    assert [change[1] for change in changes(row)] == ["\\xff\\xfe", "a"]


def test_rows_of_no_column_and_events_of_no_row() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    nothing = rows_body(b"", columns=1)
    log.add(EventType.WRITE_ROWS, nothing)  # no row
    log.add(EventType.DELETE_ROWS, nothing[:-1] + b"\0")  # at least one, of no column
    log.add(EventType.WRITE_ROWS, rows_body(b"", columns=1, table_id=0xFFFFFF))  # ends a statement
    log.xid()
    [row] = same(bytes(log))
    assert changes(row) == [("d", "t", 0, 0, 1)]


def test_the_text_of_ddl_is_cut_and_shown_as_the_decoder_does() -> None:
    log = Log()
    texts = ["CREATE TABLE t (a INT)", "-- " + "ü" * STATEMENT_CHARACTERS_MAX]
    for number, text in enumerate(texts, 1):
        log.gtid(number)
        log.add(EventType.INTVAR, b"\2" + bytes(8))
        log.query(text)
    log.gtid(3)
    log.add(EventType.QUERY, query_body(b"CREATE TABLE \xff (a INT)"))
    log.gtid(4)
    log.add(EventType.EXECUTE_LOAD_QUERY, load_query("LOAD DATA"))
    found = [row["ddl"] for row in same(bytes(log))]
    assert found == [
        texts[0],
        texts[1][:STATEMENT_CHARACTERS_MAX],
        "CREATE TABLE \\xff (a INT)",
        "LOAD DATA",
    ]


def test_what_is_not_read_is_null_and_no_damage() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.VIEW_CHANGE, bytes(60))
    log.query("COMMIT")
    log.gtid(2)
    body = payload_body(b"unknown", compression=7, uncompressed_bytes=9)
    log.add(EventType.TRANSACTION_PAYLOAD, body)
    assert [row["tables"] for row in same(bytes(log))] == [None, None]


def test_damage_ends_the_rows_and_says_the_place() -> None:
    sound = Change("t", EventType.WRITE_ROWS, (1, 2), 70, is_announced=True, old_form=False)
    odd = Change("u", EventType.WRITE_ROWS, (3,), 71, is_announced=True, old_form=False)
    _, body = odd.events()[1]
    data = log_of([[sound], [sound, odd], [sound]], checksum=False, packed=0)
    at = data.index(body)
    data = data.replace(body, body[:-4] + b"\xff\xff\xff\xff")
    same(data)
    found = ledger(data)
    assert str(found.error).startswith(f"log: at byte {at - 19}: rows of d.u: ")
    assert found.end == at + len(body)
    rows = found.rows.to_pylist()
    assert [row["is_complete"] for row in rows] == [True, False]
    assert [row["digest"] is None for row in rows] == [False, True]
    assert changes(rows[1]) == [("d", "t", 2, 0, 0)]


def test_damage_within_a_payload_is_damage() -> None:
    log = Log()
    log.gtid(1)
    inner = event(EventType.XID, bytes(8), checksum=False)[:-1]
    body = payload_body(inner, compression=255, uncompressed_bytes=len(inner))
    log.add(EventType.TRANSACTION_PAYLOAD, body)
    assert [row["is_complete"] for row in same(bytes(log))] == [False]


def test_a_description_within_a_transaction() -> None:
    """Of a relay log: the events before it have no checksum, those behind it have."""
    log = Log(checksum=False)
    log.gtid(1)
    log.query("BEGIN")
    log.description(version="9.7.4", checksum=True)
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    log.add(EventType.WRITE_ROWS, rows_body(ROW * 3, columns=1))
    log.xid()
    assert [changes(row) for row in same(bytes(log))] == [[("d", "t", 3, 0, 0)]]
