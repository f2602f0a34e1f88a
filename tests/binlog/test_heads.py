"""Locating GTIDs in files and on live servers: held to reading everything."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlog.adapters import heads_server, previous_gtids
from binlog.adapters.heads_files import locate_in_files
from binlog.adapters.heads_server import ServerHeads, locate_on_server
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.errors import (
    CorruptBinlog,
    DumpBroken,
    StatementRefused,
    UnreadableBinlog,
    UnsupportedBinlog,
)
from binlog.event_types import EventType
from binlog.locating.index import Span
from binlog.locating.places import Absence, Located
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from gtid.binary import encode
from tests.binlog.builders import UUID_A, Log
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import connect_arguments

A = str(UUID_A)


def _set(text: str) -> GtidSet:
    return GtidSet.parse(text)


def _gtids(*numbers: int) -> GtidSet:
    return _set(",".join(f"{A}:{number}" for number in numbers))


def _absent(found: Located) -> dict[Absence, GtidSet]:
    return dict(found.absent)


def _log(previous: GtidSet | None, *gnos: int) -> Log:
    log = Log()
    if previous is not None:
        log.add(EventType.PREVIOUS_GTIDS, encode(previous))
    for gno in gnos:
        log.gtid(gno)
        log.query("BEGIN")
        log.xid()
    return log


@dataclass
class Files:
    """Files of three transactions each, numbered through; those of `no_head` have no head."""

    folder: Path
    count: int
    purged: int = 0
    no_head: frozenset[int] = frozenset()

    def paths(self) -> list[Path]:
        made = []
        for number in range(self.count):
            first = self.purged + 3 * number + 1
            previous = _set(f"{A}:1-{first - 1}") if first > 1 else GtidSet()
            log = _log(None if number in self.no_head else previous, *range(first, first + 3))
            made.append(self.folder / f"binlog.{number + 1:06}")
            made[-1].write_bytes(bytes(log))
        return made


def test_each_gtid_is_found_where_reading_every_file_finds_it(tmp_path: Path) -> None:
    paths = Files(tmp_path, 20).paths()
    for path in paths:
        for transaction in read_transactions(path):
            assert transaction.gtid is not None
            found = locate_in_files(paths, GtidSet.of(transaction.gtid))
            [held] = found.files
            [place] = held.places
            assert (held.file, place.gtid) == (str(path), transaction.gtid)
            assert (place.start, place.end) == (transaction.start, transaction.end)
            assert found.heads_read <= 6
            assert found.absent == ()


def test_a_set_over_several_files_and_beyond_them(tmp_path: Path) -> None:
    paths = Files(tmp_path, 5, purged=10).paths()
    found = locate_in_files(paths, _gtids(2, 13, 14, 24, 77))
    assert [(Path(each.file).name, each.gtids) for each in found.files] == [
        ("binlog.000001", _gtids(13)),
        ("binlog.000002", _gtids(14)),
        ("binlog.000005", _gtids(24)),
    ]
    assert _absent(found) == {Absence.BEFORE_FIRST: _gtids(2), Absence.IN_NO_FILE: _gtids(77)}
    assert found.file_count == 5


def test_positions_are_bounded_and_counts_are_not(tmp_path: Path) -> None:
    paths = Files(tmp_path, 3).paths()
    found = locate_in_files(paths, _set(f"{A}:1-9"), places_max=4)
    assert [len(each.places) for each in found.files] == [3, 1, 0]
    assert [each.left_out for each in found.files] == [0, 2, 3]
    assert found.found == _set(f"{A}:1-9")


def test_files_without_previous_gtids_are_looked_into(tmp_path: Path) -> None:
    """A 5.6 server with gtid_mode=OFF writes none; what lies between known heads is read."""
    paths = Files(tmp_path, 6, no_head=frozenset({0, 2, 3})).paths()
    assert previous_gtids_of(paths[2]) is None
    for gno, file in ((1, 1), (8, 3), (10, 4), (13, 5)):
        [held] = locate_in_files(paths, _gtids(gno)).files
        assert Path(held.file).name == f"binlog.{file:06}"


def test_a_damaged_head_is_gone_round_and_said_only_if_it_matters(tmp_path: Path) -> None:
    paths = Files(tmp_path, 4).paths()
    data = bytearray(paths[2].read_bytes())
    data[30] ^= 0xFF
    paths[2].write_bytes(bytes(data))
    with pytest.raises(CorruptBinlog):
        previous_gtids_of(paths[2])
    beside = locate_in_files(paths, _gtids(1))
    assert (beside.errors, [Path(each.file).name for each in beside.files]) == (
        (),
        ["binlog.000001"],
    )
    found = locate_in_files(paths, _gtids(8))
    assert _absent(found) == {Absence.UNREAD: _gtids(8)}
    [error] = found.errors
    assert isinstance(error, CorruptBinlog)
    assert (error.file, error.position) == ("binlog.000003", 4)


def test_what_stands_before_the_damage_is_found(tmp_path: Path) -> None:
    paths = Files(tmp_path, 2).paths()
    paths[1].write_bytes(paths[1].read_bytes()[:-10])
    found = locate_in_files(paths, _gtids(4, 6))
    assert found.found >= _gtids(4)
    assert [error.position for error in found.errors if isinstance(error, CorruptBinlog)]


def test_encrypted_files_say_where_to_read_them(tmp_path: Path) -> None:
    paths = Files(tmp_path, 3).paths()
    for path in paths[1:]:
        path.write_bytes(b"\xfdbin" + path.read_bytes()[4:])
    with pytest.raises(UnsupportedBinlog, match="read it from its server"):
        previous_gtids_of(paths[1])
    found = locate_in_files(paths, _gtids(2, 5))
    assert _absent(found) == {Absence.UNREAD: _gtids(5)}
    assert len(found.errors) == 2
    assert "binlog_encryption" in str(found.errors[0])


def test_a_transaction_over_two_relay_logs_is_found_where_it_begins(tmp_path: Path) -> None:
    """The next file's head does not list it: it was not whole when that file was begun."""
    first, second = _log(GtidSet(), 1), _log(_gtids(1))
    first.gtid(2)
    first.query("BEGIN")
    second.query("INSERT INTO t VALUES (1)")
    second.xid()
    third = _log(_gtids(1, 2), 3)
    paths = [tmp_path / f"relay.{number:06}" for number in (1, 2, 3)]
    for path, log in zip(paths, (first, second, third), strict=True):
        path.write_bytes(bytes(log))
    [held] = locate_in_files(paths, _gtids(2)).files
    assert Path(held.file).name == "relay.000001"
    assert [place.is_complete for place in held.places] == [False]


