"""B4: the ledger of a binary log: one row for each transaction, ready as Arrow."""

import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generate.binlogs import LogShape, check, write_binlog
from benchmarks.measuring import Line, Options, Section, duel, evaluated, seconds_of
from binlog.adapters.ledger_files import ledger_of_file
from binlog.ledger.ledger_columns import LedgerRequest
from compose.native.provision import provision_clients

SMALL = LogShape(transactions=1_200_000, events=1, text_bytes=201)
LARGE = LogShape(transactions=20_000, events=3, text_bytes=6_355)
GOAL_SMALL_SECONDS = 0.065
GOAL_LARGE_SECONDS = 0.010
GOAL_TIMES = 100
_PEER_RUNS_MAX = 5  # it takes seconds, and is the same every time
_IN_A_ROW = 7
_CACHE = Path(__file__).parents[1] / ".cache" / "binlogs"


@dataclass(frozen=True, slots=True)
class _Work:
    words: str
    shape: LogShape
    goal_seconds: float
    goal_times: int | None = None


WORKS = (
    _Work("1,200,000 small transactions", SMALL, GOAL_SMALL_SECONDS, GOAL_TIMES),
    _Work("20,000 large transactions", LARGE, GOAL_LARGE_SECONDS),
)


def ledger(options: Options) -> Section:
    """Measure the ledger beside mysqlbinlog, which prints every event."""
    mysqlbinlog = provision_clients().command("mysqlbinlog")
    lines = []
    for work in WORKS:
        path = _written(work.shape, mysqlbinlog)
        lines += [_duel(path, work, mysqlbinlog, options), _verified(path, work, options)]
    return Section("the ledger of a binary log", tuple(lines), _NOTES)


_NOTES = (
    (
        "Ours: GTID, file, position, length, commit times, clock, versions, server_id, kind and"
        " error as Arrow columns, by as many threads as there are processors. mysqlbinlog: all"
        " events as text, to /dev/null, by its one. The file is in the page cache for both."
    ),
    (
        f"Each of our turns is {_IN_A_ROW} runs in a row, whose median counts. The first of a turn"
        " comes after seconds of another process, and shows how long this machine takes to wake a"
        " processor and to find memory again; it is given beside."
    ),
    (
        "The logs are written by benchmarks/generate/binlogs.py; before it is measured, mysqlbinlog"
        " has compared every checksum of them and printed every transaction."
    ),
)


def _written(shape: LogShape, mysqlbinlog: Sequence[str]) -> Path:
    """Return the log of this shape, written and checked once."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    path = _CACHE / f"{shape.transactions}-{shape.events}-{shape.text_bytes}.binlog"
    if not path.exists():
        unchecked = path.with_suffix(".unchecked")
        write_binlog(unchecked, shape)
        check(unchecked, shape, mysqlbinlog)
        unchecked.rename(path)
    return path


def _duel(path: Path, work: _Work, mysqlbinlog: Sequence[str], options: Options) -> Line:
    firsts = []

    def ours() -> float:
        turn = [seconds_of(lambda: _read(path, work.shape, verify=False)) for _ in range(_IN_A_ROW)]
        firsts.append(turn[0])
        return statistics.median(turn)

    def peer() -> float:
        command = [*mysqlbinlog, str(path)]
        return seconds_of(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))

    result = duel(ours, peer, runs=min(options.runs, _PEER_RUNS_MAX))
    times = 1 / result.ratio
    goal = work.goal_seconds
    evaluation = evaluated(f"≤ {1000 * goal:.0f} ms", reached=result.our_seconds <= goal)
    if work.goal_times is not None:
        reached = times >= work.goal_times
        evaluation += "; " + evaluated(f"≥ {work.goal_times} times faster", reached=reached)
    return Line(
        f"ledger of {work.words}, {path.stat().st_size / 1e6:,.0f} MB",
        f"{1000 * result.our_seconds:.1f} ms; the first {1000 * statistics.median(firsts):.1f} ms",
        f"mysqlbinlog: {result.peer_seconds:.2f} s",
        f"{result.ratio:.4f} ({times:.0f} times faster)",
        evaluation,
    )


def _verified(path: Path, work: _Work, options: Options) -> Line:
    seconds = statistics.median(
        seconds_of(lambda: _read(path, work.shape, verify=True)) for _ in range(options.runs)
    )
    return Line(
        "the same, every checksum and every position verified",
        f"{1000 * seconds:.0f} ms, {path.stat().st_size / 1e9 / seconds:.2f} GB/s",
    )


def _read(path: Path, shape: LogShape, *, verify: bool) -> None:
    found = ledger_of_file(path, LedgerRequest(verify=verify))
    assert found.error is None
    assert found.rows.num_rows == shape.transactions
