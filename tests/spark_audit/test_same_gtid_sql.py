"""docs/same-gtid.sql finds every GTID that was reused, and nothing else."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from spark_audit.adapters.sources import register_sources

pytestmark = pytest.mark.spark

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = (DOCS / "same-gtid.sql").read_text()
PAGE = (DOCS / "same-gtid-fleet.md").read_text()
ORIGIN = "aaaaaaaa-0000-0000-0000-000000000001"
COMMITTED = 1_767_355_200_000_000


@dataclass(frozen=True)
class Logged:
    """One transaction as one server has it."""

    gtid: str
    value: int | None  # None: an empty one
    committed: int  # microseconds after COMMITTED

    def statements(self) -> list[str]:
        content = [] if self.value is None else [f"INSERT INTO d.t VALUES ({self.value})"]
        return [
            f"SET gtid_next = '{ORIGIN}:{self.gtid}'",
            f"SET original_commit_timestamp = {COMMITTED + self.committed}",
            "BEGIN",
            *content,
            "COMMIT",
        ]


HISTORY = [Logged(str(number), number, number) for number in range(1, 8)] + [
    Logged("dba:1", 100, 8),
    Logged("dba:2", None, 9),
]


def changed(*others: Logged) -> list[Logged]:
    """The same history, with others in the place of some."""
    by_gtid = {each.gtid: each for each in others}
    return [by_gtid.get(each.gtid, each) for each in HISTORY]


SERVERS = {
    "db1": HISTORY,
    "db2": changed(
        Logged("3", 33, 1_000_003),  # the number was used again, after a lost tail
        Logged("4", 44, 4),  # other content under the same time
        Logged("5", None, 1_000_005),  # made good by hand
        Logged("dba:1", 101, 1_000_008),
    ),
    "db3": HISTORY,
}


def logs_of(server: Server, history: list[Logged], folder: Path) -> None:
    """Have a server write a history, in two files, and keep them."""
    server.execute("RESET BINARY LOGS AND GTIDS")
    half = len(history) // 2
    for part in (history[:half], history[half:]):
        server.execute(*[sql for each in part for sql in each.statements()])
        server.execute("FLUSH LOGS")
    folder.mkdir()
    for row in server.query("SHOW BINARY LOGS"):
        shutil.copy(server.datadir / str(row[0]), folder)


@pytest.fixture(scope="module")
def archive(installation97: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    with shapes.single(installation97) as server:
        server.execute("SET sql_log_bin = 0", "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
        for name, history in SERVERS.items():
            logs_of(server, history, folder / name)
    return folder


def answers(session: SparkSession, archive: Path) -> list[list[tuple[object, ...]]]:
    """Make the view as the file's own words say, run the file; give the rows of each SELECT."""
    register_sources(session)
    (columns,) = re.findall(r'\.option\("columns", "([^"]+)"\)', SCRIPT)
    source = session.read.format("mysql_binlog").option("digests", "true")
    logs = source.option("columns", columns).load(f"{archive}/*/binlog.*")
    logs.createOrReplaceTempView("ledgers")
    statements = re.sub(r"^--.*$", "", SCRIPT, flags=re.MULTILINE).split(";")
    frames = [session.sql(statement) for statement in statements if statement.strip()]
    rows = [[tuple(row) for row in frame.collect()] for frame in frames]
    session.catalog.dropTempView("ledgers")
    return rows


def test_every_number_used_twice_is_found_and_no_other(archive: Path, spark: SparkSession) -> None:
    damaged = archive / "db3" / "binlog.000003"
    damaged.write_bytes(damaged.read_bytes()[:-1])  # the last byte of the newest file's head
    found, unread = answers(spark, archive)
    assert [row[:2] for row in found] == [
        (f"{ORIGIN}:3", "committed at different times"),
        (f"{ORIGIN}:4", "different content"),
        (f"{ORIGIN}:5", "empty on some"),
        (f"{ORIGIN}:dba:1", "committed at different times"),
    ]
    for gtid, why, _ in found:
        assert f"\n{gtid} | {why}\n" in PAGE
    where = [str(text) for text in found[0][2]]  # type: ignore[attr-defined]
    assert [text.split(" ")[0] for text in where] == ["db1", "db2", "db3"]
    assert where[0].removeprefix("db1") == where[2].removeprefix("db3")
    assert where[0].endswith("dml committed 2026-01-02 12:00:00.000003")
    assert where[1].endswith("dml committed 2026-01-02 12:00:01.000003")
    ((path, start, error),) = unread
    assert path == str(damaged)
    assert str(error).startswith(f"binlog.000003: at byte {start}: ")
