"""Has a pair of live servers write binary logs by the gigabyte, of rows that are not kept.

1. Both servers write the logs themselves: the one its own transactions, the other as its replica.
2. The table is of the BLACKHOLE engine, which logs rows and keeps none: the disk has to hold the
   logs alone, and the servers write no data pages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.peers import modern
from compose.native import shapes
from compose.native.server import Server

_ROWS = 100  # of a kilobyte each, in one large transaction
_ANSWER_SECONDS_MAX = 600.0
_STEPS_PER_FILE = 20
_NEARLY_FULL = 0.85


@dataclass(frozen=True, slots=True)
class Fill:
    """What a log is filled with."""

    rows: str  # what is inserted in one transaction
    transaction_bytes: int  # in the log, roughly

    @property
    def name(self) -> str:
        """Return the procedure that writes it."""
        return f"bench.fill_{self.transaction_bytes}"

    @property
    def procedure(self) -> str:
        """Return its definition."""
        return f"""
            CREATE PROCEDURE {self.name}(transactions INT) BEGIN
                DECLARE i INT DEFAULT 0;
                WHILE i < transactions DO
                    INSERT INTO bench.t (a, v) {self.rows};
                    SET i = i + 1;
                END WHILE;
            END
        """


LARGE: Final = Fill("SELECT i, REPEAT('x', 1000) FROM bench.seed", 102_000)
SMALL: Final = Fill("VALUES (i, REPEAT('x', 100))", 447)

# Nothing here has to survive the machine, and no server waits for its disk.
_EXTRA = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=512M",
    "--innodb-redo-log-capacity=1G",
    "--binlog-cache-size=1M",
    "--relay-log-space-limit=1G",
)
_TABLE = """
CREATE TABLE bench.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, v VARCHAR(1000)) ENGINE=BLACKHOLE
"""
_SEED = f"""
INSERT INTO bench.seed WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS}) SELECT i FROM n
"""


@contextmanager
def filled_pair(*, log_bytes: int, file_bytes: int, last: Fill = LARGE) -> Iterator[shapes.Pair]:
    """Run a pair whose servers hold at least `log_bytes` of logs each, in files of `file_bytes`.

    The second server's last file is nearly full, of what `last` says: what is written next lies at
    its end. The files before it are full of large transactions.
    """
    extra = (*_EXTRA, f"--max-binlog-size={file_bytes}")
    step_bytes = file_bytes // _STEPS_PER_FILE
    with shapes.pair(modern(), extra=extra) as pair:
        seed = "CREATE TABLE bench.seed (i INT PRIMARY KEY)"
        procedures = [fill.procedure for fill in (LARGE, SMALL)]
        pair.a.execute("CREATE DATABASE bench", _TABLE, seed, _SEED, *procedures)
        while bytes_of_logs(pair.a) < log_bytes:
            _write(pair.a, LARGE, step_bytes)
        pair.settle(timeout_seconds_max=_ANSWER_SECONDS_MAX)
        if last is not LARGE:
            pair.b.execute("FLUSH BINARY LOGS")
        while sizes_of_logs(pair.b)[-1] < _NEARLY_FULL * file_bytes:
            _write(pair.a, last, step_bytes)
            pair.settle(timeout_seconds_max=_ANSWER_SECONDS_MAX)
        yield pair


def sizes_of_logs(server: Server) -> list[int]:
    """Return how many bytes the server says each of its binary logs has."""
    return [int(row[1]) for row in server.query("SHOW BINARY LOGS")]


def bytes_of_logs(server: Server) -> int:
    """Return how many bytes of binary logs the server has."""
    return sum(sizes_of_logs(server))


def _write(server: Server, fill: Fill, size_bytes: int) -> None:
    transactions = max(1, size_bytes // fill.transaction_bytes)
    with (
        server.connect(timeout_seconds_max=_ANSWER_SECONDS_MAX) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"CALL {fill.name}({transactions})")
