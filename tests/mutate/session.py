"""One pytest session in which every mutant is tried, each in a fork of its own.

How it works
------------
1. The tests of a target are collected once. A fork runs all of them without a mutant: they have to
   pass, and the time of each is kept, and which lines it executes (lines.py).
2. For each mutant a fork puts it in place (in_place.py) and runs the tests that execute its line, up
   to the first that fails. Which one that was comes back through a pipe: tests that notice much in
   little time come first from then on, so most mutants take a fraction of a second. The slow tests
   of a target are not watched, and run for every mutant that the others did not notice. Tests that
   compile kernels run once before they are watched: watched, the compiler takes minutes.
3. A mutant that cannot be put in place is tried in a fork that imports everything anew.
4. A mutant is noticed if a test fails, or if the tests take far longer than without it.
"""

import ast
import gc
import json
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

import pytest

from tests.mutate.in_place import (
    Functions,
    changed_functions,
    functions_of,
    put_functions,
    put_module,
)
from tests.mutate.lines import Line, Watch, lines_of_statement
from tests.mutate.mutants import Mutant, mutant_of
from tests.mutate.targets import ROOT

SECONDS_FLOOR = 60.0  # no test run is called endless before
SECONDS_FACTOR = 6
PASSED = "passed"
Place = tuple[str, int]  # a path, and the number of a mutant
_OPTIONS = (*("-x", "-q", "-p", "no:cacheprovider"), *("-p", "no:xdist"))
_MARKS = ("-m", "not mysql and not spark and not slow")
_FEWER_EXAMPLES = ("-p", "tests.hypothesis_profiles", "--hypothesis-profile=quick")


@dataclass(frozen=True)
class Examined:
    """A mutant, and whether a test noticed it."""

    mutant: Mutant
    is_noticed: bool
    is_executed: bool = True  # by any test, as far as that is known


@dataclass(frozen=True)
class GivenTests:
    """The tests that mutants are given to."""

    watched: tuple[str, ...]
    slow: tuple[str, ...] = ()
    is_quick: bool = False  # a tenth of the examples, as in `make quick`
    compiles: bool = False  # kernels, which are kept on disk (gtid/jit.py)

    @property
    def arguments(self) -> list[str]:
        """Return how pytest is called for them."""
        fewer = _FEWER_EXAMPLES if self.is_quick else ()
        return [*_OPTIONS, *fewer, *_MARKS, *self.watched, *self.slow]


class WithoutMutantFailed(Exception):
    """The tests do not pass without a mutant."""


def examine(
    tests: GivenTests, parts: Sequence[Sequence[Place]], deadline: float
) -> Iterator[Examined]:
    """Try mutants until a moment, each part in a process. Raises WithoutMutantFailed."""
    sessions: dict[Connection, int] = {}
    for part in parts:
        results, answers = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            os._exit(_session(tests, _Loop(tests, part, deadline, answers.send)))
        answers.close()
        sessions[results] = child
    while sessions:
        for ready in wait(list(sessions)):
            assert isinstance(ready, Connection)
            try:
                yield ready.recv()
            except EOFError:
                _, status = os.waitpid(sessions.pop(ready), 0)
                if status:
                    raise WithoutMutantFailed(
                        f"{', '.join(tests.watched)}: status {status}"
                    ) from None


def _session(tests: GivenTests, loop: "_Loop") -> int:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    sys.dont_write_bytecode = True
    return int(pytest.main(tests.arguments, plugins=[loop]))


