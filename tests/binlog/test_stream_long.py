"""Transactions of a live server that are too long to be held: as if they were."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from binlog.adapters import stream_ledger
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut, FromPlace
from binlog.adapters.stream_windows import Windows
from binlog.errors import CorruptBinlog
from binlog.event_types import EventType
from binlog.kernels.packets import END
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.long_transactions import LongTransaction
from gtid import GtidSet
from tests.binlog.builders import Log, rows_body, table_map_body
from tests.binlog.dumps import Answering, answer, rotate_to, split
from tests.binlog.ledger_shapes import ROW
from tests.binlog.material import Written
from tests.binlog.test_stream_ledger import batches, rows_of

ASKED = LedgerRequest(digests=True, details=True)


class _Narrow(Windows):
    """Gives its room up as soon as it can: what is longer than one event has to grow."""

    def take(self, count: int) -> None:
        super().take(count)
        self._events = self._events[: max(self._state[END], 1)].copy()


def _narrowed(monkeypatch: pytest.MonkeyPatch) -> list[LongTransaction]:
    """Have windows for no more than an event or two; tell what is read event by event."""
    found: list[LongTransaction] = []

    def long_one(request: LedgerRequest, **given: Any) -> LongTransaction:
        found.append(LongTransaction(request, **given))
        return found[-1]

    monkeypatch.setattr(stream_ledger, "Windows", partial(_Narrow, window_bytes=1))
    monkeypatch.setattr(stream_ledger, "LongTransaction", long_one)
    return found


@pytest.mark.parametrize("asked", [(), ("verify",), ("digests", "details")])
@pytest.mark.parametrize("held_bytes_max", [0, 150])
def test_what_is_too_long_to_be_held_is_read_event_by_event(
    written: Written, held_bytes_max: int, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ones = _narrowed(monkeypatch)
    request = LedgerRequest(**dict.fromkeys(asked, True))
    files = [ledger_of_file(path, request).rows for path in written.files]
    given = batches(written, AllBut(GtidSet()), held_bytes_max=held_bytes_max, request=request)
    assert rows_of(given) == [row for rows in files for row in rows.to_pylist()]
    assert all(batch.rows.schema == files[0].schema for batch in given)
    assert len(long_ones) > 1
    assert all(each.is_closed for each in long_ones)


def _open_one(log: Log, gno: int) -> int:
    """Write a transaction that does not end; return where its rows stand."""
    log.gtid(gno)
    log.query("BEGIN")
    log.add(EventType.TABLE_MAP, table_map_body(b"\x03", b""))
    at = [log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1)) for _ in range(20)]
    return at[-1]


def _sent(log: Log, file: str, *, first: int) -> list[bytes]:
    data = bytes(log)
    return [rotate_to(file), data[4:first], *split(data[first:])]


def _two_files() -> list[bytes]:
    """The one holds transactions that never ended, in its middle and at its end."""
    log, other = Log(checksum=True), Log(checksum=False)
    first, second = len(bytes(log)), len(bytes(other))
    _open_one(log, 1)
    _open_one(log, 2)
    log.xid()
    _open_one(log, 3)
    log.gtid(4)
    log.query("CREATE TABLE t (a INT)")
    _open_one(log, 5)
    _open_one(other, 6)
    other.xid()
    return [*_sent(log, "f", first=first), *_sent(other, "g", first=second)]


def _read(written: Written, sent: list[bytes], **options: Any) -> list[dict[str, Any]]:
    connect = Answering(written, answer(sent))
    given = ledger_of_server(connect, FromPlace("f", 4), ASKED, timeout_seconds_max=5, **options)
    return rows_of(given)


def test_ends_that_do_not_come(written97: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head of the next transaction shows it, or the next file."""
    held = _read(written97, _two_files())
    long_ones = _narrowed(monkeypatch)
    assert _read(written97, _two_files(), held_bytes_max=0) == held
    assert [(row["gno"], row["is_complete"], row["digest"] is not None) for row in held] == [
        (1, False, False),
        (2, True, True),
        (3, False, False),
        (4, True, True),
        (5, False, False),
        (6, True, True),
    ]
    assert len(long_ones) >= 5


@pytest.mark.slow
def test_what_is_behind_it_in_the_same_window(
    written97: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the windows end: the file may end there, too."""
    held = _read(written97, _two_files())
    long_ones = _narrowed(monkeypatch)
    for window_bytes in range(50, 4000, 100):
        monkeypatch.setattr(stream_ledger, "Windows", partial(Windows, window_bytes=window_bytes))
        assert _read(written97, _two_files(), held_bytes_max=0) == held, window_bytes
    assert len(long_ones) > 40


def test_what_is_not_sound_within(written97: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    first = len(bytes(log))
    _open_one(log, 1)
    at = log.add(EventType.WRITE_ROWS, rows_body(ROW, columns=1, table_id=71))
    log.xid()
    long_ones = _narrowed(monkeypatch)
    connect = Answering(written97, answer(_sent(log, "f", first=first)))
    given = ledger_of_server(
        connect, FromPlace("f", 4), ASKED, timeout_seconds_max=5, held_bytes_max=0
    )
    [row] = next(given).rows.to_pylist()
    assert (row["start"], row["is_complete"], row["digest"]) == (first, False, None)
    with pytest.raises(CorruptBinlog, match=f"f: at byte {at}: rows of table id 71"):
        next(given)
    assert len(long_ones) == 1


def test_a_cut_within(written97: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again, and comes once."""
    log = Log()
    first = len(bytes(log))
    _open_one(log, 1)
    log.xid()
    sent = _sent(log, "f", first=first)
    held = _read(written97, sent)
    long_ones = _narrowed(monkeypatch)
    connect = Answering(written97, answer(sent[:12]), answer(sent))
    given = ledger_of_server(
        connect, FromPlace("f", 4), ASKED, timeout_seconds_max=5, held_bytes_max=0
    )
    assert rows_of(given) == held
    assert [row["is_complete"] for row in held] == [True]
    assert [each.is_closed for each in long_ones] == [False, True]
