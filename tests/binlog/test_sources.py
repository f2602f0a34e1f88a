"""One contract for every source of transactions: memory, files, and live servers, old and new."""

from __future__ import annotations

from collections.abc import Callable

import pymysql
import pytest

from binlog.adapters.compression import find_decompressor
from binlog.adapters.files import FileLogs, read_transactions
from binlog.adapters.memory import MemoryLogs
from binlog.adapters.stream import StreamLogs
from binlog.errors import BinlogError, LimitExceeded
from binlog.scan import TransactionSource
from binlog.transactions import Transaction
from gtid import GtidSet
from tests.binlog.material import FOREIGN, Written, connect_arguments


def _memory(written: Written) -> TransactionSource:
    files = {path.name: path.read_bytes() for path in written.files}
    return MemoryLogs(files, decompress=find_decompressor(), chunk_bytes=1000)


def _files(written: Written) -> TransactionSource:
    return FileLogs(written.files)


def _stream(written: Written) -> TransactionSource:
    return StreamLogs(connect_arguments(written.server), written.executed, timeout_seconds_max=30)


def _stream_by_function(written: Written) -> TransactionSource:
    arguments = connect_arguments(written.server)
    return StreamLogs(
        lambda: pymysql.connect(**arguments), written.executed, timeout_seconds_max=30
    )


@pytest.fixture(params=[_memory, _files, _stream, _stream_by_function])
def source(request: pytest.FixtureRequest, written: Written) -> TransactionSource:
    make: Callable[[Written], TransactionSource] = request.param
    return make(written)


def _all(written: Written) -> list[Transaction]:
    return [each for path in written.files for each in read_transactions(path)]


def test_all_sources_give_what_is_in_the_files(source: TransactionSource, written: Written) -> None:
    for path in written.files:
        expected = tuple(read_transactions(path))
        given = source.transactions_at(file=path.name, position=4, transactions_max=1000)
        assert given == expected


def test_from_a_position(source: TransactionSource, written: Written) -> None:
    expected = tuple(read_transactions(written.path(1)))[3:5]
    given = source.transactions_at(
        file=expected[0].file, position=expected[0].start, transactions_max=2
    )
    assert given == expected


def test_no_transactions_wanted(source: TransactionSource, written: Written) -> None:
    name = written.path(1).name
    assert source.transactions_at(file=name, position=4, transactions_max=0) == ()
    assert source.transactions_of(GtidSet()) == ()
    assert source.transactions_of(written.executed, transactions_max=0) == ()


def test_each_transaction_by_its_gtid(source: TransactionSource, written: Written) -> None:
    for expected in _all(written):
        assert expected.gtid is not None
        assert source.transactions_of(GtidSet.of(expected.gtid)) == (expected,)


def test_several_in_the_order_of_the_logs(source: TransactionSource, written: Written) -> None:
    everything = _all(written)
    expected = tuple(everything[at] for at in (1, 4, len(everything) - 1))
    wanted = GtidSet.of(each.gtid for each in expected if each.gtid)
    assert source.transactions_of(wanted) == expected
    assert source.transactions_of(wanted, transactions_max=2) == expected[:2]


def test_everything(source: TransactionSource, written: Written) -> None:
    assert source.transactions_of(written.executed) == tuple(_all(written))


def test_what_was_never_executed_is_not_there(source: TransactionSource) -> None:
    assert source.transactions_of(GtidSet.parse(f"{FOREIGN}:999")) == ()


def test_bytes_are_bounded(source: TransactionSource, written: Written) -> None:
    with pytest.raises(LimitExceeded, match="bytes_max = 100"):
        source.transactions_of(written.executed, bytes_max=100)


@pytest.mark.parametrize(("file", "offset"), [("nowhere.000001", 0), (None, 1), (None, 10**8)])
def test_places_that_are_not_there(
    source: TransactionSource, written: Written, file: str | None, offset: int
) -> None:
    first = next(iter(read_transactions(written.path(1))))
    with pytest.raises(BinlogError):
        source.transactions_at(
            file=file or first.file, position=first.start + offset, transactions_max=1
        )


def test_inside_the_magic_number(source: TransactionSource, written: Written) -> None:
    with pytest.raises(BinlogError, match="expected a position"):
        source.transactions_at(file=written.path(1).name, position=3, transactions_max=1)
