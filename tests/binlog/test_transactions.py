"""Folding: which events make one transaction, and what kind it is."""

from __future__ import annotations

import pytest

from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.scan import scan_events
from binlog.transactions import (
    STATEMENT_CHARACTERS_MAX,
    STATEMENTS_MAX,
    TableChange,
    Transaction,
    TransactionFolder,
    fold_transactions,
)
from binlog.transactions import TransactionKind as Kind
from tests.binlog.builders import Log, event, payload_body, query_body, rows_body, table_map_body


def fold(log: Log) -> list[Transaction]:
    return list(fold_transactions(scan_events([bytes(log)], file="log")))


def group(*sqls: str) -> Transaction:
    log = Log()
    log.gtid(1)
    for sql in sqls:
        log.query(sql)
    [transaction] = fold(log)
    return transaction


@pytest.mark.parametrize(
    ("sqls", "kind", "is_complete"),
    [
        (["BEGIN", "COMMIT"], Kind.EMPTY, True),
        (["BEGIN", "ROLLBACK"], Kind.EMPTY, True),
        (["begin", "commit "], Kind.EMPTY, True),
        (["BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"], Kind.DML, True),
        (["BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "COMMIT"], Kind.DML, True),
        (["CREATE TABLE t (a INT)"], Kind.DDL, True),
        (["XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'"], Kind.XA, False),
        (["XA COMMIT 'x'"], Kind.XA, True),
        (["xa rollback 'x'"], Kind.XA, True),
        (["XA END 'x'"], Kind.XA, True),
        (["BEGIN", "INSERT INTO t VALUES (1)"], Kind.DML, False),
        (["BEGINNING"], Kind.DDL, True),
    ],
)
def test_kinds_by_statement(sqls: list[str], kind: Kind, *, is_complete: bool) -> None:
    transaction = group(*sqls)
    assert (transaction.kind, transaction.is_complete) == (kind, is_complete)


def test_boundaries_are_no_statements() -> None:
    transaction = group("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT")
    assert [each.sql for each in transaction.statements] == ["INSERT INTO t VALUES (1)"]


def test_without_gtids_a_group_starts_at_its_begin() -> None:
    log = Log()
    begin = log.query("BEGIN")
    log.add(EventType.INTVAR, b"\2" + bytes(8))
    log.query("INSERT INTO t VALUES (NULL)")
    log.xid()
    ddl = log.query("CREATE TABLE t (a INT)")
    variable = log.add(EventType.USER_VAR, b"x")
    log.query("CREATE TABLE u (a INT)")
    log.add(EventType.STOP, b"")
    first, second, third = fold(log)
    assert (first.start, first.end, first.kind) == (begin, ddl, Kind.DML)
    assert (second.start, second.kind) == (ddl, Kind.DDL)
    assert (third.start, third.kind, third.gtid) == (variable, Kind.DDL, None)


def test_a_head_without_a_tail_is_given_as_it_is() -> None:
    log = Log()
    first = log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.ROTATE, bytes(8) + b"next")
    second = log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    cut, whole = fold(log)
    assert (cut.start, cut.is_complete) == (first, False)
    assert cut.end < second
    assert (whole.start, whole.is_complete) == (second, True)


def test_a_group_may_go_on_in_the_next_relay_log() -> None:
    folder = TransactionFolder()
    first, second = Log(), Log()
    first.gtid(1)
    first.query("BEGIN")
    second.query("INSERT INTO t VALUES (1)")
    second.xid()
    events = [*scan_events([bytes(first)], file="relay.1")]
    events += scan_events([bytes(second)], file="relay.2")
    [transaction] = [each for event in events for each in folder.fold(event)]
    assert transaction.file == "relay.1"
    assert transaction.end == len(bytes(first))
    assert transaction.kind is Kind.DML
    assert folder.finish() == ()


def test_rows_are_counted_by_table_and_kind() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b"", table_id=1, table="b"))
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b"", table_id=2, table="a"))
    row = b"\0\1\0\0\0"
    log.add(EventType.WRITE_ROWS, rows_body(row * 3, columns=1, table_id=1))
    log.add(
        EventType.UPDATE_ROWS_V1, rows_body(row * 4, columns=1, table_id=1, update=True, version=1)
    )
    log.add(EventType.DELETE_ROWS, rows_body(row, columns=1, table_id=2))
    log.xid()
    [transaction] = fold(log)
    assert transaction.tables == (
        TableChange("d", "a", rows_deleted=1),
        TableChange("d", "b", rows_written=3, rows_updated=2),
    )


def test_rows_of_an_unknown_table() -> None:
    log = Log()
    log.gtid(1)
    at = log.add(EventType.WRITE_ROWS, rows_body(b"\0\1\0\0\0", columns=1, table_id=9))
    with pytest.raises(
        CorruptBinlog, match="table id 9 without a TABLE_MAP event before them"
    ) as caught:
        fold(log)
    assert caught.value.position == at


