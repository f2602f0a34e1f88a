"""Transactions that are longer than memory should be: the same answers, by way of a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlog.adapters.log_files import FileLogs
from binlog.adapters.spooled import Spooled
from binlog.adapters.stream import ServerLogs
from binlog.errors import LimitExceeded
from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.tasks import replay_output, scripted_transactions

ROOT = Path(__file__).parents[2]
CREATE = "CREATE TABLE long_one.t (id INT PRIMARY KEY, a LONGTEXT CHARACTER SET ascii)"


@pytest.fixture
def gtid_of(mysql97: Server) -> Iterator[Callable[..., str]]:
    mysql97.execute("CREATE DATABASE long_one", CREATE)

    def gtids(*statements: str) -> str:
        before = GtidSet.parse(mysql97.value("@@GLOBAL.gtid_executed"))
        mysql97.execute("BEGIN", *statements, "COMMIT")
        return str(GtidSet.parse(mysql97.value("@@GLOBAL.gtid_executed")) - before)

    yield gtids
    mysql97.execute("DROP DATABASE long_one")


def test_a_long_transaction_gives_the_same_answers(
    mysql97: Server,
    gtid_of: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What counts as long is made short here, so that both ways can be compared."""
    gtids = gtid_of(
        *(f"INSERT INTO long_one.t VALUES ({number}, 'x')" for number in range(5)),
        "UPDATE long_one.t SET a = 'y\\n' WHERE id < 3",
        "DELETE FROM long_one.t WHERE id = 4",
    )
    files = [str(mysql97.datadir / row[0]) for row in mysql97.query("SHOW BINARY LOGS")]
    commands = [
        ("binlog", "show", gtids, *source, *how, "--schema-from", mysql97.dsn)
        for source in (files, [mysql97.dsn])
        for how in ([], ["--json"], ["--undo"], ["--redo"])
    ]

    def answers() -> list[tuple[int, str]]:
        return [(run(command), capsys.readouterr().out) for command in commands]

    expected = answers()
    assert all(status == 0 for status, _ in expected)
    for logs in (FileLogs, ServerLogs):
        defaults = logs.events_of.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "bytes_max", 200)
    monkeypatch.setattr(scripted_transactions, "TURNED_CHARACTERS_MAX", 200)
    assert answers() == expected
    monkeypatch.setattr(replay_output, "JSON_SCRIPT_BYTES_MAX", 200)
    assert run((*commands[2], "--json")) == 64
    assert "leave out --json" in capsys.readouterr().err


@pytest.mark.slow
def test_memory_stays_bounded(mysql97: Server, gtid_of: Callable[..., str]) -> None:
    """64 MiB where 8 are long: 300 where 256 are take five minutes, and 560 MiB."""
    mysql97.execute("SET GLOBAL binlog_row_metadata = FULL")
    gtids = gtid_of(
        *(
            f"INSERT INTO long_one.t VALUES ({number}, REPEAT('{number % 10}', 1 << 20))"
            for number in range(64)
        )
    )
    mysql97.execute("SET GLOBAL binlog_row_metadata = DEFAULT")
    for how in ("--redo", "--json", "--undo"):
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, "binlog", "show", gtids, mysql97.dsn, how],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert len(done.stdout) > 64 << 20
        # 70 measured, and 180 if all of it is held. Of a file the mapped pages count as well.
        assert int(done.stderr.splitlines()[-1]) < 120, how
    assert mysql97.client(done.stdout, "--binary-mode").returncode == 0
    assert mysql97.query("SELECT COUNT(*) FROM long_one.t") == [(0,)]


MEASURED = """
import sys
from pathlib import Path
from binlog.adapters.log_files import FileLogs
from binlog.adapters.stream import ServerLogs
from gtid_audit import output
from gtid_audit.cli import run
for logs in (FileLogs, ServerLogs):
    logs.events_of.__kwdefaults__["bytes_max"] = 8 << 20
output._SPOOLED_BYTES = 8 << 20
status = run(sys.argv[1:])
lines = Path("/proc/self/status").read_text().splitlines()
peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
sys.stderr.write(f"{peak}\\n")
sys.exit(status)
"""


def test_items_are_read_from_either_end_and_more_than_once(tmp_path: Path) -> None:
    items: Spooled[str] = Spooled()
    for number in range(1000):
        items.append(f"{number}:" + "x" * number * 100)
    assert len(items) == 1000
    both = list(zip(items, reversed(items), strict=True))
    assert [first for first, _ in both] == [last for _, last in reversed(both)]
    assert both[7][0].startswith("7:")
    assert list(items)[-1].startswith("999:")
    assert "0:" in items
    with pytest.raises(LimitExceeded, match="limit of 100 bytes"):
        Spooled[str](bytes_max=100).append("x" * 100)
