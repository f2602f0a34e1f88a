"""Which files are read for a set of GTIDs, and when two transactions are one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from binlog.adapters import one_history
from binlog.adapters.one_history import OneHistory
from binlog.adapters.wanted_events import wanted_events
from binlog.errors import ReusedGtid
from binlog.event_types import EventType
from binlog.events import Event
from binlog.header import FLAG_RELAY_LOG
from gtid import Gtid, GtidSet, Tsid
from gtid.binary import encode
from tests.binlog.builders import NOON_SECONDS, UUID_A, Log, query_body


def gtid(number: int) -> Gtid:
    return Gtid(Tsid(UUID_A), number)


def gtids(*numbers: int) -> GtidSet:
    return GtidSet.of(map(gtid, numbers))


def write(
    path: Path,
    previous: GtidSet | None,
    statements: dict[int, str],
    *,
    flags: int = 0,
    at_seconds: int = NOON_SECONDS,
) -> Path:
    log = Log(flags=flags)
    if previous is not None:
        log.add(EventType.PREVIOUS_GTIDS, encode(previous))
    for number, sql in statements.items():
        log.gtid(number)
        log.add(EventType.QUERY, query_body(sql), at_seconds=at_seconds)
    path.write_bytes(bytes(log))
    return path


def named(number: int) -> str:
    return f"CREATE TABLE t{number} (a INT)"


@pytest.mark.parametrize(
    ("previous", "flags", "is_read_before", "is_read_after"),
    [
        (gtids(1, 2), 0, False, False),  # it lists all: nothing wanted is in it
        (gtids(1, 2, 3), 0, False, False),
        (gtids(1), 0, True, True),  # 2 may be in it, even if it was found before
        (GtidSet(), 0, True, True),
        (None, 0, True, True),  # 5.6 with gtid_mode = OFF
        (gtids(1, 2), FLAG_RELAY_LOG, True, False),  # 5.6 lists what has only begun
        (gtids(1), FLAG_RELAY_LOG, True, True),
    ],
)
def test_a_file_is_read_if_its_header_does_not_list_all(
    tmp_path: Path,
    previous: GtidSet | None,
    flags: int,
    is_read_before: bool,
    is_read_after: bool,
) -> None:
    first = write(tmp_path / "log.000001", GtidSet(), {1: named(1), 2: named(2)}, flags=flags)
    second = write(tmp_path / "log.000002", previous, {}, flags=flags)
    history = OneHistory([first, second], gtids(1, 2))
    assert history.may_have(1) is is_read_before
    complete = []
    for number in (1, 2):
        assert history.may_have(1) is is_read_before
        assert history.is_new(gtid(number), first.name)
        complete.append(history.is_complete)
    assert complete == [False, True]
    assert history.may_have(1) is is_read_after
    assert not OneHistory([first, second], GtidSet()).may_have(1)


def test_a_file_without_a_readable_header_is_read(tmp_path: Path) -> None:
    damaged = tmp_path / "log.000001"
    damaged.write_bytes(b"\xfebi")
    for path in (damaged, tmp_path / "log.000002"):
        assert OneHistory([path], gtids(1)).may_have(0)


@pytest.mark.parametrize("latest_max", [1, 2, 10_000])
@pytest.mark.parametrize("at_once", [1, 2, 1_000])
def test_copies_are_one_and_others_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latest_max: int, at_once: int
) -> None:
    """GTID 3 is another transaction in the third file; 5 is in that file only."""
    monkeypatch.setattr(one_history, "_LATEST_MAX", latest_max)
    monkeypatch.setattr(one_history, "_COMPARED_AT_ONCE", at_once)
    paths = [
        write(tmp_path / "log.000001", GtidSet(), {1: named(1), 2: named(2)}),
        write(tmp_path / "log.000002", gtids(1, 2), {3: named(3), 4: named(4)}),
        write(
            tmp_path / "log.000003",
            gtids(1),
            {2: named(2), 3: "DROP TABLE t3", 4: named(4), 5: named(5)},
        ),
    ]
    history = OneHistory(paths, gtids(1, 2, 3, 4, 5, 6))
    found = [(1, 0), (2, 0), (3, 1), (4, 1)]
    assert all(history.is_new(gtid(number), paths[at].name) for number, at in found)
    assert not history.is_new(gtid(1), paths[0].name), "the same place once more"
    assert all(history.has(gtid(number)) for number, _ in found)
    for number in (2, 4):
        assert not history.is_new(gtid(number), paths[2].name)
    for _ in range(2):
        with pytest.raises(ReusedGtid) as raised:
            history.is_new(gtid(3), paths[2].name)
        assert raised.value.gtid == str(gtid(3))
        assert raised.value.files == (paths[1].name, paths[2].name)
    assert history.is_new(gtid(5), paths[2].name)
    assert not history.has(gtid(6))
    assert not history.is_complete


def test_two_files_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(1, 50)
    paths = [
        write(tmp_path / f"log.{at:06}", GtidSet(), {number: named(number) for number in numbers})
        for at in (1, 2)
    ]
    read: list[str] = []

    def counted(path: Path, wanted: GtidSet) -> Iterator[Event]:
        read.append(path.name)
        return wanted_events(path, wanted)

    monkeypatch.setattr(one_history, "wanted_events", counted)
    history = OneHistory(paths, gtids(*numbers))
    for path in paths:
        is_first = path == paths[0]
        assert {history.is_new(gtid(number), path.name) for number in numbers} == {is_first}
    assert read == [path.name for path in paths]


def test_one_content_committed_at_two_times_is_one(tmp_path: Path) -> None:
    """A dump of the log that was loaded on a server that was built anew."""
    paths = [
        write(tmp_path / f"log.{at:06}", GtidSet(), {1: named(1)}, at_seconds=NOON_SECONDS + at)
        for at in (1, 2)
    ]
    history = OneHistory(paths, gtids(1))
    assert history.is_new(gtid(1), paths[0].name)
    assert not history.is_new(gtid(1), paths[1].name)


def test_of_a_relay_log_a_transaction_is_compared_whole(tmp_path: Path) -> None:
    """It begins in the first file and ends in the second; a receiver got it again in the third."""
    half, rest = Log(flags=FLAG_RELAY_LOG), Log(flags=FLAG_RELAY_LOG)
    half.gtid(1)
    half.query("BEGIN")
    rest.ahead = len(bytes(half)) - len(bytes(rest))
    rest.query("INSERT INTO t VALUES (1)")
    rest.xid()
    whole = Log(flags=FLAG_RELAY_LOG)
    whole.gtid(1)
    for sql in ("BEGIN", "INSERT INTO t VALUES (1)"):
        whole.query(sql)
    whole.xid()
    paths = [tmp_path / f"relay.{at:06}" for at in (1, 2, 3)]
    for path, log in zip(paths, (half, rest, whole), strict=True):
        path.write_bytes(bytes(log))
    history = OneHistory(paths, gtids(1))
    assert history.is_new(gtid(1), paths[0].name)
    assert not history.is_new(gtid(1), paths[2].name)


def test_two_transactions_of_relay_logs_are_two(tmp_path: Path) -> None:
    """The later one is not taken for that of the first file, although both files are read on."""
    paths = [
        write(tmp_path / f"relay.{at:06}", GtidSet(), {1: sql}, flags=FLAG_RELAY_LOG)
        for at, sql in ((1, named(1)), (2, "DROP TABLE t1"), (3, "DROP TABLE t1"))
    ]
    history = OneHistory(paths, gtids(1))
    assert history.is_new(gtid(1), paths[0].name)
    for later in paths[1:]:
        with pytest.raises(ReusedGtid):
            history.is_new(gtid(1), later.name)


def test_the_half_of_a_transaction_in_the_same_relay_log_does_not_count(tmp_path: Path) -> None:
    whole, both = Log(flags=FLAG_RELAY_LOG), Log(flags=FLAG_RELAY_LOG)
    both.gtid(1)
    both.query("BEGIN")
    for log in (whole, both):
        log.gtid(1)
        for sql in ("BEGIN", "INSERT INTO t VALUES (1)"):
            log.query(sql)
        log.xid()
    paths = [tmp_path / f"relay.{at:06}" for at in (1, 2)]
    for path, log in zip(paths, (whole, both), strict=True):
        path.write_bytes(bytes(log))
    history = OneHistory(paths, gtids(1))
    assert history.is_new(gtid(1), paths[0].name)
    assert not history.is_new(gtid(1), paths[1].name)
