"""`serve` over hours and under attack: memory, and scrapes beside slow and broken clients. Nightly.

Times are printed, not asserted: docs/service.md has the figures of a quiet machine.
"""

import asyncio
import re
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compose.native.shapes import Pair
from tests.gtid_audit.test_live import address, await_metric, fleet_file, get, serving

AUDITS = 500
SCRAPES_AT_ONCE = 200
MEMORY_KIB_MAX = 8 * 1024  # that 400 more audits may cost; a list of all snapshots would be 20 MB


def memory_kib(process: "subprocess.Popen[str]") -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def audits_of(url: str) -> int:
    found = re.search(r'"audits": (\d+)', get(f"{url}/api/v1/clusters")[1])
    assert found is not None
    return int(found[1])


def await_audits(url: str, count: int) -> None:
    while audits_of(url) < count:
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_stays_flat_over_500_audits(pair97: Pair, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path / "fleet.yaml", ("pair", [address(pair97.a), address(pair97.b)]))
    pair97.b.execute("STOP REPLICA SQL_THREAD")  # so that there are findings, and a history
    with serving(fleet, "--history", str(tmp_path / "history")) as (process, url):
        sizes = []
        for count in range(100, AUDITS + 1, 100):
            await_audits(url, count)
            sizes.append(memory_kib(process))
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
    pair97.b.execute("START REPLICA SQL_THREAD")
    sys.stdout.write(f"resident KiB after each 100 audits: {sizes}; {threads} threads\n")
    assert max(sizes) - sizes[0] < MEMORY_KIB_MAX
    assert threads < 20


async def scraped(port: int, path: str = "/metrics") -> float:
    """Return the seconds of one scrape on a connection of its own."""
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"verdict" in answer
    return time.perf_counter() - begun


async def together(port: int, count: int) -> list[float]:
    return await asyncio.gather(*(scraped(port) for _ in range(count)))


def shown(what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    median, last = statistics.median(ordered), ordered[-1]
    sys.stdout.write(f"{what}: median {median * 1000:.1f} ms, slowest {last * 1000:.1f} ms\n")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_scrapes_at_once_beside_slow_and_broken_clients(pair97: Pair, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path / "fleet.yaml", ("pair", [address(pair97.a), address(pair97.b)]))
    with serving(fleet) as (_, url):
        await_metric(url, "gtid_audit_verdict", 1, cluster="pair", verdict="OK")
        port = int(url.rpartition(":")[2])
        shown("one scrape after another", [asyncio.run(scraped(port)) for _ in range(200)])
        shown("200 scrapes at once", asyncio.run(together(port, SCRAPES_AT_ONCE)))
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
        for each in slow:
            try:
                each.sendall(b"GET /metr")
            except OSError:
                each.close()  # it was ended: there are too many
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", port)) as broken:
                broken.sendall(b"\x00\xff" * 50 + b"\r\n\r\n")
        shown("one after another beside them", [asyncio.run(scraped(port)) for _ in range(200)])
        shown("200 at once beside them", asyncio.run(together(port, SCRAPES_AT_ONCE)))
        for each in slow:
            each.close()
