"""Scripts of large files: the same bytes as by the decoder, and no row is read for a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from binlog.adapters import row_transactions
from binlog.rows.values import LoggedRows
from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run
from repair.sql.event_texts import EventTexts

TABLES = (
    "CREATE DATABASE rows_only",
    "CREATE TABLE rows_only.t (id INT PRIMARY KEY, a VARCHAR(20), n INT, e ENUM('x', 'y'))",
    "CREATE TABLE rows_only.m (id INT PRIMARY KEY, a VARCHAR(20)) ENGINE=MyISAM",
)
# Each is one transaction, or none.
CHANGES = (
    ("INSERT INTO rows_only.t VALUES (1, 'one', -1, 'x'), (2, 'it''s', NULL, 'y'), (3, 'x', 3, 1)",),
    ("BEGIN", "UPDATE rows_only.t SET a = 'new'", "DELETE FROM rows_only.t WHERE id = 3", "COMMIT"),
    ("SET binlog_rows_query_log_events = ON", "UPDATE rows_only.t SET n = n + 1 WHERE id = 1"),
    ("INSERT INTO rows_only.m VALUES (1, 'a'), (2, 'b')",),
    ("BEGIN", "INSERT INTO rows_only.m VALUES (3, 'c')", "INSERT INTO rows_only.t (id) VALUES (9)",
     "ROLLBACK"),
    ("SET binlog_transaction_compression = ON",
     "INSERT INTO rows_only.t VALUES (7, REPEAT('z', 20), 7, NULL)"),
    ("BEGIN", "INSERT INTO rows_only.t VALUES (10, 'u', 1, 1)", "SAVEPOINT s",
     "INSERT INTO rows_only.t VALUES (11, 'v', 1, 1)", "COMMIT"),
    ("BEGIN", "INSERT INTO rows_only.t VALUES (20, 'a', 1, 1)",
     "INSERT INTO rows_only.t VALUES (21, 'b', 2, 2)", "COMMIT"),
)  # fmt: skip


@pytest.fixture
def logged(mysql97: Server) -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """Return a function that makes changes, and returns their GTIDs and the files with them."""
    server = mysql97
    server.execute(*TABLES, "SET GLOBAL binlog_row_metadata = FULL", "FLUSH BINARY LOGS")
    files_before = len(server.query("SHOW BINARY LOGS")) - 1

    def make(*transactions: tuple[str, ...]) -> tuple[str, list[str]]:
        before = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
        for statements in transactions:
            server.execute(*statements)
        wanted = GtidSet.parse(server.value("@@GLOBAL.gtid_executed")) - before
        files = [row[0] for row in server.query("SHOW BINARY LOGS")][files_before:]
        return str(wanted), [str(server.datadir / file) for file in files]

    yield make
    server.execute("DROP DATABASE rows_only", "SET GLOBAL binlog_row_metadata = DEFAULT")


def _answers(
    commands: Sequence[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> list[tuple[int, str, str]]:
    return [(run(command), *capsys.readouterr()) for command in commands]


def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file be a large one, and every table worth functions."""
    monkeypatch.setattr(row_transactions, "LARGE_BYTES", 0)
    defaults = EventTexts.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "rows_before_functions", 0)


