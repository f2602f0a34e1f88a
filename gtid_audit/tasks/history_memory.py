"""The memory of audits in a history file, beside the findings: `audit`, `pair` and `serve`.

How it works
------------
1. An audit with `--history FILE` remembers there what one with `--out` remembers in its directory
   (compared_restarts.py): looks, suspects, known differences, what was reported.
2. Looks and suspects belong to a scope, as the findings of the file do: the clusters of the fleet
   file, or exactly these servers of a command line. `pair A B` looks behind the restarts of A, and
   `pair A C` has yet to. All audits with the file share what was proved of two server_uuids, or
   reported as lost by one, whatever command line or names they have.
3. `serve` and a nightly audit may have one file. Changes are merged with what the file has by then
   (merged_memory.py), in one transaction.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.compared_restarts import (
    MALFORMED,
    difference_from_plain,
    difference_to_plain,
)
from gtid_audit.tasks.merged_memory import MemoryChanges, changes_of
from topology.adapters.history_file import HistoryFile, UnusableHistory
from topology.adapters.remembered_entries import (
    ChangedEntries,
    RememberedEntry,
    change_entries,
    read_entries,
)
from topology.documents.records import time_from_text, time_to_text
from topology.questions.contents_to_compare import Remembered

_LOOK: Final = "look"
_SUSPECTS: Final = "suspects"
_DIFFERENCES: Final = "differences"
_REPORTED: Final = "reported"
_OF_SCOPE: Final = frozenset({_LOOK, _SUSPECTS})
OF_THE_FLEET: Final = ""

Key = TypeVar("Key")
Value = TypeVar("Value")


class MemoryStore(Protocol):
    """What several audits remember, at the same time too. Both methods raise UsageProblem."""

    def load(self, *, looks: bool = True) -> Remembered:
        """Return what is stored; without `looks`, all but these."""

    def merge(self, before: Remembered, after: Remembered) -> None:
        """Apply what one audit has changed, from `before` to `after`, to what is stored."""


@dataclass(slots=True)
class MemoryOfAudit:
    """The memory for one audit at a time: see compared_restarts.Memory."""

    store: MemoryStore
    _before: Remembered = field(default_factory=Remembered, init=False)

    def read(self) -> Remembered:
        """See Memory."""
        self._before = self.store.load()
        return self._before

    def write(self, remembered: Remembered) -> None:
        """See Memory."""
        self.store.merge(self._before, remembered)


@dataclass(frozen=True, slots=True)
class HistoryMemory:
    """The memory of one scope in a history file: see MemoryStore."""

    file: HistoryFile
    scope: str = OF_THE_FLEET
    # Threads of one process wait here: SQLite would let them try again and again.
    writing: threading.Lock = field(default_factory=threading.Lock)

    def load(self, *, looks: bool = True) -> Remembered:
        """See MemoryStore."""
        kinds = (_SUSPECTS, _DIFFERENCES, _REPORTED, *((_LOOK,) if looks else ()))
        try:
            entries = read_entries(self.file, map(self._name, kinds))
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem
        return self._remembered(entries)

    def merge(self, before: Remembered, after: Remembered) -> None:
        """See MemoryStore."""

        def changed(entries: Iterable[RememberedEntry]) -> ChangedEntries:
            return self._changed(changes_of(before, after, self._remembered(entries)))

        names = [
            (self._name(kind), str(key))
            for kind, was, now in (
                (_LOOK, before.looks, after.looks),
                (_SUSPECTS, before.suspects, after.suspects),
                (_DIFFERENCES, before.differences, after.differences),
                (_REPORTED, before.reported, after.reported),
            )
            for key in _changed_keys(was, now)
        ]
        if not names:
            return
        try:
            with self.writing:
                change_entries(self.file, names, changed)
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem

    def _name(self, kind: str) -> str:
        return f"{kind} of {self.scope}" if self.scope and kind in _OF_SCOPE else kind

    def _remembered(self, entries: Iterable[RememberedEntry]) -> Remembered:
        found: dict[str, dict[str, str]] = {}
        for each in entries:
            found.setdefault(each.kind, {})[each.key] = each.value

        def of(kind: str) -> Mapping[str, str]:
            return found.get(self._name(kind), {})

        try:
            return Remembered(
                {UUID(key): time_from_text(text) for key, text in of(_LOOK).items()},
                {key: GtidSet.parse(text) for key, text in of(_SUSPECTS).items()},
                {
                    key: tuple(map(difference_from_plain, json.loads(text)))
                    for key, text in of(_DIFFERENCES).items()
                },
                {UUID(key): GtidSet.parse(text) for key, text in of(_REPORTED).items()},
            )
        except MALFORMED as error:
            raise UsageProblem(
                f"{self.file.path}: not a record of earlier audits: {error!r}"
            ) from error

    def _changed(self, changes: MemoryChanges) -> ChangedEntries:
        texts: dict[str, Mapping[str, str | None]] = {
            _LOOK: _texts(changes.looks, time_to_text),
            _SUSPECTS: _texts(changes.suspects, str),
            _DIFFERENCES: _texts(
                changes.differences,
                lambda found: json.dumps([difference_to_plain(one) for one in found]),
            ),
            _REPORTED: _texts(changes.reported, str),
        }
        named = [
            (self._name(kind), key, value)
            for kind, values in texts.items()
            for key, value in values.items()
        ]
        return ChangedEntries(
            tuple(
                RememberedEntry(kind, key, text) for kind, key, text in named if text is not None
            ),
            tuple((kind, key) for kind, key, text in named if text is None),
        )


def _changed_keys(was: Mapping[Any, object], now: Mapping[Any, object]) -> Iterator[Any]:
    return (key for key in {**was, **now} if was.get(key) != now.get(key))


def _texts(
    values: Mapping[Key, Value | None], text_of: Callable[[Value], str]
) -> dict[str, str | None]:
    """Return values as text, by the text of their keys; None stays None."""
    return {str(key): None if each is None else text_of(each) for key, each in values.items()}