@dataclass
class _Loop:
    """Replaces pytest's loop over tests by one over mutants."""

    tests: GivenTests
    places: Sequence[Place]
    deadline: float
    send: Callable[[Examined], None]
    seconds: dict[str, float] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    # By test or by its file: fixtures count for all of a file.
    executed: dict[str, set[Line]] = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        begun = time.monotonic()
        files = sorted({str(ROOT / path) for path, _ in self.places})
        watched = [each for each in session.items if not self._is_slow(each)]
        slow = [each for each in session.items if self._is_slow(each)]

        def run(report: Callable[[str], None]) -> str:
            watch = Watch(files)
            watch.start()
            outcome = _run_all(watched, report, watch)
            sys.settrace(None)
            return _run_all(slow, report) if outcome == PASSED and slow else outcome

        if self.tests.compiles:
            _in_fork(lambda report: _run_all(watched, report), 3600.0)
        outcome = _in_fork(run, 3600.0, self._timed)
        if outcome != PASSED:
            raise pytest.UsageError(f"without a mutant: {outcome}")
        self.functions = functions_of(files)
        gc.freeze()  # a collection in a fork would copy what it looks at
        allowed = max(SECONDS_FLOOR, SECONDS_FACTOR * (time.monotonic() - begun))
        for path, number in self.places:
            if time.monotonic() > self.deadline:
                break
            self.send(self._examined(session, path, number, allowed))
        return True

    def _is_slow(self, item: pytest.Item) -> bool:
        return item.nodeid.partition("::")[0] in self.tests.slow

    def _timed(self, line: str) -> None:
        found = json.loads(line)
        lines = {(path, each) for path, numbers in found["lines"].items() for each in numbers}
        self.executed.setdefault(found["executed_by"], set()).update(lines)
        self.seconds[found["test"]] = found["seconds"]

    def _examined(
        self, session: pytest.Session, path: str, number: int, allowed: float
    ) -> Examined:
        source, file = (ROOT / path).read_text(), str(ROOT / path)
        mutant, tree = mutant_of(path, source, number)
        changed = changed_functions(compile(source, file, "exec"), compile(tree, file, "exec"))
        ordered = sorted(session.items, key=self._worth, reverse=True)
        if changed is not None:
            span = lines_of_statement(ast.parse(source), mutant.line)
            lines = {(file, each) for each in span}
            ordered = [item for item in ordered if self._may_notice(item, lines)]
        if not ordered:
            return Examined(mutant, is_noticed=False, is_executed=False)

        def run(report: Callable[[str], None]) -> str:
            if changed is not None and put_functions(self.functions[file], changed):
                return _run_all(ordered, report)
            put_module(ROOT, path, tree)
            status = pytest.main(self.tests.arguments)
            return "imported anew" if status else PASSED

        outcome = _in_fork(run, allowed)
        if outcome in self.seconds:
            self.kills[outcome] = self.kills.get(outcome, 0) + 1
        return Examined(mutant, outcome != PASSED)

    def _may_notice(self, item: pytest.Item, lines: set[Line]) -> bool:
        names = (item.nodeid, item.nodeid.partition("::")[0])
        return self._is_slow(item) or any(lines & self.executed.get(each, set()) for each in names)

    def _worth(self, item: pytest.Item) -> float:
        return (self.kills.get(item.nodeid, 0) + 0.1) / (self.seconds.get(item.nodeid, 1.0) + 0.01)


def _run_all(
    items: Sequence[pytest.Item], report: Callable[[str], None], watch: Watch | None = None
) -> str:
    """Run tests up to the first that fails; return its name, or PASSED."""
    failed: list[str] = []

    class Watching:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)
            if report.when == "setup":
                send(report.nodeid, report.nodeid.partition("::")[0])

    def send(test: str, executed_by: str) -> None:
        lines: dict[str, list[int]] = {}
        for path, line in sorted(watch.take()) if watch is not None else ():
            lines.setdefault(path, []).append(line)
        seconds = time.monotonic() - begun
        found = {"test": test, "executed_by": executed_by, "seconds": seconds, "lines": lines}
        report(json.dumps(found))

    items[0].config.pluginmanager.register(Watching())
    for item, following in zip(items, [*items[1:], None], strict=True):
        begun = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        send(item.nodeid, item.nodeid)
        if failed:
            return failed[0]
    return PASSED


def _in_fork(
    run: Callable[[Callable[[str], None]], str],
    seconds_max: float,
    report: Callable[[str], None] = lambda _line: None,
) -> str:
    """Run in a fork; return what it returned, or why it did not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setpgid(0, 0)
        with os.fdopen(writing, "w") as pipe:

            def write(line: str) -> None:
                pipe.write(line + "\n")

            try:
                outcome = run(write)
            except BaseException as problem:  # noqa: BLE001 - a mutant may break anything
                outcome = f"broken: {type(problem).__name__}"
            pipe.write(outcome + "\n")
        os._exit(0)
    os.close(writing)
    text = _read_until_end(reading, seconds_max)
    if text is None:
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if text is None:
        return "endless"
    *lines, outcome = text.splitlines() or ["broken: no answer"]
    for line in lines:
        report(line)
    return outcome


def _read_until_end(reading: int, seconds_max: float) -> str | None:
    """Return all that comes through a pipe; None if it is not closed in time."""
    deadline = time.monotonic() + seconds_max
    parts: list[bytes] = []
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts).decode(errors="replace")
            parts.append(part)
