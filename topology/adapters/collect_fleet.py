"""Reads the clusters of a fleet, several at a time, within a number of connections.

1. A cluster of n servers takes n of the connections while it is read. A cluster with more servers
   than there are connections takes them all. Requests are served in order.
2. A hung server holds its own cluster's connections for its time limit, and nothing else.
3. If a defect of gtid-audit makes the reading of a cluster fail, only that cluster is affected. It
   becomes a snapshot in which every server is unread, with the reason. So it is stored and
   evaluated like any other, as UNKNOWN.
4. The threads are daemons: an interrupt ends the process at once, without waiting for servers.
5. If the caller stops iterating, no further cluster is begun.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from topology.adapters.collect import CollectLimits, OpenReader, collect_cluster, live_readers
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason

Say = Callable[[str], None]
ReadersOf = Callable[[str, CollectLimits], OpenReader]  # by cluster name


class Permits:
    """A fixed number of connections, granted in the order of the requests.

    Each request waits for a lock of its own. With one condition for all of them, every grant and
    every return would wake up each waiting thread, which is an eighth of a large fleet's time.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._changing = threading.Lock()
        self._line: deque[tuple[int, threading.Lock]] = deque()  # how many, and what is released

    def take(self, wanted: int) -> int:
        """Wait for connections and return how many were taken: at most all there are."""
        taken = min(wanted, self._count)
        granted = threading.Lock()
        granted.acquire()
        with self._changing:
            self._line.append((taken, granted))
            self._grant()
        granted.acquire()
        return taken

    def give_back(self, taken: int) -> None:
        """Release connections for other clusters."""
        with self._changing:
            self._free += taken
            assert self._free <= self._count, "no caller releases more connections than it took"
            self._grant()

    def _grant(self) -> None:
        """Grant requests from the front of the line; a large one is not overtaken by small ones."""
        while self._line and self._line[0][0] <= self._free:
            taken, granted = self._line.popleft()
            self._free -= taken
            granted.release()


def collect_fleet(
    fleet: Fleet,
    *,
    say: Say | None = None,
    readers_of: ReadersOf = live_readers,
    asks_logs: bool | None = None,
) -> Iterator[ClusterSnapshot]:
    """Read every cluster of a fleet; yield one snapshot for each as it completes, in any order.

    `readers_of` makes the readers of a cluster's servers; over the network by default. `asks_logs`
    selects whether their binary logs are read as well; by default, only if no readers are given.
    """
    if asks_logs is None:
        asks_logs = readers_of is live_readers
    permits = Permits(fleet.connections_max)
    waiting: queue.SimpleQueue[Cluster] = queue.SimpleQueue()
    finished: queue.SimpleQueue[ClusterSnapshot] = queue.SimpleQueue()
    is_wanted = threading.Event()
    is_wanted.set()
    for cluster in fleet.clusters:
        waiting.put(cluster)

    def work() -> None:
        while True:
            try:
                cluster = waiting.get_nowait()
            except queue.Empty:
                return
            taken = permits.take(len(cluster.targets))
            try:
                if not is_wanted.is_set():
                    return
                finished.put(_collect(cluster, fleet, readers_of, asks_logs=asks_logs))
            finally:
                permits.give_back(taken)

    for number in range(min(len(fleet.clusters), fleet.connections_max)):
        threading.Thread(target=work, name=f"collector {number}", daemon=True).start()
    try:
        for count in range(1, len(fleet.clusters) + 1):
            collected = finished.get()
            if say is not None:
                say(f"read {count} of {len(fleet.clusters)} clusters: {collected.cluster}")
            yield collected
    finally:
        is_wanted.clear()


def unread_by_defect(cluster: Cluster, defect: BaseException, *, at: datetime) -> ClusterSnapshot:
    """Return a cluster of which nothing was read, because of a defect of gtid-audit.

    It has two readings of every server as usual, each with the reason why it is empty. So its
    evaluation is UNKNOWN, and the cluster is not mistaken for one that does not exist.
    """
    text = f"{type(defect).__name__}: {defect}"
    for target in cluster.targets:
        text = target.password.hidden_in(text)
    why = UnreadFact("reading", UnreadReason.ERROR, f"defect of the auditor: {text}")
    ordered = sorted(cluster.targets, key=lambda target: target.name)
    first, last = (
        tuple(
            ServerSnapshot(
                cluster.name, target.name, target.host, target.port, phase, at, at, unread=(why,)
            )
            for target in ordered
        )
        for phase in (1, 2)
    )
    return ClusterSnapshot(cluster.name, first, last)


def _collect(
    cluster: Cluster, fleet: Fleet, readers_of: ReadersOf, *, asks_logs: bool
) -> ClusterSnapshot:
    try:
        return collect_cluster(
            cluster.name,
            cluster.targets,
            limits=fleet.limits,
            policy=fleet.policy,
            open_reader=readers_of(cluster.name, fleet.limits),
            asks_logs=asks_logs,
            consumers=cluster.consumers,
        )
    except Exception as defect:  # noqa: BLE001 - it is reported for the cluster, not hidden
        return unread_by_defect(cluster, defect, at=datetime.now(UTC))
