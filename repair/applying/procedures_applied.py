"""The record of a plan that is applied: its state, and every event with its time.

States, and what leads from one to the next:

    pending ──► running ⇄ waiting ──► done
                   │         │
                   └────┬────┘
                     stopped    by request, or at the first difference from the simulation
                     failed     a script ended with an error, or a server was lost

`interrupted` is not stored: it is a state before the end whose process is gone. From `stopped`,
`failed` and `interrupted` a procedure may be resumed: it begins again with the first script that is
not recorded as done, with its checks directly before it. A script that was interrupted changes
nothing a second time, unless its rows were written again since: its check stops then.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from topology.catalogue.findings import Verdict


class ProcedureState(Enum):
    """The state of a procedure."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"
    INTERRUPTED = "interrupted"

    @property
    def is_going_on(self) -> bool:
        """Return whether a process should be at work on it."""
        return self in (ProcedureState.PENDING, ProcedureState.RUNNING, ProcedureState.WAITING)


class EventKind(Enum):
    """The kinds of events of a procedure."""

    BEGUN = "begun"  # a process began or resumed it
    SCRIPT = "script"  # a script begins
    SENT = "sent"  # one statement is sent now
    ANSWERED = "answered"  # a script ran to its end; the text is what it printed
    COMPARED = "compared"  # the servers are as simulated
    WAITING = "waiting"
    DIFFERS = "differs"  # from the simulated state
    ERROR = "error"
    STOPPED = "stopped"
    AUDITED = "audited"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class AppliedProcedure:
    """A plan that is or was applied."""

    id: str
    plan_id: str
    cluster: str
    directory: str
    servers: tuple[str, ...]  # the words that name the servers on the command line
    operator: str  # who started it, as the operating system says
    started_at: datetime
    ended_at: datetime | None
    state: ProcedureState
    scripts_total: int
    scripts_done: int
    message: str
    verdict: Verdict | None  # of the audit afterwards, on what the plan did not announce
    is_stop_requested: bool


@dataclass(frozen=True, slots=True)
class ProcedureEvent:
    """One line of the journal."""

    number: int
    at: datetime
    kind: EventKind
    script: int | None
    server: str | None
    text: str
