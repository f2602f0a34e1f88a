"""A transaction past 4 GiB, as a real server writes it: end_log_pos has begun anew within it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from binlog.adapters.heads_server import locate_on_server
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.locating.places import TransactionPlace
from compose.native.command import Settings
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from gtid import Gtid, GtidSet
from tests.background import in_background
from tests.binlog.material import connect_arguments

pytestmark = pytest.mark.slow

ROWS = 541
ROW_BYTES = 8_000_000
# The engine keeps nothing: only the log has to have room.
TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.wide (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB) ENGINE=BLACKHOLE",
    "CREATE TABLE d.seed (i INT PRIMARY KEY)",
    "CREATE TABLE d.small (id INT PRIMARY KEY)",
    (
        "INSERT INTO d.seed WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {ROWS}) SELECT i FROM n"
    ),
)
SECONDS_MAX = 600.0


@dataclass(frozen=True, slots=True)
class Grown:
    """A server with one log past 4 GiB, and another behind it."""

    server: Server
    path: Path


@pytest.fixture(scope="module")
def grown(installation97: Installation) -> Iterator[Grown]:
    extra = ("--sync-binlog=0", "--max-allowed-packet=64M")
    server = Server(installation97, "past-4-gib", settings=Settings(extra=extra))
    try:
        server.start()
        server.execute(*TABLES)
        # Another session commits all the while, before the long transaction and behind it.
        with in_background(partial(_commit, server), every_seconds=0.05):
            _write_past_4_gib(server)
        server.execute("INSERT INTO d.small VALUES (-2)")
        [first, *_] = server.query("SHOW BINARY LOGS")
        yield Grown(server, Path(server.folder) / "data" / first[0])
    finally:
        server.discard()


def _commit(server: Server, number: int) -> None:
    """Commit; behind the long transaction that takes as long as it takes to be written."""
    with server.connect(timeout_seconds_max=SECONDS_MAX) as connection:
        connection.query(f"INSERT INTO d.small VALUES ({number})")
        connection.commit()


def _write_past_4_gib(server: Server) -> None:
    with server.connect(timeout_seconds_max=SECONDS_MAX) as connection:
        connection.begin()
        connection.query(f"INSERT INTO d.wide (v) SELECT REPEAT('x', {ROW_BYTES}) FROM d.seed")
        connection.query("INSERT INTO d.small VALUES (-1)")
        connection.commit()


def _long(rows: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [row for row in rows if row["bytes"] > 2**32]
    return found


def test_the_ledger_is_that_of_mysqlbinlog(grown: Grown, mysql_clients: Clients) -> None:
    command = [*mysql_clients.command("mysqlbinlog"), "--base64-output=decode-rows"]
    text = subprocess.run([*command, str(grown.path)], capture_output=True, check=True).stdout
    expected = [
        (int(at), int(at) + int(size), gtid.decode())
        for at, size, gtid in re.findall(
            rb"# at (\d+)\n#[^\n]*transaction_length=(\d+)\n(?:[^\n]*\n){1,9}?"
            rb"SET @@SESSION.GTID_NEXT= '([^']+)'",
            text,
        )
    ]
    ledger = ledger_of_file(grown.path, LedgerRequest(verify=True))
    assert ledger.error is None
    assert ledger.end == grown.path.stat().st_size
    rows = ledger.rows.to_pylist()
    assert [(row["start"], row["end"], f"{row['uuid']}:{row['gno']}") for row in rows] == expected
    assert _long(rows)["end"] > 2**32
    assert ledger_of_file(grown.path).rows == ledger.rows


def test_a_live_server_is_read_through_it(grown: Grown) -> None:
    """It is not held, but read event by event; what is behind it in the log follows."""
    files = ledger_of_file(grown.path, LedgerRequest(digests=True, details=True)).rows.to_pylist()
    batches = list(
        ledger_of_server(
            connect_arguments(grown.server),
            AllBut(GtidSet()),
            LedgerRequest(digests=True, details=True),
            timeout_seconds_max=60,
        )
    )
    given = [row for batch in batches for row in batch.rows.to_pylist()]
    assert given[: len(files)] == files
    assert [row["file"] for row in given[len(files) :]] != []
    assert {row["file"] for row in given[len(files) :]} != {grown.path.name}
    found = _long(files)
    assert found["digest"] is not None
    assert {each["table"]: each["rows_written"] for each in found["tables"]} == {
        "wide": ROWS,
        "small": 1,
    }


def test_it_is_located_by_its_head(grown: Grown) -> None:
    row = _long(ledger_of_file(grown.path).rows.to_pylist())
    gtid = Gtid.parse(f"{row['uuid']}:{row['gno']}")
    located = locate_on_server(
        connect_arguments(grown.server), GtidSet.of(gtid), timeout_seconds_max=60
    )
    [file] = located.files
    assert (file.file, file.places) == (
        grown.path.name,
        (TransactionPlace(gtid, row["start"], row["end"]),),
    )
    assert located.errors == ()
