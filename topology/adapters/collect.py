"""Reads all servers of a cluster twice, with a barrier between: the two-phase snapshot.

1. Each server has its own thread, so servers are read in parallel. A server that does not answer
   costs its time limit once.
2. No second reading begins before every first reading has ended. A thread that exceeded its limit
   counts as ended, and its server as unread.
3. A reading that raises an exception affects only its server, which is unread for that reason.
4. If a severe difference remains, the second reading is repeated until two in a row show the same,
   or until `looks_max` is reached. So differences that come from timing disappear.

How it works
------------
Servers cannot be read at one instant, and they commit while they are read. With one reading per
server, a difference of two sets may be a fault, or may only show which server was read first:

    t=1  read source   A:1-100
    t=2  the source commits A:101-105, and the replica applies them
    t=3  read replica  A:1-105      one reading: the replica seems to have A:101-105 extra

Locking the servers would avoid this, but gtid-audit only reads. Comparing the two sets twice does
not help either: on a busy cluster the second comparison shows a new difference of the same kind.
Instead the barrier makes the order of the readings known, and cluster_facts.py chooses the pair of
readings that can only make a difference smaller:

    first(s) for every server s  |  barrier  |  last(s) for every server s

    extra on replica r    = first(r) - last(s)    s had the whole time from first(r) to catch up
    missing on replica r  = first(s) - last(r)    r had the whole time from first(s) to catch up

In the example, first(r) = A:1-105 and last(s) ⊇ A:1-105, because s was read again after t=3.

Invariants:

* Every first reading ends before any last reading begins. `_read_all` returns only after each
  server has answered or is given up. A late answer to phase 1 is discarded, not used in phase 2.
* gtid_executed of one server only grows between its readings. A server for which it shrank was
  reset or restarted; torn_readings.py excludes it (U2).
* Within one reading, the order of the statements matters as well: see adapters/mysql.py.
* The first readings are never repeated, so a repetition can only remove differences that are due to
  timing. Repeating both readings would start the comparison again each time.

Repetition is only for severe differences (facts.severe_differences). A backlog is reported as it
is. `looks_max` bounds the time: a difference that changes in every look is reported as last read.

The sets of consumers are read before the first phase and after the second one (consumers.py).
Binary logs are read after both phases, and only if the sets leave a question (log_questions.py).
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from gtid import GtidSet
from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.mysql import MysqlReader
from topology.facts.cluster_facts import gather_facts, severe_differences
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.snapshot import (
    ClusterSnapshot,
    ReadServer,
    ServerSnapshot,
    UnreadFact,
    UnreadReason,
    as_read,
)
from topology.readings.target import ServerTarget

# A reader reports what servers do. An exception from it is a defect or an unexpected answer.
DEFECT_OR_PROTOCOL = "defect of the auditor, or an answer that is not MySQL's"


@dataclass(frozen=True, slots=True)
class CollectLimits:
    """Time limits and repetition. A hung server costs `server_seconds_max` and becomes unread."""

    server_seconds_max: float = 5.0  # for one reading of one server, including the connect
    looks_max: int = 5  # the maximum number of second readings
    pause_seconds: float = 0.15  # between second readings

    def __post_init__(self) -> None:
        if self.server_seconds_max <= 0 or self.looks_max < 1 or self.pause_seconds < 0:
            raise ValueError(f"limits out of range: {self}")


class Reader(Protocol):
    """A reader of one server: the live adapter, or the one in memory."""

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading; `unread` of the snapshot lists what failed."""

    def close(self) -> None:
        """Release the connection to the server."""


OpenReader = Callable[[ServerTarget], Reader]


def collect_cluster(
    cluster: str,
    targets: Sequence[ServerTarget],
    *,
    limits: CollectLimits | None = None,
    policy: Policy | None = None,
    progress: Callable[[str], None] | None = None,
    open_reader: OpenReader | None = None,
    asks_logs: bool | None = None,
    offered: GtidSet | None = None,
    pairs: bool = False,
    consumers: Sequence[ConsumerSource] = (),
) -> ClusterSnapshot:
    """Take the two-phase snapshot of one cluster; it lists what could not be read.

    Args:
        cluster: its name in every report.
        targets: its servers; their names must differ.
        limits: time limits and repetition.
        policy: decides only whether a difference deserves another reading.
        progress: called with a short text about the current step.
        open_reader: makes the reader of a target; the live reader by default.
        asks_logs: whether to read the targets' binary logs for open questions; by default only
            if no `open_reader` is given.
        offered: a set that may be offered to each server: until when it can send the rest.
        pairs: whether any server may be the source of any other one: if a log of it is missing,
            whether it has what it would send.
        consumers: whose sets are read before the servers, and after them.
    """
    limits = limits or CollectLimits()
    say = progress or (lambda _text: None)
    policy = policy or Policy()
    opener = open_reader or live_readers(cluster, limits)
    sets = _Consumers(consumers, targets, limits)
    ordered = sorted(targets, key=lambda target: target.name)
    posts = [_Post(cluster, target, opener(target), limits) for target in ordered]
    try:
        say(f"{cluster}: first reading of {len(posts)} servers")
        first = _read_all(posts, phase=1)
        before: tuple[object, ...] = ()
        for look in range(limits.looks_max):
            say(f"{cluster}: reading again" + (f" ({look + 1})" if look else ""))
            snapshot = ClusterSnapshot(cluster, first, _read_all(posts, phase=2))
            facts = gather_facts(snapshot, policy)
            severe = severe_differences(facts)
            if severe == before:
                break  # nothing severe, or the same as in the previous reading
            before = severe
            if look + 1 < limits.looks_max:
                time.sleep(limits.pause_seconds)
    finally:
        for post in posts:
            post.close()
    if consumers:
        snapshot = sets.added_to(snapshot)
        facts = gather_facts(snapshot, policy)
    asks_logs = open_reader is None if asks_logs is None else asks_logs
    questions = questions_of(facts, offered, pairs=pairs) if asks_logs else {}
    if questions:
        # The modules that read binary logs are imported only if there is a question for them.
        from topology.adapters.log_answers import with_history_evidence

        say(f"{cluster}: reading binary logs of {', '.join(questions)}")
        by_name = {target.name: target for target in targets}
        seconds_max = limits.server_seconds_max
        return with_history_evidence(snapshot, by_name, questions, seconds_max=seconds_max)
    return snapshot


