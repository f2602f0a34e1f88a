"""The procedures of the journal, as they were last read: for the API, the page and the metrics.

1. A thread reads the journal every few seconds. A scrape never waits for a file that another
   process has locked.
2. A journal that does not exist has no procedures, and is not created: nothing was applied yet.
3. An unreadable journal is a problem with a reason, never an empty list.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from repair.adapters.journal import Journal
from repair.applying.procedures_applied import AppliedProcedure, ProcedureEvent
from topology.adapters.sqlite_files import UnusableFile

READ_EVERY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class ProceduresRead:
    """The procedures, the newest first; or why they could not be read."""

    procedures: tuple[AppliedProcedure, ...] = ()
    problem: str | None = None


class ProcedureSource:
    """A journal that is read repeatedly. `path` is None if its place is not known."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._latest = ProceduresRead()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)

    def start(self) -> None:
        """Read the journal now, and go on reading it in a thread."""
        self.read()
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()

    def latest(self) -> ProceduresRead:
        """Return what was read last."""
        return self._latest

    def read(self) -> None:
        """Read the journal now."""
        try:
            found = self._procedures()
        except UnusableFile as problem:
            self._latest = ProceduresRead(problem=str(problem))
        except OSError as error:
            self._latest = ProceduresRead(problem=f"{self._path}: {error.strerror or error}")
        else:
            self._latest = ProceduresRead(found)

    def events(self, procedure_id: str) -> tuple[ProcedureEvent, ...]:
        """Return the events of a procedure. Raises UnusableFile."""
        return () if self._path is None else Journal(self._path).events(procedure_id)

    def _procedures(self) -> tuple[AppliedProcedure, ...]:
        if self._path is None or not self._path.exists():
            return ()
        return Journal(self._path).procedures()

    def _work(self) -> None:
        while not self._stop.wait(READ_EVERY_SECONDS):
            self.read()
