"""B2: many source/replica pairs, parsed, subtracted both ways and formatted, on one core."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.generate.sets import pairs_of_sets
from benchmarks.measuring import Line, Options, Section, duel, evaluated
from benchmarks.peers import TimedSession, mysqld
from gtid.columns import GtidSetColumn

PAIRS = 200_000
BATCH_ROWS = 10_000
SEED = 7
GOAL = 1 / 4
GOAL_PAIRS_PER_SECOND = 450_000
_SAMPLE = 1_000
_ENDING_SECONDS_MAX = 30

_OURS = (
    f"Ours: one process bound to one core, batches of {BATCH_ROWS:,} rows, Arrow text to Arrow"
    " text. The server: one session, the table in its buffer pool, nothing sent, one sum fetched;"
    " loading is not counted."
)
_SAME = f"The answers are the same: in {_SAMPLE:,} pairs text by text, in all by total length."

_BOTH_WAYS = (
    "SELECT SUM(LENGTH(GTID_SUBTRACT(source, replica)))"
    " + SUM(LENGTH(GTID_SUBTRACT(replica, source))) FROM pairs"
)


def many_small_pairs(options: Options) -> Section:
    """Measure our columns in a process bound to one core, beside one session of a server."""
    source, replica = pairs_of_sets(PAIRS, seed=SEED)
    with one_core() as worker, mysqld() as session:
        _load(session, source, replica)
        _compare(session, worker)
        result = duel(worker.seconds, lambda: session.ask(_BOTH_WAYS)[0], runs=options.runs)
    megabytes = (_characters(source) + _characters(replica)) / 1e6
    rate = PAIRS / result.our_seconds
    return Section(
        "many small pairs",
        (
            Line(
                f"{PAIRS:,} pairs, 2 to 6 UUIDs, 0 to 5 holes, {megabytes:.0f} MB of text: parse"
                " both, subtract both ways, format",
                f"{result.our_seconds:.3f} s, {rate:,.0f} pairs/s",
                f"{session.name}, the same texts in a table, GTID_SUBTRACT both ways:"
                f" {result.peer_seconds:.3f} s, {PAIRS / result.peer_seconds:,.0f} pairs/s",
                f"{result.ratio:.2f}",
                evaluated("≤ 0.25", reached=result.ratio <= GOAL)
                + "; "
                + evaluated("≥ 450,000 pairs/s", reached=rate >= GOAL_PAIRS_PER_SECOND),
            ),
        ),
        (_OURS, _SAME),
    )


def subtract_both_ways(
    source: pa.StringArray, replica: pa.StringArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return what each source has beyond its replica, and the replica beyond the source."""
    there, back = [], []
    for first in range(0, len(source), BATCH_ROWS):
        left = GtidSetColumn.parse(source.slice(first, BATCH_ROWS))
        right = GtidSetColumn.parse(replica.slice(first, BATCH_ROWS))
        there.append((left - right).to_arrow())
        back.append((right - left).to_arrow())
    return pa.chunked_array(there), pa.chunked_array(back)


# -- ours, in a process of its own ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Worker:
    """A process on one core that does the work on request."""

    pipe: Connection
    characters: int  # of all answers
    sample: tuple[list[str], list[str]]  # the first answers, both ways

    def seconds(self) -> float:
        """Do the work once and return how long it took there."""
        self.pipe.send(True)
        seconds: float = self.pipe.recv()
        return seconds


@contextmanager
def one_core() -> Iterator[Worker]:
    """Start the process; it has done the work once before it is given."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work_on_request, args=(there,))
    process.start()
    there.close()
    try:
        characters, sample = here.recv()
        yield Worker(here, characters, sample)
    finally:
        here.close()  # which ends it
        process.join(_ENDING_SECONDS_MAX)


def _work_on_request(pipe: Connection) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    source, replica = pairs_of_sets(PAIRS, seed=SEED)
    there, back = subtract_both_ways(source, replica)
    sample = (there.slice(0, _SAMPLE).to_pylist(), back.slice(0, _SAMPLE).to_pylist())
    pipe.send((_characters(there) + _characters(back), sample))
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        begun = time.perf_counter()
        subtract_both_ways(source, replica)
        pipe.send(time.perf_counter() - begun)


# -- the peer -------------------------------------------------------------------------------------


def _load(session: TimedSession, source: pa.StringArray, replica: pa.StringArray) -> None:
    texts = zip(range(PAIRS), source.to_pylist(), replica.to_pylist(), strict=True)
    kind = "VARCHAR(4000) CHARACTER SET ascii NOT NULL"
    columns = f"id INT PRIMARY KEY, source {kind}, replica {kind}"
    session.load("pairs", columns, list(texts))


def _compare(session: TimedSession, worker: Worker) -> None:
    """Hold our answers against the server's: text by text in a sample, by total length in all."""
    sample = session.rows(
        f"SELECT {_one_line('source', 'replica')}, {_one_line('replica', 'source')}"
        f" FROM pairs WHERE id < {_SAMPLE} ORDER BY id"
    )
    assert list(zip(*worker.sample, strict=True)) == sample, "two different results"
    ((characters,),) = session.rows(
        f"SELECT SUM(LENGTH({_one_line('source', 'replica')}))"
        f" + SUM(LENGTH({_one_line('replica', 'source')})) FROM pairs"
    )
    assert characters == worker.characters, "two different results"


def _one_line(left: str, right: str) -> str:
    """Subtract, and leave out the line feed that a server puts behind each comma."""
    return f"REPLACE(GTID_SUBTRACT({left}, {right}), CHAR(10), '')"


def _characters(texts: pa.StringArray | pa.ChunkedArray) -> int:
    characters: int = pc.sum(pc.binary_length(texts)).as_py()
    return characters
