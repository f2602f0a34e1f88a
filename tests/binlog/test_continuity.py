"""Files that do not continue each other: what shows it, and what a follower does there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from binlog.adapters.log_ends import breaks_in
from binlog.adapters.schema_follow import LogGap, LogsReset
from binlog.adapters.schema_following import follow_files
from binlog.adapters.schema_store import SchemaStore
from binlog.errors import TruncatedBinlog
from binlog.event_types import EventType
from binlog.locating.continuity import LogBreak, LogEnds, break_between
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_history import Place, State, TableKey
from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from gtid.binary import encode
from tests.binlog.builders import UUID_A, Log

KEY = TableKey("d", "t")
CREATE, ALTER = "CREATE TABLE t (a INT, b INT) CHARSET latin1", "ALTER TABLE t MODIFY b INT FIRST"


def gtids(numbers: str) -> GtidSet:
    return GtidSet.parse(f"{UUID_A}:{numbers}" if numbers else "")


def name(number: int) -> str:
    return f"binlog.{number:06d}"


def ends(number: int, previous: str | None, following: int | None = None) -> LogEnds:
    listed = None if previous is None else gtids(previous)
    return LogEnds(name(number), listed, name(following) if following else "")


@pytest.mark.parametrize(
    ("before", "inside", "after", "expected"),
    [
        # A ROTATE at the end of the file.
        (ends(1, "", 2), "1-3", ends(2, "1-3"), None),
        (ends(1, "", 2), "", ends(2, "1-9"), None),  # 5.6: gtid_purged was set
        (ends(1, "1-4", 2), "5-6", ends(2, "1-5"), None),  # the last commit was under way
        (ends(1, None, 9), "", ends(9, None), None),  # the server skipped numbers
        (ends(1, "", 2), "1-3", ends(3, "1-3"), "continues in binlog.000002 (its ROTATE event)"),
        (ends(1, None, 2), "", ends(3, None), "continues in binlog.000002 (its ROTATE event)"),
        (ends(1, "1-4", 2), "", ends(2, "1-3"), "reset"),
        (ends(1, "1-4", 2), "", ends(2, ""), "reset"),
        # A shutdown, a crash, or a cut file.
        (ends(1, ""), "1-3", ends(2, "1-3"), None),
        (ends(1, "1-3"), "", ends(2, "1-3"), None),
        (ends(1, "1-3"), "4", ends(3, "1-4"), "a log between them is missing here"),
        (ends(1, None), "", ends(3, None), "a log between them is missing here"),
        (ends(1, None), "", ends(1, None), "equal numbers"),
        (ends(1, ""), "1-3", ends(2, "1-5"), f"{UUID_A}:4-5 was logged before binlog.000002"),
        (ends(1, "1-3"), "4-6", ends(2, "1-5"), "reset"),
        (ends(1, "1-3"), "4-6", ends(101, ""), "reset"),
        # gtid_mode = OFF, with the event and without.
        (ends(1, ""), "", ends(2, ""), None),
        (ends(1, None), "", ends(2, "1-3"), None),
        (ends(1, "1-3"), "4", ends(2, None), None),
    ],
)
def test_what_shows_that_a_file_is_not_the_next_one(
    before: LogEnds, inside: str, after: LogEnds, expected: str | None
) -> None:
    found = break_between(before, after, gtids_before=lambda: gtids(inside))
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.before, found.after) == (before.file, after.file)
    assert found.is_reset == (expected == "reset")
    assert expected in found.why


def test_of_relay_logs_only_the_numbers_count() -> None:
    """The sets are what was received, and the ROTATE may be the source's."""

    def between(before: LogEnds, after: LogEnds) -> LogBreak | None:
        both = (replace(each, is_relay_log=True) for each in (before, after))
        return break_between(*both, gtids_before=lambda: pytest.fail("not needed"))

    assert between(ends(1, "1-3", 7), ends(2, "")) is None
    assert between(ends(1, ""), ends(2, "1-3")) is None
    assert between(ends(1, "", 2), ends(3, "")) is not None


