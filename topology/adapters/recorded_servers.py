"""Reads a server that exists in memory: a replacement of the live reader for tests and benchmarks.

1. It has the same contract as `MysqlReader`, and the same tests check it. Names and phase are the
   reader's, and times are taken around the reading. A lost connection empties the reading and is
   listed in it. Closing is safe at any time.
2. Its answers are prepared for each phase; the last answer of a phase is repeated.
3. It can be slow, hang until it is released, lose its connection, or raise like code with a bug. It
   evaluates nothing.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from topology.readings.snapshot import ServerSnapshot, UnreadFact
from topology.readings.target import ServerTarget


@dataclass(frozen=True, slots=True)
class Prepared:
    """One answer: the facts of a reading, the reason why it has none, or an exception to raise."""

    answer: ServerSnapshot | UnreadFact | Exception
    after_seconds: float = 0.0  # a slow server
    held_by: threading.Event | None = None  # a hung server: until the event is set

    def __post_init__(self) -> None:
        if self.after_seconds < 0:
            raise ValueError(f"an answer cannot take {self.after_seconds} seconds")


@dataclass(slots=True)
class MemoryReader:
    """Returns the prepared answers for each phase, in order.

    Only the facts of a prepared snapshot are used. Cluster, name, address, phase and times are
    those of this reading, as with a live server.

    Raises:
        ValueError: no answer is prepared for a phase that is read.
    """

    target: ServerTarget
    cluster: str
    prepared: Mapping[int, Sequence[Prepared]]
    is_open: bool = field(init=False, default=False)  # the next read opens a lost connection
    _looks: dict[int, int] = field(init=False, default_factory=dict)

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading. Raise only the prepared exceptions."""
        started = datetime.now(UTC)
        self.is_open = True
        one = self._next(phase)
        if one.after_seconds:
            time.sleep(one.after_seconds)
        if one.held_by is not None:
            one.held_by.wait()
        if isinstance(one.answer, Exception):
            raise one.answer
        if isinstance(one.answer, ServerSnapshot):
            facts = one.answer
        else:
            facts = ServerSnapshot("", "", "", 0, phase, started, started, unread=(one.answer,))
            self.close()
        return replace(
            facts,
            cluster=self.cluster,
            name=self.target.name,
            host=self.target.host,
            port=self.target.port,
            phase=phase,
            read_started=started,
            read_ended=datetime.now(UTC),
        )

    def close(self) -> None:
        """Release the server. Safe to call twice."""
        self.is_open = False

    def _next(self, phase: int) -> Prepared:
        answers = self.prepared.get(phase, ())
        if not answers:
            raise ValueError(f"{self.target.name}: nothing is prepared for phase {phase}")
        look = self._looks.get(phase, 0)
        self._looks[phase] = look + 1
        return answers[min(look, len(answers) - 1)]