def test_a_large_file_gives_the_same_bytes(
    logged: Callable[..., tuple[str, list[str]]],
    mysql97: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rotation = ("FLUSH BINARY LOGS",)
    late = ("CREATE TABLE rows_only.late (a INT)",)
    with_ddl, files = logged(*CHANGES[:3], rotation, *CHANGES[3:], rotation, late)
    assert len(files) == 3
    rows = str(GtidSet.parse(with_ddl).first(4))
    commands = [
        ("binlog", "show", wanted, *source, *how)
        for wanted in (rows, with_ddl)
        for source in (files, [mysql97.dsn])
        for how in (["--undo"], ["--redo"], ["--redo", "--keep-gtids"], ["--redo", "--json"])
    ]
    expected = _answers(commands, capsys)
    assert [status for status, *_ in expected] == [0, 0, 0, 0, 0, 0, 0, 0, *[3, 0, 0, 0] * 2]
    places: list[int] = []
    rows_of = row_transactions.RowLog.rows_of

    def counted(log: row_transactions.RowLog, first: int, end: int) -> Iterator[LoggedRows]:
        places.append(first)
        opened = {str(each.resolve()) for each in Path("/proc/self/fd").iterdir()}
        assert len(opened & set(files)) <= 1
        return rows_of(log, first, end)

    _large(monkeypatch)
    monkeypatch.setattr(row_transactions.RowLog, "rows_of", counted)
    assert _answers(commands, capsys) == expected
    assert len(places) > 20


def test_no_row_is_read_for_a_refusal(
    logged: Callable[..., tuple[str, list[str]]],
    mysql97: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """DDL, a cut row image, and rows without names: each is the last of several transactions."""

    def read(_texts: EventTexts, _rows: LoggedRows) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(EventTexts, "write", read)
    wanted, files = logged(*CHANGES[:2], ("CREATE TABLE rows_only.late (a INT)",))
    cut, _ = logged(
        ("INSERT INTO rows_only.t VALUES (70, 'z', 7, NULL)",),
        ("SET binlog_row_image = MINIMAL", "UPDATE rows_only.t SET n = 5 WHERE id = 70"),
    )
    mysql97.execute("SET GLOBAL binlog_row_metadata = MINIMAL")
    nameless, files = logged(("INSERT INTO rows_only.t VALUES (80, 'z', 7, NULL)",))
    for _size in ("small", "large"):
        for source in (files, [mysql97.dsn]):
            for gtids, how, why in (
                (wanted, "--undo", "DDL cannot be undone: CREATE TABLE rows_only.late (a INT)"),
                (cut, "--undo", "the log does not have the value before the update of n"),
                (f"{wanted},{nameless}", "--redo", "the names of the columns are not known"),
            ):
                assert run(("binlog", "show", gtids, *source, how)) == 3, how
                out, err = capsys.readouterr()
                assert (out, why in err) == ("", True), err
        _large(monkeypatch)


def test_a_damaged_row_event_of_a_large_file_is_reported(
    logged: Callable[..., tuple[str, list[str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted, files = logged(*CHANGES[:2])
    damaged = tmp_path / "binlog.000001"
    content = Path(files[0]).read_bytes()
    at = content.index(b"it's")
    commands = [("binlog", "show", wanted, str(damaged), "--redo")]
    for broken in (
        content[:at] + b"x" + content[at + 1 :],  # a checksum
        content[: at + 2],  # the end
        content[: at - 30] + bytes(20) + content[at - 10 :],  # a header
    ):
        damaged.write_bytes(broken)
        with monkeypatch.context() as small:
            small.setattr(row_transactions, "LARGE_BYTES", 1 << 60)
            expected = _answers(commands, capsys)
        assert expected[0][0] == 3
        assert expected[0][1] == ""
        with monkeypatch.context() as large:
            _large(large)
            assert _answers(commands, capsys) == expected


def test_a_value_that_no_literal_can_express_leaves_no_script(
    logged: Callable[..., tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is found when its row is written, and standard output still has nothing."""
    wanted, files = logged(
        CHANGES[0],
        ("CREATE TABLE rows_only.j (id INT PRIMARY KEY, b BLOB, j JSON)",),
        ("INSERT INTO rows_only.j (id, b) VALUES (1, x'00ff')",),
        ("UPDATE rows_only.j SET j = JSON_ARRAY(b)",),
        CHANGES[3],
    )
    assert run(("binlog", "show", wanted, *files, "--redo")) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("redo is not possible: a JSON document contains bytes") == 1
    assert "no script was written" in err
