"""The instruction to replace a server by a copy of another one, done literally on real servers.

Every statement and command of the text is run in its order, on the servers that its sentence names:
CLONE INSTANCE on 9.7.4, mysqldump on 5.6.24 (the client is that of 9.7.4). Only what is in
parentheses is filled in. On 9.7.4 the accounts have the privileges that the text lists.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path

import pymysql
import pytest
from pymysql.connections import Connection

from compose import faults
from compose.faults import commit
from compose.faults_content import restart_with
from compose.native.provision import provision_clients
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid_audit.cli import run
from repair import Plan
from tests.repair.live import (
    await_clean,
    examine,
    executed,
    rows,
    statements_of,
    wait_until,
)

pytestmark = pytest.mark.slow  # minutes: make nightly

_NOT_RESTARTED = 3707  # "mysqld is not managed by supervisor process"
_OWN_DATABASES = (
    "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN"
    " ('mysql', 'information_schema', 'performance_schema', 'sys')"
)
_SECONDS_MAX = 60.0


def _reclone(plan: Plan) -> str:
    [text] = [
        way.removeprefix("reclone: ")
        for left in plan.not_planned
        for way in left.by_hand
        if way.startswith("reclone: ")
    ]
    return text


def _saved(text: str, server: Server, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command of the text that writes what only a server has."""
    [command] = re.findall("`gtid-audit ([^`]+)`", text)
    capsys.readouterr()
    assert run(shlex.split(command.replace("SERVER", server.dsn))) == 0
    return capsys.readouterr().out


def _accounts(*servers: Server) -> None:
    """Create the account of the clone and the operator's, with the privileges of the text."""
    for each in servers:
        each.execute(
            "SET SESSION sql_log_bin = 0",
            "CREATE USER copying@'%' IDENTIFIED BY 'copied'",
            "GRANT BACKUP_ADMIN ON *.* TO copying@'%'",
            "CREATE USER operator@'%'",
            "GRANT CLONE_ADMIN, SYSTEM_VARIABLES_ADMIN, REPLICATION_SLAVE_ADMIN, CONNECTION_ADMIN"
            " ON *.* TO operator@'%'",
            "GRANT INSERT ON mysql.plugin TO operator@'%'",
        )


def _execute(server: Server, statement: str) -> None:
    """Run a statement of the text as the operator; SELECT and what follows the copy as root."""
    if not statement.startswith(("INSTALL", "STOP REPLICA", "SET GLOBAL clone", "CLONE")):
        server.execute(statement)
        return
    connection: Connection[pymysql.cursors.Cursor] = pymysql.connect(
        host=server.host, port=server.port, user="operator", read_timeout=300
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)


def _clone(server: Server, statement: str) -> None:
    with pytest.raises(pymysql.err.MySQLError) as stopped:
        _execute(server, statement)
    assert stopped.value.args[0] == _NOT_RESTARTED
    deadline = time.monotonic() + _SECONDS_MAX
    while server.running:
        assert time.monotonic() < deadline, "it did not stop"
        time.sleep(0.1)
    restart_with(server, "--skip-replica-start=ON")


