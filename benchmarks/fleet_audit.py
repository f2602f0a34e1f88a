"""B3: the audit of a whole fleet on Spark, from stored snapshots to stored results.

    python -m benchmarks.fleet_audit SNAPSHOTS OUT     one audit, its figures as JSON

1. A figure is of one audit in a fresh process with a fresh session: the start of the session is
   not counted; Python workers starting, and Java and Numba warming up, are.
2. Peak memory is the kernel's own figure for each process.
3. `run_job` is the one place that knows how the product is called.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.fleet import kinds_of, write_fleet
from benchmarks.generate.kinds import KINDS
from benchmarks.generate.numbers import Fleet
from benchmarks.measuring import MEBIBYTE, Line, Options, Section, judged
from benchmarks.memory import watched_memory
from compose.native.cache import build_once
from spark_audit.adapters.job import audit_stored
from spark_audit.adapters.session import local_session
from spark_audit.summary import FleetSummary
from topology.policy import Policy

CORES = 2
PAIRS = (100_000, 1_000_000)
LARGEST = 10_000_000
RUNS_MAX = 3  # an audit of a million pairs is long enough to be even
GOAL_SECONDS = 15.0
GOAL_RATIO = 10.5
GOAL_BYTES = 1536 * MEBIBYTE
_HOW = (
    f"Spark local[{CORES}], first audit of a fresh session, session start not counted; medians of"
    f" up to {RUNS_MAX} runs. The fleet is that of `python -m benchmarks.fleet`."
)
_CHECKED = "Every run is checked: as many findings of each code as clusters were broken that way."
_ROOT = Path(__file__).resolve().parents[1]
_GENERATOR = ("benchmarks/fleet.py", "benchmarks/generate/*.py", "topology/adapters/parquet.py")

# What is in the command line of whom. Workers are forked from the daemon.
_PROCESSES = {"pyspark.daemon": "worker", "pyspark/daemon": "worker", "java": "jvm"}


def fleet_audit(options: Options) -> Section:
    """Audit fleets of growing size, each several times, and relate the sizes."""
    sizes = (*PAIRS, LARGEST) if options.largest else PAIRS
    lines: list[Line] = []
    before: float | None = None
    for pairs in sizes:
        fleet = Fleet(pairs=pairs)
        stored = stored_fleet(fleet)
        runs = 1 if pairs == LARGEST else min(options.runs, RUNS_MAX)
        figures = [audit_in_fresh_process(stored) for _ in range(runs)]
        for figure in figures:
            _check(figure, fleet)
        seconds = statistics.median(figure["seconds"] for figure in figures)
        lines.append(_line(pairs, seconds, before, figures))
        before = seconds
    return Section(
        "a whole fleet on Spark",
        tuple(lines),
        (_HOW, _CHECKED),
    )


def stored_fleet(fleet: Fleet) -> Path:
    """Return a directory with the stored snapshots of a fleet, writing it unless it is cached."""
    digest = hashlib.sha256(json.dumps(asdict(fleet)).encode())
    for pattern in _GENERATOR:
        for file in sorted(_ROOT.glob(pattern)):
            digest.update(file.read_bytes())

    def build(folder: Path) -> None:
        write_fleet(folder, fleet, processes=CORES)

    return build_once(f"fleet-{fleet.pairs}-{digest.hexdigest()[:16]}", build, progress=print)


def audit_in_fresh_process(stored: Path) -> dict[str, Any]:
    """Audit a stored fleet in a process of its own and return its figures."""
    with TemporaryDirectory(prefix="gtid-audit-bench-") as out:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fleet_audit", str(stored), out],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def run_job(session: SparkSession, *, snapshots: str, out: str) -> FleetSummary:
    """Call the product."""
    return audit_stored(session, snapshots=snapshots, out=out, policy=Policy()).summary


def main() -> None:
    """Audit once and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_audit")
    parser.add_argument("snapshots")
    parser.add_argument("out")
    given = parser.parse_args()
    with watched_memory(_PROCESSES) as peaks, local_session(cores=CORES) as session:
        begun = time.perf_counter()
        summary = run_job(session, snapshots=given.snapshots, out=given.out)
        seconds = time.perf_counter() - begun
    figures = {
        "seconds": seconds,
        "clusters": summary.cluster_count,
        "findings": _by_code((each.code, each.findings) for each in summary.findings),
        "driver": peaks.of("driver"),
        "jvm": peaks.of("jvm"),
        "workers": peaks.of("worker"),
    }
    print(json.dumps(figures))


def _check(figures: dict[str, Any], fleet: Fleet) -> None:
    """Hold the findings against what was generated: one of its kind for each broken cluster."""
    made = _by_code(
        (kind.code, count)
        for kind, count in zip(KINDS, kinds_of(fleet)[1:], strict=True)
        if kind.code is not None and count
    )
    assert figures["findings"] == made, f"found {figures['findings']}, made {made}"
    assert figures["clusters"] == fleet.pairs


def _by_code(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for code, count in counts:
        sums[code] = sums.get(code, 0) + count
    return sums


def _line(pairs: int, seconds: float, before: float | None, figures: list[dict[str, Any]]) -> Line:
    memory = {
        who: max((peak for figure in figures for peak in figure[who]), default=0)
        for who in ("driver", "workers", "jvm")
    }
    goals = [
        judged(
            "driver and each worker ≤ 1.5 GiB",
            reached=max(memory["driver"], memory["workers"]) <= GOAL_BYTES,
        )
    ]
    if pairs == PAIRS[-1]:
        goals.insert(0, judged("≤ 15 s", reached=seconds <= GOAL_SECONDS))
    growth = ""
    if before is not None:
        growth = f"; {seconds / before:.1f} times the time of a tenth of it"
        goals.append(judged("≤ 10.5 times", reached=seconds / before <= GOAL_RATIO))
    shown = ", ".join(
        f"{who} {memory[key] / MEBIBYTE:,.0f} MiB"
        for who, key in (
            ("Python driver", "driver"),
            ("largest Python worker", "workers"),
            ("JVM", "jvm"),
        )
    )
    return Line(
        f"audit {pairs:,} pairs ({4 * pairs:,} rows), Parquet to Parquet",
        f"{seconds:.1f} s, {pairs / seconds:,.0f} pairs/s{growth}; peak memory: {shown}",
        "none does it",
        "",
        "; ".join(goals),
    )


if __name__ == "__main__":
    main()
