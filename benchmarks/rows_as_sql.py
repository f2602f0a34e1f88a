"""B9: rows of a binary log as SQL: `binlog show --redo` and `--undo` beside `mysqlbinlog -vv`.

The peer decodes the same rows to comments, which no client can run. So what the client needs for
the script is measured too, beside a dump of the same rows.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from benchmarks.measuring import MEBIBYTE, Line, Options, Section, evaluated
from benchmarks.peers import modern
from compose.native import shapes
from compose.native.command import Settings
from compose.native.provision import provision_clients
from compose.native.server import Server
from gtid import GtidSet

TRANSACTIONS = (5_000, 50_000)
ROWS_EACH = 40
GOAL_RATIO = 2.0
GOAL_MEBIBYTES = 150
_RUNS_MAX = 5  # of each
_LONG_RUNS_MAX = 2  # the long log takes half a minute
_LONG_BYTES = 100_000_000
_APPLIED_RUNS = 3
_CACHE = Path(__file__).parents[1] / ".cache" / "binlogs"
_BYTECODE = _CACHE.with_name("bytecode")
_ANSWER_SECONDS_MAX = 3600.0
_SETTINGS = Settings(
    innodb_flush_log_at_trx_commit=0,
    sync_binlog=0,
    extra=("--max-binlog-size=1G", "--innodb-buffer-pool-size=512M", "--binlog-row-metadata=FULL"),
)
_TABLE = """
CREATE TABLE bench.orders (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL,
    name VARCHAR(60) NOT NULL, note VARCHAR(200), price DECIMAL(12,2) NOT NULL,
    state ENUM('new','paid','sent') NOT NULL, made_at DATETIME(6) NOT NULL, seen_at TIMESTAMP NULL
) CHARACTER SET utf8mb4
"""
# 40 rows are inserted by each; every fifth transaction changes two of them and deletes one.
_FILL = f"""
CREATE PROCEDURE bench.fill(transactions INT) BEGIN
    DECLARE i INT DEFAULT 0;
    WHILE i < transactions DO
        START TRANSACTION;
        INSERT INTO bench.orders (customer, name, note, price, state, made_at, seen_at)
            SELECT i * 7 % 1000, CONCAT('customer number ', i % 900),
                IF(n % 5, CONCAT(REPEAT('some words of a note ', 3 + n % 4), i, ' ', n), NULL),
                (i * {ROWS_EACH} + n) / 100, 1 + n % 3,
                '2026-01-01' + INTERVAL (i * 1000003 + n) MICROSECOND,
                FROM_UNIXTIME(1750000000 + i)
            FROM bench.seed;
        IF i % 5 = 0 THEN
            UPDATE bench.orders SET state = 'sent', price = price + 1
                WHERE id IN (i * {ROWS_EACH} + 1, i * {ROWS_EACH} + 2);
            DELETE FROM bench.orders WHERE id = i * {ROWS_EACH} + 3;
        END IF;
        COMMIT;
        SET i = i + 1;
    END WHILE;
END
"""
_SEED = f"""
INSERT INTO bench.seed WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS_EACH}) SELECT i FROM n
"""


@dataclass(frozen=True, slots=True)
class _Log:
    path: Path
    gtids: str
    row_count: int

    @property
    def words(self) -> str:
        count = GtidSet.parse(self.gtids).gtid_count
        size = self.path.stat().st_size / 1e6
        return f"{count:,} transactions, {self.row_count:,} rows, {size:.0f} MB"


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    processor_seconds: float
    peak_mebibytes: float


def rows_as_sql(options: Options) -> Section:
    """Measure scripts of rows beside mysqlbinlog, and what the mysql client takes to run them."""
    applied = _applied(_written(TRANSACTIONS[0]))
    lines: list[Line] = []
    for transactions in TRANSACTIONS:
        log = _written(transactions)
        for direction in ("redo", "undo"):
            lines.append(_beside_mysqlbinlog(log, direction, options))
    return Section("rows of a binary log as SQL", (*lines, applied), _NOTES)


_NOTES = (
    (
        "Processor seconds, user and system, and the median of their ratios. Everything counts,"
        " from the start of the interpreter, whose modules are compiled to bytecode as an installer"
        " compiles them; output goes to /dev/null."
    ),
    (
        "Start and end of the interpreter, and importing, take 0.26 s of ours. Rows are written by"
        " functions that are generated for each table; the extra `columns` is not used."
    ),
    (
        "The dump is mysqldump's, with several rows in each INSERT; it has neither the"
        f" {TRANSACTIONS[0]:,} commits nor the updates and deletes, and nothing in it is checked."
        " An undo of inserted rows takes longer: it has a DELETE for each."
    ),
)


def _beside_mysqlbinlog(log: _Log, direction: str, options: Options) -> Line:
    is_long = log.path.stat().st_size > _LONG_BYTES
    runs = min(options.runs, _LONG_RUNS_MAX if is_long else _RUNS_MAX)
    arguments = ["binlog", "show", log.gtids, str(log.path), f"--{direction}"]
    peer = [
        *provision_clients().command("mysqlbinlog"),
        *("-vv", "--base64-output=DECODE-ROWS", str(log.path)),
    ]
    ours = [sys.executable, "-m", "gtid_audit", *arguments]
    if not is_long:
        measured(ours)  # compiles what is compiled once
    pairs = [(measured(ours), measured(peer)) for _ in range(runs)]
    ratio = statistics.median(a.processor_seconds / b.processor_seconds for a, b in pairs)
    peak = max(mine.peak_mebibytes for mine, _ in pairs)
    goals = (
        evaluated(f"≤ {GOAL_RATIO:.0f}", reached=ratio <= GOAL_RATIO),
        evaluated(f"< {GOAL_MEBIBYTES} MiB", reached=peak < GOAL_MEBIBYTES),
    )
    return Line(
        f"--{direction} of {log.words}",
        f"{_processor(mine for mine, _ in pairs)}, peak {peak:.0f} MiB",
        f"mysqlbinlog -vv: {_processor(theirs for _, theirs in pairs)}",
        f"{ratio:.2f}",
        "; ".join(goals),
    )


def _processor(runs: Iterator[_Run]) -> str:
    return f"{statistics.median(run.processor_seconds for run in runs):.2f} s"


def measured(command: Sequence[str], *, stdout: int = subprocess.DEVNULL) -> _Run:
    """Run a program, and return what it took; all of its processor time, and its peak memory."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=stdout, env=_environment()) as process:
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    took = time.perf_counter() - begun
    return _Run(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MEBIBYTE)