class Archive:
    """Files of one server, of one statement each: CREATE in 1, ALTER in 2, none in 3."""

    def __init__(self, folder: Path, end: Callable[[Log, int], object]) -> None:
        self.folder = folder
        self.paths = [folder / name(number) for number in (1, 2, 3)]
        logged = ""
        for number, (path, statement) in enumerate(
            zip(self.paths, (CREATE, ALTER, "FLUSH TABLES"), strict=True), start=1
        ):
            log = Log()
            log.add(EventType.PREVIOUS_GTIDS, encode(gtids(logged)))
            log.gtid(number)
            log.query(statement)
            if number < len(self.paths):
                end(log, number + 1)
            path.write_bytes(bytes(log))
            logged = f"1-{number}"

    def follow(self, store: SchemaStore, *, skips_gap: bool = False) -> tuple[Place, int]:
        paths = tuple(path for path in self.paths if path.exists())
        done = follow_files(store, UUID_A, paths, skips_gap=skips_gap)
        return done.report.ended_at, len(done.unknown)


def rotated(log: Log, number: int) -> int:
    return log.add(EventType.ROTATE, struct.pack("<Q", 4) + name(number).encode())


def stopped(log: Log, _number: int) -> int:
    return log.add(EventType.STOP, b"")


def crashed(_log: Log, _number: int) -> None:
    return None


def zeros_after(log: Log, number: int) -> None:
    rotated(log, number)
    log.data += bytes(4096)  # allocated ahead; no event


@pytest.fixture(params=[rotated, stopped, crashed])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    return Archive(tmp_path, request.param)


def test_whole_archives_have_no_break(archive: Archive, tmp_path: Path) -> None:
    assert breaks_in(archive.paths) == {}
    assert breaks_in(archive.paths[1:2]) == {}
    with SchemaStore(tmp_path / "store") as store:
        assert archive.follow(store)[1] == 0
        assert [each.state for each in store.entries(UUID_A, KEY)] == [State.KNOWN, State.KNOWN]


def test_a_missing_file_is_a_gap_within_a_run(archive: Archive, tmp_path: Path) -> None:
    """As between two runs: what is before it is kept, and nothing is known after it."""
    archive.paths[1].unlink()
    with SchemaStore(tmp_path / "store") as store:
        for _ in range(2):  # also for the next run
            with pytest.raises(
                LogGap, match=r"binlog.000003 does not continue binlog.000001"
            ) as gap:
                archive.follow(store)
            assert str(gap.value).startswith("the store was followed to binlog.000001:")
            assert not isinstance(gap.value, LogsReset)
            followed = store.followed(UUID_A)
            assert followed is not None
            assert followed.place.file == name(1)
            assert len(store.entries(UUID_A, KEY)) == 1
        end, unknown_count = archive.follow(store, skips_gap=True)
        assert (end.file, unknown_count) == (name(3), 1)
        last = store.entry_at(UUID_A, KEY, end)
        assert last is not None
        assert last.place == Place(name(3), 0)
        assert last.why.startswith("logs before it were not read: the store was followed to")
        inside = store.entry_at(UUID_A, KEY, Place(name(2), 900))  # the log may exist elsewhere
        assert inside is not None
        assert inside.place.file == name(1)
        with pytest.raises(CannotFollow, match="logs after it were not read"):
            store.definition_at(UUID_A, KEY, Place(name(2), 900))
        assert archive.follow(store) == (end, 1)  # the gap is behind


