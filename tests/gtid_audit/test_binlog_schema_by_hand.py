"""`binlog schema update` with a real replica, and beside a real follower that is at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit.cli import run
from tests.gtid_audit.crashing_command import AFTER, command

WAIT_SECONDS_MAX = 30


class Schemas:
    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store = ("--store", str(store))
        self.capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        given = run(["binlog", "schema", *arguments, *self.store])
        said = self.capsys.readouterr()
        assert given == status, said.out + said.err
        return said.out or said.err

    def columns(self, table: str) -> list[str]:
        [found] = json.loads(self("list", table, "--json"))["tables"]
        return [column["name"] for column in found["definition"]["columns"]]


@pytest.fixture
def schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Schemas:
    return Schemas(tmp_path / "schemas.sqlite", capsys)


def test_source_and_target_have_each_their_own_and_restore_brings_back_each(
    pair97: Pair, schemas: Schemas
) -> None:
    """A column that was added on the replica alone: what the rows of the log do not have."""
    source, replica = pair97.a, pair97.b
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(9))")
    source.execute("INSERT INTO d.t VALUES (1, 'b')")
    pair97.settle()
    replica.execute("SET sql_log_bin = 0", "ALTER TABLE d.t ADD only_here INT")
    schemas("follow", source.dsn)
    assert schemas.columns("d.t") == ["a", "b"]

    schemas("update", "d.t", "--from-target", replica.dsn)
    assert schemas.columns("d.t") == ["a", "b", "only_here"]
    servers = ("--source", source.dsn, "--replica", replica.dsn)
    place = _place_of_first_insert(source)
    bad = schemas("compare", "d.t", *servers, "--at", place, status=2)
    assert "Column count doesn't match value count" in bad
    assert "--from-source" in bad

    schemas("update", "d.t", "--from-source", source.dsn, "--flush")
    assert schemas.columns("d.t") == ["a", "b"]
    assert "Column count" not in schemas("compare", "d.t", *servers, "--at", place, status=1)
    schemas("update", "d.t", "--restore")
    assert schemas.columns("d.t") == ["a", "b", "only_here"]
    schemas("update", "d.t", "--restore")
    assert schemas.columns("d.t") == ["a", "b"]
    assert "there is no backup" in schemas("update", "d.t", "--restore", status=64)

    schemas("update", "d.t", "--from-target", replica.dsn, "--no-flush")
    assert schemas.columns("d.t") == ["a", "b"]
    schemas("follow", source.dsn)
    assert schemas.columns("d.t") == ["a", "b", "only_here"]


def _place_of_first_insert(server: Server) -> str:
    rows = server.query("SHOW BINLOG EVENTS IN 'binlog.000001'")
    before = [int(row[1]) for row in rows[: [row[2] for row in rows].index("Write_rows")]]
    starts = {int(row[1]) for row in rows if row[2] == "Gtid"}
    return f"binlog.000001:{max(starts & set(before))}"


def test_nothing_is_changed_while_a_follower_is_at_work(pair97: Pair, schemas: Schemas) -> None:
    """It is stopped in the middle of its work, and nobody else writes until it has ended."""
    source = pair97.a
    source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
    schemas("follow", source.dsn)
    source.execute("ALTER TABLE d.t ADD b INT")
    follower = _stopped_at_work("binlog", "schema", "follow", source.dsn, *schemas.store)
    try:
        for arguments in (
            ("update", "d.t", "--from-target", source.dsn),
            ("update", "d.t", "--from-source", source.dsn, "--no-flush"),
            ("update", "d.t", "--restore"),
            ("delete", "d.t"),
            ("follow", source.dsn),
        ):
            said = schemas(*arguments, status=64)
            assert f"in use by gtid-audit binlog schema follow, process {follower.pid}" in said
    finally:
        follower.send_signal(signal.SIGCONT)
    _, error = follower.communicate(timeout=WAIT_SECONDS_MAX)
    assert follower.returncode == 0, error
    assert schemas.columns("d.t") == ["a", "b"]
    schemas("delete", "d.t")
    schemas("update", "d.t", "--restore")
    assert schemas.columns("d.t") == ["a", "b"]


def _stopped_at_work(*arguments: str) -> subprocess.Popen[str]:
    """Start the program, and wait until it has stopped itself with its first save done."""
    follower = subprocess.Popen(
        command(signal.SIGSTOP, AFTER, 1, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    state = os.waitid(os.P_PID, follower.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert state is not None
    assert state.si_code == os.CLD_STOPPED, follower.communicate()
    return follower
