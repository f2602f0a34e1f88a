"""Run the simulator: python -m tests.simulation.run SECONDS=60 [SEED=1] [PROCESSES=2] [KEEP=dir].

Every process checks batches of consecutive seeds. A seed that shows a violation is printed at once;
at the end each kind is printed with its shortest history, and with KEEP written to a file as well.
COUNT=5000 ends after so many histories. ORACLES=conclusions makes no plans, which is faster;
ORACLES=plans looks at plans without choices alone, and ORACLES=choices at plans with choices.
HISTORIES=kept makes variations of the kept histories (variations.py); a seed is not always the same
one then, so keep the text.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from tests.simulation.checking import Oracles, check, check_seed, made_of, oracles_of, shortest
from tests.simulation.variations import scenarios

BATCH = 50


@dataclass
class Result:
    """What the histories of one batch of seeds showed."""

    checked: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    seeds: dict[tuple[str, str], int] = field(default_factory=dict)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def check_batch(start: int, *, oracles: Oracles = "all", kept: bool = False) -> Result:
    """Check the histories of one batch of seeds."""
    result = Result()
    for seed in range(start, start + BATCH):
        try:
            _, violations = check_seed(seed, oracles=oracles, kept=kept)
            kinds = {each.kind for each in violations}
        except Exception as error:  # noqa: BLE001 - reported as a kind
            kinds = {("defect", f"{type(error).__name__}: {error}"[:100])}
        for kind in kinds:
            result.counts[kind] += 1
            result.seeds.setdefault(kind, seed)
        result.checked += 1
    gc.collect()
    return result


def without_pauses() -> None:
    """Collect garbage after each batch only: elsewhere that takes a third of the time."""
    gc.collect()
    gc.freeze()
    gc.disable()


def merged(total: Result, more: Result) -> Result:
    """Return what both showed together; of each kind the first seed."""
    return Result(
        checked=total.checked + more.checked,
        counts=total.counts + more.counts,
        seeds=more.seeds | total.seeds,
    )


def report(
    kind: tuple[str, str], seed: int, *, keep: Path | None = None, kept: bool = False
) -> None:
    """Print the shortest history of a kind of violation."""
    say(f"\n== {kind[0]}, {kind[1]}: seed {seed}")
    if kind[0] == "defect":
        return
    history, _ = made_of(seed, kept=kept)
    short = shortest(history, kind)
    text = short.text()
    say(text)
    for each in check(short, oracles=oracles_of(kind)):
        say(f"#  {each.oracle}: {each.text}")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        name = "-".join((*kind, str(seed))).replace(" ", "_")
        (keep / f"{name}.txt").write_text(f"# {kind[0]}: {kind[1]}, seed {seed}\n{text}\n")


def main(arguments: list[str]) -> int:
    """Check histories for some seconds. Return 1 if there was a violation."""
    options = dict(each.split("=", 1) for each in arguments)
    seconds = float(options.get("SECONDS", "60"))
    first = int(options.get("SEED", str(time.time_ns() % 10**9)))
    processes = int(options.get("PROCESSES", str(os.cpu_count() or 1)))
    keep = Path(options["KEEP"]) if options.get("KEEP") else None
    most = int(options.get("COUNT", str(10**12)))
    named = [each for each in get_args(Oracles) if each == options.get("ORACLES", "all")]
    if not named:
        say(f"ORACLES is one of {', '.join(get_args(Oracles))}")
        return 64
    kept = options.get("HISTORIES") == "kept"
    if kept:
        scenarios()  # read now: a seed of this run stays the same history, whatever is added
    one_batch = functools.partial(check_batch, oracles=named[0], kept=kept)
    total, begun = Result(), time.monotonic()

    def starts() -> Iterator[int]:
        for at in range(0, most, BATCH):
            if time.monotonic() >= begun + seconds:
                return
            ahead.acquire()
            yield first + at

    # A process that has checked its batch takes the next one; the others need not be ready.
    ahead = threading.Semaphore(2 * processes)
    with multiprocessing.Pool(processes, initializer=without_pauses) as pool:
        for result in pool.imap(one_batch, starts()):
            ahead.release()
            for kind, seed in sorted(result.seeds.items()):
                say(f"seed {seed}: {kind[0]}: {kind[1]}")
            total = merged(total, result)
    spent = time.monotonic() - begun
    say(
        f"{total.checked:,} histories, seeds {first} to {first + total.checked - 1},"
        f" {total.checked / spent:,.0f} per second, {processes} processes"
    )
    for kind, count in total.counts.most_common():
        say(f"{count:6} {kind[0]}: {kind[1]}")
    for kind, seed in sorted(total.seeds.items()):
        report(kind, seed, keep=keep, kept=kept)
    return 1 if total.counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
