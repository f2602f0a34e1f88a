"""B3: the audit of a whole fleet on Spark, from stored snapshots to stored results.

    python -m benchmarks.fleet_audit SNAPSHOTS OUT     two audits, their figures as JSON

1. Two audits run one after the other in a fresh session of a fresh process. The session's start is
   not counted. The first pays for what is done once: Python workers start, Java and Numba warm up;
   the second, into another directory, shows what the work itself takes.
2. Peak memory is the kernel's own figure for each process.
3. `run_job` is the one place that knows how the product is called.
"""

import argparse
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.fleet import kinds_of, write_fleet
from benchmarks.generate.kinds import KINDS
from benchmarks.generate.numbers import GeneratedFleet
from benchmarks.measuring import MEBIBYTE, Line, Options, Section, evaluated
from benchmarks.memory import watched_memory
from compose.native.cache import build_once, cache_root
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
    f"Spark local[{CORES}], session start not counted: the first audit of a fresh session, and the"
    f" second; medians of up to {RUNS_MAX} sessions. The fleet is that of `python -m"
    " benchmarks.fleet`."
)
_CHECKED = "Every run is checked: as many findings of each code as clusters were broken that way."
_ROOT = Path(__file__).resolve().parents[1]
_GENERATOR = (
    "benchmarks/fleet.py",
    "benchmarks/generate/*.py",
    "topology/adapters/snapshot_columns.py",
    "topology/adapters/parquet.py",
)

# What is in the command line of whom. Workers are forked from the daemon.
_PROCESSES = {"pyspark.daemon": "worker", "pyspark/daemon": "worker", "java": "jvm"}


def fleet_audit(options: Options) -> Section:
    """Audit fleets of growing size, each several times, and relate the sizes."""
    sizes = (*PAIRS, LARGEST) if options.largest else PAIRS
    lines: list[Line] = []
    before: Figures | None = None
    for pairs in sizes:
        fleet = GeneratedFleet(pairs=pairs)
        stored = stored_fleet(fleet)
        runs = 1 if pairs == LARGEST else min(options.runs, RUNS_MAX)
        figures = Figures.of(fleet, [audit_in_fresh_process(stored) for _ in range(runs)])
        lines.append(_line(figures, before))
        before = figures
    return Section(
        "a whole fleet on Spark",
        tuple(lines),
        (_HOW, _CHECKED),
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """What several sessions took, each for two audits of one fleet."""

    pairs: int
    first: float  # seconds, the median of the sessions
    second: float
    peak_bytes: Mapping[str, int]  # of the largest process of each name, in any session

    @classmethod
    def of(cls, fleet: GeneratedFleet, answers: Sequence[dict[str, Any]]) -> "Figures":
        """Sum up what the sessions answered, after a check of what they found."""
        for answer in answers:
            _check(answer, fleet)
        first, second = (
            statistics.median(seconds)
            for seconds in zip(*(answer["seconds"] for answer in answers), strict=True)
        )
        peaks = {
            name: max(peak for answer in answers for peak in answer["peak_bytes"][name])
            for name in ("driver", "worker", "jvm")
        }
        return cls(fleet.pairs, first, second, peaks)


def stored_fleet(fleet: GeneratedFleet) -> Path:
    """Return a directory with the stored snapshots of a fleet, written now or before.

    It is cached by its parameters and by the generator's sources; of each size the latest is kept.
    """
    digest = hashlib.sha256(json.dumps(asdict(fleet)).encode())
    for pattern in _GENERATOR:
        for file in sorted(_ROOT.glob(pattern)):
            digest.update(file.read_bytes())

    name = f"fleet-{fleet.pairs}-"

    def build(folder: Path) -> None:
        for outdated in cache_root().glob(f"{name}*"):
            shutil.rmtree(outdated)
        write_fleet(folder, fleet, processes=CORES)

    return build_once(name + digest.hexdigest()[:16], build, progress=print)


def audit_in_fresh_process(stored: Path) -> dict[str, Any]:
    """Audit a stored fleet twice in a process of its own and return what it answers."""
    with TemporaryDirectory(prefix="gtid-audit-bench-") as out:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fleet_audit", str(stored), out],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def run_job(session: SparkSession, *, snapshots: str, out: str) -> FleetSummary:
    """Call the product."""
    return audit_stored(session, snapshots=snapshots, out=out, policy=Policy()).summary


def main() -> None:
    """Audit twice and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_audit")
    parser.add_argument("snapshots")
    parser.add_argument("out")
    given = parser.parse_args()
    seconds: list[float] = []
    summaries: list[FleetSummary] = []
    with watched_memory(_PROCESSES) as peaks, local_session(cores=CORES) as session:
        for attempt in ("first", "second"):
            begun = time.perf_counter()
            summaries.append(
                run_job(session, snapshots=given.snapshots, out=f"{given.out}/{attempt}")
            )
            seconds.append(time.perf_counter() - begun)
    first, second = summaries
    assert first == second, "two audits of one run"
    answer = {
        "seconds": seconds,
        "clusters": first.cluster_count,
        "findings": _by_code((each.code, each.findings) for each in first.findings),
        "peak_bytes": {name: peaks.of(name) for name in ("driver", "worker", "jvm")},
    }
    print(json.dumps(answer))


def _check(answer: dict[str, Any], fleet: GeneratedFleet) -> None:
    """Hold the findings against what was generated: those of its kind for each broken cluster."""
    made = _by_code(
        (code, count)
        for kind, count in zip(KINDS, kinds_of(fleet)[1:], strict=True)
        for code in (kind.code, kind.beside)
        if code is not None and count
    )
    found = answer["findings"]
    assert found == made, f"found {found}, made {made}"
    assert answer["clusters"] == fleet.pairs


def _by_code(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for code, count in counts:
        sums[code] = sums.get(code, 0) + count
    return sums


def _line(figures: Figures, before: Figures | None) -> Line:
    pairs, memory = figures.pairs, figures.peak_bytes
    goals = [
        evaluated(
            "driver and each worker ≤ 1.5 GiB",
            reached=max(memory["driver"], memory["worker"]) <= GOAL_BYTES,
        )
    ]
    if pairs == PAIRS[-1]:
        goals.insert(0, evaluated("first ≤ 15 s", reached=figures.first <= GOAL_SECONDS))
    growth = ""
    if before is not None:
        first, second = figures.first / before.first, figures.second / before.second
        growth = f"; {first:.1f} and {second:.1f} times the time of {before.pairs:,}"
        goals.append(evaluated("both ≤ 10.5 times", reached=max(first, second) <= GOAL_RATIO))
    peaks = ", ".join(
        f"{shown} {memory[name] / MEBIBYTE:,.0f} MiB"
        for shown, name in (
            ("Python driver", "driver"),
            ("largest Python worker", "worker"),
            ("JVM", "jvm"),
        )
    )
    return Line(
        f"audit {pairs:,} pairs, Parquet to Parquet",
        f"first {figures.first:.1f} s, second {figures.second:.1f} s"
        f" ({pairs / figures.second:,.0f} pairs/s){growth}; peak memory: {peaks}",
        "none does it",
        "",
        "; ".join(goals),
    )


if __name__ == "__main__":
    main()
