"""Reads a server that exists in memory: the twin of the live reader, for tests and benchmarks.

1. It keeps the same contract as `MysqlReader` and is held to it by the same tests: names and phase
   are the reader's, times are taken around the reading, a lost connection empties the reading and
   is named in it, closing is safe at any time.
2. What it answers is prepared, phase by phase; the last answer of a phase is repeated.
3. It can be slow, hang until it is let go, lose its connection, or fail as code with a bug fails.
   It evaluates nothing.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from topology.snapshot import ServerSnapshot, UnreadFact
from topology.target import ServerTarget


@dataclass(frozen=True, slots=True)
class Prepared:
    """One answer: the facts of a reading, the reason why there are none, or a bug to raise."""

    answer: ServerSnapshot | UnreadFact | Exception
    after_seconds: float = 0.0  # a slow server
    held_by: threading.Event | None = None  # a hung one: until the event is set

    def __post_init__(self) -> None:
        if self.after_seconds < 0:
            raise ValueError(f"an answer cannot take {self.after_seconds} seconds")


@dataclass(slots=True)
class MemoryReader:
    """Answers what was prepared for each phase, in order.

    Of a prepared snapshot only the facts count: cluster, name, address, phase and times become
    those of this reading, as they do with a live server.

    Raises:
        ValueError: nothing is prepared for a phase that is read.
    """

    target: ServerTarget
    cluster: str
    prepared: Mapping[int, Sequence[Prepared]]
    is_open: bool = field(init=False, default=False)  # a lost connection is opened by the next read
    _looks: dict[int, int] = field(init=False, default_factory=dict)

    def read(self, *, phase: int) -> ServerSnapshot:
        """Take one reading. Raises only what was prepared to be raised."""
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
        """Let go of the server. Safe to call twice."""
        self.is_open = False

    def _next(self, phase: int) -> Prepared:
        answers = self.prepared.get(phase, ())
        if not answers:
            raise ValueError(f"{self.target.name}: nothing is prepared for phase {phase}")
        look = self._looks.get(phase, 0)
        self._looks[phase] = look + 1
        return answers[min(look, len(answers) - 1)]
