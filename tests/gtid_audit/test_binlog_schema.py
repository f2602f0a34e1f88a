"""`gtid-audit binlog schema` as a person runs it, against a real server and its files."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid_audit.cli import run


@pytest.fixture(scope="module")
def server(installation97: Installation) -> Iterator[Server]:
    with shapes.single(installation97) as started:
        yield started


@pytest.fixture
def schema(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    name = re.sub(r"\W", "_", request.node.name)[:40]
    server.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
    yield name
    server.execute(f"DROP DATABASE {name}")


class Command:
    """Runs `binlog schema` with one store, in this process: it is started once for all."""

    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store = store
        self.capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        given = run(["binlog", "schema", *arguments, "--store", str(self.store)])
        said = self.capsys.readouterr()
        assert given == status, said.out + said.err
        return said.out or said.err

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", status=status))


@pytest.fixture
def schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "state" / "schemas.sqlite", capsys)


def last_gtid(server: Server) -> str:
    executed = str(server.value("@@GLOBAL.gtid_executed"))
    return re.sub(r":(?:\d+-)?(\d+)$", r":\1", executed)


def test_follow_list_update_restore_delete(
    server: Server, schema: str, schemas: Command, tmp_path: Path
) -> None:
    server.execute(
        f"CREATE TABLE {schema}.t (a int PRIMARY KEY, b varchar(9))",
        f"INSERT INTO {schema}.t VALUES (1, 'b')",
        f"ALTER TABLE {schema}.t ADD c enum('x') AFTER a",
    )
    assert "start with: binlog schema follow" in schemas("list", status=64)
    done = schemas.json("follow", server.dsn)
    assert done["unknown"] == []
    assert done["entries"] >= 2
    assert f"{schema}.t" in schemas("list")
    shown = schemas("list", f"{schema}.t")
    assert "enum('x')" in shown
    assert "ADD c enum('x') AFTER a" in shown
    [before] = schemas.json("list", f"{schema}.t")["tables"]
    assert [column["name"] for column in before["definition"]["columns"]] == ["a", "c", "b"]
    assert before["gtid"] == last_gtid(server)

    file = tmp_path / "t.sql"
    file.write_text("CREATE TABLE `t` (`z` bigint unsigned NOT NULL) DEFAULT CHARSET=latin1")
    for other in ("`u`", "`elsewhere`.`t`"):
        file.write_text(f"CREATE TABLE {other} (`z` bigint)")
        refused = schemas("update", f"{schema}.t", "--from-file", str(file), status=64)
        assert f"not {schema}.t" in refused
    file.write_text("CREATE TABLE `t` (`z` bigint unsigned NOT NULL) DEFAULT CHARSET=latin1")
    assert "updated" in schemas("update", f"{schema}.t", "--from-file", str(file))
    [changed] = schemas.json("list", f"{schema}.t")["tables"]
    assert (changed["source"], changed["backups"]) == ("hand", 1)
    assert "restored" in schemas("update", f"{schema}.t", "--restore")
    [restored] = schemas.json("list", f"{schema}.t")["tables"]
    assert restored == before

    assert "staged" in schemas("update", f"{schema}.t", "--from-file", str(file), "--no-flush")
    assert "is staged for the next `follow`" in schemas("list")
    assert schemas.json("list", f"{schema}.t")["tables"][0]["source"] == "statement"
    assert schemas.json("follow", server.dsn)["staged_put"] == [f"{schema}.t"]
    assert schemas.json("list", f"{schema}.t")["tables"][0]["source"] == "hand"
    schemas("update", f"{schema}.t", "--from-source", server.dsn)
    [now] = schemas.json("list", f"{schema}.t")["tables"]
    assert now["definition"] == before["definition"]

    schemas("delete", f"{schema}.t")
    assert "is not tracked" in schemas("list", f"{schema}.t", status=64)
    schemas("update", f"{schema}.t", "--restore")
    assert schemas.json("list", f"{schema}.t")["tables"][0]["definition"] == before["definition"]
    assert "there is no backup" in schemas("update", f"{schema}.other", "--restore", status=64)


def test_files_and_the_server_give_the_same(
    server: Server, schema: str, schemas: Command, tmp_path: Path
) -> None:
    server.execute(f"CREATE TABLE {schema}.t (a int)", "FLUSH BINARY LOGS")
    server.execute(f"ALTER TABLE {schema}.t ADD b text", f"DROP TABLE {schema}.t")
    live = schemas.json("follow", server.dsn)
    files = Command(tmp_path / "files.sqlite", schemas.capsys)
    read = files.json("follow", str(server.datadir))
    assert read["server"] == live["server"] == server.value("@@GLOBAL.server_uuid")
    assert read["followed_to"] == live["followed_to"]
    assert files.json("list") == schemas.json("list")
    first = min(server.datadir.glob("binlog.0*"))
    alone = tmp_path / first.name
    alone.write_bytes(first.read_bytes())
    assert "add --server UUID" in files("follow", str(alone), status=64)
    gap = files("follow", str(alone), "--server", live["server"], status=3)
    assert "that log is missing here" in gap


def test_a_gap_is_an_error_or_makes_all_unknown(
    server: Server, schema: str, schemas: Command, tmp_path: Path
) -> None:
    server.execute(f"CREATE TABLE {schema}.t (a int)")
    schemas("follow", server.dsn)
    server.execute("FLUSH BINARY LOGS", f"ALTER TABLE {schema}.t ADD b int", "FLUSH BINARY LOGS")
    server.execute(f"INSERT INTO {schema}.t VALUES (1, 2)")
    newest = max(server.datadir.glob("binlog.0*"))
    arguments = ("follow", str(newest), "--server", str(server.value("@@GLOBAL.server_uuid")))
    assert "that log is missing here" in schemas(*arguments, status=3)
    lost = schemas.json(*arguments, "--skip-gap", status=3)
    assert "logs before it were not read" in lost["unknown"][-1]["why"]
    # The server is asked for what nobody knows: nothing has changed since.
    found = schemas.json("follow", server.dsn)
    assert f"{schema}.t" in found["taken_from_server"]
    [entry] = schemas.json("list", f"{schema}.t")["tables"]
    assert [column["name"] for column in entry["definition"]["columns"]] == ["a", "b"]
    assert (entry["file"], entry["position"]) == (newest.name, 0)  # not known in the gap


def test_a_log_that_is_missing_in_the_middle_is_a_gap_too(
    server: Server, schema: str, schemas: Command, tmp_path: Path
) -> None:
    server.execute("FLUSH BINARY LOGS", f"CREATE TABLE {schema}.t (a int, b int)")
    server.execute("FLUSH BINARY LOGS", f"ALTER TABLE {schema}.t MODIFY b int FIRST")
    server.execute("FLUSH BINARY LOGS", f"INSERT INTO {schema}.t VALUES (1, 2)")
    first, second, third = sorted(server.datadir.glob("binlog.0*"))[-3:]
    arguments = ("follow", str(first), str(third), "--server", server.value("@@server_uuid"))
    for _ in range(2):
        missing = schemas(*arguments, status=3)
        assert f"{third.name} does not continue {first.name}: {first.name} continues in" in missing
        assert f"{second.name} (its ROTATE event), missing here" in missing
    lost = schemas.json(*arguments, "--skip-gap", status=3)
    assert [each["table"] for each in lost["unknown"]] == [f"{schema}.t"]
    schemas.store.unlink()
    whole = ("follow", str(first), str(second), str(third), *arguments[3:])
    assert schemas.json(*whole)["unknown"] == []


def test_nothing_is_changed_while_somebody_follows(
    server: Server, schema: str, schemas: Command
) -> None:
    server.execute(f"CREATE TABLE {schema}.t (a int)")
    schemas("follow", server.dsn)
    beside = schemas.store.with_name(schemas.store.name + ".lock")
    with beside.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("gtid-audit binlog schema follow, process 4711")
        lock.flush()
        for arguments in (
            ("delete", f"{schema}.t"),
            ("update", f"{schema}.t", "--from-source", server.dsn),
            ("follow", server.dsn),
        ):
            said = schemas(*arguments, status=64)
            assert "is in use by gtid-audit binlog schema follow, process 4711" in said
        assert f"{schema}.t" in schemas("list")
    schemas("delete", f"{schema}.t")


def test_compare_says_what_goes_wrong_before_it_does(
    server: Server, schema: str, schemas: Command, tmp_path: Path
) -> None:
    table = f"{schema}.t"
    server.execute(
        f"CREATE TABLE {table} (a int PRIMARY KEY, b varchar(9))",
        f"INSERT INTO {table} VALUES (1, 'b')",
    )
    gtid = last_gtid(server)
    schemas("follow", server.dsn)
    both = ("--source", server.dsn, "--replica", server.dsn)
    assert schemas("compare", table, *both, "--at", gtid).startswith(f"OK: {table} at binlog.")

    server.execute(f"ALTER TABLE {table} ADD c int")
    now = schemas.json("compare", table, *both, "--at", gtid, status=1)
    assert (now["differing_positions"], now["code"]) == ([3], None)
    assert [len(view["columns"]) for view in now["views"].values()] == [3, 2, 2, 3]

    file = tmp_path / "t.sql"
    file.write_text("CREATE TABLE t (a int, b varchar(9), c int, d int) CHARSET=latin1")
    place = now["at"]
    schemas("update", table, "--from-file", str(file))
    bad = schemas("compare", table, *both, "--at", place_of_group(server, place), status=2)
    assert bad.startswith(f"CRITICAL: S3 tracker mismatch: {table} at binlog.")
    assert "Column count doesn't match value count: the definition has 4 columns" in bad
    assert "no server has a fitting definition now" in bad
    assert all(len(line) <= 100 for line in bad.splitlines() if "≠" in line)

    assert schemas.json("compare", f"{schema}.nobody", *both, status=3)["verdict"] == "UNKNOWN"
    assert "--at needs --source" in schemas("compare", table, "--at", gtid, status=64)
    assert "expected schema.table" in schemas("compare", "t", *both, status=64)


def place_of_group(server: Server, place: str) -> str:
    """The start of the transaction a TABLE_MAP stands in."""
    file, position = place.split(":")
    rows = server.query(f"SHOW BINLOG EVENTS IN '{file}'")
    starts = [int(row[1]) for row in rows if row[2] == "Gtid" and int(row[1]) < int(position)]
    return f"{file}:{max(starts)}"


def test_wrong_usage(schemas: Command, tmp_path: Path) -> None:
    assert "give exactly one of --from-file" in schemas("update", "d.t", status=64)
    assert "omit --at" in schemas("update", "d.t", "--restore", "--no-flush", status=64)
    odd = tmp_path / "odd.log"
    odd.write_bytes(b"\xfebin")
    assert "name ends in a number" in schemas("follow", str(odd), "--server", "x", status=64)
    schemas.store.parent.mkdir(exist_ok=True)
    schemas.store.write_text("not a database, but long enough to be looked at as one")
    assert "schemas.sqlite" in schemas("list", status=64)
