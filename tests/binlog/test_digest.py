"""What counts as a transaction's content, and that the kernel agrees with the definition."""

import random
import struct
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlog.content.content_digest import Content, content_of, digest_of
from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.events import FormatDescription
from binlog.ledger.digests import digests_of
from binlog.ledger.events_in_memory import TransactionBytes
from tests.binlog.builders import (
    NOON_SECONDS,
    Log,
    decode,
    event,
    gtid_body,
    payload_body,
    query_body,
    rows_body,
    table_map_body,
)

LONG, VARCHAR = 3, 15
TYPES = bytes((LONG, VARCHAR))
METADATA = struct.pack("<H", 300)
KINDS = (EventType.WRITE_ROWS, EventType.DELETE_ROWS)


def image(number: int, text: bytes | None) -> bytes:
    head = b"\xfc" if text is not None else b"\xfe"
    value = b"" if text is None else struct.pack("<H", len(text)) + text
    return head + struct.pack("<i", number) + value


@dataclass(frozen=True)
class Run:
    """Rows of one table, one after another, and where a server cut them into events."""

    rows: tuple[bytes, ...]
    kind: EventType = EventType.WRITE_ROWS
    table: str = "t"
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Told:
    """A transaction and everything about its logging that must not matter."""

    runs: tuple[Run, ...]
    gno: int = 5
    table_id: int = 70
    checksum: bool = True
    version: int = 2
    server_id: int = 7
    rows_query: bool = False
    statements: tuple[bytes, ...] = field(default=())

    def events(self) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = [
            (EventType.GTID, gtid_body(self.gno)),
            (EventType.QUERY, query_body("BEGIN")),
        ]
        found += [(EventType.QUERY, body) for body in self.statements]
        for number, run in enumerate(self.runs):
            table_id = self.table_id + number
            if self.rows_query:
                found.append((EventType.ROWS_QUERY, b"\x05hello"))
            body = table_map_body(TYPES, METADATA, table_id=table_id, table=run.table)
            found.append((EventType.TABLE_MAP, body))
            kind = run.kind - 7 if self.version == 1 else run.kind
            edges = (0, *sorted(run.cuts), len(run.rows))
            for start, end in pairwise(edges):
                images = b"".join(run.rows[start:end])
                body = rows_body(images, columns=2, table_id=table_id, version=self.version)
                found.append((kind, body))
        return [*found, (EventType.XID, struct.pack("<Q", self.gno * 3))]

    def log(self) -> bytes:
        log = Log(checksum=self.checksum)
        for kind, body in self.events():
            log.add(kind, body, server_id=self.server_id)
        return bytes(log)

    def packed(self) -> bytes:
        """The same, compressed in the form that is not compressed (type 255)."""
        (_, head), *rest = self.events()
        inner = b"".join(event(kind, body, checksum=False) for kind, body in rest)
        log = Log(checksum=self.checksum)
        log.add(EventType.GTID, head)
        payload = payload_body(inner, compression=255, uncompressed_bytes=len(inner))
        log.add(EventType.TRANSACTION_PAYLOAD, payload)
        return bytes(log)


def content(data: bytes) -> Content:
    return content_of(decode(data)[1:])


def by_kernel(data: bytes) -> int | None:
    description = decode_description(data)
    start = int.from_bytes(data[4 + 9 : 4 + 13], "little") + 4
    digests = digests_of(
        TransactionBytes(
            np.frombuffer(data, np.uint8),
            np.array([start]),
            np.array([len(data)]),
            description=description,
            decompress=None,
        )
    )
    return int(digests.values[0]) if digests.known[0] else None


def decode_description(data: bytes) -> FormatDescription:
    size = int.from_bytes(data[4 + 9 : 4 + 13], "little") + 4
    [first] = decode(data[:size])
    assert isinstance(first.body, FormatDescription)
    return first.body


def both(data: bytes) -> int | None:
    """The digest, by the definition and by the kernel, which must be one."""
    found = content(data).digest
    assert by_kernel(data) == found
    return found


ROWS = st.lists(
    st.builds(
        image,
        st.integers(-(2**31), 2**31 - 1),
        st.none() | st.binary(max_size=40),
    ),
    min_size=1,
    max_size=6,
).map(tuple)
RUNS = st.lists(
    st.builds(Run, ROWS, st.sampled_from(KINDS), st.sampled_from(("t", "u"))),
    min_size=1,
    max_size=4,
).map(tuple)


