"""B6: one pair of live servers audited, process start to exit."""

import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import Line, Options, Section, duel, judged, seconds_of
from benchmarks.peers import modern
from compose.native import load, shapes

GOAL_SECONDS = 0.5


def audit_of_a_pair(options: Options) -> Section:
    """Measure `gtid-audit pair` beside a client that only asks for two sets."""
    with shapes.pair(modern()) as pair:
        quiet = _measured(pair, options)
        with load.write_load([pair.a, pair.b]):
            busy = _measured(pair, options, " under full write load on both servers")
    return Section("one pair of live servers", (quiet, busy))


def _measured(pair: shapes.Pair, options: Options, how: str = "") -> Line:
    program = Path(sys.executable).with_name("gtid-audit")

    def ours() -> float:
        return seconds_of(
            lambda: subprocess.run(
                [program, "pair", pair.a.dsn, pair.b.dsn, "--json"], capture_output=True, check=True
            )
        )

    def peer() -> float:
        return seconds_of(
            lambda: [
                server.client("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
                for server in (pair.a, pair.b)
            ]
        )

    result = duel(ours, peer, runs=options.runs)
    return Line(
        f"audit a pair, process start to exit{how}",
        f"{result.our_seconds:.3f} s",
        f"two runs of the mysql client: {result.peer_seconds:.3f} s",
        f"{result.ratio:.2f}",
        judged("≤ 0.5 s", reached=result.our_seconds <= GOAL_SECONDS) if not how else "",
    )
