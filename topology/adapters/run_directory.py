"""The directory of one run, of snapshots or of results: its name, and how it appears as a whole.

How it works
------------
    directory/day=2026-01-02/run=20260102T030405.000006Z/…           the tables
                                                         _….json     texts beside them
                                                         _SUCCESS    (COMPLETE), the last file
              _writing-0123456789abcdef…/                            a draft: no run for readers

A writer fills a draft, whose name is no run. Then it does two things:

    complete_draft      texts ─► fsync of everything ─► _SUCCESS ─► fsync
    storage.rename      the draft gets the name of its run, and the directories above are synced

Invariants:

1. A directory with `_SUCCESS` is complete. A reader ignores every other one: its writer is at work,
   or died.
2. The files are on disk before `_SUCCESS` is. After a power loss the mark could otherwise exist
   without the tables.
3. The name is the time at which the last reading of the run ended, in UTC with a fixed width: text
   order is time order. `day=…` is derived from it.

Example: a writer dies after the fsync of the texts. `_writing-…` stays, without a mark. No reader
looks at it, and the next writer has a draft of its own.

Why not simpler: a rename alone is enough where it is atomic, and the mark alone where it is not
(s3a). Both are done everywhere, so that an interrupted copy of a run is no run, either.

Snapshots (parquet.py) and results (`spark_audit/adapters/result_place.py`) are written like this.
This module knows no rows.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

COMPLETE: Final = "_SUCCESS"
_WRITING: Final = "_writing-"
_DAY: Final = re.compile(r"day=\d{4}-\d{2}-\d{2}")
_RUN: Final = re.compile(r"run=\d{8}T\d{6}\.\d{6}Z")
_RUN_FORMAT: Final = "run=%Y%m%dT%H%M%S.%fZ"


def is_day(name: str) -> bool:
    """Return whether a directory has the name of a day, which contains runs."""
    return _DAY.fullmatch(name) is not None


def is_run(name: str) -> bool:
    """Return whether a directory has the name of a run."""
    return _RUN.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, order=True)
class RunName:
    """The name of a run, which is the time of its last reading: `run=20260102T120011.000000Z`."""

    text: str

    def __post_init__(self) -> None:
        if not is_run(self.text):
            raise ValueError(f"expected a run like run=20260102T120011.000000Z, found {self.text}")

    @classmethod
    def at(cls, moment: datetime) -> "RunName":
        """Return the name of a run whose last reading ended at this time."""
        return cls(moment.astimezone(UTC).strftime(_RUN_FORMAT))

    @classmethod
    def of_place(cls, place: str) -> "RunName":
        """Return the name of the run at a place. Raises ValueError."""
        return cls(place.rstrip("/").rpartition("/")[2])

    @property
    def moment(self) -> datetime:
        """Return the time in the name. Raises ValueError if there is no such time."""
        return datetime.strptime(self.text, _RUN_FORMAT).replace(tzinfo=UTC)

    @property
    def path(self) -> str:
        """Return the path of the run below its directory."""
        return f"day={self.moment:%Y-%m-%d}/{self.text}"


class WritableStorage(Protocol):
    """The operations that completing a run needs of a file system."""

    def write_text(self, place: str, text: str) -> None:
        """Write a small file, and create its directories."""

    def make_durable(self, place: str) -> None:
        """Return once everything below a place would survive a power loss, if we control that."""


def new_draft(directory: str) -> str:
    """Return the place of a draft below a directory, with another name each time."""
    return f"{directory}/{_WRITING}{uuid4().hex}"


def complete_draft(storage: WritableStorage, draft: str, texts: Mapping[str, str]) -> None:
    """Write texts beside the tables of a draft, and then the mark of a complete run."""
    for name, text in texts.items():
        storage.write_text(f"{draft}/{name}", text)
    storage.make_durable(draft)
    storage.write_text(f"{draft}/{COMPLETE}", "")
    storage.make_durable(draft)


class LocalStorage:
    """Directories on this machine."""

    @property
    def renames_atomically(self) -> bool:
        """Return whether a directory appears under its new name whole or not at all."""
        return True

    def names_in(self, place: str) -> list[str]:
        """Return the names in a directory, sorted; none if it does not exist."""
        folder = Path(place)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def exists(self, place: str) -> bool:
        """Return whether a file or directory exists."""
        return Path(place).exists()

    def write_text(self, place: str, text: str) -> None:
        """Write a small file, and create its directories."""
        file = Path(place)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def read_text(self, place: str) -> str:
        """Read a small file. Raises FileNotFoundError."""
        return Path(place).read_text(encoding="utf-8")

    def rename(self, place: str, new: str) -> None:
        """Rename a directory and create those above it. Raises FileExistsError."""
        target = Path(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():  # rename would silently replace an empty directory
            raise FileExistsError(f"{new}: already exists")
        Path(place).rename(target)
        for above in (target.parent, target.parent.parent):
            _sync(above)

    def delete(self, place: str) -> None:
        """Delete a directory and everything in it; do nothing if it does not exist."""
        if Path(place).exists():
            shutil.rmtree(place)

    def make_durable(self, place: str) -> None:
        """Return once every file and directory below a place is on disk."""
        for folder, _, files in os.walk(place, topdown=False):
            for name in files:
                _sync(Path(folder) / name)
            _sync(Path(folder))

    def address(self, place: str) -> str:
        """Return a place in the form that Spark takes, with the scheme."""
        return f"file://{Path(place).resolve()}"  # not as_uri: Spark does not accept %3D for =


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
