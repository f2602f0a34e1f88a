"""B12: two hundred scrapes of `serve` at once, alone and beside slow and broken clients.

The client opens all connections before it reads an answer, in one thread and without a library, so
that it takes little of the server's time. The processor time of the server is read from the kernel
(/proc/PID/task/*/schedstat): on a machine with other work it is the figure to compare.
"""

import json
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measuring import Line, Options, Section, evaluated

AT_ONCE = 200
GOAL_SECONDS = 0.05
SLOW_CLIENTS = 600
BROKEN_CLIENTS = 200
_WAIT_SECONDS = 10
_REQUEST = (
    b"GET /metrics HTTP/1.1\r\nHost: audit.example:9717\r\nUser-Agent: Prometheus/3.5.0\r\n"
    b"Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
    b"X-Prometheus-Scrape-Timeout-Seconds: 10\r\nConnection: close\r\n\r\n"
)
_NOTE = (
    "The client runs on the same machine: its connections, and what it reads, are in the times, and"
    " so is what else ran there. The processor time of the server is the figure to compare."
    f" Slow clients: {SLOW_CLIENTS} connections that send half a request. Broken ones:"
    f" {BROKEN_CLIENTS} requests that are no HTTP."
)


def scrapes_at_once(options: Options) -> Section:
    """Measure the slowest of AT_ONCE scrapes, and the server's processor time for each."""
    with _serving() as (process, port):
        _burst(port)
        lines = [_measured("alone", process, port, options.runs)]
        with _beside(port):
            lines.append(_measured("beside slow and broken clients", process, port, options.runs))
    return Section("scrapes of the service at once", tuple(lines), (_NOTE,))


def _measured(name: str, process: subprocess.Popen[str], port: int, runs: int) -> Line:
    slowest, used = [], []
    for _ in range(runs):
        before = _processor_seconds(process)
        slowest.append(max(_burst(port)))
        used.append((_processor_seconds(process) - before) / AT_ONCE)
        time.sleep(1)  # so that the metrics are made again
    worst = statistics.median(slowest)
    return Line(
        f"{AT_ONCE} scrapes at once, {name}",
        f"slowest {worst * 1000:.0f} ms (best of {runs} runs {min(slowest) * 1000:.0f} ms);"
        f" {statistics.median(used) * 1e6:.0f} µs of the server for each",
        goal=evaluated("slowest < 50 ms", reached=worst < GOAL_SECONDS),
    )


@contextmanager
def _serving() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run `serve` over a fleet of ten pairs that do not answer."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Path(folder, "fleet.yaml")
        server = "{{name: {0}, host: 127.0.0.1, port: {1}}}"
        clusters = "".join(
            f"- {{name: p{n}, servers: [{server.format('a', n)}, {server.format('b', n + 1)}]}}\n"
            for n in range(1, 21, 2)
        )
        fleet.write_text(f"defaults: {{user: root}}\nclusters:\n{clusters}")
        command = [sys.executable, "-m", "gtid_audit", "serve", "--fleet", str(fleet)]
        options = ["--listen", "127.0.0.1:0", "--interval", "3600", "--json"]
        with subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            text = ""
            while not text.endswith("}\n"):
                line = process.stdout.readline()
                assert line, "serve ended"
                text += line
            try:
                yield process, json.loads(text)["port"]
            finally:
                process.terminate()


def _burst(port: int) -> list[float]:
    """Scrape over AT_ONCE new connections; return the seconds until each answer had arrived."""
    poll, waiting, answers = select.epoll(), {}, dict[int, bytes]()
    begun, seconds = time.perf_counter(), []
    for _ in range(AT_ONCE):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", port))
        waiting[connection.fileno()] = connection
        poll.register(connection, select.EPOLLOUT)
    while waiting:
        ready = poll.poll(_WAIT_SECONDS)
        assert ready, "no answer"
        for number, _ in ready:
            connection = waiting[number]
            if number not in answers:
                connection.send(_REQUEST)
                answers[number] = b""
                poll.modify(number, select.EPOLLIN)
            elif part := connection.recv(1 << 20):
                answers[number] += part
            else:
                seconds.append(time.perf_counter() - begun)
                assert answers[number].startswith(b"HTTP/1.1 200 ")
                del waiting[number]
                connection.close()
    poll.close()
    return seconds


@contextmanager
def _beside(port: int) -> Iterator[None]:
    """Keep slow clients connected, and let broken ones come and go first."""
    slow = []
    for _ in range(SLOW_CLIENTS):
        slow.append(socket.create_connection(("127.0.0.1", port)))
        with suppress(ConnectionError):  # the server has ended it: there are too many
            slow[-1].sendall(b"GET /metr")
    for _ in range(BROKEN_CLIENTS):
        with (
            suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port)) as broken,
        ):
            broken.sendall(b"\x00\xff" * 50 + b"\r\n\r\n")
    yield
    for each in slow:
        each.close()


def _processor_seconds(process: subprocess.Popen[str]) -> float:
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    nanoseconds = (int((each / "schedstat").read_text().split()[0]) for each in threads)
    return sum(nanoseconds) / 1e9
