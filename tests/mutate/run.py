"""Changes decisions at random, and reports what no test notices.

    python -m tests.mutate.run SECONDS=600 [SEED=1] [ONLY=repair/script.py] [PROCESSES=2] [QUICK=1]

1. Each mutant (mutants.py) of the code that decides (targets.py) is given to tests that need no
   server, in a fork that has not imported any module of the product: the mutant takes the place of
   one module there. Nothing is written to any source.
2. The quick tests come first; what they do not notice is given to the slow ones, unless QUICK=1. A
   mutant is noticed if a test fails, or takes far longer than it takes without a mutant. The
   tests are run without a mutant first: they have to pass.
3. What was looked at and found to be no change of meaning is in equivalent.txt, and not reported.
4. The seed is printed; the same seed takes the same mutants in the same order. Exit status 1: less
   than 95 % were noticed.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import os
import random
import signal
import sys
import time
from ast import Module
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutate.mutants import Mutant, count_of, mutant_of
from tests.mutate.targets import ROOT, TARGETS, Target, files_of

NOTICED_SHARE_MIN = 0.95
SECONDS_FLOOR = 60.0  # no test run is called endless before
SECONDS_FACTOR = 5
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
# Never a module of the product, nor one that pytest rewrites.
_LOADED_BEFORE = ("rich.console", "typer", "pymysql", "numpy", "pyarrow")
# What a fork imports anew.
_OURS = frozenset(
    {"gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit", "compose", "tests"}
)


@dataclass(frozen=True)
class Chosen:
    """A place of a file, and who should notice."""

    target: Target
    path: str
    number: int


class _InPlace(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module another tree."""

    def __init__(self, name: str, path: str, tree: Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, fullname: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        is_package = self._path.endswith("__init__.py")
        return importlib.util.spec_from_file_location(
            fullname,
            self._path,
            loader=self,
            submodule_search_locations=[str(Path(self._path).parent)] if is_package else None,
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, self._path, "exec"), module.__dict__)


def choices(seed: int, only: str) -> list[Chosen]:
    """Return every place there is, shuffled."""
    found = [
        Chosen(target, path, number)
        for target in TARGETS
        for path in files_of(target)
        if path.startswith(only)
        for number in range(count_of((ROOT / path).read_text()))
    ]
    random.Random(seed).shuffle(found)
    return found


def is_noticed(
    tests: Sequence[str], mutation: tuple[str, Module] | None, seconds_max: float
) -> bool:
    """Run tests in a fork; return whether they fail or do not end."""
    child = os.fork()
    if child == 0:
        os._exit(_run_tests(tests, mutation))
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _run_tests(tests: Sequence[str], mutation: tuple[str, Module] | None) -> int:
    os.setpgid(0, 0)
    for name in [each for each in sys.modules if each.partition(".")[0] in _OURS]:
        del sys.modules[name]
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.dont_write_bytecode = True
    if mutation is not None:
        path, tree = mutation
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, _InPlace(name, str(ROOT / path), tree))
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not mysql and not slow",
    ]
    try:
        return int(pytest.main([*options, *tests]))
    except BaseException:  # noqa: BLE001 - a mutant may break anything, and then it is noticed
        return 1


def _examine(work: tuple[Chosen, float, float, bool]) -> tuple[Mutant, bool] | None:
    """Look at one mutant; None once the time is used up."""
    chosen, seconds_max, deadline, is_quick = work
    if time.monotonic() > deadline:
        return None
    source = (ROOT / chosen.path).read_text()
    mutant, tree = mutant_of(chosen.path, source, chosen.number)
    stages = [chosen.target.tests, *([] if is_quick else [chosen.target.slow])]
    mutation = (chosen.path, tree)
    return mutant, any(is_noticed(tests, mutation, seconds_max) for tests in stages if tests)


def _allowed_seconds(chosen: Sequence[Chosen], *, is_quick: bool) -> Iterator[tuple[Target, float]]:
    """Give the time for each target, after a run without a mutant, which has to pass."""
    for target in TARGETS:
        if any(each.target is target for each in chosen):
            begun = time.monotonic()
            if is_noticed([*target.tests, *(() if is_quick else target.slow)], None, 3600.0):
                sys.exit(f"the tests of {target.files[0]} … fail without any mutant")
            yield target, max(SECONDS_FLOOR, SECONDS_FACTOR * (time.monotonic() - begun))


def main(arguments: Sequence[str]) -> int:
    """Look at as many mutants as the time allows."""
    given = dict(each.split("=", 1) for each in arguments)
    seed = int(given.get("SEED") or random.SystemRandom().randrange(1 << 32))
    deadline = time.monotonic() + float(given.get("SECONDS") or 600)
    chosen = choices(seed, given.get("ONLY", ""))
    say(f"SEED={seed}: {len(chosen):,} mutants to choose from")
    for name in _LOADED_BEFORE:
        importlib.import_module(name)
    is_quick = bool(given.get("QUICK"))
    allowed = dict(_allowed_seconds(chosen, is_quick=is_quick))
    equivalent = set(EQUIVALENT.read_text().splitlines())
    noticed = looked = same = 0
    with multiprocessing.Pool(int(given.get("PROCESSES") or os.cpu_count() or 1)) as pool:
        work = ((each, allowed[each.target], deadline, is_quick) for each in chosen)
        for examined in pool.imap_unordered(_examine, work):
            if examined is None:
                continue
            mutant, was_noticed = examined
            if mutant.key in equivalent and not was_noticed:
                same += 1
                continue
            looked += 1
            noticed += was_noticed
            if not was_noticed:
                say(f"NOT NOTICED {mutant}\n    {mutant.key}")
    share = noticed / looked if looked else 1.0
    say(f"SEED={seed}: {looked} mutants, {noticed} noticed ({share:.1%}); {same} equivalent ones")
    return 0 if share >= NOTICED_SHARE_MIN else 1


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