@settings(deadline=None)
@given(RUNS, st.data())
def test_how_it_was_logged_does_not_matter(runs: tuple[Run, ...], data: st.DataObject) -> None:
    plain = Told(runs)
    cut = tuple(
        replace(run, cuts=tuple(data.draw(st.lists(st.integers(0, len(run.rows)))))) for run in runs
    )
    other = Told(
        cut,
        gno=data.draw(st.integers(1, 2**40)),
        table_id=data.draw(st.integers(1, 2**40)),
        checksum=data.draw(st.booleans()),
        version=data.draw(st.sampled_from((1, 2))),
        server_id=data.draw(st.integers(1, 2**31)),
        rows_query=data.draw(st.booleans()),
    )
    expected = both(plain.log())
    assert expected is not None
    assert both(other.log()) == expected
    assert by_kernel(other.packed()) == expected


@settings(deadline=None)
@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_within_a_run(
    runs: tuple[Run, ...], order: random.Random
) -> None:
    shuffled = tuple(
        replace(run, rows=tuple(order.sample(run.rows, len(run.rows)))) for run in runs
    )
    assert both(Told(shuffled).log()) == both(Told(runs).log())


@pytest.mark.long
@settings(deadline=None)
@given(RUNS, st.data())
def test_what_was_done_matters(runs: tuple[Run, ...], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(runs) - 1))
    run = runs[at]
    row = data.draw(st.integers(0, len(run.rows) - 1))
    number = struct.unpack_from("<i", run.rows[row], 1)[0]
    touched = bytearray(run.rows[row])
    struct.pack_into("<i", touched, 1, number ^ 1 << data.draw(st.integers(0, 30)))
    rows = (*run.rows[:row], bytes(touched), *run.rows[row + 1 :])
    other_kind = KINDS[1 - KINDS.index(run.kind)]
    changes = [
        replace(run, rows=rows),
        replace(run, rows=(*run.rows, run.rows[0])),
        replace(run, table="v"),
        replace(run, kind=other_kind),
    ]
    expected = both(Told(runs).log())
    for changed in changes:
        assert both(Told((*runs[:at], changed, *runs[at + 1 :])).log()) != expected


def test_rows_of_two_tables_in_another_order_are_something_else() -> None:
    first, second = Run((image(1, b"a"),)), Run((image(1, b"a"),), table="u")
    assert both(Told((first, second)).log()) != both(Told((second, first)).log())


SQL_MODE = b"\x01" + struct.pack("<Q", 1 << 30)
CHARSET = b"\x04" + struct.pack("<HHH", 45, 45, 255)


@pytest.mark.parametrize(
    "other",
    [
        query_body("INSERT INTO t VALUES (2)", variables=SQL_MODE + CHARSET),
        query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE + CHARSET, schema="e"),
        query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE + CHARSET, error_code=1050),
        query_body("INSERT INTO t VALUES (1)", variables=CHARSET),
        query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE),
        query_body("INSERT INTO t VALUES (1) ", variables=SQL_MODE + CHARSET),
        *(
            query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE + each)
            for each in (
                b"\x04" + struct.pack("<HHH", 45, 46, 255),
                b"\x04" + struct.pack("<HHH", 45, 45, 254),
                CHARSET + b"\x00" + struct.pack("<I", 1 << 26),  # foreign_key_checks = 0
                CHARSET + b"\x00" + struct.pack("<I", 1 << 27),  # unique_checks = 0
                CHARSET + b"\x00" + struct.pack("<I", 1 << 14),  # sql_auto_is_null
                CHARSET + b"\x03" + struct.pack("<HH", 2, 1),
                CHARSET + b"\x03" + struct.pack("<HH", 1, 2),
                CHARSET + b"\x07\1\0",  # lc_time_names
            )
        ),
    ],
)
def test_a_statement_counts_with_its_settings(other: bytes) -> None:
    plain = query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE + CHARSET)
    # Time zone, microseconds, the schemas it touches, an XID of DDL: a replica may write its own.
    more = b"\x05\x03UTC" + b"\x0d\1\2\3" + b"\x0c\1d\0" + b"\x11" + bytes(8)
    more += b"\x00" + struct.pack("<I", 1 << 19)  # autocommit
    more += b"\x03" + struct.pack("<HH", 1, 1) + b"\x07\0\0"  # as if they were not logged
    same = query_body("INSERT INTO t VALUES (1)", variables=SQL_MODE + more + CHARSET)
    expected = both(Told((), statements=(plain,)).log())
    assert expected is not None
    assert both(Told((), statements=(same,)).log()) == expected
    assert both(Told((), statements=(other,)).log()) != expected


