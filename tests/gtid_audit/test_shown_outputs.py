"""What the pages about binary logs show: the commands print it, but for places, times and UUIDs."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest

from binlog.event_types import EventType
from compose.faults import commit
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from tests.binlog.builders import Log, gtid_body

DOCS = Path(__file__).parents[2] / "docs"
ORIGIN = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def shown(page: str, command: str) -> tuple[list[str], str]:
    """Return the words of a command that a page shows with its output, and that output."""
    text = (DOCS / f"{page}.md").read_text()
    blocks = re.findall(r"^```\n\$ gtid-audit ([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    [(typed, output)] = [each for each in blocks if each[0].startswith(command)]
    return [word.strip('"') for word in typed.split()], output


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command at the width of the pages; return what it printed."""
    run(words)
    return capsys.readouterr().out


def plain(text: str) -> list[str]:
    """Return the lines without what is never the same: places in logs, times, UUIDs, addresses.

    Blanks count as one: the header of a place moves what is behind it.
    """
    for pattern, word in (
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+", "GTID"),
        (r"binlog\.\d+:\d+(-\d+)?", "PLACE"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", "TIME"),
        (r"\bserver \d+", "server ID"),
        (r"(127\.0\.0\.1|10\.0\.0\.\d):\d+", "ADDRESS"),
    ):
        text = re.sub(pattern, word, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def archive(folder: Path, *files: tuple[int, str, range]) -> None:
    """Write files of empty transactions: number, the GTIDs before, those in it."""
    folder.mkdir(parents=True)
    for number, before, gnos in files:
        log = Log()
        log.add(EventType.PREVIOUS_GTIDS, encode(GtidSet.parse(before and f"{ORIGIN}:{before}")))
        for gno in gnos:
            log.add(EventType.GTID, gtid_body(gno, uuid=UUID(ORIGIN)))
            log.query("BEGIN")
            log.xid()
        (folder / f"binlog.{number:06}").write_bytes(bytes(log))


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_locate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # the folder here has a longer name
    words, output = shown("binlog", "binlog locate")
    logs = tmp_path / "mysql"
    archive(
        logs,
        *(
            (n, f"1-{3 * n - 3}" if n > 1 else "", range(3 * n - 2, 3 * n + 1))
            for n in range(1, 21)
        ),
    )
    found = printed([*words[:-1], str(logs)], capsys)
    assert found.replace(str(logs), words[-1]).splitlines() == output.splitlines()


def test_cover(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, output = shown("binlog", "binlog cover")
    logs = tmp_path / "db1"
    archive(
        logs,
        (17, "1-900", range(901, 941)),
        (18, "1-940", range(941, 981)),
        (20, "1-1020", range(1021, 1061)),
        (21, "1-1060", range(1061, 1101)),
    )
    (tmp_path / "backup.gtid").write_text(f"{ORIGIN}:1-902")
    words = [word.replace("@backup", f"@{tmp_path}/backup") for word in words]
    found = printed([*words[:-1], str(logs)], capsys)
    assert found.splitlines() == output.splitlines()


def test_show(
    mysql97: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # a longer place or server_id moves no word
    words, output = shown("binlog-content", "binlog show")
    mysql97.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.article (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8, 2),"
        " stock INT, weight INT, shelf INT, note TEXT)",
        "INSERT INTO shop.article VALUES (1, 'Anna', 1.5, 2, 3, 4, NULL)",
    )
    gtid = commit(mysql97, "UPDATE shop.article SET name = 'Anne', price = 2.5 WHERE id = 1")
    assert (words[2], words[4]) == (f"{ORIGIN}:23", "--schema-from")
    found = printed(["binlog", "show", gtid, str(mysql97.datadir), words[4], mysql97.dsn], capsys)
    assert plain(found) == plain(output)


def test_schema_compare(pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page has the columns of four definitions: two servers, an event, and a store."""
    page = (DOCS / "binlog-schema.md").read_text()
    [output] = re.findall(r"^```\n(CRITICAL: S3 .*?)^```$", page, re.MULTILINE | re.DOTALL)
    [typed] = re.findall(
        r"^gtid-audit (binlog schema compare [^`]*?)\n(?!    )", page, re.MULTILINE
    )
    words = typed.replace("\\\n", " ").split()
    store = ["--store", str(tmp_path / "schemas.sqlite")]
    pair97.a.execute(
        "CREATE DATABASE shop CHARACTER SET latin1",
        "CREATE TABLE shop.orders (id INT, name VARCHAR(9))",
    )
    gtid = commit(pair97.a, "INSERT INTO shop.orders VALUES (1, 'a')")
    file = tmp_path / "orders.sql"
    file.write_text(
        "CREATE TABLE orders (id INT, name VARCHAR(9), total INT, note TEXT) CHARSET=latin1"
    )
    run(["binlog", "schema", "follow", pair97.a.dsn, *store])
    run(["binlog", "schema", "update", words[3], "--from-file", str(file), *store])
    pair97.a.execute("ALTER TABLE shop.orders ADD total INT")
    pair97.settle()
    capsys.readouterr()
    assert words[4::2] == ["--source", "--replica", "--at"]
    servers = ("--source", pair97.a.dsn, "--replica", pair97.b.dsn, "--at", gtid)
    found = printed([*words[:4], *servers, *store], capsys)
    assert plain(found) == plain(output)


def test_compare(
    pair97: Pair, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows what is below the explanation: the contents, and the rows as they are."""
    monkeypatch.setenv("COLUMNS", "160")
    page = (DOCS / "same-gtid-different-content.md").read_text()
    [output] = re.findall(r"^```\n(  server .*?)^```$", page, re.MULTILINE | re.DOTALL)
    source, replica = pair97.a, pair97.b
    source.execute(
        "CREATE DATABASE lost", "CREATE TABLE lost.t (id INT PRIMARY KEY, note VARCHAR(20))"
    )
    pair97.settle()
    replica.execute("STOP REPLICA")
    gtid = commit(source, "INSERT INTO lost.t VALUES (1, 'after the crash')")
    replica.execute(
        f"SET gtid_next = '{gtid}'",
        "INSERT INTO lost.t VALUES (1, NULL)",
        "SET gtid_next = 'AUTOMATIC'",
        "START REPLICA",
    )
    found = printed(["binlog", "compare", source.dsn, replica.dsn, "--only", gtid], capsys)
    assert [line for line in plain(output) if line not in plain(found)] == []
