"""B7: a fleet of 1,000 endpoints audited live, process start to exit, contents included.

One real pair answers at 500 addresses for each of its servers (127.0.x.y), so the fleet has 500
pairs. The servers share the processors with the audit, as in no real fleet: their time is printed.
"""

import json
import os
import queue
import resource
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pymysql

from benchmarks.measuring import MEBIBYTE, Line, Options, Section, duel, evaluated, seconds_of
from benchmarks.peers import modern
from compose.native import shapes
from compose.native.server import Server

ENDPOINTS = 1_000
GOAL_SECONDS = 5.0
GOAL_MEBIBYTES = 300
RUNS = 3
SESSIONS = 64  # at once, of ours and of the peer
_PROGRAM = Path(sys.executable).with_name("gtid-audit")
_SETS = "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged"
_OPEN = ("--bind-address=0.0.0.0", "--max-connections=500")

_NOTE = (
    "The peer connects to the same addresses, with as many sessions at once, selects the GTID sets"
    " twice and closes: what any reading costs at least. All connections use TLS."
)


def many_endpoints(_: Options) -> Section:
    """Measure `gtid-audit audit` of a fleet of 1,000 endpoints beside bare connections to them."""
    with shapes.pair(modern(), extra=_OPEN) as pair, tempfile.TemporaryDirectory() as folder:
        pair.a.execute("CREATE DATABASE bench", "CREATE TABLE bench.t (a INT PRIMARY KEY)")
        pair.a.execute(*(f"INSERT INTO bench.t VALUES ({number})" for number in range(100)))
        pair.settle()
        fleet = Path(folder, "fleet.yml")
        addresses = _written(fleet, (pair.a, pair.b))
        peer = partial(_seconds_of_peer, addresses)
        lines = [
            _measured(name, partial(_seconds_of_audit, fleet, *given), peer, (pair.a, pair.b))
            for name, given in (
                ("as it is by default", ()),
                ("contents compared too", ("--content",)),
                ("without contents", ("--no-content",)),
            )
        ]
    return Section("a fleet of 1,000 endpoints, live", tuple(lines), (_NOTE,))


def _written(fleet: Path, servers: Sequence[Server]) -> list[tuple[str, int]]:
    """Write a fleet file of pairs, and return the address of each server."""
    addresses: list[tuple[str, int]] = []
    clusters: list[str] = []
    for number in range(ENDPOINTS // len(servers)):
        host = f"127.0.{number // 250 + 1}.{number % 250 + 1}"
        entries = ", ".join(
            f"{{name: {server.name}, host: {host}, port: {server.port}}}" for server in servers
        )
        clusters.append(f"  - {{name: pair{number:04}, servers: [{entries}]}}")
        addresses += [(host, server.port) for server in servers]
    head = "defaults: {user: root}\nclusters:\n"
    fleet.write_text(head + "\n".join(clusters) + "\n")
    return addresses


def _measured(
    name: str, seconds: Callable[[], float], peer: Callable[[], float], servers: Sequence[Server]
) -> Line:
    before = _processor_seconds(servers)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = duel(seconds, peer, runs=RUNS)
    runs = len(result.ours) + 1
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    ours = (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) / runs
    theirs = (_processor_seconds(servers) - before) / runs
    peak = now.ru_maxrss * 1024 / MEBIBYTE  # of the largest child so far
    is_reached = result.our_seconds <= GOAL_SECONDS and peak < GOAL_MEBIBYTES
    return Line(
        f"audit {ENDPOINTS:,} endpoints, {name}",
        f"{result.our_seconds:.1f} s ({ours:.1f} s of processors; the servers"
        f" {theirs:.1f} s, the peer's share included); {peak:.0f} MiB",
        f"{SESSIONS} sessions at once, sets selected twice: {result.peer_seconds:.1f} s",
        f"{result.ratio:.2f}",
        evaluated("≤ 5 s, < 300 MB", reached=is_reached),
    )


def _seconds_of_audit(fleet: Path, *given: str) -> float:
    """Run one audit. Every cluster must be OK, or what is measured is something else."""
    command = [str(_PROGRAM), "audit", "--fleet", str(fleet), "--json", *given]
    done: list[subprocess.CompletedProcess[bytes]] = []
    seconds = seconds_of(
        lambda: done.append(subprocess.run(command, check=True, capture_output=True))
    )
    document = json.loads(done[0].stdout)
    assert (document["verdict"], len(document["clusters"])) == ("OK", ENDPOINTS // 2)
    return seconds


def _seconds_of_peer(addresses: Sequence[tuple[str, int]]) -> float:
    waiting: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    for address in addresses:
        waiting.put(address)

    # One context for all, as ours has: PyMySQL would load every CA for each connection (24 ms).
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE

    def work() -> None:
        while True:
            try:
                host, port = waiting.get_nowait()
            except queue.Empty:
                return
            with (
                pymysql.connect(host=host, port=port, user="root", ssl=tls) as connection,
                connection.cursor() as cursor,
            ):
                for _ in range(2):
                    cursor.execute(_SETS)
                    cursor.fetchall()

    def all_of_them() -> None:
        threads = [threading.Thread(target=work) for _ in range(SESSIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return seconds_of(all_of_them)


def _processor_seconds(servers: Sequence[Server]) -> float:
    """Return the processor time that the servers have used (proc(5): utime and stime)."""
    ticks = 0
    for server in servers:
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