@pytest.mark.parametrize("large_bytes", [0, 1 << 20])
def test_a_file_that_is_cut_between_events_is_a_gap(
    archive: Archive, tmp_path: Path, large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlog.adapters.log_ends._LARGE_BYTES", large_bytes)
    cut = archive.paths[1]
    whole = cut.read_bytes()
    log = Log()
    log.add(EventType.PREVIOUS_GTIDS, encode(gtids("1")))
    ends_of_events = [len(log.data), log.gtid(2) and len(log.data)]
    for end in ends_of_events:  # after PREVIOUS_GTIDS, and inside the transaction
        cut.write_bytes(whole[:end])
        (tmp_path / "store").unlink(missing_ok=True)
        with SchemaStore(tmp_path / "store") as store:
            with pytest.raises(LogGap, match=r"binlog.000002 is cut, or .*:2 was logged before"):
                archive.follow(store)
            assert len(store.entries(UUID_A, KEY)) == 1
    cut.write_bytes(whole[: ends_of_events[1] - 7])  # inside an event
    with SchemaStore(tmp_path / "store") as store, pytest.raises(TruncatedBinlog):
        archive.follow(store)


def test_logs_from_before_and_after_a_reset_are_a_gap(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    archive = Archive(old, rotated)
    for number, path in enumerate(Archive(new, rotated).paths, start=4):
        archive.paths.append(path.rename(old / name(number)))
    with SchemaStore(tmp_path / "store") as store:
        with pytest.raises(LogsReset, match="the server's logs were reset"):
            archive.follow(store)
        assert len(store.entries(UUID_A, KEY)) == 2


def test_zeros_behind_the_last_event_are_no_gap(tmp_path: Path) -> None:
    assert breaks_in(Archive(tmp_path, zeros_after).paths) == {}


def test_a_file_without_a_readable_header_shows_no_break(archive: Archive) -> None:
    """Reading its events shows the damage."""
    archive.paths[1].write_bytes(b"")
    assert breaks_in(archive.paths) == {}


# ---- real servers


def _logs(server: Server) -> list[Path]:
    return [server.datadir / str(row[0]) for row in server.query("SHOW BINARY LOGS")]


def _eventful_life(server: Server) -> None:
    """All that ends a log, each after some transactions, and twice without any."""
    server.execute("CREATE DATABASE d", CREATE.replace(" t ", " d.t "))
    for round_number in range(2):
        server.execute(f"INSERT INTO d.t VALUES ({round_number}, 1)", "FLUSH LOGS", "FLUSH LOGS")
        server.execute("CREATE TABLE d.m (a INT) ENGINE=MyISAM", "INSERT INTO d.m VALUES (1)")
        server.execute("DROP TABLE d.m")
        server.restart()
        server.restart()
        server.execute("XA START 'x'", "INSERT INTO d.t VALUES (2, 2)", "XA END 'x'")
        server.execute("INSERT INTO d.t VALUES (3, 3)")
        server.kill()
        server.start()
        server.kill()
        server.start()
        server.execute("INSERT INTO d.t VALUES (4, 4)")


@pytest.mark.parametrize("installation", ["installation97", "installation56"])
def test_the_logs_of_a_real_server_have_no_break_but_where_one_is_taken_away(
    request: pytest.FixtureRequest, installation: str
) -> None:
    found: Installation = request.getfixturevalue(installation)
    with shapes.single(found) as server:
        _eventful_life(server)
        if installation == "installation97":
            for mode in (
                "ON_PERMISSIVE",
                "OFF_PERMISSIVE",
                "ON_PERMISSIVE",
                "OFF_PERMISSIVE",
                "OFF",
            ):
                server.execute(f"SET GLOBAL gtid_mode = {mode}", "INSERT INTO d.t VALUES (5, 5)")
            server.kill()
            server.start()  # with gtid_mode = ON
            server.execute("INSERT INTO d.t VALUES (6, 6)", "FLUSH BINARY LOGS")
        _assert_whole(_logs(server))


@pytest.mark.slow  # ten seconds of restarts
def test_logs_of_5_6_without_gtids_have_no_break(installation56: Installation) -> None:
    settings = Settings(extra=("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"))
    with shapes.single(installation56, settings=settings) as server:
        _eventful_life(server)
        _assert_whole(_logs(server))


def _assert_whole(paths: list[Path]) -> None:
    """Check that only a file that is taken away leaves a break."""
    assert len(paths) > 12
    assert breaks_in(paths) == {}
    for number in range(1, len(paths) - 1):
        assert list(breaks_in(paths[:number] + paths[number + 1 :])) == [number]
