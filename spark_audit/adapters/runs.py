"""The runs below a directory, of snapshots or of results: which there are, and which are complete.

    directory/day=2026-01-02/run=20260102T120011.000000Z/…
                                                         _SUCCESS

1. A run is named for a moment; names sort as time does, and nothing else tells which is later.
2. A run without `_SUCCESS` does not exist for a reader.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from spark_audit.adapters.storage import Storage

COMPLETE: Final = "_SUCCESS"
_DAY: Final = re.compile(r"day=\d{4}-\d{2}-\d{2}")
_RUN: Final = re.compile(r"run=\d{8}T\d{6}\.\d{6}Z")
_MOMENT: Final = "run=%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, order=True)
class RunName:
    """The name of a run, which is the moment it speaks of: `run=20260102T120011.000000Z`."""

    text: str

    def __post_init__(self) -> None:
        if not _RUN.fullmatch(self.text):
            raise ValueError(f"expected a run like run=20260102T120011.000000Z, found {self.text}")

    @classmethod
    def of_place(cls, place: str) -> "RunName":
        """Return the name of the run that lies at a place. Raises ValueError."""
        return cls(place.rstrip("/").rpartition("/")[2])

    @property
    def moment(self) -> datetime:
        """Return the moment the run speaks of."""
        return datetime.strptime(self.text, _MOMENT).replace(tzinfo=UTC)

    @property
    def path(self) -> str:
        """Return where the run lies below its directory."""
        return f"day={self.moment:%Y-%m-%d}/{self.text}"


def runs_newest_first(storage: Storage, directory: str) -> Iterator[RunName]:
    """Yield the complete runs below a directory, the latest first; look only as far as asked."""
    for day in reversed(storage.names_in(directory)):
        if not _DAY.fullmatch(day):
            continue
        for name in reversed(storage.names_in(f"{directory}/{day}")):
            if _RUN.fullmatch(name) and storage.exists(f"{directory}/{day}/{name}/{COMPLETE}"):
                run = RunName(name)
                if run.path == f"{day}/{name}":  # or it was moved to another day
                    yield run


def latest_before(storage: Storage, directory: str, run: RunName) -> RunName | None:
    """Return the latest complete run named for an earlier moment than `run`."""
    return next((each for each in runs_newest_first(storage, directory) if each < run), None)
