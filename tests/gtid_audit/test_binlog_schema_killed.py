"""`binlog schema follow` as a process that is killed, again and again, and goes on each time."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid_audit.cli import run
from tests.binlog.stores import content
from tests.gtid_audit.build import GTID_AUDIT
from tests.gtid_audit.crashing_command import AFTER, WITHIN, command

TABLES, RENAMES = 20, 24
# Where processes are ended, one after the other: of some ten saves that the whole takes.
MOMENTS = ((AFTER, 1), (WITHIN, 3), (AFTER, 2))
PATIENCE_SECONDS = 60.0
NOWHERE = ("", 0)


@pytest.fixture(scope="module")
def server(installation97: Installation) -> Iterator[Server]:
    with shapes.single(installation97) as started:
        yield started


@pytest.fixture(scope="module")
def told(server: Server) -> Server:
    """A server whose logs change definitions thousands of times, with rows and files between."""
    server.execute(
        "CREATE DATABASE d", *(f"CREATE TABLE d.a{n} (x mediumtext)" for n in range(TABLES))
    )
    names = "ab"
    statements = []
    for number in range(RENAMES):
        old, new = names[number % 2], names[1 - number % 2]
        pairs = ", ".join(f"d.{old}{n} TO d.{new}{n}" for n in range(TABLES))
        statements += [f"RENAME TABLE {pairs}", f"INSERT INTO d.{new}0 VALUES ('short')"]
        if number % 10 == 0:  # enough that it is read by kernels, but for the last of it
            rows = f"INSERT INTO d.{new}1 VALUES (REPEAT('x', 200000))"
            statements += [rows, "FLUSH BINARY LOGS"]
    server.execute(*statements)
    return server


def follow(server: Server, store: Path) -> subprocess.Popen[str]:
    command = [GTID_AUDIT, "binlog", "schema", "follow", server.dsn, "--store", str(store)]
    return subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def place(store: Path) -> tuple[str, int]:
    """Where the store stands, as anybody may ask while it is written; nowhere if it is not there."""
    if not store.exists():
        return NOWHERE
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        try:
            row = database.execute("SELECT file, position FROM servers").fetchone()
        except sqlite3.OperationalError:  # killed before the tables were made
            return NOWHERE
    return (row[0], row[1]) if row else NOWHERE


def killed(server: Server, store: Path, moment: str, number: int) -> tuple[str, int]:
    """Have a follower die at a moment of its work; give the place where the store stands then."""
    arguments = ("binlog", "schema", "follow", server.dsn, "--store", str(store))
    done = subprocess.run(
        command(signal.SIGKILL, moment, number, *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return place(store)


@pytest.mark.slow
def test_a_follower_that_is_killed_goes_on_to_the_same_store(told: Server, tmp_path: Path) -> None:
    whole, mortal = tmp_path / "whole.sqlite", tmp_path / "mortal.sqlite"
    with follow(told, whole) as process:
        said, complaint = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, complaint
    expected = json.loads(said)
    assert expected["entries"] == TABLES + RENAMES * TABLES * 2

    with follow(told, mortal) as process:  # before it has done anything
        process.send_signal(signal.SIGKILL)
    assert killed(told, mortal, WITHIN, 1) == NOWHERE
    places = []
    for moment, number in MOMENTS:
        places.append(killed(told, mortal, moment, number))
    # Each went on where the one before it was ended, and none was at the end.
    assert NOWHERE not in places
    assert places == sorted(set(places))
    assert killed(told, mortal, WITHIN, 1) == places[-1]
    assert f"{places[-1][0]}:{places[-1][1]}" != expected["followed_to"]

    # No lock is left of any of them, and what they left is the whole.
    assert run(["binlog", "schema", "follow", told.dsn, "--store", str(mortal)]) == 0
    assert content(mortal) == content(whole)
    with closing(sqlite3.connect(mortal)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