def live_readers(cluster: str, limits: CollectLimits) -> OpenReader:
    """Return a function that opens live readers, over the network."""
    return lambda target: MysqlReader(
        target, cluster=cluster, timeout_seconds_max=limits.server_seconds_max
    )


def _read_all(posts: Sequence["_Post"], *, phase: int) -> tuple[ServerSnapshot, ...]:
    begun = time.monotonic()
    for post in posts:
        post.ask(phase=phase)
    return tuple(post.answer(begun=begun) for post in posts)


class _Consumers:
    """The sets of a cluster's consumers: read first when this is made, and last at the end."""

    def __init__(
        self,
        sources: Sequence[ConsumerSource],
        targets: Sequence[ServerTarget],
        limits: CollectLimits,
    ) -> None:
        self._sources = sources
        self._seconds_max = limits.server_seconds_max
        self._secrets = [target.password for target in targets]
        if sources:
            from topology.adapters.consumer_reads import read_first

            self._first = read_first(sources, seconds_max=self._seconds_max, secrets=self._secrets)

    def added_to(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        """Return the snapshot with both readings of each consumer."""
        if not self._sources:
            return snapshot
        from topology.adapters.consumer_reads import read_last

        read = read_last(
            self._sources, self._first, seconds_max=self._seconds_max, secrets=self._secrets
        )
        return replace(snapshot, consumers=read)


class _Post:
    """One server's thread: it answers a request within its limit, or it is given up.

    The thread is a daemon: a thread that hangs in a socket must not keep the process alive.
    """

    def __init__(
        self, cluster: str, target: ServerTarget, reader: Reader, limits: CollectLimits
    ) -> None:
        self._cluster = cluster
        self._target = target
        self._reader = reader
        self._limits = limits
        self._questions: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[ServerSnapshot | BaseException] = queue.SimpleQueue()
        self._given_up: UnreadFact | None = None
        self._asked_at = datetime.now(UTC)
        self._phase = 1
        name = f"reader of {target.name}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def ask(self, *, phase: int) -> None:
        self._phase = phase
        self._asked_at = datetime.now(UTC)
        if self._given_up is None:
            self._questions.put(phase)

    def answer(self, *, begun: float) -> ServerSnapshot:
        if self._given_up is None:
            # Allow some extra time: the reader's own time limit gives the better message.
            left = begun + self._limits.server_seconds_max + 0.5 - time.monotonic()
            try:
                answer = self._answers.get(timeout=max(left, 0.0))
            except queue.Empty:
                seconds = f"{self._limits.server_seconds_max:g} seconds"
                self._given_up = UnreadFact(
                    "connection", UnreadReason.TIMEOUT, f"no complete answer within {seconds}"
                )
            else:
                if isinstance(answer, BaseException):
                    return self._unread(self._failed(answer))
                is_read = isinstance(as_read(answer), ReadServer)
                if not is_read and answer.phase == 1 and _is_lost(answer):
                    self._given_up = answer.unread[0]  # a dead server is not waited for twice
                return answer
        return self._unread(self._given_up)

    def _failed(self, error: BaseException) -> UnreadFact:
        """Return the fact for a reading that raised. Re-raise an interrupt."""
        if not isinstance(error, Exception):
            raise error
        text = self._target.password.hidden_in(f"{type(error).__name__}: {error}")
        return UnreadFact("reading", UnreadReason.ERROR, f"{DEFECT_OR_PROTOCOL}: {text}")

    def _unread(self, fact: UnreadFact) -> ServerSnapshot:
        return ServerSnapshot(
            cluster=self._cluster,
            name=self._target.name,
            host=self._target.host,
            port=self._target.port,
            phase=self._phase,
            read_started=self._asked_at,
            read_ended=datetime.now(UTC),
            unread=(fact,),
        )

    def close(self) -> None:
        self._questions.put(None)

    def _work(self) -> None:
        while (phase := self._questions.get()) is not None:
            try:
                self._answers.put(self._reader.read(phase=phase))
            except BaseException as error:  # noqa: BLE001 - passed to the caller, which raises it
                self._answers.put(error)
        self._reader.close()


def _is_lost(reading: ServerSnapshot) -> bool:
    return any(fact.fact == "connection" for fact in reading.unread)
