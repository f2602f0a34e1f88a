"""Decides which cluster is audited next, within a number of connections. Pure: time is an argument.

How it works
------------
Every cluster has a time from which on its next audit is due. The first audit is due at once, the
second after a random part of the interval, and each later one an interval after the last one began,
give or take a tenth. So clusters that begin together do not stay together: the load on servers and
network is even, and two services that were started at once do not meet for ever.

An audit takes one connection for each server while it runs. Clusters that are due begin in the
order in which they became due, as long as connections are free. A cluster that finds too few waits,
and those behind it wait, too: otherwise a large cluster would never begin.

A hung server keeps its cluster's connections until the time limit of a reading. Many hung clusters
could take all connections, and each healthy cluster would wait for them. So a cluster whose last
audit took longer than that limit is *slow*, and all slow clusters together get at most half of the
connections. They wait for each other, and never keep a healthy cluster waiting for a free half:

    connections_max = 4, pairs:  h1 h2 h3 hang, a b c are healthy
    slow half   [h1 h1]             h2 and h3 wait here
    the rest    [a a] then [b b] …

Invariants:

1. The connections of running audits never exceed `connections_max`, and those of slow ones never
   exceed the slow half. A cluster with more servers than there are connections takes all of them.
2. A cluster is audited by one thread at a time: it is due again only after `ended`.
3. Removing a cluster while it is audited gives its connections back at its end.
"""

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

JITTER: Final = 0.1  # of the interval


@dataclass(slots=True)
class _Planned:
    """One cluster. `due_at` is None while its audit runs."""

    connections: int
    due_at: float | None
    is_slow: bool = False
    is_changed: bool = False  # while its audit ran: what it reads is not what the file says now
    audits: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """The permission to audit a cluster now. It is handed back with `ended`."""

    cluster: str
    begun_at: float
    connections: int
    slow_connections: int


class AuditSchedule:
    """When each cluster is due. One thread at a time may call it."""

    def __init__(
        self, *, interval_seconds: float, connections_max: int, dice: random.Random | None = None
    ) -> None:
        assert interval_seconds > 0, "checked where it was typed"
        assert connections_max > 0, "checked by the fleet file"
        self._interval_seconds = interval_seconds
        self._connections_max = connections_max
        self._dice = dice or random.Random()  # noqa: S311 - it spreads load
        self._clusters: dict[str, _Planned] = {}
        self._running: set[str] = set()
        self._free = connections_max
        self._slow_taken = 0
        # (due_at, name); an entry whose time is not that of its cluster is ignored.
        self._waiting: dict[bool, list[tuple[float, str]]] = {False: [], True: []}

    @property
    def _slow_max(self) -> int:
        return max(self._connections_max // 2, 1)

    def set_fleet(
        self,
        servers: Mapping[str, int],
        *,
        changed: frozenset[str],
        connections_max: int,
        now: float,
    ) -> None:
        """Take over the clusters of a fleet: name and number of servers.

        New and `changed` clusters are due at once, the others keep their time.
        """
        assert connections_max > 0, "checked by the fleet file"
        self._free += connections_max - self._connections_max  # may be negative for a time
        self._connections_max = connections_max
        before, self._clusters = self._clusters, {}
        self._waiting = {False: [], True: []}
        for name, count in servers.items():
            known = before.get(name)
            if known is None:
                due = None if name in self._running else now
                planned = _Planned(max(count, 1), due)
            else:
                planned = known
                planned.connections = max(count, 1)
                if name in changed:
                    planned.is_changed = planned.due_at is None
                    planned.due_at = None if planned.is_changed else now
            self._clusters[name] = planned
            if planned.due_at is not None:
                heapq.heappush(self._waiting[planned.is_slow], (planned.due_at, name))

    def take(self, now: float) -> Turn | None:
        """Begin the audit that is due, if there are connections for it; otherwise return None."""
        for is_slow in self._in_order(now):
            due_at, name = self._waiting[is_slow][0]
            planned = self._clusters[name]
            connections = min(planned.connections, self._connections_max)
            slow = min(connections, self._slow_max) if is_slow else 0
            if self._slow_taken + slow > self._slow_max:
                continue  # it waits for other slow clusters; the healthy ones need not
            if connections > self._free:
                return None
            assert due_at <= now, "only due clusters are in order"
            heapq.heappop(self._waiting[is_slow])
            planned.due_at = None
            self._running.add(name)
            self._free -= connections
            self._slow_taken += slow
            return Turn(name, now, connections, slow)
        return None

    def ended(self, turn: Turn, *, now: float, is_slow: bool) -> None:
        """Hand back a turn. `is_slow`: a server of the cluster did not answer in time."""
        self._running.remove(turn.cluster)
        self._free += turn.connections
        self._slow_taken -= turn.slow_connections
        planned = self._clusters.get(turn.cluster)
        if planned is None:
            return  # the cluster has left the fleet
        planned.audits += 1
        planned.is_slow = is_slow
        pause_seconds = 0.0 if planned.is_changed else self._pause_seconds(planned)
        planned.is_changed = False
        planned.due_at = max(now, turn.begun_at + pause_seconds)
        heapq.heappush(self._waiting[is_slow], (planned.due_at, turn.cluster))

    def seconds_until_due(self, now: float) -> float | None:
        """Return the time until another cluster is due; None if only `ended` can change anything.

        A cluster that is due and waits for connections does not count: it waits for an end.
        """
        heads = [self._waiting[each][0][0] for each in (False, True) if self._has_head(each)]
        return min((due_at - now for due_at in heads if due_at > now), default=None)

    def _pause_seconds(self, planned: _Planned) -> float:
        if planned.audits == 1:
            return self._interval_seconds * self._dice.random()
        return self._interval_seconds * self._dice.uniform(1 - JITTER, 1 + JITTER)

    def _in_order(self, now: float) -> list[bool]:
        """Return which of the two lists have a cluster that is due, the earliest first."""
        due = [each for each in (False, True) if self._has_head(each)]
        due = [each for each in due if self._waiting[each][0][0] <= now]
        return sorted(due, key=lambda each: self._waiting[each][0])

    def _has_head(self, is_slow: bool) -> bool:
        """Drop entries that no longer apply; return whether one is left."""
        waiting = self._waiting[is_slow]
        while waiting:
            due_at, name = waiting[0]
            planned = self._clusters.get(name)
            if planned is not None and planned.due_at == due_at and planned.is_slow is is_slow:
                return True
            heapq.heappop(waiting)
        return False
