"""Logs of servers with `binlog_encryption=ON`: no reader of files reads them, their servers do."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compose.native import shapes
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from gtid_audit.cli import run
from tests.binlog.keyring import encrypting_server

MAGIC = b"\xfdbin"
TEXT = "encrypted (binlog_encryption=ON); read it from its server instead"
PLAIN = "binlog.000004"


@dataclass(frozen=True)
class Encrypted:
    """A source whose fourth log of five is not encrypted, and its replica, who encrypts as well."""

    source: Server
    replica: Server
    gtids: str

    @property
    def index(self) -> Path:
        return self.source.datadir / "binlog.index"


@pytest.fixture(scope="module")
def encrypted(installation97: Installation) -> Iterator[Encrypted]:
    with (
        encrypting_server(installation97, name="source") as source,
        encrypting_server(installation97, name="replica") as replica,
    ):
        shapes.follow(replica, source)
        source.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(20))",
            "INSERT INTO d.t VALUES (1, 'one'), (2, 'two')",
            "FLUSH BINARY LOGS",
            "ALTER INSTANCE ROTATE BINLOG MASTER KEY",
        )
        source.execute("UPDATE d.t SET b = 'other'", "SET GLOBAL binlog_encryption = OFF")
        source.execute("DELETE FROM d.t WHERE a = 1", "SET GLOBAL binlog_encryption = ON")
        source.execute("INSERT INTO d.t VALUES (3, 'three')")
        shapes.wait_for(replica, source.value("@@GLOBAL.gtid_executed"))
        yield Encrypted(source, replica, source.value("@@GLOBAL.gtid_executed"))


@dataclass(frozen=True)
class Command:
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, status: int) -> tuple[str, str]:
        given = run(["binlog", *arguments])
        said = self.capsys.readouterr()
        assert given == status, said.out + said.err
        return said.out, said.err

    def json(self, *arguments: str, status: int) -> Any:
        return json.loads(self(*arguments, "--json", status=status)[0])

    def rows(self, *arguments: str, status: int) -> list[Any]:
        lines = self("scan", *arguments, "--format", "jsonl", status=status)[0].splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def binlog(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def names_of_encrypted(server: Server, pattern: str = "binlog.0*") -> list[str]:
    paths = sorted(server.datadir.glob(pattern))
    return [path.name for path in paths if path.read_bytes().startswith(MAGIC)]


def test_of_files_each_encrypted_one_is_said_and_the_plain_one_read(
    encrypted: Encrypted, binlog: Command
) -> None:
    names = names_of_encrypted(encrypted.source)
    assert len(names) >= 3
    assert PLAIN not in names
    for options in ((), ("--verify",), ("--details",), ("--digests",)):
        found = binlog.json("scan", str(encrypted.index), *options, status=3)
        refused = [each for each in found["files"] if each["error"] is not None]
        assert [each["error"]["text"] for each in refused] == [f"{name}: {TEXT}" for name in names]
        assert {each["error"]["error"] for each in refused} == {"UnsupportedBinlog"}
        assert {each["transactions"] for each in refused} == {0}
        assert found["transactions"] == 1
    out, _ = binlog("scan", str(encrypted.index), status=3)
    assert out.count(TEXT) == len(names)


def test_no_command_takes_an_encrypted_file_for_an_empty_one(
    encrypted: Encrypted, binlog: Command, tmp_path: Path
) -> None:
    index = str(encrypted.index)
    located = binlog.json("locate", encrypted.gtids, index, status=3)
    assert [each["reason"] for each in located["absent"]] == ["not read"]
    assert {each["text"].partition(": ")[2] for each in located["errors"]} == {TEXT}
    assert TEXT in binlog("show", encrypted.gtids, index, status=3)[1]
    follow = ("schema", "follow", index, "--store", str(tmp_path / "store"))
    assert TEXT in binlog(*follow, status=3)[1]


@pytest.mark.parametrize("options", [(), ("--everywhere",)])
def test_a_comparison_says_whose_files_are_encrypted(
    encrypted: Encrypted, binlog: Command, options: tuple[str, ...]
) -> None:
    index = str(encrypted.index)
    for operands in ((index, encrypted.replica.dsn), (encrypted.replica.dsn, index)):
        found = binlog.json("compare", *operands, *options, status=3)
        assert found["gtid_count"] == 0
        assert {each["server"] for each in found["unknown"]} == {index}
        assert all(TEXT in each["reason"] for each in found["unknown"])


def test_relay_logs_are_encrypted_too(encrypted: Encrypted, binlog: Command) -> None:
    names = names_of_encrypted(encrypted.replica, "relay.0*")
    assert names
    found = binlog.json("scan", str(encrypted.replica.datadir / "relay.index"), status=3)
    refused = [each["file"] for each in found["files"] if each["error"] is not None]
    assert [Path(each).name for each in refused] == names


def test_their_server_gives_what_it_would_without_encryption(
    encrypted: Encrypted, binlog: Command, mysql_clients: Clients
) -> None:
    source = encrypted.source
    rows = binlog.rows(source.dsn, status=0)
    named = [f"{row['uuid']}:{row['gno']}" for row in rows]
    places = [
        (str(row[0]), int(row[1]), row[5].split("'")[1])
        for (name, *_) in source.query("SHOW BINARY LOGS")
        for row in source.query(f"SHOW BINLOG EVENTS IN '{name}'")
        if row[2] == "Gtid"
    ]
    ours = [(row["file"], row["start"], gtid) for row, gtid in zip(rows, named, strict=True)]
    assert ours == places
    assert len(ours) == 6
    located = binlog.json("locate", encrypted.gtids, source.dsn, status=0)
    assert [
        (each["file"], place["start"], place["gtid"])
        for each in located["files"]
        for place in each["transactions"]
    ] == places
    printed = _printed_by_mysqlbinlog(mysql_clients, source)
    assert [gtid for gtid in named if gtid in printed] == named
    shown = binlog.json("show", encrypted.gtids, source.dsn, status=0)
    assert [each["gtid"] for each in shown["transactions"]] == named


def _printed_by_mysqlbinlog(clients: Clients, server: Server) -> str:
    command = [
        *clients.command("mysqlbinlog"),
        *("--read-from-remote-server", "--to-last-log", "--get-server-public-key"),
        *(f"--host={server.host}", f"--port={server.port}", "--user=root", "binlog.000001"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_two_servers_that_encrypt_are_compared_and_audited(
    encrypted: Encrypted, binlog: Command
) -> None:
    servers = (encrypted.source.dsn, encrypted.replica.dsn)
    found = binlog.json("compare", *servers, "--everywhere", status=0)
    assert (found["gtid_count"], found["unknown"]) == (6, [])
    status = run(["pair", *servers, "--content"])
    said = " ".join(binlog.capsys.readouterr().out.split())
    assert status == 0
    assert "GTIDs compared, all the same" in said


def test_definitions_are_followed_from_the_server(
    encrypted: Encrypted, binlog: Command, tmp_path: Path
) -> None:
    store = ("--store", str(tmp_path / "store"))
    assert binlog.json("schema", "follow", encrypted.source.dsn, *store, status=0)["unknown"] == []
    [table] = binlog.json("schema", "list", "d.t", *store, status=0)["tables"]
    assert [column["name"] for column in table["definition"]["columns"]] == ["a", "b"]
