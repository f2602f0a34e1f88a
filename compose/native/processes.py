"""Starts and signals server processes through a supervisor, one supervisor per Python process.

It owns the run folder: ``<pid>-<random>/`` in ``runs_root()``, removed with the last server. The
next run deletes a folder whose supervisor died without removing it.
"""

import atexit
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compose.native.cache import locked, runs_root

_SCRIPT = Path(__file__).with_name("supervisor.py")
_POLL_SECONDS = 0.01


class SupervisorDied(Exception):
    """The process that owned the servers has died, and its servers with it."""


class Supervisor:
    """The parent's side of one supervising process. Safe to use from several threads."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        runs = runs_root()
        with locked(runs / ".lock"):
            _sweep(runs)
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self.owner}-", dir=runs))
            # The supervisor alone holds this lock: while it lives, no run deletes the folder.
            with (self.folder / "lock").open("a") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", _SCRIPT, self.folder, str(self.owner)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    pass_fds=[held.fileno()],
                    start_new_session=True,  # Ctrl-C goes to the run, whose end ends the supervisor
                )

    @property
    def pid(self) -> int:
        """Return the process id of the supervisor."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether this process can still make requests."""
        return self.owner == os.getpid() and self._process.poll() is None

    def start(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        output: Path,
        environment: Mapping[str, str],
    ) -> "Child":
        """Start a program in ``folder`` with its output appended to a file."""
        answer = self._ask(
            do="start",
            command=list(command),
            folder=str(folder),
            output=str(output),
            environment={**os.environ, **environment},
        )
        return Child(self, answer["pid"])

    def close(self) -> None:
        """Kill every child, remove the run folder, and end the supervisor."""
        if not self.alive:
            return
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(b'{"do": "finish"}\n')
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()

    def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, ValueError) as gone:
                raise SupervisorDied(f"supervisor {self.pid} is gone") from gone
        if not line:
            raise SupervisorDied(f"supervisor {self.pid} is gone")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            raise OSError(answer["failure"])
        return answer


@dataclass(frozen=True, slots=True)
class Child:
    """A process that the supervisor started. Its pid is not reused until the supervisor ends."""

    supervisor: Supervisor
    pid: int

    def status(self) -> int | None:
        """Return None while it runs, then its exit status, or minus the signal that ended it."""
        answer: int | None = self.supervisor._ask(do="status", pid=self.pid)["status"]  # noqa: SLF001
        return answer

    def is_stopped(self) -> bool:
        """Return whether SIGSTOP has stopped every thread."""
        states = (path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat"))
        return all(state.rsplit(")", 1)[1].split()[0] == "T" for state in states)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if the process has ended."""
        self.supervisor._ask(do="signal", pid=self.pid, signal=int(number))  # noqa: SLF001

    def wait(self, *, timeout_seconds_max: float) -> int:
        """Return the exit status. Raises TimeoutError if the process has not ended by then."""
        deadline = time.monotonic() + timeout_seconds_max
        while (status := self.status()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} still runs after {timeout_seconds_max} s")
            time.sleep(_POLL_SECONDS)
        return status


_current: Supervisor | None = None
_current_lock = threading.Lock()


def current_supervisor() -> Supervisor:
    """Return this process's supervisor, starting it on first use and after a fork."""
    global _current  # noqa: PLW0603 - there must be one per process
    with _current_lock:
        if _current is None or not _current.alive:
            _current = Supervisor()
            atexit.register(_current.close)
        return _current


def _sweep(runs: Path) -> None:
    """Remove run folders that no process owns any more. The caller holds the lock of ``runs``."""
    for folder in runs.iterdir():
        lock = folder / "lock"
        if not lock.exists():
            continue
        with lock.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder, ignore_errors=True)
