"""What audits of the service keep for the next ones, shared by the threads that audit.

How it works
------------
Each audit reads what earlier ones remembered, and writes it back with its own changes
(compared_restarts.py). In the service many audits do so at the same time, each about one cluster:
what one of them has changed is applied to what the others have remembered meanwhile
(merged_memory.py).

A fleet may have 20,000 servers, and each audit would copy all their looks. So an audit is given the
looks of the servers that its cluster has had in this process; before its first one, those of all.
A server that moves to another cluster is without one there. Its last day is compared then, and what
is older was compared where it was before. What else is remembered is little: all of it is given.

With a file, looks are loaded from it at the start, and the rest before each audit: a nightly audit
with the same file may have added to it. A look alone is stored only if the stored one is older than
`LOOKS_STORED_SECONDS`: after a restart of the service, the time between is compared once more. The
rest is stored at once.
"""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from gtid_audit.tasks.history_memory import MemoryStore
from gtid_audit.tasks.merged_memory import apply_to, changes_of, merged
from topology.questions.contents_to_compare import Remembered

LOOKS_STORED_SECONDS: Final = 600.0


class MemoryOfProcess:
    """What audits remember until this process ends: see MemoryStore."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all = Remembered()

    def load(self, *, looks: bool = True) -> Remembered:
        """See MemoryStore."""
        with self._lock:
            return self._all if looks else replace(self._all, looks={})

    def merge(self, before: Remembered, after: Remembered) -> None:
        """See MemoryStore."""
        with self._lock:
            self._all = merged(before, after, self._all)


class ServedMemory:
    """The memory of all clusters."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = MemoryOfProcess() if store is None else store
        self._lock = threading.Lock()
        stored = self._store.load().looks
        self._looks = dict(stored)
        self._stored_looks = dict(stored)
        self._servers: dict[str, frozenset[UUID]] = {}

    def of_cluster(self, cluster: str) -> "_MemoryOfCluster":
        """Return the memory for one audit of a cluster."""
        return _MemoryOfCluster(self, cluster)

    def read(self, cluster: str) -> Remembered:
        """Return what an audit of a cluster must know. Raises UsageProblem."""
        rest = self._store.load(looks=False)
        with self._lock:
            servers = self._servers.get(cluster)
            looks = (
                dict(self._looks)
                if servers is None
                else {each: self._looks[each] for each in servers if each in self._looks}
            )
        return replace(rest, looks=looks)

    def take_over(self, cluster: str, before: Remembered, after: Remembered) -> None:
        """Take over what an audit has changed. Raises UsageProblem."""
        with self._lock:
            now = Remembered(self._looks)
            looks = changes_of(Remembered(before.looks), Remembered(after.looks), now).looks
            if looks:
                # An audit writes a look at each server that it read.
                known = self._servers.get(cluster, frozenset())
                self._servers[cluster] = known | looks.keys()
            apply_to(self._looks, looks)
            due = {each: at for each, at in looks.items() if at and self._is_due(each, at)}
            self._stored_looks.update(due)
        was, now = replace(before, looks={}), replace(after, looks=due)
        if was != now:
            self._store.merge(was, now)

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
