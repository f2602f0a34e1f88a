"""What audits of the service keep for the next ones, shared by the threads that audit.

How it works
------------
Each audit reads what earlier ones remembered, and writes it back with its own changes
(compared_restarts.py). In the service many audits do so at the same time, each about one cluster.
What an audit writes is compared with what it read: only the differences are taken over. So an
audit that began earlier and ends later does not take back what another has remembered meanwhile:

    cluster a reads   looks {1: noon}
    cluster b reads   looks {1: noon}
    cluster b writes  looks {1: noon, 2: 12:01}   added: 2
    cluster a writes  looks {1: 12:01}            changed: 1      all: {1: 12:01, 2: 12:01}

A fleet may have 20,000 servers, and each audit would copy all their looks. So an audit is given the
looks of the servers that its cluster has had in this process; before its first one, those of all.
A server that moves to another cluster is without one there. Its last day is compared then, and what
is older was compared where it was before. What else is remembered is little: all of it is given.

With a file, all is loaded from it at the start, and changes are stored. A look alone is stored only
if the stored one is older than `LOOKS_STORED_SECONDS`: after a restart of the service, the time
between is compared once more. The rest is stored at once.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar
from uuid import UUID

from topology.questions.contents_to_compare import Remembered

LOOKS_STORED_SECONDS: Final = 600.0

Key = TypeVar("Key")
Value = TypeVar("Value")
Changes = Mapping[Key, Value | None]  # None: it is not remembered any more


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is not remembered any more, by its keys in `Remembered`."""

    suspects: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    reported: tuple[UUID, ...] = ()


class MemoryStore(Protocol):
    """Where the memory outlives the process. Both methods raise UsageProblem."""

    def load(self) -> Remembered:
        """Return what is stored."""

    def store(self, now: Remembered, *, gone: Forgotten) -> None:
        """Store entries beside the others, and remove those that are gone."""


class ServedMemory:
    """The memory of all clusters."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = store
        self._lock = threading.Lock()
        known = Remembered() if store is None else store.load()
        self._looks = dict(known.looks)
        self._suspects = dict(known.suspects)
        self._differences = dict(known.differences)
        self._reported = dict(known.reported)
        self._stored_looks = dict(known.looks)
        self._servers: dict[str, frozenset[UUID]] = {}

    def of_cluster(self, cluster: str) -> "_MemoryOfCluster":
        """Return the memory for one audit of a cluster."""
        return _MemoryOfCluster(self, cluster)

    def read(self, cluster: str) -> Remembered:
        """Return what an audit of a cluster must know."""
        with self._lock:
            servers = self._servers.get(cluster)
            looks = (
                dict(self._looks)
                if servers is None
                else {each: self._looks[each] for each in servers if each in self._looks}
            )
            reported = dict(self._reported)
            return Remembered(looks, dict(self._suspects), dict(self._differences), reported)

    def take_over(self, cluster: str, before: Remembered, after: Remembered) -> None:
        """Take over what an audit has changed. Raises UsageProblem."""
        looks = _changes(before.looks, after.looks)
        suspects = _changes(before.suspects, after.suspects)
        differences = _changes(before.differences, after.differences)
        reported = _changes(before.reported, after.reported)
        with self._lock:
            if looks:
                # An audit writes a look at each server that it read.
                self._servers[cluster] = self._servers.get(cluster, frozenset()) | looks.keys()
            _apply(looks, self._looks)
            _apply(suspects, self._suspects)
            _apply(differences, self._differences)
            _apply(reported, self._reported)
            if self._store is None:
                return
            due = {each: at for each, at in looks.items() if at and self._is_due(each, at)}
            self._stored_looks.update(due)
        if due or suspects or differences or reported:
            self._store.store(
                Remembered(due, _kept(suspects), _kept(differences), _kept(reported)),
                gone=Forgotten(_gone(suspects), _gone(differences), _gone(reported)),
            )

    def _is_due(self, server: UUID, at: datetime) -> bool:
        stored = self._stored_looks.get(server)
        return stored is None or at - stored >= timedelta(seconds=LOOKS_STORED_SECONDS)


class _MemoryOfCluster:
    """See compared_restarts.Memory."""

    def __init__(self, shared: ServedMemory, cluster: str) -> None:
        self._shared = shared
        self._cluster = cluster
        self._before = Remembered()

    def read(self) -> Remembered:
        self._before = self._shared.read(self._cluster)
        return self._before

    def write(self, remembered: Remembered) -> None:
        self._shared.take_over(self._cluster, self._before, remembered)


def _changes(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> dict[Key, Value | None]:
    found: dict[Key, Value | None] = {
        key: value for key, value in after.items() if key not in before or before[key] != value
    }
    return found | dict.fromkeys(before.keys() - after.keys())


def _apply(changes: Mapping[Key, Value | None], to: dict[Key, Value]) -> None:
    for key, value in changes.items():
        if value is None:
            to.pop(key, None)
        else:
            to[key] = value


def _gone(changes: Mapping[Key, Value | None]) -> tuple[Key, ...]:
    return tuple(key for key, value in changes.items() if value is None)


def _kept(changes: Mapping[Key, Value | None]) -> dict[Key, Value]:
    return {key: value for key, value in changes.items() if value is not None}
