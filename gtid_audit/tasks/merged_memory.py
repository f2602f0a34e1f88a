"""Brings together what audits with one memory remember, of which none knows of the others.

Two audits may run at the same time: one of them waits for a server that does not answer, and ends
last. What it stores must not take back what the other one has remembered since:

    audit 1 reads    suspects {}
    audit 2 reads    suspects {}
    audit 2 stores   suspects {c: A:7}     added: A:7 of c
    audit 1 stores   suspects {}           no change              all: {c: A:7}

So what an audit changed is applied to what is stored by then, GTID by GTID, and difference by
difference. Of two looks at one server the later one counts. The memory of a directory applies it to
its file (compared_restarts.py), that of the service to what its process remembers
(served_memory.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from gtid import GtidSet
from topology.questions.contents_to_compare import KnownDifference, Remembered

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MemoryChanges:
    """The entries that one audit changes; None: it is not remembered any more."""

    looks: Mapping[UUID, datetime | None]
    suspects: Mapping[str, GtidSet | None]
    differences: Mapping[str, tuple[KnownDifference, ...] | None]
    reported: Mapping[UUID, GtidSet | None]


def changes_of(before: Remembered, after: Remembered, stored: Remembered) -> MemoryChanges:
    """Return the entries that one audit changes, as they are to be stored.

    Args:
        before: what the audit read.
        after: what it remembers now.
        stored: what is stored by now.
    """
    return MemoryChanges(
        _changed(before.looks, after.looks, stored.looks, _later),
        _changed(before.suspects, after.suspects, stored.suspects, _gtids),
        _changed(before.differences, after.differences, stored.differences, _differences),
        _changed(before.reported, after.reported, stored.reported, _gtids),
    )


def merged(before: Remembered, after: Remembered, stored: Remembered) -> Remembered:
    """Return all that is to be stored; the arguments are those of `changes_of`."""
    changes = changes_of(before, after, stored)
    looks, suspects = dict(stored.looks), dict(stored.suspects)
    differences, reported = dict(stored.differences), dict(stored.reported)
    apply_to(looks, changes.looks)
    apply_to(suspects, changes.suspects)
    apply_to(differences, changes.differences)
    apply_to(reported, changes.reported)
    return Remembered(looks, suspects, differences, reported)


def apply_to(entries: dict[Key, Value], changes: Mapping[Key, Value | None]) -> None:
    """Change entries."""
    for key, value in changes.items():
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value


def _changed(
    before: Mapping[Key, Value],
    after: Mapping[Key, Value],
    stored: Mapping[Key, Value],
    together: Callable[[Value | None, Value | None, Value | None], Value | None],
) -> dict[Key, Value | None]:
    found: dict[Key, Value | None] = {}
    for key in {**before, **after}:
        was, now = before.get(key), after.get(key)
        if was != now:
            found[key] = together(was, now, stored.get(key))
    return found


def _later(_was: datetime | None, now: datetime | None, there: datetime | None) -> datetime | None:
    return max((each for each in (now, there) if each is not None), default=None)


def _gtids(was: GtidSet | None, now: GtidSet | None, there: GtidSet | None) -> GtidSet | None:
    was, now, there = was or GtidSet(), now or GtidSet(), there or GtidSet()
    return ((there - (was - now)) | (now - was)) or None


def _differences(
    was: tuple[KnownDifference, ...] | None,
    now: tuple[KnownDifference, ...] | None,
    there: tuple[KnownDifference, ...] | None,
) -> tuple[KnownDifference, ...] | None:
    was, now = was or (), now or ()
    kept = [each for each in there or () if each not in was or each in now]
    kept += [each for each in now if each not in was and each not in kept]
    return tuple(kept) or None
