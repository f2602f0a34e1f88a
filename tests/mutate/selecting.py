"""Tries every mutant of facts and rules on kept snapshots, and selects new ones that notice more.

    python -m tests.mutate.selecting ONLY=topology/facts [SECONDS=600] [SEED=1] [ADD=100] [TESTS=1]

run.py gives a mutant to whole tests and can try a sample. Facts, rules and questions are functions
of a snapshot, so here all of their mutants are tried, in minutes:

1. *Kept cases* (cases.py): some two thousand snapshots; tests hold digests of all that is computed of
   each. One run with probes (probes.py) shows which mutants can differ on which case at all.
2. Each mutant is put in place of its functions, and these cases are computed until a digest
   differs; those that have noticed most come first. An exception is noticed, and so is a case that
   does not end. The functions are pure, so nothing of a mutant is left behind, and no fork is needed.
3. *New cases*, for SECONDS: scenarios and stories with facts changed at random. They get probes of
   the mutants that are left, and those mutants are tried on them.
4. As few of the new cases as possible that notice them all are selected. ADD=100 writes the first
   hundred to fact_digests.txt and digests.txt. Then `python -m tests.approve` keeps them.
   STATE=file keeps which mutants were noticed, and a later run tries only the others.
5. TESTS=1 gives what is left to the tests of run.py, which takes some ten seconds for each.

A mutant that changes a table or a default is not put in place of functions: the tables of
decision_tables.txt are tried in a fork that imports it anew. What is left of them goes to step 5.
"""

import ast
import hashlib
import json
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType

from tests.mutate import session
from tests.mutate.cases import Case, kept_cases, new_case
from tests.mutate.in_place import changed_functions, functions_of, put_functions, put_module
from tests.mutate.mutants import Mutant, count_of, mutant_of, tree_of
from tests.mutate.probes import Difference, Endless, Probes, difference, put_probes, stop
from tests.mutate.run import equivalent_keys, write
from tests.mutate.targets import ROOT, TARGETS, files_of
from tests.simulation import digests
from tests.topology import fact_digests

_SECONDS_A_CASE = 5
_BATCH = 400  # new cases that get probes before mutants are tried on them
_TRIES = 40  # new cases of a batch that a mutant is tried on
NOTHING = "nothing"
EQUIVALENT = "equivalent"
KEPT = "kept cases"
TABLES = "tables"


@dataclass(eq=False)
class Tried:
    """A mutant, and what noticed it."""

    path: str
    number: int
    changed: Mapping[tuple[str, int], CodeType] | None
    difference: Difference | None  # None: it does not change functions only
    by: str = NOTHING
    case: Case | None = None  # the new one that noticed it

    @cached_property
    def mutant(self) -> Mutant:
        """Return its texts."""
        return mutant_of(self.path, (ROOT / self.path).read_text(), self.number)[0]