def test_a_transaction_over_many_relay_logs_is_found_where_it_begins(tmp_path: Path) -> None:
    """A receiver that requests by position, restarted again and again within one transaction."""
    logs = [_log(GtidSet(), 1), *(_log(_gtids(1)) for _ in range(3)), _log(_gtids(1, 2), 3)]
    logs[0].gtid(2)
    logs[0].query("BEGIN")
    for log in logs[1:3]:
        log.query("INSERT INTO t VALUES (1)")
    logs[3].xid()
    paths = [tmp_path / f"relay.{number:06}" for number in range(len(logs))]
    for path, log in zip(paths, logs, strict=True):
        path.write_bytes(bytes(log))
    found = locate_in_files(paths, _gtids(2, 3))
    held, later = found.files
    assert Path(held.file).name == "relay.000000"
    assert [(str(place.gtid), place.is_complete) for place in held.places] == [(f"{A}:2", False)]
    assert (later.gtids, found.absent) == (_gtids(3), ())
    [missing] = locate_in_files(paths, _gtids(4)).absent
    assert missing == (Absence.IN_NO_FILE, _gtids(4))


def test_of_files_in_another_order_or_of_two_channels_all_is_found(tmp_path: Path) -> None:
    """No binary search finds them: the headers do not grow."""
    paths = Files(tmp_path, 6).paths()
    for given in (paths[::-1], [*paths[3:], *paths[:3]], paths[::2] + paths[1::2]):
        found = locate_in_files(given, _gtids(*range(1, 19)))
        assert found.found == _gtids(*range(1, 19))
        assert found.absent == ()
    other = [tmp_path / f"relay-b.{number:06}" for number in range(4)]
    for at, path in enumerate(other):
        path.write_bytes(bytes(_log(_gtids(*range(101, 101 + at)), 101 + at)))
    found = locate_in_files([*paths, *other], _gtids(4, 102, 104, 200))
    assert [Path(each.file).name for each in found.files] == [
        "binlog.000002",
        "relay-b.000001",
        "relay-b.000003",
    ]
    assert _absent(found) == {Absence.IN_NO_FILE: _gtids(200)}


def test_the_begin_of_a_transaction_is_its_place_only_if_no_file_has_the_whole(
    tmp_path: Path,
) -> None:
    """The first file is read in any case, because of the other GTID."""
    first = _log(GtidSet(), 1)
    first.gtid(2)
    first.gtid(3)
    paths = [tmp_path / f"relay.{number:06}" for number in (1, 2)]
    paths[0].write_bytes(bytes(first))
    paths[1].write_bytes(bytes(_log(_gtids(1), 2)))
    found = locate_in_files(paths, _gtids(1, 2, 3))
    assert [
        (Path(each.file).name[-1], str(place.gtid)[-1], place.is_complete)
        for each in found.files
        for place in each.places
    ] == [("1", "1", True), ("1", "3", False), ("2", "2", True)]
    assert [each.gtids for each in found.files] == [_gtids(1, 3), _gtids(2)]


