"""One contract for every source of transactions with their events: memory, files, and live servers, old and new."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from binlog.adapters import wanted_events
from binlog.adapters.compression import find_decompressor
from binlog.adapters.log_files import FileLogs, read_events, read_file_head
from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError, LimitExceeded
from binlog.events import (
    Event,
    FormatDescription,
    GtidLog,
    PreviousGtids,
    Query,
    Rotate,
    Rows,
    Stop,
    TableMap,
    TransactionPayload,
    Xid,
)
from binlog.scan import EventGroup
from binlog.transactions import Transaction
from gtid import GtidSet
from tests.binlog.logs_in_memory import MemoryLogs, read_transactions
from tests.binlog.material import FOREIGN, Written, connect_arguments

Source = MemoryLogs | FileLogs | ServerLogs


def _memory(written: Written) -> Source:
    files = {path.name: path.read_bytes() for path in written.files}
    return MemoryLogs(files, decompress=find_decompressor(), chunk_bytes=1000)


def _files(written: Written) -> Source:
    return FileLogs(written.files)


def _large_files(written: Written) -> Source:
    """As it is done with files that are worth the trouble."""
    return FileLogs(written.files)


def _stream(written: Written) -> ServerLogs:
    return ServerLogs(connect_arguments(written.server), timeout_seconds_max=30)


@pytest.fixture(params=[_memory, _files, _large_files, _stream])
def source(
    request: pytest.FixtureRequest, written: Written, monkeypatch: pytest.MonkeyPatch
) -> Source:
    if request.param is _large_files:
        monkeypatch.setattr(wanted_events, "_LARGE_BYTES", 0)
    make: Callable[[Written], Source] = request.param
    return make(written)


def _all(written: Written) -> list[Transaction]:
    return [each for path in written.files for each in read_transactions(path)]


def _bare(event: Event) -> tuple[object, ...]:
    """What an event says, wherever it came from."""
    return event.file, event.start, event.end, event.header, event.body


def test_the_events_of_everything(source: Source, written: Written) -> None:
    groups = list(source.events_of(written.executed))
    assert [each.transaction for each in groups] == _all(written)
    for path in written.files:
        here = [each for each in groups if each.transaction.file == path.name]
        for group in here:
            first, *_, last = group.events
            assert isinstance(first.body, GtidLog)
            assert first.start == group.transaction.start
            assert last.end == group.transaction.end
            assert group.description == replace(
                read_file_head(path).description, is_in_use=group.description.is_in_use
            )
        outside = [
            _bare(event)
            for group in here
            for event in group.events
            if event.header.end_log_pos  # what was in a payload has none
        ]
        in_groups = [
            _bare(event)
            for event in read_events(path)
            if not isinstance(
                event.body,
                FormatDescription | PreviousGtids | Rotate | Stop | TransactionPayload,
            )
        ]
        assert outside == in_groups


def test_payloads_stand_opened(source: Source, written: Written) -> None:
    compressed = [
        event.start
        for path in written.files
        for event in read_events(path)
        if isinstance(event.body, TransactionPayload)
    ]
    assert bool(compressed) == (written.server.version >= (8, 0))
    opened = 0
    for group in source.events_of(written.executed):
        inside = [each for each in group.events if each.start in compressed]
        if inside:
            opened += 1
            assert not any(isinstance(each.body, TransactionPayload) for each in group.events)
            assert [type(each.body) for each in inside] == [Query, TableMap, Rows, Xid]
    assert opened == len(compressed)


def test_the_events_of_each_transaction(source: Source, written: Written) -> None:
    everything = {
        each.transaction.gtid: each for each in _memory(written).events_of(written.executed)
    }
    for gtid, expected in everything.items():
        assert gtid is not None
        assert [_same(each) for each in source.events_of(GtidSet.of(gtid))] == [_same(expected)]


def _same(group: EventGroup) -> tuple[object, ...]:
    return group.transaction, [_bare(each) for each in group.events]


def test_no_events_of_what_is_not_there(source: Source) -> None:
    assert list(source.events_of(GtidSet())) == []
    assert list(source.events_of(GtidSet.parse(f"{FOREIGN}:999"))) == []


def test_each_transactions_events_are_bounded(source: Source, written: Written) -> None:
    largest = max(each.end - each.start for each in _all(written))
    first = next(each for each in _all(written) if each.end - each.start > 100)
    what = re.escape(
        f"{first.gtid} at {first.file}:{first.start} is larger than the limit of 100 bytes"
    )
    with pytest.raises(LimitExceeded, match=what):
        list(source.events_of(written.executed, bytes_max=100))
    assert len(list(source.events_of(written.executed, bytes_max=largest))) == len(_all(written))


# ---- transactions without their events, from a server


def test_each_transaction_by_its_gtid(written: Written) -> None:
    for expected in _all(written):
        assert expected.gtid is not None
        assert _stream(written).transactions_of(GtidSet.of(expected.gtid)) == (expected,)


def test_several_in_the_order_of_the_logs(written: Written) -> None:
    everything = _all(written)
    expected = tuple(everything[at] for at in (1, 4, len(everything) - 1))
    wanted = GtidSet.of(each.gtid for each in expected if each.gtid)
    assert _stream(written).transactions_of(wanted) == expected
    assert _stream(written).transactions_of(wanted, transactions_max=2) == expected[:2]


def test_everything(written: Written) -> None:
    everything = tuple(_all(written))
    assert _stream(written).transactions_of(written.executed) == everything
    given = _stream(written).transactions_from(
        file=written.path(1).name, position=4, transactions_max=1000
    )
    assert given == everything


def test_from_a_position(written: Written) -> None:
    expected = tuple(_all(written))[3:5]
    given = _stream(written).transactions_from(
        file=expected[0].file, position=expected[0].start, transactions_max=2
    )
    assert given == expected


def test_no_transactions_wanted(written: Written) -> None:
    name = written.path(1).name
    source = _stream(written)
    assert source.transactions_from(file=name, position=4, transactions_max=0) == ()
    assert source.transactions_of(GtidSet()) == ()
    assert source.transactions_of(written.executed, transactions_max=0) == ()
    assert source.transactions_of(GtidSet.parse(f"{FOREIGN}:999")) == ()


def test_bytes_are_bounded(written: Written) -> None:
    with pytest.raises(LimitExceeded, match="the limit of 100 bytes"):
        _stream(written).transactions_of(written.executed, bytes_max=100)


@pytest.mark.parametrize(("file", "offset"), [("nowhere.000001", 0), (None, 1), (None, 10**8)])
def test_places_that_are_not_there(written: Written, file: str | None, offset: int) -> None:
    first = next(iter(read_transactions(written.path(1))))
    with pytest.raises(BinlogError):
        _stream(written).transactions_from(
            file=file or first.file, position=first.start + offset, transactions_max=1
        )


def test_inside_the_magic_number(written: Written) -> None:
    with pytest.raises(BinlogError, match="expected a position"):
        _stream(written).transactions_from(
            file=written.path(1).name, position=3, transactions_max=1
        )
