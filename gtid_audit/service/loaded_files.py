"""Loads the files of the service again: on SIGHUP, and repeatedly if commands list its servers.

1. A file that cannot be loaded changes nothing: what was loaded before stays in use, and the reason
   is logged and shown. Other files are loaded all the same.
2. A list of servers from a command may differ each time. So a fleet file with such a command is
   loaded again once in every interval. A reason that repeats is logged once.
3. A thread does this: commands of a fleet file may take half a minute, and a signal must not wait.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gtid.counted_nouns import counted
from gtid_audit import clock
from gtid_audit.exits import USAGE_PROBLEMS
from gtid_audit.service.log_words import LogLevel
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.service_log import ServiceLog
from topology.adapters.inventory.fleet import Fleet

_PROBLEMS_SHOWN_MAX: Final = 5
_WAIT_SECONDS_MAX: Final = 3600.0


@dataclass(frozen=True, slots=True)
class FileToLoad:
    """A file besides the fleet file: what it is, and the function that loads and uses it."""

    what: str
    load: Callable[[], None]  # raises UsageProblem, and changes nothing then


class LoadedFiles:
    """The files of one service."""

    def __init__(
        self,
        load_fleet: Callable[[], Fleet],
        others: Sequence[FileToLoad],
        service: AuditService,
        log: ServiceLog,
        *,
        interval_seconds: float,
        is_listed: bool,
    ) -> None:
        """`is_listed`: commands of the fleet file listed servers when it was first loaded."""
        self._load_fleet = load_fleet
        self._others = others
        self._service = service
        self._log = log
        self._interval_seconds = interval_seconds
        self._is_listed = is_listed
        self._problems: dict[str, str] = {}  # by what could not be loaded
        self._is_requested = False
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="files", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def request(self) -> None:
        """Load all files soon, in the thread."""
        self._is_requested = True
        self._wake.set()

    def stop(self) -> None:
        """Load no more."""
        self._stop.set()
        self._wake.set()

    def reload(self, *, everything: bool) -> None:
        """Load the fleet file now; with `everything` also the others, and log it in any case."""
        before, loaded_at = dict(self._problems), None
        loaded: list[Fleet] = []
        self._try("the fleet file", lambda: loaded.append(self._load_fleet()))
        for fleet in loaded:
            self._service.use_fleet(fleet)
            self._is_listed, loaded_at = fleet.is_listed, clock.now()
        for each in self._others if everything else ():
            self._try(each.what, each.load)
        self._show(loaded_at)
        for what, problem in self._problems.items():
            if everything or before.get(what) != problem:
                text = f"{what} could not be loaded; the one before stays in use: {problem}"
                self._log.write(LogLevel.CRITICAL, "not_loaded", text)
        if loaded and (everything or before.keys() - self._problems.keys()):
            clusters = counted(len(loaded[0].clusters), "cluster")
            self._log.write(LogLevel.INFO, "loaded", f"the fleet file was loaded: {clusters}")

    def _try(self, what: str, load: Callable[[], None]) -> None:
        self._problems.pop(what, None)
        try:
            load()
        except USAGE_PROBLEMS as problem:
            self._problems[what] = "; ".join(problem.problems[:_PROBLEMS_SHOWN_MAX])
        except Exception as defect:  # noqa: BLE001 - it is reported; the service goes on
            self._problems[what] = f"{type(defect).__name__}: {defect}"

    def _show(self, loaded_at: datetime | None) -> None:
        problems = [f"{what}: {problem}" for what, problem in sorted(self._problems.items())]
        self._service.set_configuration(loaded_at, "; ".join(problems) or None)

    def _work(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(self._interval_seconds if self._is_listed else _WAIT_SECONDS_MAX)
            self._wake.clear()
            is_requested, self._is_requested = self._is_requested, False
            if not self._stop.is_set() and (is_requested or self._is_listed):
                self.reload(everything=is_requested)
