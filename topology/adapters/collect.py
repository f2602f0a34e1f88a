"""Reads all servers of a cluster twice, with a barrier between: the two-phase snapshot.

1. Servers are read in parallel, each by a thread of its own; a server that does not answer costs
   its time limit once, and nobody waits for it longer.
2. No second reading begins before every first reading has ended: a thread that overran its limit
   counts as ended, as unread.
3. A reading that raises costs its own server: it is unread, with the exception as the reason.
4. If a severe difference is left, the second reading is taken again until two show the same, or the
   looks run out: what time can explain goes away, and what remains is reported.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from topology.adapters.mysql import MysqlReader
from topology.facts import gather_facts, grave_differences
from topology.log_questions import questions_of
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason
from topology.target import ServerTarget

# A reader reports what servers do. What it raises is a defect, or an answer nobody expected.
DEFECT_OR_PROTOCOL = "defect of the auditor, or an answer that is not MySQL's"


@dataclass(frozen=True, slots=True)
class CollectLimits:
    """How long and how often. A hung server costs `server_seconds_max` and becomes unread."""

    server_seconds_max: float = 5.0  # for one reading of one server, connecting included
    looks_max: int = 5  # second readings, in all
    pause_seconds: float = 0.15  # between second readings

    def __post_init__(self) -> None:
        if self.server_seconds_max <= 0 or self.looks_max < 1 or self.pause_seconds < 0:
            raise ValueError(f"limits out of range: {self}")


class Reader(Protocol):
    """A reader of one server: the live adapter, or its twin in memory."""

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading; what fails is named in it."""

    def close(self) -> None:
        """Let go of the server."""


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
) -> ClusterSnapshot:
    """Take the two-phase snapshot of one cluster. What cannot be read is in it, by name.

    Args:
        cluster: its name in every report.
        targets: its servers; their names must differ.
        limits: time and repetition.
        policy: decides only whether a difference deserves another look.
        progress: called with a few words about what is going on.
        open_reader: makes the reader of a target; the live one unless given.
        asks_logs: whether the binary logs of the targets are asked what the readings leave open;
            None: unless a reader is given.
    """
    limits = limits or CollectLimits()
    say = progress or (lambda _text: None)
    opener = open_reader or live_readers(cluster, limits)
    ordered = sorted(targets, key=lambda target: target.name)
    posts = [_Post(cluster, target, opener(target), limits) for target in ordered]
    try:
        say(f"{cluster}: first reading of {len(posts)} servers")
        first = _read_all(posts, phase=1)
        before: tuple[object, ...] = ()
        for look in range(limits.looks_max):
            say(f"{cluster}: reading again" + (f" ({look + 1})" if look else ""))
            snapshot = ClusterSnapshot(cluster, first, _read_all(posts, phase=2))
            grave = grave_differences(gather_facts(snapshot, policy or Policy()))
            if grave == before:
                break  # nothing severe, or the same as in the reading before
            before = grave
            if look + 1 < limits.looks_max:
                time.sleep(limits.pause_seconds)
    finally:
        for post in posts:
            post.close()
    asks_logs = open_reader is None if asks_logs is None else asks_logs
    questions = questions_of(gather_facts(snapshot, policy or Policy())) if asks_logs else {}
    if questions:
        # What it takes to read binary logs is imported only where there is something to ask.
        from topology.adapters.log_answers import with_history_evidence

        say(f"{cluster}: reading binary logs of {', '.join(questions)}")
        by_name = {target.name: target for target in targets}
        seconds_max = limits.server_seconds_max
        return with_history_evidence(snapshot, by_name, questions, seconds_max=seconds_max)
    return snapshot


def live_readers(cluster: str, limits: CollectLimits) -> OpenReader:
    """Read the servers of a cluster over the network."""
    return lambda target: MysqlReader(
        target, cluster=cluster, timeout_seconds_max=limits.server_seconds_max
    )


def _read_all(posts: Sequence["_Post"], *, phase: int) -> tuple[ServerSnapshot, ...]:
    begun = time.monotonic()
    for post in posts:
        post.ask(phase=phase)
    return tuple(post.answer(begun=begun) for post in posts)


class _Post:
    """One server's thread: asked for a reading, it answers within its limit or is given up.

    The thread is a daemon: one that hangs in a socket must not keep the process alive.
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
            # A little grace: the reader's own time limit gives the better words.
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
                if not answer.is_judgeable and answer.phase == 1 and _is_lost(answer):
                    self._given_up = answer.unread[0]  # a dead server is not waited for twice
                return answer
        return self._unread(self._given_up)

    def _failed(self, error: BaseException) -> UnreadFact:
        """Return the fact for a reading that raised. Raises what is no Exception: an interrupt."""
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
            except BaseException as error:  # noqa: BLE001 - handed to the asker, who raises it
                self._answers.put(error)
        self._reader.close()


def _is_lost(reading: ServerSnapshot) -> bool:
    return any(fact.fact == "connection" for fact in reading.unread)