def _shell(command: str, folder: Path) -> None:
    """Run a command with the account that the servers have; the programs are the clients of 9.7."""
    program, *words = shlex.split(command)
    words = [*provision_clients().command(program), "--user=root", "--protocol=TCP", *words]
    loaded = b""
    if "<" in words:
        at = words.index("<")
        loaded, words = (folder / words[at + 1]).read_bytes(), words[:at]
    done = subprocess.run(
        words, input=loaded, cwd=folder, capture_output=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()


def _drop(server: Server, statement: str) -> None:
    assert statement == "DROP DATABASE each"
    for (name,) in server.query(_OWN_DATABASES):
        server.execute(f"DROP DATABASE `{name}`")


def _copy(topology: Topology, text: str, folder: Path) -> None:
    """Do what the text says, from its first statement to the last, each once."""
    names: list[str] = []
    at = 0
    for found in re.finditer("`([^`]+)`", text):
        sentence = text[at : found.start()].rpartition(". ")[2]
        at = found.end()
        if found[1].startswith("gtid-audit"):
            continue
        named = [
            each for each in re.findall(r"\b[Oo]n (\w+)", sentence) if each in topology.servers
        ]
        names = named or names
        filled = {"user": "copying", "password": "copied", "each": "each"}
        [statement] = statements_of(topology, found[0], **filled)
        if statement.startswith("mysql"):
            _shell(statement, folder)
            continue
        for server in (topology[name] for name in names):
            if statement.startswith("SELECT"):
                assert server.query(statement) == []
            elif statement.startswith("CLONE"):
                _clone(server, statement)
            elif statement.startswith("DROP"):
                _drop(server, statement)
            else:
                _execute(server, statement)
        if statement.startswith(("CLONE", "FLUSH")) and "remove auto.cnf" in text:
            server.stop()
            (server.datadir / "auto.cnf").unlink()
            server.start()


def _arrives(source: Server, replica: Server) -> None:
    source.execute("INSERT INTO purged.t (note) VALUES ('afterwards')")
    wait_until(lambda: rows(replica, "purged.t") == rows(source, "purged.t"))


def test_a_server_is_replaced_by_a_copy_of_its_source(
    star97: Topology, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What only the replica has is saved first; the copy does not use its numbers again."""
    source, replica = star97["source"], star97["replica1"]
    faults.purge_under_stopped_replica(star97, source="source", replica="replica1")
    commit(replica, "INSERT INTO purged.t VALUES (500, 'errant')")
    star97["replica2"].execute(star97["replica2"].dialect.stop_replica)
    text = _reclone(examine(star97).plan())
    assert text.startswith("do NOT restore replica1 from source as it is")
    assert source.client(_saved(text, replica, capsys)).returncode == 0
    before = replica.value("@@GLOBAL.server_uuid")
    _accounts(source, replica)
    _copy(star97, text.partition("Only then ")[2], tmp_path)
    assert replica.value("@@GLOBAL.server_uuid") != before
    star97["replica2"].execute(star97["replica2"].dialect.start_replica)
    await_clean(star97)
    assert "errant" in [note for _, note in rows(replica, "purged.t")]
    _arrives(source, replica)


def test_a_clone_keeps_the_server_uuid_and_ends_the_logs(pair97: Pair, tmp_path: Path) -> None:
    """What the text states about CLONE INSTANCE is what the server does."""
    a, b = pair97.a, pair97.b
    faults.purge_under_stopped_replica(pair97)
    text = _reclone(examine(pair97).plan())
    assert "Nothing is lost: a has all transactions of b" in text
    before = b.value("@@GLOBAL.server_uuid")
    _accounts(a, b)
    there, _, then = text.partition("The copy may have the channels of")
    _copy(pair97, there, tmp_path)
    assert b.value("@@GLOBAL.server_uuid") == before
    assert b.value("@@GLOBAL.gtid_purged") == executed(b) == executed(a)
    _copy(pair97, then, tmp_path)
    await_clean(pair97)
    _arrives(a, b)


def test_tables_of_other_engines_are_listed_before_a_clone(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of docs/repair-copy.md prints the text that begins with the query."""
    pair97.a.execute("CREATE DATABASE mixed", "CREATE TABLE mixed.old (n INT) ENGINE = MyISAM")
    faults.purge_under_stopped_replica(pair97)
    assert run(["repair", "plan", "--pair", pair97.a.dsn, pair97.b.dsn]) == 1
    assert "CLONE INSTANCE FROM" in " ".join(capsys.readouterr().out.split())
    text = _reclone(examine(pair97).plan())
    [listing] = statements_of(pair97, text, user="", password="")[:1]
    assert pair97.a.query(listing) == [("mixed", "old", "MyISAM")]


@pytest.mark.parametrize("errant", [False, True])
def test_a_dump_replaces_an_old_server(
    pair56: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path, *, errant: bool
) -> None:
    """Databases that only the server has are gone afterwards, and no character is lost."""
    a, b = pair56.a, pair56.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    faults.purge_under_stopped_replica(pair56)
    a.execute(
        "CREATE TABLE purged.wide (id INT PRIMARY KEY, t VARCHAR(9)) CHARACTER SET utf8mb4",
        "INSERT INTO purged.wide VALUES (1, _utf8mb4 X'F09F9880')",
    )
    if errant:
        commit(b, "INSERT INTO purged.t VALUES (500, 'errant')")
    b.execute("SET SESSION sql_log_bin = 0", "CREATE DATABASE only_here")
    before, text = b.value("@@GLOBAL.server_uuid"), _reclone(examine(pair56).plan())
    if errant:
        assert text.startswith("do NOT restore b from a as it is")
        done = a.client(_saved(text, b, capsys))
        assert done.returncode == 0, done.stderr
        text = text.partition("Only then ")[2]
    _copy(pair56, text, tmp_path)
    assert (b.value("@@GLOBAL.server_uuid") != before) is errant
    assert b.query("SHOW DATABASES LIKE 'only_here'") == []
    assert b.query("SELECT HEX(t) FROM purged.wide") == [("F09F9880",)]
    await_clean(pair56)
    assert ("errant" in [note for _, note in rows(b, "purged.t")]) is errant
    _arrives(a, b)


def test_two_servers_that_purged_what_the_other_is_missing(pair97: Pair, tmp_path: Path) -> None:
    """Neither may be replaced as it is; afterwards no row of either is lost."""
    a, b = pair97.a, pair97.b
    faults.table_on(a, b, "apart")
    wait_for(b, faults.commit(a, "INSERT INTO apart.t (id) VALUES (1), (2)"))
    for server in (a, b):
        server.execute(server.dialect.stop_replica)
    made = {
        server: faults.commit(server, *statements)
        for server, statements in (
            (a, ("INSERT INTO apart.t (id) VALUES (10)", "DELETE FROM apart.t WHERE id = 2")),
            (b, ("INSERT INTO apart.t (id) VALUES (20)",)),
        )
    }
    for server, gtids in made.items():
        server.execute("FLUSH BINARY LOGS")
        faults.purge_until_gone(server, gtids)
    for server in (a, b):
        server.execute(server.dialect.start_replica)
    for server in (a, b):
        faults.await_status(server, lambda status: status["Last_IO_Errno"] in (1236, 13114))
    found = examine(pair97)
    plan = found.plan()
    assert plan.steps == ()
    texts = {
        left.about: way.removeprefix("reclone: ")
        for left in plan.not_planned
        for way in left.by_hand
        if way.startswith("reclone: ")
    }
    assert len(texts) == 2
    for text, (lost, kept) in zip((texts["a → b"], texts["b → a"]), ((b, a), (a, b)), strict=True):
        assert text.startswith(f"do NOT restore {lost.name} from {kept.name} as it is: only")
        assert "Never restore both servers: one of them must keep its data" in text
    # The operator decides: b is replaced; its own row is copied before, as the text says.
    text = texts["a → b"]
    copied = "compare the tables, and copy the rows that you need to a before you clone"
    assert copied in text
    of_b = [row for row in rows(b, "apart.t") if row not in rows(a, "apart.t")]
    assert [row[0] for row in of_b] == [2, 20]
    a.execute("INSERT INTO apart.t (id) VALUES (20)")  # a deleted row 2: it is not needed
    _accounts(a, b)
    _copy(pair97, text.partition("Only then ")[2], tmp_path)
    # The receiver of a stopped at the former b. The plan says how to go on, and not to start it all.
    [left] = examine(pair97).plan({"A4": "start_channel"}).not_planned
    receiver_only = a.dialect.start_replica + " IO_THREAD"
    assert f"start only the receiver, which applies nothing ({receiver_only})" in left.why
    a.execute(receiver_only)
    await_clean(pair97)
    assert [row[0] for row in rows(a, "apart.t")] == [1, 10, 20]
    assert rows(a, "apart.t") == rows(b, "apart.t")
    for source, replica in ((a, b), (b, a)):
        wait_for(replica, faults.commit(source, f"INSERT INTO apart.t (id) VALUES ({source.port})"))
    assert rows(a, "apart.t") == rows(b, "apart.t")
