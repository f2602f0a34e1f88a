"""Rows of a table that was altered behind them: values must not land in other columns.

On a real server, because only its log, its tables and the script that is run there together show
what becomes of a row. binlog_row_metadata is MINIMAL: rows have no names and no members.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run

CREATE = (
    "CREATE TABLE altered.t (id INT PRIMARY KEY, paid INT, owed INT, state ENUM('open','closed'),"
    " marks SET('a','b'))"
)
ROW = (1, 10, 20, "open", "a")


@pytest.fixture
def wanted(mysql97: Server) -> Iterator[Callable[[str], str]]:
    mysql97.execute("CREATE DATABASE altered", CREATE)

    def gtid_of(statement: str) -> str:
        before = GtidSet.parse(mysql97.value("@@GLOBAL.gtid_executed"))
        mysql97.execute(statement)
        return str(GtidSet.parse(mysql97.value("@@GLOBAL.gtid_executed")) - before)

    yield gtid_of
    mysql97.execute("DROP DATABASE altered")


def sources(server: Server) -> dict[str, tuple[str, ...]]:
    files = [str(server.datadir / row[0]) for row in server.query("SHOW BINARY LOGS")]
    return {"files": tuple(files), "server": (server.dsn,)}


INSERT = "INSERT INTO altered.t VALUES (1, 10, 20, 'open', 'a')"


@pytest.mark.parametrize("source", ["files", "server"])
@pytest.mark.parametrize(
    "alter",
    [
        "ALTER TABLE altered.t MODIFY owed INT AFTER id",
        "ALTER TABLE altered.t MODIFY state ENUM('closed','open')",
        "ALTER TABLE altered.t MODIFY marks SET('b','a')",
        "ALTER TABLE altered.t CHANGE paid owed INT, CHANGE owed paid INT",
    ],
)
def test_a_definition_of_now_is_refused_behind_an_alter(
    mysql97: Server,
    wanted: Callable[[str], str],
    alter: str,
    source: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gtid = wanted(INSERT)
    mysql97.execute("FLUSH BINARY LOGS", alter)
    logs = sources(mysql97)[source]
    for direction in ("--undo", "--redo"):
        arguments = ("binlog", "show", gtid, *logs, "--schema-from", mysql97.dsn, direction)
        assert run(arguments) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert "altered.t: its columns or partitions were changed at binlog.0000" in err
        assert "--store" in err
        assert "no script was written" in err
    assert run(("binlog", "show", gtid, *logs, "--schema-from", mysql97.dsn)) == 0
    shown = capsys.readouterr().out
    assert "@1" in shown
    assert "paid" not in shown


@pytest.mark.parametrize("source", ["files", "server"])
def test_without_an_alter_it_is_used_and_the_script_says_what_it_relies_on(
    mysql97: Server,
    wanted: Callable[[str], str],
    source: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mysql97.execute("ALTER TABLE altered.t ADD spare INT", "ALTER TABLE altered.t DROP spare")
    gtid = wanted(INSERT)
    mysql97.execute("CREATE INDEX i ON altered.t (owed)", "CREATE TABLE altered.other (a INT)")
    arguments = ("binlog", "show", gtid, *sources(mysql97)[source], "--schema-from", mysql97.dsn)
    assert run((*arguments, "--undo")) == 0
    script = capsys.readouterr().out
    head = " ".join(line.removeprefix("--").strip() for line in script.splitlines()[:20])
    assert f"Not proved: The columns of altered.t are those on 127.0.0.1:{mysql97.port}" in head
    assert mysql97.client(script).returncode == 0
    assert mysql97.query("SELECT * FROM altered.t") == []


def test_the_tracked_definition_is_used_instead(
    mysql97: Server,
    wanted: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gtid = wanted(INSERT)
    mysql97.execute("ALTER TABLE altered.t MODIFY owed INT AFTER id")
    store = str(tmp_path / "schemas.sqlite")
    assert run(("binlog", "schema", "follow", mysql97.dsn, "--store", store)) == 0
    capsys.readouterr()
    arguments = ("binlog", "show", gtid, mysql97.dsn, "--store", store, "--schema-from")
    assert run((*arguments, mysql97.dsn, "--undo")) == 0
    undo, err = capsys.readouterr()
    assert "columns were changed" not in err
    assert "Not proved" not in undo
    assert run((*arguments, mysql97.dsn, "--redo")) == 0
    redo = capsys.readouterr().out
    assert mysql97.client(undo).returncode == 0
    assert mysql97.query("SELECT * FROM altered.t") == []
    assert mysql97.client(redo).returncode == 0
    assert mysql97.query("SELECT id, paid, owed, state FROM altered.t") == [ROW[:4]]


@pytest.mark.parametrize("source", ["files", "server"])
def test_a_store_that_ends_before_the_transaction_is_not_used(
    mysql97: Server,
    wanted: Callable[[str], str],
    tmp_path: Path,
    source: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last run of `follow` was before the ALTER: the values would exchange their columns."""
    store = str(tmp_path / "schemas.sqlite")
    follow = ("binlog", "schema", "follow", mysql97.dsn, "--store", store)
    assert run(follow) == 0
    wanted("ALTER TABLE altered.t MODIFY owed INT AFTER id")
    gtid = wanted("INSERT INTO altered.t (id, paid, owed) VALUES (2, 7, 8), (3, 9, 10)")
    deleted = wanted("DELETE FROM altered.t")
    arguments = ("binlog", "show", f"{gtid},{deleted}", *sources(mysql97)[source], "--store", store)
    capsys.readouterr()
    for direction in ("--undo", "--redo"):
        assert run((*arguments, direction)) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("altered.t at binlog.0000") == 1  # of two transactions
        assert "not known since binlog.0000" in err
        assert f"Run first: gtid-audit binlog schema follow SOURCE --store {store}" in err
        assert "no script was written" in err
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert ("@1" in out, "paid" in out) == (True, False)
    assert "the store ends there" in err

    servers = ("--source", mysql97.dsn, "--at", gtid, "--store", store)
    assert run(("binlog", "schema", "compare", "altered.t", *servers)) == 3
    out = capsys.readouterr().out
    assert "tracked: not known since binlog.0000" in out
    assert "binlog schema update" not in out

    assert run(follow) == 0
    capsys.readouterr()
    assert run(("binlog", "show", deleted, *arguments[3:], "--undo")) == 0
    assert mysql97.client(capsys.readouterr().out).returncode == 0
    rows = mysql97.query("SELECT id, paid, owed FROM altered.t ORDER BY id")
    assert rows == [(2, 7, 8), (3, 9, 10)]


