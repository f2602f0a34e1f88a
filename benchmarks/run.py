"""Measures, and writes benchmarks/results.md: `make bench`.

1. A figure stands beside its peer's, taken in turn in the same run; the ratio is the median of the
   pairs.
2. Absolute times describe one machine on one day. No test looks at them.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

from compose.native import load, shapes
from compose.native.provision import MODERN, provision
from compose.native.server import Server
from gtid import GtidSet, Tsid

RUNS = 9
INTERVALS = 100_000
RESULTS = Path(__file__).with_name("results.md")
SOME_UUID = UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")


def main() -> None:
    """Run every measurement and write the page."""
    installation = provision(MODERN)
    release = ".".join(str(number) for number in installation.version)
    lines = [
        "# Measured",
        "",
        f"{_machine()}, MySQL {release}. Written by `make bench`; medians of {RUNS} runs.",
        "",
        "| work | ours | peer | ours / peer |",
        "|---|---|---|---|",
    ]
    with shapes.pair(installation) as pair:
        lines += _algebra(pair.a)
        lines += _audit(pair)
        with load.write_load([pair.a, pair.b]):
            lines += _audit(pair, " under full write load on both servers")
    RESULTS.write_text("\n".join(lines) + "\n")
    print(RESULTS.read_text())


def _machine() -> str:
    python = platform.python_version()
    return f"{platform.machine()}, {os.cpu_count()} processors, Python {python}"


def _algebra(server: Server) -> Iterator[str]:
    """Text, subtract, text: the scalar engine beside the server's own function."""
    left, right = _every_other(start=1), _every_other(start=3, step=6)

    def ours() -> object:
        return str(GtidSet.parse(left) - GtidSet.parse(right))

    def peer() -> object:
        return server.query("SELECT GTID_SUBTRACT(%s, %s)", (left, right))[0][0]

    answer = str(GtidSet.parse(str(peer())))
    assert answer == ours(), "a benchmark of two different results"
    mine, theirs, ratio = _in_turn(ours, peer)
    name = f"subtract two sets of {INTERVALS:,} and {INTERVALS:,} intervals, text to text"
    yield f"| {name} | {mine:.3f} s | mysqld GTID_SUBTRACT {theirs:.3f} s | {ratio:.2f} |"


def _audit(pair: shapes.Pair, how: str = "") -> Iterator[str]:
    """`gtid-audit pair`, process start to exit, beside a client that only asks for two sets."""
    program = Path(sys.executable).with_name("gtid-audit")

    def ours() -> object:
        return subprocess.run(
            [program, "pair", pair.a.dsn, pair.b.dsn, "--json"], capture_output=True, check=True
        )

    def peer() -> object:
        return [
            server.client("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
            for server in (pair.a, pair.b)
        ]

    mine, theirs, ratio = _in_turn(ours, peer)
    name = f"audit a pair, process start to exit{how}"
    yield f"| {name} | {mine:.3f} s | two runs of the mysql client {theirs:.3f} s | {ratio:.2f} |"


def _in_turn(ours: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float, float]:
    pairs = [(_seconds(ours), _seconds(peer)) for _ in range(RUNS)]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(mine / theirs for mine, theirs in pairs),
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _every_other(*, start: int, step: int = 4) -> str:
    tsid = Tsid(SOME_UUID)
    return str(
        GtidSet.from_intervals(
            (tsid, start + step * index, start + step * index + 2) for index in range(INTERVALS)
        )
    )


if __name__ == "__main__":
    main()