def test_a_dummy_row_event_only_ends_a_statement() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.WRITE_ROWS, rows_body(b"", columns=0, table_id=0xFFFFFF))
    log.xid()
    assert fold(log)[0].tables == ()


def test_rows_that_do_not_fit_their_table() -> None:
    log = Log()
    log.gtid(1)
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    log.add(EventType.WRITE_ROWS, rows_body(b"\0\1", columns=1))
    with pytest.raises(CorruptBinlog, match=r"rows of d\.t: expected a value of 4 bytes"):
        fold(log)


def test_row_events_without_extra_data_length() -> None:
    log = Log()
    log.add(EventType.WRITE_ROWS, bytes(8) + b"\1\0" + bytes(4))
    with pytest.raises(CorruptBinlog, match="expected a length of 2 or more, found 1"):
        fold(log)


def test_incidents_and_view_changes() -> None:
    log = Log()
    log.gtid(1)
    log.add(EventType.INCIDENT, b"\1\0\4lost")
    log.gtid(2)
    log.query("BEGIN")
    log.add(EventType.VIEW_CHANGE, bytes(60))
    log.query("COMMIT")
    assert [each.kind for each in fold(log)] == [Kind.INCIDENT, Kind.OTHER]


def test_long_statements_are_cut_and_say_so() -> None:
    short, long = "x" * STATEMENT_CHARACTERS_MAX, "x" * (STATEMENT_CHARACTERS_MAX + 1)
    very_long = "ü" * 5 * STATEMENT_CHARACTERS_MAX
    statements = group("BEGIN", short, long, very_long).statements
    assert [each.is_cut for each in statements] == [False, True, True]
    assert all(len(each.sql) == STATEMENT_CHARACTERS_MAX for each in statements)


def test_many_statements_and_tables_are_cut_and_say_so() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    for number in range(STATEMENTS_MAX + 1):
        log.query("SELECT 1", error_code=1 if number == STATEMENTS_MAX else 0)
    for number in range(STATEMENTS_MAX + 1):
        log.add(
            EventType.TABLE_MAP, table_map_body(b"\x01", b"", table_id=number, table=f"t{number}")
        )
        log.add(EventType.WRITE_ROWS, rows_body(b"\0\1", columns=1, table_id=number))
    log.xid()
    [transaction] = fold(log)
    assert len(transaction.statements) == len(transaction.tables) == STATEMENTS_MAX
    assert transaction.is_cut
    assert transaction.error_code == 1


def test_bytes_that_are_not_utf_8_are_shown() -> None:
    log = Log()
    log.gtid(1)
    log.add(EventType.QUERY, query_body(b"CREATE TABLE `gr\xfcn` (a INT)"))
    assert fold(log)[0].statements[0].sql == r"CREATE TABLE `gr\xfcn` (a INT)"


def test_the_first_error_is_the_transactions() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.query("INSERT INTO t VALUES (1)", error_code=1062)
    log.query("INSERT INTO t VALUES (2)", error_code=1213)
    log.query("ROLLBACK")
    [transaction] = fold(log)
    assert transaction.error_code == 1062
    assert [each.error_code for each in transaction.statements] == [1062, 1213]


def test_a_payload_is_folded_into_its_transaction() -> None:
    inner = b"".join(
        event(kind, body, checksum=False, end_log_pos=0)
        for kind, body in (
            (EventType.QUERY, query_body("BEGIN")),
            (EventType.TABLE_MAP, table_map_body(b"\x03", b"")),
            (EventType.WRITE_ROWS, rows_body(b"\0\1\0\0\0", columns=1)),
            (EventType.XID, bytes(8)),
        )
    )
    log = Log()
    log.gtid(1)
    log.add(
        EventType.TRANSACTION_PAYLOAD, payload_body(b"zstd", compression=0, uncompressed_bytes=9)
    )
    events = list(scan_events([bytes(log)], file="log"))
    [opened] = fold_transactions(events, decompress=lambda _data, _bytes_max: inner)
    assert opened.tables == (TableChange("d", "t", rows_written=1),)
    assert (opened.kind, opened.is_complete) == (Kind.DML, True)
    [closed] = fold_transactions(events)
    assert (closed.kind, closed.is_complete, closed.tables) == (Kind.OTHER, True, ())
    assert (closed.start, closed.end) == (opened.start, opened.end)


def test_a_payload_in_a_payload_is_refused() -> None:
    body = payload_body(b"", compression=255, uncompressed_bytes=0)
    inner = event(EventType.TRANSACTION_PAYLOAD, body, checksum=False)
    log = Log()
    log.gtid(1)
    log.add(
        EventType.TRANSACTION_PAYLOAD,
        payload_body(inner, compression=255, uncompressed_bytes=len(inner)),
    )
    with pytest.raises(CorruptBinlog, match="a payload inside a payload"):
        fold(log)


def test_artificial_events_belong_to_no_group() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.add(EventType.INTVAR, b"", flags=0x20)
    log.xid()
    assert fold(log)[0].kind is Kind.EMPTY
