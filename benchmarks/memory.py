"""Watches how much memory this process and its descendants take at most.

The kernel keeps each process's peak (VmHWM in /proc/PID/status, proc(5)), so looking now and then
misses nothing but the very last moments of a process.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_SECONDS = 0.2
_PROC = Path("/proc")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


@dataclass(slots=True)
class Peaks:
    """Peak resident bytes of each process seen, by process id, and what it is."""

    bytes_of: dict[int, int] = field(default_factory=dict)
    name_of: dict[int, str] = field(default_factory=dict)

    def of(self, name: str) -> list[int]:
        """Return the peaks of all processes of one name, the largest first."""
        peaks = (self.bytes_of[pid] for pid, known in self.name_of.items() if known == name)
        return sorted(peaks, reverse=True)


@contextmanager
def watched_memory(names: Mapping[str, str]) -> Iterator[Peaks]:
    """Watch this process (`driver`) and its descendants until the block ends.

    `names` says what a descendant is called, by a part of its command line; the first that fits
    counts, and `other` if none does.
    """
    peaks = Peaks()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            look(peaks, names)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        done.set()
        watcher.join()
        look(peaks, names)


def look(peaks: Peaks, names: Mapping[str, str]) -> None:
    """Look once."""
    for pid in _family():
        try:
            status = (_PROC / str(pid) / "status").read_text()
            command = (_PROC / str(pid) / "cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        peak = _PEAK.search(status)
        if peak is None:
            continue  # it has ended, and its parent has not read its status yet
        name = next((name for part, name in names.items() if part in command), "other")
        peaks.name_of[pid] = "driver" if pid == os.getpid() else name
        peaks.bytes_of[pid] = max(int(peak[1]) * 1024, peaks.bytes_of.get(pid, 0))


def _family() -> set[int]:
    """Return this process and all that descend from it."""
    parents: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            # The name in parentheses may hold anything; what follows the last one is fixed.
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found, frontier = {os.getpid()}, {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found
