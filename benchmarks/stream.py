"""B5: the ledger of a live server over loopback, beside a client that only copies its log."""

import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measuring import MEBIBYTE, Line, Options, Section, duel, evaluated, seconds_of
from benchmarks.peers import modern
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import FromPlace, Only, Wish
from compose.native import shapes
from compose.native.command import Settings
from compose.native.provision import provision_clients
from compose.native.server import Server
from gtid import GtidSet

SMALL_TRANSACTIONS = 300_000
LARGE_TRANSACTIONS = 4_000
LARGE_ROWS = 100  # of a kilobyte each, in one transaction

_SETTINGS = Settings(
    innodb_flush_log_at_trx_commit=0,
    extra=("--max-binlog-size=1G", "--innodb-buffer-pool-size=256M"),
)
_FILL = """
CREATE PROCEDURE bench.{name}(transactions INT) BEGIN
    DECLARE i INT DEFAULT 0;
    WHILE i < transactions DO {insert}; SET i = i + 1; END WHILE;
END
"""
_INSERTS = {
    "small": "INSERT INTO bench.t (a, v) VALUES (i, REPEAT('x', 100))",
    "large": "INSERT INTO bench.t (a, v) SELECT i, REPEAT('x', 1000) FROM bench.seed",
}
_SEED = f"""
INSERT INTO bench.seed WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {LARGE_ROWS}) SELECT i FROM n
"""
_ANSWER_SECONDS_MAX = 600.0


def ledger_of_a_stream(options: Options) -> Section:
    """Measure the ledger of a server beside `mysqlbinlog --read-from-remote-server --raw`."""
    lines = []
    for kind, count in (("small", SMALL_TRANSACTIONS), ("large", LARGE_TRANSACTIONS)):
        with _written(kind, count) as server:
            lines.append(_measured(server, kind, options))
            if kind == "small":
                lines.append(_few(server, options))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Section(
        "the ledger of a live server, over loopback",
        tuple(lines),
        (
            f"Ours ran in one process, whose memory never was above {memory} MiB.",
            "mysqlbinlog writes what it copies to a file. Neither uses TLS.",
        ),
    )


@contextmanager
def _written(kind: str, transactions: int) -> Iterator[Server]:
    """Run a server that has written so many transactions into its first log."""
    with shapes.single(modern(), settings=_SETTINGS) as server:
        server.execute(
            "CREATE DATABASE bench",
            "CREATE TABLE bench.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, v VARCHAR(1000))",
            "CREATE TABLE bench.seed (i INT PRIMARY KEY)",
            _SEED,
            _FILL.format(name=kind, insert=_INSERTS[kind]),
        )
        with (
            server.connect(timeout_seconds_max=_ANSWER_SECONDS_MAX) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(f"CALL bench.{kind}({transactions})")
        yield server


def _measured(server: Server, kind: str, options: Options) -> Line:
    file, end = server.binary_log_position()
    rows = ledger_rows(server, FromPlace(file, 4))

    def ours() -> float:
        return seconds_of(lambda: ledger_rows(server, FromPlace(file, 4)))

    def peer() -> float:
        with tempfile.TemporaryDirectory() as folder:
            return seconds_of(lambda: _copied(server, file, folder))

    result = duel(ours, peer, runs=options.runs)
    megabytes = end / 1e6
    return Line(
        f"{rows:,} {kind} transactions, {end / MEBIBYTE:.0f} MiB",
        f"{megabytes / result.our_seconds:.0f} MB/s, {rows / result.our_seconds:,.0f} rows/s",
        f"mysqlbinlog --raw: {megabytes / result.peer_seconds:.0f} MB/s",
        f"{result.ratio:.2f}",
        evaluated("≤ 1", reached=result.ratio <= 1),
    )


def _few(server: Server, options: Options) -> Line:
    """Ten transactions of the middle: the server sends no others."""
    executed = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
    middle = executed.gtid_count // 2
    wanted = executed.first(middle + 10) - executed.first(middle)
    file, _ = server.binary_log_position()
    assert ledger_rows(server, Only(wanted)) == 10

    def ours() -> float:
        return seconds_of(lambda: ledger_rows(server, Only(wanted)))

    def peer() -> float:
        text = str(wanted)
        return seconds_of(lambda: _decoded(server, file, f"--include-gtids={text}"))

    result = duel(ours, peer, runs=max(3, options.runs // 3))
    return Line(
        "ten of them",
        f"{result.our_seconds:.3f} s",
        f"mysqlbinlog --include-gtids: {result.peer_seconds:.2f} s",
        f"{result.ratio:.3f}",
    )


def ledger_rows(server: Server, wish: Wish) -> int:
    """Read the ledger, and return how many rows it has."""
    arguments: dict[str, Any] = {
        "host": server.host,
        "port": server.port,
        "user": "root",
        "ssl_disabled": True,
    }
    batches = ledger_of_server(arguments, wish, timeout_seconds_max=_ANSWER_SECONDS_MAX)
    return sum(batch.rows.num_rows for batch in batches)


def _copied(server: Server, file: str, folder: str) -> None:
    _client(server, "--raw", f"--result-file={folder}/", file)


def _decoded(server: Server, file: str, *options: str) -> None:
    _client(server, "--base64-output=DECODE-ROWS", *options, file)


def _client(server: Server, *arguments: str) -> None:
    subprocess.run(
        [
            *provision_clients().command("mysqlbinlog"),
            *("--read-from-remote-server", "--user=root", "--ssl-mode=DISABLED"),
            *(f"--host={server.host}", f"--port={server.port}", "--get-server-public-key"),
            *arguments,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
    )
