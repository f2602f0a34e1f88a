"""One step of a plan: a script for one server, and what the operator must know to run it.

1. A step is complete: the files, the output and the stored plan are made from it alone.
2. This module contains no SQL: guards are in guard.py.
"""

import re
from dataclasses import dataclass, field

from repair.model.actions import Action, MakeRowsAlike, UndoRows
from repair.scripts.procedure import Procedure
from repair.sql.guard import Guard

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Check:
    """A check of another server before a step: its script changes nothing."""

    server: str
    host: str
    port: int
    guards: tuple[Guard, ...]
    why: str
    unix_socket: str | None = None
    privileges: tuple[str, ...] = ()  # that the account needs on that server


@dataclass(frozen=True, slots=True)
class ExpectedChannel:
    """The expected state of a channel."""

    name: str
    source: str | None  # None: a server outside the snapshot
    auto_position: bool
    running: bool  # both threads, without UNTIL and without an error that stops them

    def __str__(self) -> str:
        return (
            f"{self.name!r} from {self.source or 'a server outside the snapshot'}, auto-position"
            f" {'on' if self.auto_position else 'off'},"
            f" {'running' if self.running else 'stopped'}"
        )


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """The expected state of a server when replication has come to rest, without new writes."""

    server: str
    gtid_executed: str
    gtid_purged: str
    channels: tuple[str, ...]  # as text
    replication: tuple[ExpectedChannel, ...]  # the same channels


@dataclass(frozen=True, slots=True)
class Step:
    """A script that changes a server, after the scripts of its checks.

    `number` counts all scripts of a plan, from 1, in the order in which they run.
    """

    number: int
    effect: Action = field(repr=False)  # the simulated action, which the procedure executes
    server: str
    host: str
    port: int
    procedure: Procedure  # the script, and its description
    why: str
    finding_ids: tuple[str, ...]
    # This step's server, then every other server that the step changes in the model.
    before: tuple[ExpectedState, ...] = ()
    after: tuple[ExpectedState, ...] = ()
    privileges: tuple[str, ...] = ()  # that the account needs on this server
    checks: tuple[Check, ...] = ()  # to run first, on other servers
    unix_socket: str | None = None  # how gtid-audit reached the server, if not by TCP

    def __post_init__(self) -> None:
        assert self.number > len(self.checks), "scripts are counted from 1, checks first"
        assert self.finding_ids, "a step answers a finding"
        assert self.procedure.verifications, "a step checks whether it has reached its goal"

    @property
    def action(self) -> str:
        """Return the name of the action."""
        return type(self.effect).__name__

    @property
    def may_undo_later_writes(self) -> bool:
        """Return whether the script writes rows, and its checks show that they are not newer.

        If the source has written a row again as the plan saw it, the script alone cannot see that.
        It sees it for a failing transaction (A2): once that is executed, nothing is left to do.
        """
        match self.effect:
            case UndoRows():
                return True
            case MakeRowsAlike():
                return not self.effect.until_executed
            case _:
                return False

    @property
    def file_name(self) -> str:
        """Return the name of its script: number and server, without special shell characters."""
        return f"{self.number:02d}-{_UNSAFE.sub('_', self.server)}.sql"

    def check_name(self, check: Check) -> str:
        """Return the name of the script of a check: it sorts before the script of the step."""
        return f"{self.check_number(check):02d}-{_UNSAFE.sub('_', check.server)}.sql"

    def check_number(self, check: Check) -> int:
        """Return the number of a check's script."""
        return self.number - len(self.checks) + self.checks.index(check)
