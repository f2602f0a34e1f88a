"""The events that may say something of a table, held to all events: the same comes of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from binlog.adapters.schema_defining import DefiningEvents
from binlog.adapters.schema_events import file_events
from binlog.adapters.schema_follow import Follower, FollowReport
from binlog.adapters.schema_store import SchemaStore
from binlog.adapters.stream import Connect
from binlog.errors import BinlogError, CorruptBinlog, TruncatedBinlog
from binlog.events import Event, GtidLog, Rows, TableMap, Xid
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.table_history import Place
from binlog.schema.tracker import SchemaTracker
from compose.native import shapes
from compose.native.installation import Installation
from tests.binlog.material import Written, connect_arguments
from tests.binlog.schema_material import STATEMENTS
from tests.binlog.stores import content

SERVER = UUID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaff")
WINDOWS = (19, 300, 5_000, 4 << 20)

# What only a log with all metadata, or compressed, or of statements holds.
FURTHER = (
    "SET GLOBAL binlog_row_metadata = 'FULL'",
    "CREATE DATABASE y",
    "CREATE TABLE y.t (a int PRIMARY KEY, b enum('q', 'r'), c varchar(9))",
    "INSERT INTO y.t VALUES (1, 'q', 'x')",
    "UPDATE y.t SET c = 'y'",
    "SET SESSION binlog_transaction_compression = ON",
    "UPDATE y.t SET c = 'z'",
    "UPDATE y.t SET c = 'zz'",
    "ALTER TABLE y.t ADD d int",
    "UPDATE y.t SET d = 5",
    "UPDATE y.t SET d = 6",
    "SET SESSION sql_log_bin = OFF",
    "ALTER TABLE y.t DROP d, ADD e bigint",
    "CREATE TABLE y.silent (a int, b json)",
    "SET SESSION sql_log_bin = ON",
    "UPDATE y.t SET e = 7",
    "INSERT INTO y.silent VALUES (1, '[]')",
    "INSERT INTO y.silent VALUES (2, '{}')",
    "SET SESSION binlog_transaction_compression = OFF",
    "SET GLOBAL binlog_row_metadata = 'MINIMAL'",
    "SET SESSION sql_log_bin = OFF",
    "ALTER TABLE y.silent ADD c int",
    "SET SESSION sql_log_bin = ON",
    "INSERT INTO y.silent VALUES (3, '{}', 3)",
    "SET SESSION binlog_format = 'STATEMENT'",
    "BEGIN",
    "INSERT INTO y.t VALUES (8, 'q', 'x', 8)",
    "SAVEPOINT here",
    "UPDATE y.t SET c = 'u'",
    "ROLLBACK TO here",
    "COMMIT",
    "SET SESSION binlog_format = 'ROW'",
)


@pytest.fixture(scope="module")
def further97(installation97: Installation) -> Iterator[Written]:
    from gtid import GtidSet

    with shapes.single(installation97) as server:
        server.execute(*FURTHER)
        paths = tuple(server.datadir / str(row[0]) for row in server.query("SHOW BINARY LOGS"))
        yield Written(server, paths, GtidSet.parse(server.value("@@GLOBAL.gtid_executed")))


@pytest.fixture(params=["written56", "written97", "further97"])
def logs(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue(request.param)
    return found


def followed(
    store: Path,
    events: Iterable[Event],
    start: Place,
    changed: Callable[[], None] = lambda: None,
) -> tuple[FollowReport, list[object]]:
    store.unlink(missing_ok=True)
    with SchemaStore(store) as opened:
        follower = Follower(opened, SERVER, SchemaTracker(facts=SchemaFacts()))
        report = follower.follow(events, start, changed=changed)
    return report, content(store)


def by_all(store: Path, paths: Sequence[Path], start: Place) -> tuple[FollowReport, list[object]]:
    return followed(store, file_events(paths, start), start)


def by_few(
    store: Path, paths: Sequence[Path], start: Place, *, window_bytes: int = 4 << 20
) -> tuple[FollowReport, list[object]]:
    defining = DefiningEvents(large_bytes=0, window_bytes=window_bytes)
    return followed(store, defining.of_files(paths, start), start, defining.forget)


def test_the_same_definitions_come_of_few_events_as_of_all(logs: Written, tmp_path: Path) -> None:
    start = Place(logs.files[0].name, 0)
    expected = by_all(tmp_path / "all.sqlite", logs.files, start)
    assert expected[0].entry_count >= 3
    for window_bytes in WINDOWS:
        found = by_few(tmp_path / "few.sqlite", logs.files, start, window_bytes=window_bytes)
        assert found == expected, window_bytes


def test_the_same_from_the_middle_of_a_log(logs: Written, tmp_path: Path) -> None:
    path = logs.files[-1] if len(logs.files) == 1 else logs.files[-2]
    heads = [
        event
        for event in file_events([path], Place(path.name, 0))
        if isinstance(event.body, GtidLog)
    ]
    rest = logs.files[logs.files.index(path) :]
    for head in heads[:: max(1, len(heads) // 12)]:
        start = Place(path.name, head.start)
        expected = by_all(tmp_path / "all.sqlite", rest, start)
        assert by_few(tmp_path / "few.sqlite", rest, start, window_bytes=300) == expected, start


def test_the_same_of_a_server_as_of_its_files(logs: Written, tmp_path: Path) -> None:
    connect: Connect = connect_arguments(logs.server)
    start = Place(logs.files[0].name, 0)
    defining = DefiningEvents()
    events = defining.of_server(connect, start, bytes_ahead=1 << 20, timeout_seconds_max=30)
    found = followed(tmp_path / "server.sqlite", events, start, defining.forget)
    assert found == by_all(tmp_path / "all.sqlite", logs.files, start)


def test_every_statement_of_the_long_list(installation97: Installation, tmp_path: Path) -> None:
    import pymysql

    with shapes.single(installation97) as server, server.connect() as connection:
        with connection.cursor() as cursor:
            for statement in ("SET SESSION binlog_transaction_compression = ON", *STATEMENTS):
                try:
                    cursor.execute(statement)
                except pymysql.err.MySQLError:
                    continue  # not known to this version, as the list says
        paths = tuple(server.datadir / str(row[0]) for row in server.query("SHOW BINARY LOGS"))
        start = Place(paths[0].name, 0)
        expected = by_all(tmp_path / "all.sqlite", paths, start)
        assert expected[0].entry_count > 60
        for window_bytes in (700, 4 << 20):
            found = by_few(tmp_path / "few.sqlite", paths, start, window_bytes=window_bytes)
            assert found == expected


def test_what_is_given_are_events_of_the_log_in_order_and_no_rows(logs: Written) -> None:
    start = Place(logs.files[0].name, 0)
    every = iter(file_events(logs.files, start))
    given = list(DefiningEvents(large_bytes=0).of_files(logs.files, start))
    for event in given:
        assert event in every, f"{event} is not behind the one before it"
    # Some stand in a payload that says something new beside them.
    assert sum(isinstance(event.body, Rows) for event in given) <= len(given) / 10


def test_a_table_map_is_given_once_until_something_is_forgotten(tmp_path: Path) -> None:
    from benchmarks.generate.binlogs import LogShape, write_binlog

    path = tmp_path / "binlog.000001"
    write_binlog(path, LogShape(transactions=2_000, events=3, text_bytes=50))
    start = Place(path.name, 0)
    given = list(DefiningEvents(window_bytes=64 << 10).of_files([path], start))
    assert sum(isinstance(event.body, TableMap) for event in given) == 1
    assert isinstance(given[-1].body, Xid)
    assert given[-1].end == path.stat().st_size
    assert len(given) < 100

    defining = DefiningEvents(window_bytes=64 << 10)
    maps = 0
    for event in itertools.islice(defining.of_files([path], start), 500):
        maps += isinstance(event.body, TableMap)
        defining.forget()
    assert maps > 100


def test_without_the_kernels_and_for_little_every_event_is_given(
    written97: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Place(written97.files[0].name, 0)
    every = list(file_events(written97.files, start))
    assert list(DefiningEvents().of_files(written97.files, start)) == every  # some 10 kB
    monkeypatch.setattr("binlog.adapters.schema_defining.find_spec", lambda _name: None)
    assert list(DefiningEvents(large_bytes=0).of_files(written97.files, start)) == every


def test_a_log_that_ends_inside_an_event_ends_at_the_same_place(
    written97: Written, tmp_path: Path
) -> None:
    whole = written97.files[0].read_bytes()
    start = Place(written97.files[0].name, 0)
    path = tmp_path / start.file
    for length in range(len(whole) - 400, len(whole), 37):
        path.write_bytes(whole[:length])
        places = []
        for events in (
            file_events([path], start),
            DefiningEvents(large_bytes=0, window_bytes=500).of_files([path], start),
        ):
            error = _stopped(events)
            assert error is None or isinstance(error, TruncatedBinlog)
            places.append(error and (error.position, str(error)))
        assert places[0] == places[1]


def test_damage_is_found_where_it_decides(written97: Written, tmp_path: Path) -> None:
    whole = written97.files[0].read_bytes()
    path = tmp_path / written97.files[0].name
    start = Place(path.name, 0)
    for event in DefiningEvents(large_bytes=0).of_files(written97.files[:1], start):
        # A length that is none, wherever it stands; a bit of what is decoded.
        for at, byte in ((event.start + 12, 0xFF), (event.end - 1, whole[event.end - 1] ^ 1)):
            damaged = bytearray(whole)
            damaged[at] = byte
            path.write_bytes(damaged)
            events = DefiningEvents(large_bytes=0).of_files([path], start)
            error = _stopped(events)
            assert isinstance(error, CorruptBinlog), f"{event} at {at}"
            assert error.position <= event.end


def _stopped(events: Iterable[Event]) -> BinlogError | None:
    try:
        for _ in events:
            pass
    except BinlogError as error:
        return error
    return None
