"""The ledger of live servers, old and new: row by row what their own files say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pymysql
import pytest

from binlog.adapters import stream_ledger
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_ledger import LedgerBatch, ledger_of_server
from binlog.adapters.stream_session import (
    SERVER_ID_BASE,
    AllBut,
    FromPlace,
    Only,
    Wish,
    _request,
)
from binlog.adapters.stream_windows import Windows
from binlog.errors import BinlogMisuse, CorruptBinlog, DumpRefused, LimitExceeded
from binlog.event_types import EventType
from binlog.ledger.ledger_columns import LEDGER_SCHEMA, LedgerRequest, rows_of_transactions
from binlog.ledger.ledger_sets import gtids_of
from gtid import GtidSet
from tests.binlog.builders import Log, rows_body
from tests.binlog.dumps import Answering, answer, rotate_to, split
from tests.binlog.ledger_shapes import ROW
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import FOREIGN, Written, connect_arguments

Row = dict[str, Any]


def batches(written: Written, wish: Wish, **options: Any) -> list[LedgerBatch]:
    arguments = connect_arguments(written.server)
    return list(ledger_of_server(arguments, wish, timeout_seconds_max=30, **options))


def rows_of(given: Iterable[LedgerBatch]) -> list[Row]:
    return [row for batch in given for row in batch.rows.to_pylist()]


def in_files(written: Written) -> list[Row]:
    read = [each for path in written.files for each in read_transactions(path)]
    found: list[Row] = rows_of_transactions(read).to_pylist()
    return found


def gtid_of(row: Row) -> GtidSet:
    tag = f"{row['tag']}:" if row["tag"] else ""
    return GtidSet.parse(f"{row['uuid']}:{tag}{row['gno']}")


def test_everything(written: Written) -> None:
    given = batches(written, AllBut(GtidSet()))
    assert rows_of(given) == in_files(written)
    assert [batch.file for batch in given] == [path.name for path in written.files]
    for batch in given:
        assert batch.rows.schema == LEDGER_SCHEMA
        assert batch.gtids == gtids_of(batch.rows)
        assert batch.end == batch.rows["end"][-1].as_py()


@pytest.mark.parametrize("window_bytes", [1, 500, 3000])
def test_the_size_of_the_window_does_not_show(
    written: Written, window_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_ledger, "Windows", partial(Windows, window_bytes=window_bytes))
    given = batches(written, AllBut(GtidSet()), request=LedgerRequest(verify=True))
    assert rows_of(given) == in_files(written)
    assert len(given) > len(written.files)


@pytest.mark.parametrize("asked", [("digests",), ("details",), ("digests", "details")])
def test_content_is_that_of_the_files(
    written: Written, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_ledger, "Windows", partial(Windows, window_bytes=3000))
    request = LedgerRequest(**dict.fromkeys(asked, True))
    files = [ledger_of_file(path, request).rows for path in written.files]
    expected = [row for rows in files for row in rows.to_pylist()]
    for column in files[0].schema.names[len(LEDGER_SCHEMA) :]:
        assert any(row[column] for row in expected)
    given = batches(written, AllBut(GtidSet()), request=request)
    assert rows_of(given) == expected
    assert {batch.rows.schema.names[-1] for batch in given} == {files[0].schema.names[-1]}


def test_from_each_place(written: Written) -> None:
    expected = in_files(written)
    for at in range(0, len(expected), 3):
        place = FromPlace(expected[at]["file"], expected[at]["start"])
        assert rows_of(batches(written, place)) == expected[at:]


def test_from_the_end(written: Written) -> None:
    last = in_files(written)[-1]
    assert batches(written, FromPlace(last["file"], last["end"])) == []


def test_all_but_a_set(written: Written) -> None:
    """The set is tagged too where the server knows tags."""
    expected = in_files(written)
    for modulus in (2, 3, len(expected)):
        already = GtidSet.union_of(gtid_of(row) for row in expected[::modulus])
        left = [row for row in expected if not gtid_of(row) <= already]
        assert rows_of(batches(written, AllBut(already))) == left


def test_only_a_set(written: Written) -> None:
    expected = in_files(written)
    for modulus in (2, 3, len(expected)):
        wanted = GtidSet.union_of(gtid_of(row) for row in expected[::modulus])
        assert rows_of(batches(written, Only(wanted))) == expected[::modulus]


def test_each_alone(written: Written) -> None:
    for row in in_files(written):
        assert rows_of(batches(written, Only(gtid_of(row)))) == [row]


def test_what_is_not_there(written: Written) -> None:
    assert batches(written, Only(GtidSet.parse(f"{FOREIGN}:999"))) == []
    assert batches(written, AllBut(written.executed)) == []


def test_what_is_committed_meanwhile_is_no_answer_to_only(written97: Written) -> None:
    """The server has executed more than it said when it was asked: here, all that is not wanted."""
    expected = in_files(written97)
    wanted = gtid_of(expected[3])
    everything = answered_with(written97, AllBut(GtidSet()))
    given = ledger_of_server(everything, Only(wanted), timeout_seconds_max=5)
    assert rows_of(given) == [expected[3]]
    [(file, place)] = ServerLogs(everything, timeout_seconds_max=5).places_of(wanted)
    assert (file, place.start) == (expected[3]["file"], expected[3]["start"])


def test_a_place_is_given_once_where_a_dump_ended_early(written97: Written) -> None:
    """As if killed behind the first of two; then the server sends both."""
    expected = in_files(written97)[:2]
    wanted = GtidSet.union_of(map(gtid_of, expected))
    data = written97.path(1).read_bytes()
    head = [rotate_to(expected[0]["file"]), *split(data[4 : expected[0]["start"]])]
    first, both = (split(data[expected[0]["start"] : row["end"]]) for row in expected)
    connect = Answering(written97, answer([*head, *first]), answer([*head, *both]), ahead=True)
    given = ServerLogs(connect, timeout_seconds_max=5).places_of(wanted)
    assert [place.start for _, place in given] == [row["start"] for row in expected]


def answered_with(written: Written, wish: AllBut) -> Any:
    """A connection that asks for something else than it is told to."""

    def connect() -> Any:
        connection: Any = pymysql.connect(**connect_arguments(written.server))
        execute = connection._execute_command

        def instead(command: int, sql: bytes | str) -> None:
            if command in {0x12, 0x1E}:
                command, sql = _request(wish, flags=1, server_id=SERVER_ID_BASE)
            execute(command, sql)

        connection._execute_command = instead
        return connection

    return connect


# ---- what goes wrong


def test_the_servers_own_words(written: Written) -> None:
    with pytest.raises(DumpRefused, match="1236"):
        batches(written, FromPlace("nowhere.000001", 4))
    with pytest.raises(DumpRefused, match="1236"):
        batches(written, FromPlace(written.path(1).name, 10**8))


def test_questions_that_cannot_be() -> None:
    with pytest.raises(BinlogMisuse, match="expected a position"):
        FromPlace("f", 3)
    with pytest.raises(BinlogMisuse, match="nothing to follow"):
        list(ledger_of_server({}, Only(GtidSet()), timeout_seconds_max=1, follow=True))
    with pytest.raises(BinlogMisuse, match="timeout"):
        list(ledger_of_server({}, AllBut(GtidSet()), timeout_seconds_max=0))


def test_an_event_longer_than_it_may_be(
    written97: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_ledger, "Windows", partial(Windows, window_bytes=100))
    with pytest.raises(LimitExceeded, match="the limit of 300 bytes"):
        batches(written97, AllBut(GtidSet()), event_bytes_max=300)


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_dump_by_place_that_brings_nothing_is_asked_for_once_more(
    written97: Written, empty: int
) -> None:
    """It may have been killed before it began: then, too, it ends as if the log did."""
    log = Log()
    first = log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    data = bytes(log)
    some = answer([rotate_to("f"), data[4:first], *split(data[first:])])
    connect = Answering(written97, *[answer([])] * empty, some)
    given = ledger_of_server(connect, FromPlace("f", 4), timeout_seconds_max=5)
    assert len(rows_of(given)) == (1 if empty < 2 else 0)


def test_what_was_sound_is_given_before_the_error(written97: Written) -> None:
    log = Log()
    first = log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    second = log.gtid(2)
    data = bytes(log)
    odd = data[second:-1]
    sent = [rotate_to("f"), data[4:first], *split(data[first:second]), odd]
    given = ledger_of_server(
        Answering(written97, answer(sent)), FromPlace("f", 4), timeout_seconds_max=5
    )
    batch = next(given)
    assert batch.rows.select(["gno", "start", "end", "kind"]).to_pylist() == [
        {"gno": 1, "start": first, "end": second, "kind": "ddl"}
    ]
    with pytest.raises(
        CorruptBinlog, match=f"f: at byte {second}: an event of 48 bytes in a packet of 47"
    ):
        next(given)


def test_a_wrong_checksum_is_seen_when_asked_for(written97: Written) -> None:
    log = Log()
    first = log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    data = bytearray(bytes(log))
    data[-1] ^= 1
    sent = [rotate_to("f"), bytes(data[4:first]), *split(bytes(data[first:]))]
    [batch] = ledger_of_server(
        Answering(written97, answer(sent)), FromPlace("f", 4), timeout_seconds_max=5
    )
    assert batch.rows.num_rows == 1
    connect = Answering(written97, answer(sent))
    with pytest.raises(CorruptBinlog, match="checksum"):
        list(
            ledger_of_server(
                connect, FromPlace("f", 4), LedgerRequest(verify=True), timeout_seconds_max=5
            )
        )


def test_what_is_not_sound_is_named_by_its_byte_in_the_file(written97: Written) -> None:
    """Not in the window, from which the transaction before it was left out."""
    log = Log(checksum=False)
    log.gtid(1)
    log.query("CREATE TABLE t (a INT)")
    second = log.gtid(2)
    log.query("BEGIN")
    at = log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1))
    log.xid()
    data = bytes(log)
    sent = [rotate_to("f"), *split(data[4:second])[:1], *split(data[second:])]
    given = ledger_of_server(
        Answering(written97, answer(sent)),
        FromPlace("f", 4),
        LedgerRequest(details=True),
        timeout_seconds_max=5,
    )
    [row] = next(given).rows.to_pylist()
    assert (row["start"], row["is_complete"]) == (second, False)
    with pytest.raises(CorruptBinlog, match=f"f: at byte {at}: rows of table id 70"):
        next(given)
