"""How things are measured here, and how a measurement is written down.

1. Ours and a peer's runs alternate in one process run, so that both see the same machine; of the
   ratios of neighbouring runs the median counts. Absolute times describe one machine on one day.
2. A goal that is missed is said to be missed.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a measurement."""

    runs: int = 9  # of ours and of each peer, in turn
    largest: bool = False  # also what takes many minutes and many GB of disk


@dataclass(frozen=True, slots=True)
class Line:
    """One figure beside its peer's."""

    work: str
    ours: str
    peer: str = ""
    ratio: str = ""
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """What one benchmark found."""

    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duel:
    """Seconds of alternate runs of ours and of a peer."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Return the median of ours / peer, run by run."""
        return statistics.median(
            ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)
        )

    @property
    def our_seconds(self) -> float:
        """Return the median of our runs."""
        return statistics.median(self.ours)

    @property
    def peer_seconds(self) -> float:
        """Return the median of the peer's runs."""
        return statistics.median(self.peer)


def duel(ours: Callable[[], float], peer: Callable[[], float], *, runs: int) -> Duel:
    """Run ours and the peer in turn, after one run of each that does not count.

    Each returns the seconds it took, which it measured itself.
    """
    ours()
    peer()
    pairs = [(ours(), peer()) for _ in range(runs)]
    return Duel(tuple(mine for mine, _ in pairs), tuple(theirs for _, theirs in pairs))


def seconds_of(work: Callable[[], object]) -> float:
    """Run a piece of work and return how long it took."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def evaluated(wanted: str, *, reached: bool) -> str:
    """Return whether a goal is reached: "≤ 0.33: reached"."""
    return f"{wanted}: {'reached' if reached else 'missed'}"


def machine() -> str:
    """Describe the machine and what the measured code stands on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pyarrow"))
    return (
        f"{_processor()}, {os.cpu_count()} processors, {_memory_gib():.0f} GiB;"
        f" Python {platform.python_version()}, {packages}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def table(lines: Sequence[Line]) -> list[str]:
    """Write lines as a Markdown table."""
    rows = [(line.work, line.ours, line.peer, line.ratio, line.goal) for line in lines]
    head = ("work", "ours", "peer", "ours / peer", "goal")
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]
