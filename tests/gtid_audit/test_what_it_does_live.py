"""docs/what-it-does.md lists what servers receive, and servers receive nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compose import faults
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit.cli import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-it-does.md"
BEGINS = re.findall(
    r"^\| `(.*?)` \|.*\|.*\|$", PAGE.read_text().split("## Connections")[0], re.MULTILINE
)
# Of other versions than the one that is running.
OLD = {"SHOW SLAVE STATUS", "SHOW MASTER STATUS", "SELECT s.workers AS workers"}
NEW = {
    *("SHOW REPLICA STATUS", "SHOW BINARY LOG STATUS", "SELECT c.CHANNEL_NAME AS channel"),
    "SELECT VARIABLE_NAME AS name, VARIABLE_SOURCE AS source",
}


@contextmanager
def logged(server: Server) -> Iterator[list[tuple[int, str, str]]]:
    """Yield a list; at the end it has session, kind and text of all that the server received."""
    seen: list[tuple[int, str, str]] = []
    server.execute("SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log")
    server.execute("SET GLOBAL general_log = ON")
    yield seen
    server.execute("SET GLOBAL general_log = OFF")
    rows = server.query("SELECT thread_id, command_type, argument FROM mysql.general_log")
    texts = [[each.decode() if isinstance(each, bytes) else each for each in row] for row in rows]
    ours = {thread for thread, _, text in texts if str(text).startswith("SET GLOBAL general_log")}
    seen += [
        (int(thread), str(kind), str(text)) for thread, kind, text in texts if thread not in ours
    ]


@pytest.mark.parametrize(("fixture", "other"), [("pair97", OLD), ("pair56", NEW)])
def test_an_audit_sends_the_statements_of_the_page_and_no_others(
    fixture: str, other: set[str], request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(fixture)
    if fixture == "pair97":
        faults.position_bypass(pair)
    with logged(pair.b) as received:
        assert run(("pair", pair.a.dsn, pair.b.dsn)) == (2 if fixture == "pair97" else 0)
    # A replica that runs by position reads its own source: sessions of the servers are left out.
    ours = {thread for thread, _, text in received if text.startswith("SET NAMES utf8mb4")}
    received = [each for each in received if each[0] in ours]
    assert {kind for _, kind, _ in received} <= {
        *("Connect", "Query", "Quit", "Binlog Dump", "Binlog Dump GTID"),
    }
    queries = [text for _, kind, text in received if kind == "Query"]
    assert len(queries) > 20
    assert [text for text in queries if not text.startswith(tuple(BEGINS))] == []
    unseen = {begin for begin in BEGINS if not any(text.startswith(begin) for text in queries)}
    assert unseen == other
    assert not any(
        re.search(r"\b(?:FOR UPDATE|LOCK|FLUSH|BEGIN|START)\b", text) for text in queries
    )


def test_the_list_is_read() -> None:
    assert len(BEGINS) == 15
    assert set(BEGINS) > OLD | NEW
