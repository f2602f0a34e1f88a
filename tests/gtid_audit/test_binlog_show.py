"""`binlog show` on the command line, over the files of a real server and over the server itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.provision import provision_clients
from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.operands.definition_sources import statements_of

TABLE = (
    "CREATE TABLE shown.t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), note TEXT CHARACTER SET"
    " latin1, e ENUM('red','green'), b VARBINARY(9), price DECIMAL(10,2))"
)
WIDE = f"CREATE TABLE shown.w ({', '.join(f'column_{n} VARCHAR(20)' for n in range(30))})"


@dataclass(frozen=True)
class Shown:
    server: Server
    files: tuple[str, ...]
    uuid: str
    first: int

    def gtids(self, *numbers: int) -> str:
        return f"{self.uuid}:" + ":".join(str(self.first + number) for number in numbers)

    @property
    def dsn(self) -> str:
        return self.server.dsn


@pytest.fixture(scope="module")
def shown(mysql97: Server) -> Iterator[Shown]:
    server = mysql97
    before = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    uuid = str(server.value("@@server_uuid"))
    server.execute(
        "CREATE DATABASE shown",  # 0
        TABLE,  # 1
        WIDE,  # 2
        "INSERT INTO shown.t VALUES (4000000000, 'Anna', 'grüße', 2, x'00ff', 1.50)",  # 3
        "UPDATE shown.t SET name = 'Anne', price = -2",  # 4
        "INSERT INTO shown.w (column_1) VALUES ('wide')",  # 5
        "SET binlog_rows_query_log_events = ON",
        "DELETE FROM shown.t",  # 6
    )
    added = GtidSet.parse(server.value("@@GLOBAL.gtid_executed")) - before
    [(_tsid, first, _end)] = added.intervals()
    files = tuple(str(server.datadir / row[0]) for row in server.query("SHOW BINARY LOGS"))
    yield Shown(server, files, uuid, first)
    server.execute("DROP DATABASE shown")


def _said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    said = capsys.readouterr()
    return said.out, said.err


def test_a_person_sees_rows_before_and_after(
    shown: Shown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    wanted = shown.gtids(3, 4, 6)
    assert run(("binlog", "show", wanted, *shown.files, "--schema-from", shown.dsn)) == 0
    out, err = _said(capsys)
    assert err.startswith("gtid-audit: using the table definitions of 127.0.0.1:")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert f"{shown.uuid}:{shown.first + 3}" in out
    assert "1 row inserted into shown.t" in lines
    assert "id name note e b price" in lines
    assert "4000000000 Anna grüße green 0x00FF 1.50" in lines
    assert "1 row updated in shown.t" in lines
    assert "1 id 4000000000" in lines
    assert "name Anna Anne" in lines
    assert "price 1.50 -2.00" in lines
    assert "3 columns unchanged" in lines
    assert "DELETE FROM shown.t" in lines
    assert [line for line in out.splitlines() if len(line) > 100] == []


def test_what_is_not_known_is_said_once(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("binlog", "show", shown.gtids(3, 4, 5), shown.dsn)) == 0
    out, err = _said(capsys)
    assert err == ""
    assert " ".join(out.split()).count("shown.t: column names are not logged") == 1
    assert "@1 " in out
    assert "#2" in out
    # Too wide for the terminal: columns below each other.
    assert ["@2", "wide"] in [line.split() for line in out.splitlines()]


def test_json_has_every_value(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = shown.gtids(3, 4)
    arguments = ("binlog", "show", wanted, *shown.files, "--schema-from", shown.dsn, "--json")
    assert run(arguments) == 0
    document = json.loads(_said(capsys)[0])
    assert document["missing"] == ""
    insert, update = document["transactions"]
    assert (insert["kind"], insert["is_complete"]) == ("dml", True)
    rows = insert["content"][-1]
    assert (rows["table"], rows["change"], rows["names_from"]) == ("t", "write", "a definition")
    assert rows["key"] == ["id"]
    assert rows["rows"] == [
        {
            "after": {
                "id": 4000000000,
                "name": "Anna",
                "note": "grüße",
                "e": "green",
                "b": {"hex": "00ff", "charset": "binary"},
                "price": "1.50",
            }
        }
    ]
    changed = update["content"][-1]["rows"][0]
    assert (changed["before"]["price"], changed["after"]["price"]) == ("1.50", "-2.00")


def test_a_file_of_definitions_and_an_undo(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schema.sql"
    create = shown.server.query("SHOW CREATE TABLE shown.t")[0][1]
    file.write_text(f"-- a dump; of\nUSE `shown`;\n{create};\n/*!40101 SET x = 1 */;\n")
    wanted = shown.gtids(3, 4, 6)
    arguments = ("binlog", "show", wanted, *shown.files, "--definitions", str(file))
    assert run((*arguments, "--undo")) == 0
    undo, err = _said(capsys)
    assert err == ""
    changes = [line.split()[0] for line in undo.splitlines() if "ROW_COUNT" in line]
    assert changes == ["INSERT", "UPDATE", "DELETE"]
    assert run((*arguments, "--redo", "--json")) == 0
    document = json.loads(_said(capsys)[0])
    assert (document["direction"], len(document["transactions"])) == ("redo", 3)
    # There and back to an empty table; then only the last transaction, which can be undone once.
    assert shown.server.client(undo + document["script"]).returncode == 0
    assert run(("binlog", "show", shown.gtids(6), *arguments[3:], "--undo")) == 0
    undo, _err = _said(capsys)
    assert shown.server.client(undo).returncode == 0
    assert shown.server.query("SELECT id, name FROM shown.t") == [(4000000000, "Anne")]
    again = shown.server.client(undo)
    assert again.returncode != 0
    assert "Duplicate entry '4000000000'" in again.stderr


def test_a_script_is_whole_or_not_there(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("binlog", "show", shown.gtids(2, 5), *shown.files, "--undo")) == 3
    out, err = _said(capsys)
    assert out == ""
    assert "undo is not possible: DDL cannot be undone: CREATE TABLE shown.w" in err
    assert "the names of the columns are not known" in err
    assert "not used if the logs change the table later, or without SELECT on the table" in err
    assert "no script was written" in err


def test_what_the_logs_lack(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = f"{shown.gtids(3)}:999999"
    assert run(("binlog", "show", wanted, *shown.files)) == 1
    out, err = _said(capsys)
    assert "1 row inserted into shown.t" in out
    assert err == f"gtid-audit: not in these logs: {shown.uuid}:999999\n"
    arguments = ("binlog", "show", wanted, *shown.files, "--redo", "--schema-from", shown.dsn)
    assert run(arguments) == 1
    assert _said(capsys)[0] == ""


def test_wrong_usage(shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ("binlog", "show", shown.gtids(3), *shown.files)
    assert run((*base, "--redo", "--undo")) == 64
    assert run((*base, "--undo", "--keep-gtids")) == 64
    assert run((*base, "--schema-from", shown.files[0])) == 64
    os.mkfifo(tmp_path / "pipe")
    assert run((*base, "--definitions", str(tmp_path / "pipe"))) == 64
    empty = tmp_path / "empty.sql"
    assert run((*base, "--definitions", str(empty))) == 64
    empty.write_text("SELECT 1;")
    assert run((*base, "--definitions", str(empty))) == 64
    _out, err = _said(capsys)
    assert "--redo or --undo, not both" in err
    assert "contains no CREATE TABLE" in err


def test_statements_end_at_semicolons_that_are_none_of_a_text() -> None:
    text = "CREATE TABLE `a;b` (c TEXT COMMENT 'x;''y\\';') /*!50100 p; */; -- c;\n# d;\nUSE e"
    assert list(statements_of(text)) == [
        "CREATE TABLE `a;b` (c TEXT COMMENT 'x;''y\\';') /*!50100 p; */",
        "USE e",
    ]


def test_tables_as_they_were_followed(
    shown: Shown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "schemas.sqlite")
    follow = ("binlog", "schema", "follow", *shown.files, "--store", store, "--server", shown.uuid)
    assert run(follow) == 0
    shown.server.execute("ALTER TABLE shown.t DROP COLUMN note")  # now is not then
    _said(capsys)
    asked = ("binlog", "show", shown.gtids(3), *shown.files)
    assert run((*asked, "--schema-from", shown.dsn)) == 0
    out, err = _said(capsys)
    assert "note" not in out
    assert "shown.t: its columns or partitions were changed at binlog." in err
    assert run((*asked, "--store", store)) == 0
    out, err = _said(capsys)
    assert err == ""
    assert "id name note e b price" in [" ".join(line.split()) for line in out.splitlines()]
    assert run((*asked, "--store", store, "--undo")) == 0
    assert "`note`" in _said(capsys)[0]
    assert run((*asked, "--server", shown.uuid)) == 64
    assert run((*asked, "--store", str(tmp_path / "none.sqlite"))) == 64


def test_a_statement_keeps_the_bytes_it_was_sent_as(
    shown: Shown, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    server = shown.server
    server.execute("CREATE TABLE shown.s (a VARCHAR(9) CHARACTER SET utf8mb4)")
    before = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    with pymysql.connect(
        host=server.host, port=server.port, user="root", charset="latin1", autocommit=True
    ) as connection:
        connection.cursor().execute("SET SESSION binlog_format = 'STATEMENT'")
        connection.cursor().execute("INSERT INTO shown.s VALUES ('ü')")
    wanted = GtidSet.parse(server.value("@@GLOBAL.gtid_executed")) - before
    assert run(("binlog", "show", str(wanted), *shown.files, "--redo")) == 0
    script = capsysbinary.readouterr().out
    assert b"VALUES ('\xfc')" in script
    command = [*provision_clients().command("mysql"), "--user=root", f"--host={server.host}"]
    subprocess.run(
        [*command, f"--port={server.port}", "--protocol=TCP"],
        input=script,
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert server.query("SELECT HEX(a) FROM shown.s") == [("C3BC",), ("C3BC",)]


def test_of_a_partly_purged_set_a_server_shows_what_is_left(
    installation97: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    with shapes.single(installation97) as server:
        server.execute(
            "CREATE DATABASE left_over", "CREATE TABLE left_over.t (a INT)", "FLUSH BINARY LOGS"
        )
        [(last, *_)] = server.query("SHOW BINARY LOGS")[-1:]
        server.execute(f"PURGE BINARY LOGS TO '{last}'", "INSERT INTO left_over.t VALUES (7)")
        wanted = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
        purged = GtidSet.parse(server.value("@@GLOBAL.gtid_purged"))
        assert purged < wanted
        assert run(("binlog", "show", str(wanted), server.dsn)) == 1
        out, err = _said(capsys)
        assert "1 row inserted into left_over.t" in out
        assert f"has purged {purged}" in err
        assert f"not in these logs: {purged}" in err
        redo = ("--redo", "--schema-from", server.dsn)
        assert run(("binlog", "show", str(wanted), server.dsn, *redo)) == 1
        out, err = _said(capsys)
        assert out == ""
        assert "no script was written" in err
        assert run(("binlog", "show", str(purged), server.dsn)) == 1
        assert f"not in these logs: {purged}" in _said(capsys)[1]