def test_a_transaction_sent_again_is_found_once(tmp_path: Path) -> None:
    """A receiver that was cut off in the middle gets the whole of it again, in its next file."""
    first = _log(GtidSet(), 1)
    first.gtid(2)
    paths = [tmp_path / f"relay.{number:06}" for number in (1, 2)]
    paths[0].write_bytes(bytes(first))
    paths[1].write_bytes(bytes(_log(_gtids(1), 2)))
    [held] = locate_in_files(paths, _gtids(2, 9)).files
    assert Path(held.file).name == "relay.000002"
    assert [place.is_complete for place in held.places] == [True]


def test_a_file_that_is_gone_is_an_error_of_its_own(tmp_path: Path) -> None:
    paths = Files(tmp_path, 3).paths()
    paths[1].unlink()
    found = locate_in_files(paths, _gtids(1, 5, 9))
    assert found.found == _gtids(1, 9)
    assert _absent(found) == {Absence.UNREAD: _gtids(5)}
    [error] = found.errors
    assert isinstance(error, UnreadableBinlog)
    assert str(error) == "binlog.000002: No such file or directory"


def test_positions_are_fetched_in_few_dumps() -> None:
    spans = [Span(number, number + 1, _gtids(number + 1)) for number in (0, 1, 2, 5, 7)]
    assert list(heads_server._dumps(spans, places_max=9)) == [_gtids(1, 2, 3), _gtids(6), _gtids(8)]
    assert list(heads_server._dumps(spans, places_max=4)) == [_gtids(1, 2, 3), _gtids(6)]
    assert list(heads_server._dumps(spans, places_max=0)) == []
    apart = [Span(number, number + 1, _gtids(number + 1)) for number in range(0, 100, 2)]
    dumps = list(heads_server._dumps(apart, places_max=99))
    assert len(dumps) == heads_server._DUMPS_MAX
    assert GtidSet.union_of(dumps) == GtidSet.union_of(span.gtids for span in apart)


def test_a_way_to_connect_that_fails_is_a_broken_connection() -> None:
    def connect() -> Any:
        raise ConnectionResetError("reset")

    with pytest.raises(DumpBroken, match="reset"):
        locate_on_server(connect, _gtids(1), timeout_seconds_max=5)


def test_a_head_longer_than_what_is_read_first(tmp_path: Path) -> None:
    many = _set(",".join(f"{A}:{number}" for number in range(1, 20_000, 2)))
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(_log(many, 2)))
    assert path.stat().st_size > 20 * previous_gtids.HEAD_BYTES
    assert previous_gtids_of(path) == many


@pytest.mark.parametrize("size", [0, 2, 4, 30, 123, 150])
def test_a_head_that_is_being_written_is_not_known(tmp_path: Path, size: int) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(_log(_gtids(1), 2))[:size])
    assert previous_gtids_of(path) is None


def test_a_huge_first_event_is_not_read_for_the_head(tmp_path: Path) -> None:
    """A header that claims a gigabyte, behind a description: its type is enough."""
    log = Log()
    huge = struct.pack("<IBIIIH", 0, EventType.QUERY, 7, 1 << 29, 0, 0)
    path = tmp_path / "binlog.000001"
    path.write_bytes(bytes(log) + huge)
    assert previous_gtids_of(path) is None


# ---- live servers


@dataclass
class Rotated:
    """A server with many binary logs; the first are purged."""

    server: Server
    files: list[str]
    uuid: str

    def paths(self) -> list[Path]:
        return [self.server.datadir / name for name in self.files]


@pytest.fixture(scope="module", params=["installation97", "installation56"])
def rotated(request: pytest.FixtureRequest) -> Iterator[Rotated]:
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation) as server:
        server.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB")
        each = ((f"INSERT INTO d.t VALUES ({number})", "FLUSH BINARY LOGS") for number in range(30))
        server.execute(*chain.from_iterable(each), "INSERT INTO d.t VALUES (1000)")
        names = [str(row[0]) for row in server.query("SHOW BINARY LOGS")]
        server.execute(f"PURGE BINARY LOGS TO '{names[5]}'")
        uuid = str(server.value("@@GLOBAL.server_uuid"))
        yield Rotated(server, names[5:], uuid)


def _counted(server: Server) -> tuple[Callable[[], Any], list[str]]:
    """Return a way to connect, and what was asked over it."""
    asked: list[str] = []

    class Counting(pymysql.cursors.Cursor):
        def execute(self, query: Any, args: Any = None) -> int:
            asked.append(str(query))
            return super().execute(query, args)

    class Connection(pymysql.connections.Connection):
        def cursor(self, _cursor: Any = None) -> Any:
            return Counting(self)

    return (lambda: Connection(**connect_arguments(server))), asked