def test_a_statement_counts_with_its_clock_and_rows_without() -> None:
    def digest(kind: EventType, *bodies: bytes, seconds: int) -> int | None:
        log = Log()
        log.gtid(5)
        log.query("BEGIN")
        *first, last = bodies
        for body in first:
            log.add(EventType.TABLE_MAP, body)
        log.add(kind, last, at_seconds=NOON_SECONDS + seconds)
        return both(bytes(log))

    insert = (EventType.QUERY, query_body("INSERT INTO t VALUES (1)"))
    assert digest(*insert, seconds=0) != digest(*insert, seconds=1)
    xa = (EventType.QUERY, query_body("XA START X'31',X'',1"))
    assert digest(*xa, seconds=0) == digest(*xa, seconds=1)
    table = table_map_body(TYPES, METADATA)
    rows = (EventType.WRITE_ROWS, table, rows_body(image(1, b"a"), columns=2))
    assert digest(*rows, seconds=0) == digest(*rows, seconds=1)


@pytest.mark.parametrize("sql", ["XA START X'31',X'',1", "SAVEPOINT `s`", "ROLLBACK TO `s`"])
def test_a_statement_that_frames_others_has_no_settings(sql: str) -> None:
    one = query_body(sql, variables=SQL_MODE, schema="d")
    other = query_body(sql, variables=b"", schema="")
    expected = both(Told((), statements=(one,)).log())
    assert expected is not None
    assert both(Told((), statements=(other,)).log()) == expected
    assert both(Told((), statements=(query_body(sql[:-2] + "7`", schema="d"),)).log()) != expected


def test_an_insert_id_counts_and_a_file_by_its_content_alone() -> None:
    def digest(*events: tuple[int, bytes]) -> int | None:
        log = Log()
        log.gtid(5)
        log.query("BEGIN")
        for kind, body in events:
            log.add(kind, body)
        return both(bytes(log))

    insert = (EventType.QUERY, query_body("INSERT INTO t VALUES (NULL)"))
    with_id = [digest((EventType.INTVAR, b"\x02" + struct.pack("<Q", n)), insert) for n in (1, 2)]
    assert len({*with_id, digest(insert)}) == 3

    def load(name: str, *blocks: bytes, file_id: int) -> int | None:
        mark = struct.pack("<I", file_id)
        sql = f"LOAD DATA INFILE '{name}' INTO TABLE t".encode()
        head = struct.pack("<IIBHH", 5, 1, 1, 0, 0) + mark + struct.pack("<IIB", 10, 20, 0)
        first, *rest = blocks
        return digest(
            (EventType.BEGIN_LOAD_QUERY, mark + first),
            *((EventType.APPEND_BLOCK, mark + block) for block in rest),
            (EventType.EXECUTE_LOAD_QUERY, head + b"d\0" + sql),
        )

    assert load("/a", b"12", b"3", file_id=1) == load("/b/c", b"1", b"23", file_id=9)
    assert load("/a", b"12", b"3", file_id=1) != load("/a", b"124", file_id=1)


def test_an_empty_transaction_is_empty() -> None:
    found = content(Told(()).log())
    assert found.is_empty
    assert both(Told(()).log()) == found.digest


def test_what_cannot_be_told_has_no_digest_and_a_reason() -> None:
    log = Log()
    log.gtid(5)
    log.add(EventType.WRITE_ROWS, rows_body(image(1, b"a"), columns=2))
    assert both(bytes(log)) is None
    assert "without a TABLE_MAP" in content(bytes(log)).unreadable
    damaged = Told((Run((image(1, b"a")[:-1],)),)).log()
    assert both(damaged) is None
    assert content(damaged).unreadable.startswith("rows of d.t: ")
    view_change = Log()
    view_change.gtid(5)
    view_change.add(EventType.VIEW_CHANGE, bytes(60))
    assert content(bytes(view_change)).is_of_each_member
    assert both(bytes(view_change)) is None


@settings(deadline=None)
@given(RUNS, st.data())
def test_damage_never_makes_the_kernel_say_something_else(
    runs: tuple[Run, ...], data: st.DataObject
) -> None:
    log = Told(runs, checksum=False, statements=(query_body("INSERT", variables=SQL_MODE),)).log()
    start = int.from_bytes(log[4 + 9 : 4 + 13], "little") + 4
    damaged = bytearray(log)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(start, len(log) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    try:
        expected = digest_of(decode(bytes(damaged))[1:])
    except BinlogError:
        by_kernel(bytes(damaged))  # it need not notice, but it must not read beyond the end
        return
    names = [part for part in content(bytes(damaged)).parts if not _is_plain(part)]
    if not names:
        assert by_kernel(bytes(damaged)) == expected


def _is_plain(part: object) -> bool:
    """Names are UTF-8 on every server; others are shown otherwise than they are written."""
    names = (getattr(part, "schema", ""), getattr(part, "table", ""))
    return all(name.isascii() and "\\" not in name for name in names)
