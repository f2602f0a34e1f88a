"""One folder for everything that is fetched, unpacked or run, safe for two runs at once.

1. Nothing of this project is written outside ``cache_root()`` and ``runs_root()``, which is in it.
2. A finished entry appears under its name in one atomic rename: a process that sees it sees all of
   it.
3. This module does not know what is in the entries.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one finished line of progress for a person; the caller decides whether to print it."""


def silent(_line: str) -> None:
    """Ignore a progress line."""


def cache_root() -> Path:
    """Return the cache folder: ``GTID_AUDIT_CACHE``, or ``.cache`` in the project's root."""
    named = os.environ.get("GTID_AUDIT_CACHE")
    root = Path(named) if named else Path(__file__).resolve().parents[2] / ".cache"
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


def runs_root() -> Path:
    """Return the folder of running servers: ``GTID_AUDIT_RUNS``, or ``run`` in the cache folder."""
    named = os.environ.get("GTID_AUDIT_RUNS")
    root = Path(named) if named else cache_root() / "run"
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


@contextmanager
def locked(path: Path, progress: Progress = silent) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel releases it however the holder ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another run to finish {path.stem}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build_once(name: str, build: Callable[[Path], None], *, progress: Progress = silent) -> Path:
    """Return the cache entry ``name``, building it first if no run has finished it yet.

    ``build`` gets an empty folder to fill. If it raises or the process dies, no entry appears, and
    the next run starts with a new folder. The next builder deletes what an interrupted run left.
    """
    entry = cache_root() / name
    if entry.exists():
        return entry
    with locked(cache_root() / "locks" / f"{name}.lock", progress):
        if entry.exists():
            return entry
        for leftover in entry.parent.glob(f".{name}.*.partial"):
            shutil.rmtree(leftover)
        partial = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".partial", dir=entry.parent))
        try:
            build(partial)
            partial.rename(entry)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return entry