@pytest.mark.parametrize(
    "altered",
    [
        ("ALTER TABLE altered.t MODIFY state ENUM('closed','open')", False),
        ("ALTER TABLE altered.t MODIFY marks SET('b','a')", False),
        ("ALTER TABLE altered.t MODIFY state ENUM('open','closed','lost')", True),
        ("ALTER TABLE altered.t MODIFY marks SET('a','b','c')", True),
    ],
)
def test_a_script_stops_where_members_have_other_numbers_now(
    mysql97: Server,
    wanted: Callable[[str], str],
    tmp_path: Path,
    altered: tuple[str, bool],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The definition is right, and so is the script; the table is altered before it runs."""
    alter, runs = altered
    gtid = wanted(INSERT)
    store = str(tmp_path / "schemas.sqlite")
    assert run(("binlog", "schema", "follow", mysql97.dsn, "--store", store)) == 0
    capsys.readouterr()
    assert run(("binlog", "show", gtid, mysql97.dsn, "--store", store, "--redo")) == 0
    redo = capsys.readouterr().out
    mysql97.execute("DELETE FROM altered.t", alter)
    done = mysql97.client(redo)
    assert (done.returncode == 0) == runs
    if not runs:
        assert "in another order here" in done.stderr
    rows = mysql97.query("SELECT * FROM altered.t")
    assert rows == ([ROW] if runs else [])
    mysql97.client(redo, "--force")
    assert mysql97.query("SELECT * FROM altered.t") == rows


def test_members_with_odd_characters_are_compared_as_the_server_shows_them(
    mysql97: Server,
    wanted: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    odd = r"ENUM('it''s','back\\slash','new\nline','tab\t','é','','%_','q\"q','\r')"
    mysql97.execute(f"CREATE TABLE altered.odd (id INT PRIMARY KEY, e {odd})")
    gtid = wanted("INSERT INTO altered.odd VALUES (1, 'back\\\\slash'), (2, '\\r'), (3, 'é')")
    arguments = ("binlog", "show", gtid, mysql97.dsn, "--schema-from", mysql97.dsn)
    assert run((*arguments, "--undo")) == 0
    done = mysql97.client(capsys.readouterr().out, "--binary-mode")
    assert done.stderr == ""
    assert mysql97.query("SELECT * FROM altered.odd") == []
    mysql97.execute("CREATE TABLE altered.faces (e ENUM('😀','🙁') CHARACTER SET utf8mb4)")
    gtid = wanted("INSERT INTO altered.faces VALUES (1)")
    assert run(("binlog", "show", gtid, *arguments[3:], "--undo")) == 3
    assert "cannot be checked" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["files", "server"])
def test_a_definition_that_does_not_fit_is_s3_beside_the_others(
    mysql97: Server,
    wanted: Callable[[str], str],
    tmp_path: Path,
    source: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Statements from these rows would fail with 1136, "Column count doesn't match"."""
    gtid = wanted(INSERT)
    older = tmp_path / "t.sql"
    older.write_text("CREATE TABLE t (id INT PRIMARY KEY, paid INT, owed INT) CHARSET=utf8mb4;")
    logs = sources(mysql97)[source]
    arguments = ("binlog", "show", gtid, *logs, "--definitions", str(older))
    for direction in ("--undo", "--redo"):
        assert run((*arguments, "--schema-from", mysql97.dsn, direction)) == 3
        out, err = capsys.readouterr()
        assert out == ""
        lines = [line.removeprefix("gtid-audit: ") for line in err.splitlines()]
        [first] = [at for at, line in enumerate(lines) if line.startswith("S3 tracker mismatch")]
        assert lines[first].startswith("S3 tracker mismatch: altered.t at binlog.0000")
        assert "the definition has 3 columns, the rows have 5" in lines[first]
        assert " ".join(lines[first + 1].split()) == (
            "# source now at the event tracked replica now"
        )
        marked = [line.split() for line in lines if line.startswith("≠")]
        assert [line[1] for line in marked] == ["4", "5"]
        fits = "source" if source == "server" else "replica"
        assert f"the definition on the {fits} now fits: use --schema-from" in lines
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert ("@1" in out, "paid" in out) == (True, False)
    assert err.count("S3 tracker mismatch") == 1
    assert run((*arguments, "--json")) == 0
    out, err = capsys.readouterr()
    [misfit] = json.loads(out)["misfits"]
    assert (misfit["code"], misfit["table"]) == ("S3", "altered.t")
    assert len(misfit["views"]["at_the_event"]["columns"]) == 5
    assert run((*arguments, "--undo", "--json")) == 3
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["misfits"]] == ["S3"]
