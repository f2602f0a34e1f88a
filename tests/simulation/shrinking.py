"""The shortest history that still fails: steps are left out while the failure stays (ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.history import History, without
from tests.simulation.shapes import SHAPES, Setup

Fails = Callable[[History], bool]


def shrink(history: History, fails: Fails, *, tries_max: int = 600) -> History:
    """Return a shorter history for which `fails` holds still."""
    tries = 0

    def holds(candidate: History) -> bool:
        nonlocal tries
        tries += 1
        return tries <= tries_max and fails(candidate)

    while True:
        before = history
        history = _fewer_steps(history, holds)
        for simpler in _simpler(history):
            if holds(simpler):
                history = simpler
        if history == before or tries > tries_max:
            return history


def _fewer_steps(history: History, holds: Fails) -> History:
    size = max(1, len(history.lines) // 2)
    while True:
        at = 0
        while at < len(history.lines):
            candidate = without(history, set(range(at, min(at + size, len(history.lines)))))
            if holds(candidate):
                history = candidate
            else:
                at += size
        if size == 1:
            return history
        size = max(1, size // 2)


def _simpler(history: History) -> Iterator[History]:
    """Yield histories that are simpler in one respect."""
    reading = history.reading
    if reading.moving:
        yield replace(history, reading=replace(reading, moving=False))
    if reading.between:
        yield replace(history, reading=replace(reading, between=()))
        lines = (*history.lines, reading.between)
        yield replace(history, lines=lines, reading=replace(reading, between=()))
    if reading.unread:
        yield replace(history, reading=replace(reading, unread=()))
    if reading.contents != "none":
        yield replace(history, reading=replace(reading, contents="none"))
    everyone = tuple(sorted(SHAPES[history.setup.shape].sources))
    if reading.visible != everyone:
        yield replace(history, reading=replace(reading, visible=everyone))
    if history.setup.workers != 1:
        yield replace(history, setup=replace(history.setup, workers=1))
    if not history.setup.commit_order:
        yield replace(history, setup=replace(history.setup, commit_order=True))
    if history.setup.version != Setup("pair").version:
        yield replace(history, setup=replace(history.setup, version=Setup("pair").version))
    for at, line in enumerate(history.lines):
        for other in _plainer(line):
            lines = (*history.lines[:at], *other, *history.lines[at + 1 :])
            yield replace(history, lines=lines)


def _plainer(line: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], ...]]:
    if line[0] in ("load", "flow", "wait"):
        yield (("rest",),)
    if line[0] == "load":
        for name in ("a", "b", "c"):
            yield (("write", name, "insert", f"{name}1"), ("rest",))
            yield (("write", name, "insert", f"{name}1"),)