class Search:
    """All mutants of some files, and what has noticed them so far."""

    def __init__(self, paths: Sequence[str], state: Path | None) -> None:
        self._sources = {path: (ROOT / path).read_text() for path in paths}
        self._state = state
        known = json.loads(state.read_text()) if state is not None and state.exists() else {}
        self.noticed_before = Counter[str]()
        self.mutants: list[Tried] = []
        for path, source in self._sources.items():
            for number in range(count_of(source)):
                by = known.get(_place(path, source, number))
                if by is None:
                    self.mutants.append(_mutant(path, source, number))
                else:
                    self.noticed_before[by] += 1
        self._functions = functions_of(str(ROOT / path) for path in paths)
        self._noticed: Counter[str] = Counter()
        signal.signal(signal.SIGALRM, stop)

    @property
    def left(self) -> list[Tried]:
        """Return the mutants that change functions and that nothing has noticed."""
        return [each for each in self.mutants if each.by == NOTHING and each.changed is not None]

    def leave_out(self, keys: Collection[str]) -> None:
        """Mark what is left and changes no meaning."""
        for each in self.left:
            if each.mutant.key in keys:
                each.by = EQUIVALENT

    def write_state(self) -> None:
        """Write what was noticed, also by a case that is not kept yet."""
        if self._state is None:
            return
        known = json.loads(self._state.read_text()) if self._state.exists() else {}
        for each in self.mutants:
            if each.by != NOTHING:
                known[_place(each.path, self._sources[each.path], each.number)] = each.by
        self._state.write_text(json.dumps(known))

    def differing(self, cases: Sequence[Case], mutants: Sequence[Tried]) -> list[list[int]]:
        """Return, for each mutant, the cases on which it can differ."""
        found: list[list[int]] = [[] for _ in mutants]
        before = [
            (each, each.__code__) for functions in self._functions.values() for each in functions
        ]
        for path, source in self._sources.items():
            of_file = {
                number: each.difference
                for number, each in enumerate(mutants)
                if each.path == path and each.difference is not None
            }
            if of_file:
                file = str(ROOT / path)
                put_probes(self._functions[file], source, file, of_file)
        with Probes(len(mutants)) as probes:
            for function, code in before:
                place = (function.__code__.co_qualname, function.__code__.co_firstlineno)
                file = code.co_filename
                of_function = {
                    number: each.changed[place]
                    for number, each in enumerate(mutants)
                    if each.changed is not None
                    and place in each.changed
                    and str(ROOT / each.path) == file
                }
                if of_function and not code.co_freevars:
                    probes.watch(function, of_function)
            for at, case in enumerate(cases):
                case.compute()
                for number in probes.take():
                    found[number].append(at)
        for function, code in before:
            function.__code__ = code
        return found

    def try_on(self, tried: Tried, cases: Iterable[Case], *, tries: int = _TRIES) -> Case | None:
        """Return the first case that notices a mutant; those that have noticed most come first."""
        assert tried.changed is not None
        ordered = sorted(cases, key=lambda each: -self._noticed[each.name])
        ordered = [*ordered[: tries // 2], *reversed(ordered[tries // 2 :])][:tries]
        for case in ordered:
            _ = case.expected
        functions = self._functions[str(ROOT / tried.path)]
        before = [(each, each.__code__) for each in functions]
        put_functions(functions, tried.changed)
        try:
            noticing = next(filter(_notices, ordered), None)
        finally:
            for function, code in before:
                function.__code__ = code
        if noticing is not None:
            self._noticed[noticing.name] += 1
        return noticing


def _notices(case: Case) -> bool:
    """Return whether a case, with a mutant in place, gives another outcome or none."""
    signal.alarm(_SECONDS_A_CASE)
    try:
        pairs = zip(case.outcome(), case.expected, strict=True)
        return any(now != expected for now, expected in pairs)
    except (Exception, Endless):  # noqa: BLE001 - a mutant may raise anything
        return True
    finally:
        signal.alarm(0)


def _mutant(path: str, source: str, number: int) -> Tried:
    file = str(ROOT / path)
    line, tree = tree_of(source, number)
    original, before = _original(source, file)
    changed = changed_functions(before, compile(tree, file, "exec"))
    return Tried(path, number, changed, difference(original, tree, line) if changed else None)


@lru_cache(maxsize=1)
def _original(source: str, file: str) -> tuple[ast.Module, CodeType]:
    return ast.parse(source), compile(source, file, "exec")


def _place(path: str, source: str, number: int) -> str:
    return f"{path} {hashlib.sha256(source.encode()).hexdigest()[:12]} {number}"


def _in_fork(run: Callable[[Callable[[int], None]], None]) -> int:
    """Run in a fork; return the last number that it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)

        def tell(number: int) -> None:
            os.write(writing, number.to_bytes(4, "big"))

        try:
            run(tell)
        finally:
            os._exit(0)
    os.close(writing)
    last = b""
    while part := os.read(reading, 1 << 16):
        last = (last + part)[-4:]
    os.close(reading)
    os.waitpid(child, 0)
    return int.from_bytes(last, "big")


# -- the steps ------------------------------------------------------------------------------------


def try_kept(search: Search, dice: random.Random, tries: int) -> None:
    """Try all mutants on the cases that tests keep (steps 1 and 2)."""
    cases = list(kept_cases())
    mutants = search.left
    differing = search.differing(cases, mutants)
    write(f"{len(cases)} kept cases, probes of {len(mutants)} mutants")
    for number, (tried, found) in enumerate(zip(mutants, differing, strict=True)):
        dice.shuffle(found)
        if search.try_on(tried, [cases[at] for at in found], tries=tries) is not None:
            tried.by = KEPT
        if number % 500 == 499:
            search.write_state()
            write(
                f"{number + 1} tried, {sum(each.by == NOTHING for each in mutants[:number])} left"
            )


def try_tables(search: Search) -> None:
    """Try the mutants that change tables on decision_tables.txt."""
    for tried in search.mutants:
        if tried.changed is None and _changes_a_table(tried):
            tried.by = TABLES


def _changes_a_table(tried: Tried) -> bool:
    def run(tell: Callable[[int], None]) -> None:
        tell(1)
        put_module(ROOT, tried.path, tree_of((ROOT / tried.path).read_text(), tried.number)[1])
        from tests.tidy import decision_tables

        tell(decision_tables.text() != decision_tables.APPROVED.read_text())

    return bool(_in_fork(run))


def try_new(search: Search, seconds: float, dice: random.Random) -> None:
    """Try what is left on new cases until the time is over (step 3)."""
    deadline = time.monotonic() + seconds
    tried_on = 0
    while time.monotonic() < deadline and (mutants := search.left):
        cases = [each for _ in range(_BATCH) if (each := new_case(dice))]
        tried_on += len(cases)
        for tried, found in zip(mutants, search.differing(cases, mutants), strict=True):
            dice.shuffle(found)
            tried.case = search.try_on(tried, [cases[at] for at in found])
            if tried.case is not None:
                tried.by = "new cases"
        write(f"{tried_on} new cases: {len(search.left)} left of {len(mutants)}")


def selected(search: Search) -> list[tuple[Case, int]]:
    """Return few cases that notice what new cases noticed, and how many each notices (step 4)."""
    mutants = [each for each in search.mutants if each.case is not None]
    cases = list({each.case.name: each.case for each in mutants if each.case is not None}.values())
    by_case: dict[int, set[int]] = {at: set() for at in range(len(cases))}
    for number, found in enumerate(search.differing(cases, mutants)):
        for at in found:
            if search.try_on(mutants[number], [cases[at]]) is not None:
                by_case[at].add(number)
    chosen = []
    left = set(range(len(mutants)))
    while left:
        at = max(by_case, key=lambda at: len(by_case[at] & left))
        if not by_case[at] & left:
            break
        chosen.append((cases[at], len(by_case[at] & left)))
        left -= by_case[at]
    return chosen


def keep(cases: Iterable[Case]) -> None:
    """Append cases to the files that hold them."""
    lines: dict[Path, list[str]] = {digests.APPROVED: [], fact_digests.APPROVED: []}
    for case in cases:
        if isinstance(case.entry, digests.Entry):
            lines[digests.APPROVED].append(digests.line_of(case.entry))
        elif case.entry is not None:
            lines[fact_digests.APPROVED].append(fact_digests.line_of(case.entry))
    for path, added in lines.items():
        path.write_text(path.read_text() + "".join(f"{line}\n" for line in added))


def try_tests(search: Search) -> None:
    """Run the tests of its targets for what is left (step 5)."""
    known = equivalent_keys()
    for target in TARGETS:
        files = set(files_of(target))
        places = {
            (each.path, each.number): each
            for each in search.mutants
            if each.by == NOTHING and each.path in files and each.mutant.key not in known
        }
        if places:
            tests = session.GivenTests(target.tests, target.slow, compiles=target.compiles)
            for found in session.examine(tests, [list(places)], math.inf):
                if found.is_noticed:
                    places[found.mutant.path, found.mutant.number].by = "tests"


def report(search: Search) -> None:
    """Print what nothing noticed, and the counts."""
    known = equivalent_keys()
    for tried in search.mutants:
        if tried.by == NOTHING:
            tried.by = EQUIVALENT if tried.mutant.key in known else NOTHING
        if tried.by == NOTHING:
            write(f"NOT NOTICED {tried.mutant}\n    {tried.mutant.key}")
    counts = Counter(each.by for each in search.mutants) + search.noticed_before
    total = counts.total() - counts[EQUIVALENT]
    share = (total - counts[NOTHING]) / total if total else 1.0
    parts = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    write(f"{counts.total()} mutants: {parts}; {share:.1%} of those that change a meaning")


def main(arguments: Sequence[str]) -> int:
    """Try all mutants of the files below ONLY."""
    given = dict(each.split("=", 1) for each in arguments)
    only = given.get("ONLY", "topology/facts")
    seed = int(given.get("SEED") or random.SystemRandom().randrange(1 << 32))
    paths = sorted({path for each in TARGETS for path in files_of(each) if path.startswith(only)})
    write(f"SEED={seed}: {len(paths)} files")
    search = Search(paths, Path(given["STATE"]) if "STATE" in given else None)
    dice = random.Random(seed)
    try_kept(search, dice, int(given.get("TRIES") or 300))
    try_tables(search)
    search.leave_out(equivalent_keys())
    search.write_state()
    write(f"{len(search.left)} left")
    try_new(search, float(given.get("SECONDS") or 0), dice)
    found = selected(search)
    for case, count in found:
        write(f"{count} by {case.name}")
    keep(case for case, _ in found[: int(given.get("ADD") or 0)])
    if given.get("TESTS"):
        try_tests(search)
    search.write_state()
    report(search)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