def test_a_server_finds_what_its_files_hold(rotated: Rotated) -> None:
    held = {each.gtid: each for path in rotated.paths() for each in read_transactions(path)}
    for gtid, transaction in list(held.items())[::7]:
        assert gtid is not None
        connect, asked = _counted(rotated.server)
        found = locate_on_server(connect, GtidSet.of(gtid), timeout_seconds_max=20)
        [file] = found.files
        [place] = file.places
        assert (file.file, place.start, place.end) == (
            transaction.file,
            transaction.start,
            transaction.end,
        )
        heads = [sql for sql in asked if sql.startswith("SHOW BINLOG EVENTS")]
        assert len(heads) == found.heads_read <= 7
        assert (found.errors, found.absent) == ((), ())


def test_a_server_says_what_is_purged_and_what_is_not_there_yet(rotated: Rotated) -> None:
    executed = _set(rotated.server.value("@@GLOBAL.gtid_executed"))
    purged = _set(rotated.server.value("@@GLOBAL.gtid_purged"))
    future = _set(f"{rotated.uuid}:900,{A}:1")
    assert purged
    found = locate_on_server(
        connect_arguments(rotated.server), executed | future, timeout_seconds_max=20
    )
    assert _absent(found) == {Absence.PURGED: purged, Absence.NOT_EXECUTED: future}
    assert found.found == executed - purged
    assert [each.file for each in found.files] == rotated.files
    assert all(each.left_out == 0 for each in found.files)
    in_files = locate_in_files(rotated.paths(), executed | future)
    assert [each.places for each in in_files.files] == [each.places for each in found.files]
    assert _absent(in_files) == {Absence.BEFORE_FIRST: purged, Absence.IN_NO_FILE: future}


def test_files_are_told_without_positions_where_these_are_too_many(rotated: Rotated) -> None:
    executed = _set(rotated.server.value("@@GLOBAL.gtid_executed"))
    purged = _set(rotated.server.value("@@GLOBAL.gtid_purged"))
    found = locate_on_server(
        connect_arguments(rotated.server), executed, timeout_seconds_max=20, places_max=3
    )
    assert found.errors == ()
    assert found.found == executed - purged
    assert sum(len(each.places) for each in found.files) == 3
    assert _absent(found) == {Absence.PURGED: purged}


def test_positions_that_cannot_be_fetched_leave_the_files_known(rotated: Rotated) -> None:
    executed = _set(rotated.server.value("@@GLOBAL.gtid_executed"))
    server = rotated.server
    opened: list[bool] = []

    def connect() -> Any:
        if opened:
            raise ConnectionRefusedError("no more")
        opened.append(True)
        return pymysql.connect(**connect_arguments(server))

    found = locate_on_server(connect, executed.first(12), timeout_seconds_max=5)
    assert all(each.places == () for each in found.files)
    assert found.found
    [error] = found.errors
    assert isinstance(error, DumpBroken)
    assert "no connection to the server: no more" in str(error)


def test_a_file_that_is_purged_meanwhile_begins_the_search_anew(
    rotated: Rotated, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed = _set(rotated.server.value("@@GLOBAL.gtid_executed"))
    asked: list[int] = []
    ask = ServerHeads.previous_gtids_of

    def once_gone(self: ServerHeads, number: int) -> GtidSet | None:
        asked.append(number)
        if len(asked) == 1:
            raise StatementRefused(code=1220, text="Could not find target log")
        return ask(self, number)

    monkeypatch.setattr(ServerHeads, "previous_gtids_of", once_gone)
    arguments = connect_arguments(rotated.server)
    wanted = executed - executed.first(20)
    assert locate_on_server(arguments, wanted, timeout_seconds_max=20).found == wanted
    monkeypatch.setattr(heads_server, "_HEAD", "SHOW BINLOG EVENTS IN 'gone' LIMIT 2 -- %s")
    with pytest.raises(StatementRefused, match="error 1220"):
        locate_on_server(arguments, wanted, timeout_seconds_max=20)


def test_what_the_server_or_the_world_refuses_is_ours_to_say(rotated: Rotated) -> None:
    server = rotated.server
    server.execute("CREATE USER nobody_much@'%'")
    denied = {**connect_arguments(server), "user": "nobody_much"}
    with pytest.raises(StatementRefused, match="REPLICATION CLIENT"):
        locate_on_server(denied, _gtids(1), timeout_seconds_max=5)
    with pytest.raises(DumpBroken):
        locate_on_server({**denied, "port": 1}, _gtids(1), timeout_seconds_max=5)
    with pytest.raises(StatementRefused, match="error 1045"):
        locate_on_server({**denied, "password": "x"}, _gtids(1), timeout_seconds_max=5)