def _environment() -> dict[str, str]:
    """Return the environment, in which modules of ours are compiled once, as by an installer."""
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(_BYTECODE)}


def _applied(log: _Log) -> Line:
    """Run the redo script on an empty table, and a dump of the rows that it leaves, in turn."""
    redo, dump = log.path.with_suffix(".redo.sql"), log.path.with_suffix(".dump.sql")
    with redo.open("wb") as file:
        command = [sys.executable, "-m", "gtid_audit", "binlog", "show", log.gtids, str(log.path)]
        subprocess.run([*command, "--redo"], stdout=file, check=True)
    with shapes.single(modern(), settings=_SETTINGS) as server:
        server.execute("CREATE DATABASE bench", _TABLE)
        _client(server, redo)
        with dump.open("wb") as file:
            dumped = ("--single-transaction", "--set-gtid-purged=OFF", "bench")
            subprocess.run([*_program(server, "mysqldump"), *dumped], stdout=file, check=True)
        expected = _checksum(server)

        def run(script: Path) -> Callable[[], float]:
            def seconds() -> float:
                server.execute("TRUNCATE TABLE bench.orders")
                begun = time.perf_counter()
                _client(server, script)
                took = time.perf_counter() - begun
                assert _checksum(server) == expected
                return took

            return seconds

        pairs = [(run(redo)(), run(dump)()) for _ in range(_APPLIED_RUNS)]
    for script in (redo, dump):
        script.unlink()
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = statistics.median(mine / peer for mine, peer in pairs)
    return Line(
        f"the mysql client runs the redo of {log.words}",
        f"{ours:.1f} s elapsed",
        f"mysqldump of the rows that it leaves: {theirs:.1f} s elapsed",
        f"{ratio:.1f}",
    )


def _program(server: Server, name: str) -> list[str]:
    address = ("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP")
    return [*provision_clients().command(name), *address]


def _client(server: Server, script: Path) -> None:
    with script.open("rb") as text:
        command = [*_program(server, "mysql"), "--binary-mode", "bench"]
        subprocess.run(command, stdin=text, stdout=subprocess.DEVNULL, check=True)


def _checksum(server: Server) -> object:
    return server.query("CHECKSUM TABLE bench.orders")


def _written(transactions: int) -> _Log:
    """Return a log that a server has written, from the cache if it is there."""
    path = _CACHE / f"rows-{transactions}.binlog"
    facts = path.with_suffix(".json")
    if not facts.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _filled(transactions) as (server, gtids):
            file, _ = server.binary_log_position()
            # Not through our memory: a program that we start begins with our peak (Linux, vfork).
            copyfile(server.datadir / file, path)
        rows = transactions * ROWS_EACH + transactions // 5 * 3
        facts.write_text(json.dumps({"gtids": str(gtids), "row_count": rows}))
    return _Log(path, **json.loads(facts.read_text()))


@contextmanager
def _filled(transactions: int) -> Iterator[tuple[Server, GtidSet]]:
    with shapes.single(modern(), settings=_SETTINGS) as server:
        server.execute(
            "CREATE DATABASE bench",
            _TABLE,
            "CREATE TABLE bench.seed (n INT PRIMARY KEY)",
            _SEED,
            _FILL,
            "FLUSH BINARY LOGS",
        )
        before = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
        with (
            server.connect(timeout_seconds_max=_ANSWER_SECONDS_MAX) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"CALL bench.fill({transactions})")
        yield server, GtidSet.parse(server.value("@@GLOBAL.gtid_executed")) - before
