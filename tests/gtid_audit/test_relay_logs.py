"""A replica's relay logs as what is scanned, located, shown and compared: real ones of 5.6 and 9.7."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from binlog.adapters.log_files import read_events
from binlog.event_types import EventType
from compose.native import shapes
from compose.native.installation import Clients, Installation
from gtid import GtidSet
from gtid_audit.cli import run

WAIT_SECONDS_MAX = 30


@dataclass(frozen=True)
class Relayed:
    """A pair whose `b` has received and not applied; all of it is of `a`."""

    pair: shapes.Pair
    gtids: GtidSet

    @property
    def index(self) -> str:
        return str(self.pair.b.datadir / "relay.index")

    @property
    def paths(self) -> list[Path]:
        return sorted(self.pair.b.datadir.glob("relay.0*"))

    @property
    def of_source(self) -> str:
        return str(self.pair.a.datadir / "binlog.index")


@pytest.fixture(scope="module", params=["installation56", "installation97"])
def relayed(request: pytest.FixtureRequest) -> Iterator[Relayed]:
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.pair(installation) as pair:
        pair.b.execute(pair.b.dialect.stop_applier)
        pair.a.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, v VARCHAR(20))",
            "SET binlog_format = 'ROW'",
            "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
            "SET GLOBAL binlog_checksum = 'NONE'",  # and with it a new log, and a new relay log
            "UPDATE d.t SET v = 'other'",
            "SET GLOBAL binlog_checksum = 'CRC32'",
            "INSERT INTO d.t VALUES (3, REPEAT('x', 20))",
        )
        _received(pair)  # 5.6 begins a new relay log even within a transaction
        pair.b.execute("FLUSH LOGS")
        pair.a.execute("DELETE FROM d.t WHERE a = 1")
        yield Relayed(pair, _received(pair))


def _received(pair: shapes.Pair) -> GtidSet:
    """Wait until `b` has received all of `a`, and return that."""
    gtids = GtidSet.parse(pair.a.value("@@GLOBAL.gtid_executed"))
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not gtids <= GtidSet.parse(pair.b.replica_status()["Retrieved_Gtid_Set"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return gtids


@pytest.fixture(scope="module")
def split(installation56: Installation) -> Iterator[Relayed]:
    """As `relayed`, but two transactions begin in one relay log and end in a later one."""
    with shapes.pair(installation56) as pair:
        pair.b.execute(pair.b.dialect.stop_applier, "SET GLOBAL max_relay_log_size = 4096")
        pair.a.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, v VARCHAR(2000))",
            "SET binlog_format = 'ROW'",
            "BEGIN",
            *(f"INSERT INTO d.t VALUES ({at}, REPEAT('x', 1500))" for at in range(8)),
            "COMMIT",
            "DELETE FROM d.t WHERE a = 1",
            "INSERT INTO d.t VALUES (9, 'short')",
        )
        yield Relayed(pair, _received(pair))


@pytest.fixture
def binlog(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*arguments: str, status: int = 0) -> str:
        given = run(["binlog", *arguments])
        said = capsys.readouterr()
        assert given == status, said.out + said.err
        return said.out

    return command


def test_the_rows_are_those_that_mysqlbinlog_prints(
    relayed: Relayed, binlog: Any, mysql_clients: Clients
) -> None:
    printed = [
        (path.name, int(at), gtid)
        for path in relayed.paths
        for at, gtid in re.findall(
            r"^# at (\d+)\n(?:(?!^# at ).*\n)*?SET @@SESSION.GTID_NEXT= '([0-9a-f-]{36}:\d+)'",
            _printed(mysql_clients, path),
            re.MULTILINE,
        )
    ]
    assert len(printed) == relayed.gtids.gtid_count
    assert len({name for name, _, _ in printed}) >= 3
    for options in ((), ("--verify",), ("--details",), ("--digests",)):
        lines = binlog("scan", relayed.index, "--format", "jsonl", *options).splitlines()
        rows = [json.loads(line) for line in lines]
        found = [(row["file"], row["start"], f"{row['uuid']}:{row['gno']}") for row in rows]
        assert found == printed
        assert all(row["is_complete"] for row in rows)
        assert {row["server_id"] for row in rows} == {relayed.pair.a.server_id}
    located = json.loads(binlog("locate", str(relayed.gtids), relayed.index, "--json"))
    assert [
        (Path(each["file"]).name, place["start"], place["gtid"])
        for each in located["files"]
        for place in each["transactions"]
    ] == printed


def _printed(clients: Clients, path: Path) -> str:
    done = subprocess.run(
        [*clients.command("mysqlbinlog"), str(path)], capture_output=True, check=True, timeout=60
    )
    return done.stdout.decode("utf-8", errors="replace")


def test_what_is_shown_is_what_the_source_shows(relayed: Relayed, binlog: Any) -> None:
    ours, theirs = (
        json.loads(binlog("show", str(relayed.gtids), source, "--json"))["transactions"]
        for source in (relayed.index, relayed.pair.a.dsn)
    )
    assert _without_places(ours) == _without_places(theirs)
    assert len(ours) == relayed.gtids.gtid_count


def test_a_transaction_over_several_relay_logs_is_read_as_one(split: Relayed, binlog: Any) -> None:
    lines = binlog("scan", split.index, "--format", "jsonl").splitlines()
    is_complete = {row["gno"]: row["is_complete"] for row in map(json.loads, lines)}
    halves = sorted(gno for gno in is_complete if gno and not is_complete[gno])
    assert 3 in halves, "else nothing is tested"
    for located in (split.index, split.of_source):
        found = json.loads(binlog("locate", str(split.gtids), located, "--json"))
        places = [place for each in found["files"] for place in each["transactions"]]
        assert len(places) == split.gtids.gtid_count
    test_what_is_shown_is_what_the_source_shows(split, binlog)
    for options in ((), ("--everywhere",)):
        test_they_agree_with_the_source_live_and_in_files(split, binlog, options)
    [third] = [each for each in split.gtids.gtids() if each.gno == 3]
    undo = ("--undo", "--schema-from", split.pair.a.dsn)
    ours, theirs = (
        re.sub(r"(relay|binlog)\.0\d+:\d+", "HERE", binlog("show", str(third), source, *undo))
        for source in (split.index, split.of_source)
    )
    assert ours == theirs
    assert ours.count("DELETE FROM `d`.`t`") >= 8


def test_cover_has_a_transaction_over_several_relay_logs(
    split: Relayed, binlog: Any, tmp_path: Path
) -> None:
    for path in split.paths:
        shutil.copy(path, tmp_path / path.name)
    start = str(GtidSet.parse(split.pair.b.value("@@GLOBAL.gtid_executed")))
    found = json.loads(binlog("cover", "--from", "", str(tmp_path), "--json"))
    assert (found["hole"], found["unread"]) == ("", [])
    assert GtidSet.parse(found["end"]) | GtidSet.parse(start) == split.gtids
    in_the_middle = sorted(tmp_path.glob("relay.0*"))[3]
    in_the_middle.unlink()
    found = json.loads(binlog("cover", "--from", "", str(tmp_path), "--json", status=3))
    assert found["hole"]


def test_of_a_transaction_without_an_end_nothing_is_known(
    split: Relayed, binlog: Any, tmp_path: Path
) -> None:
    """The relay logs up to that in which it begins: it is compared with nothing."""
    [begins_in] = [path for path in split.paths if path.stat().st_size > 5_000][:1]
    for path in split.paths[: split.paths.index(begins_in) + 1]:
        shutil.copy(path, tmp_path)
    for options in ((), ("--everywhere",)):
        arguments = ("compare", str(tmp_path), split.of_source, *options, "--json")
        found = json.loads(binlog(*arguments, status=3))
        assert (found["gtid_count"], found["differences"]) == (3, [])
        assert "its end is missing" in json.dumps(found["unknown"])


def _without_places(found: Any) -> Any:
    if isinstance(found, dict):
        kept = found.keys() - {"file", "start", "end", "position"}
        return {name: _without_places(found[name]) for name in kept}
    return [_without_places(each) for each in found] if isinstance(found, list) else found


def test_of_a_data_directory_the_binary_logs_are_read(
    relayed: Relayed, binlog: Any, tmp_path: Path
) -> None:
    """Of both servers: `a` of a dual-primary has received something, too."""
    last = str(list(relayed.gtids.gtids())[-1])
    datadir = relayed.pair.b.datadir
    relayed.pair.b.execute("CREATE DATABASE IF NOT EXISTS own")
    of_index, of_folder = (
        binlog("scan", str(each), "--format", "jsonl")
        for each in (datadir / "binlog.index", datadir)
    )
    assert of_folder == of_index
    assert str(relayed.pair.b.value("@@server_uuid")) in of_folder
    assert '"relay.' not in of_folder
    # The relay logs have it, and only they.
    binlog("locate", last, str(datadir), status=1)
    binlog("locate", last, relayed.index)
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in [*datadir.glob("binlog.0*"), *relayed.paths]:
        shutil.copy(path, copied)
    assert binlog("scan", str(copied), "--format", "jsonl") == of_index


def test_undo_of_what_waits_in_a_relay_log(relayed: Relayed, binlog: Any) -> None:
    last = str(list(relayed.gtids.gtids())[-1])
    options = ("--undo", "--schema-from", relayed.pair.a.dsn)
    ours, theirs = (
        re.sub(r"(relay|binlog)\.0\d+:\d+", "HERE", binlog("show", last, source, *options))
        for source in (relayed.index, relayed.of_source)
    )
    assert "INSERT INTO `d`.`t` (`a`, `v`) VALUES (1, 'other')" in ours
    assert ours == theirs


@pytest.mark.parametrize("options", [(), ("--everywhere",)])
def test_they_agree_with_the_source_live_and_in_files(
    relayed: Relayed, binlog: Any, options: tuple[str, ...]
) -> None:
    for other in (relayed.pair.a.dsn, relayed.of_source):
        for operands in ((relayed.index, other), (other, relayed.index)):
            found = json.loads(binlog("compare", *operands, *options, "--json"))
            assert (found["differences"], found["unknown"]) == ([], [])
            if options:
                assert found["gtid_count"] == relayed.gtids.gtid_count


def test_other_content_under_a_gtid_is_found_in_a_relay_log(
    relayed: Relayed, binlog: Any, tmp_path: Path
) -> None:
    """One byte of an updated row is not the source's; it has no checksum that would notice."""
    altered = tmp_path / "altered"
    altered.mkdir()
    for path in relayed.paths:
        data = bytearray(path.read_bytes())
        for event in read_events(path):
            if event.header.type_code == EventType.UPDATE_ROWS:
                at = data.index(b"other", event.start)
                data[at : at + 5] = b"othex"
        (altered / path.name).write_bytes(data)
    # From 8.0.1 on the time of the commit says that it is one transaction all the same.
    status = 2 if relayed.pair.a.version < (8, 0, 1) else 1
    options = ("--everywhere", "--json")
    found = json.loads(binlog("compare", str(altered), relayed.of_source, *options, status=status))
    [difference] = found["differences"]
    assert difference["gtid"] == str(list(relayed.gtids.gtids())[3])
    assert found["findings"][0]["code"] == "E4"
