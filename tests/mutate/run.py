"""Changes decisions at random, and reports what no test notices.

    python -m tests.mutate.run SECONDS=600 [SEED=1] [ONLY=repair/sql/script.py] [PROCESSES=2] [QUICK=1]
    python -m tests.mutate.run COUNT=80 …    80 mutants of each target instead of a time

1. Each mutant (mutants.py) of the code that decides (targets.py) is given to tests that need no
   server and no Spark, in a fork (session.py). Nothing is written to any source.
2. The slow tests of a target, the simulator among them, run with the others, unless QUICK=1, which
   also tries laws on a tenth of the examples. Tests that have noticed much come first, so they run
   to the end only for what no test notices.
3. What was looked at and found to be no change of meaning is in equivalent.txt, and not reported.
4. The seed is printed; the same seed takes the same mutants in the same order. Each target gets a
   share of the time, by its mutants. Exit status 1: less than 95 % were noticed.
"""

import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutate.mutants import count_of
from tests.mutate.session import Examined, GivenTests, Place, WithoutMutantFailed, examine
from tests.mutate.targets import ROOT, TARGETS, Target, files_of

NOTICED_SHARE_MIN = 0.95
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def choices(target: Target, seed: int, only: str, count: int | None = None) -> list[Place]:
    """Return the places of a target, shuffled: all of them, or a sample."""
    found = [
        (path, number)
        for path in files_of(target)
        if path.startswith(only)
        for number in range(count_of((ROOT / path).read_text()))
    ]
    random.Random(seed).shuffle(found)
    return found[:count]


def equivalent_keys() -> frozenset[str]:
    """Return the keys of the mutants that change no meaning."""
    lines = EQUIVALENT.read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


class Counts:
    """How many mutants of each target were noticed."""

    def __init__(self) -> None:
        self._equivalent = equivalent_keys()
        self.noticed: Counter[str] = Counter()
        self.examined: Counter[str] = Counter()
        self.same: Counter[str] = Counter()

    def add(self, target: Target, examined: Examined) -> None:
        """Count a mutant; print it if no test noticed it."""
        mutant, name = examined.mutant, target.name
        if mutant.key in self._equivalent and not examined.is_noticed:
            self.same[name] += 1
            return
        self.examined[name] += 1
        self.noticed[name] += examined.is_noticed
        if not examined.is_noticed:
            why = "" if examined.is_executed else " (no test executes it)"
            write(f"NOT NOTICED{why} {mutant}\n    {mutant.key}")

    def share(self, name: str | None = None) -> float:
        """Return the part that was noticed, of one target or of all."""
        examined = self.examined[name] if name else self.examined.total()
        noticed = self.noticed[name] if name else self.noticed.total()
        return noticed / examined if examined else 1.0


def main(arguments: Sequence[str]) -> int:
    """Look at as many mutants as the time allows."""
    given = dict(each.split("=", 1) for each in arguments)
    seed = int(given.get("SEED") or random.SystemRandom().randrange(1 << 32))
    seconds = float(given.get("SECONDS") or 600)
    count = int(given["COUNT"]) if "COUNT" in given else None
    only = given.get("ONLY", "")
    chosen = {target: choices(target, seed, only, count) for target in TARGETS}
    processes = int(given.get("PROCESSES") or os.cpu_count() or 1)
    total = sum(map(len, chosen.values()))
    write(f"SEED={seed}: {total:,} mutants to choose from")
    counts = Counts()
    for target, places in chosen.items():
        if not places:
            continue
        is_quick = bool(given.get("QUICK"))
        tests = GivenTests(
            target.tests,
            () if is_quick else target.slow,
            is_quick=is_quick,
            compiles=target.compiles,
        )
        parts = [part for number in range(processes) if (part := places[number::processes])]
        share = seconds * len(places) / total if count is None else math.inf
        deadline = time.monotonic() + share
        try:
            for each in examine(tests, parts, deadline):
                counts.add(target, each)
        except WithoutMutantFailed as problem:
            sys.exit(f"without a mutant: {problem}")
        name = target.name
        write(
            f"{name}: {counts.noticed[name]} of {counts.examined[name]} mutants noticed"
            f" ({counts.share(name):.1%}), {counts.same[name]} equivalent, {len(places)} in all"
        )
    write(
        f"SEED={seed}: {counts.noticed.total()} of {counts.examined.total()} mutants noticed"
        f" ({counts.share():.1%}), {counts.same.total()} equivalent"
    )
    return 0 if counts.share() >= NOTICED_SHARE_MIN else 1


def write(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
