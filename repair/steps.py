"""One step of a plan: a script for one server, and what a person must know to run it.

1. A step is finished text: what is written to the file, shown and stored is made from it alone.
2. A guard is a condition and what to say when it does not hold. A condition that is NULL does not
   hold.
3. This file knows no SQL beyond the guard itself.
"""

import re
from dataclasses import dataclass, field

from repair.actions import Action
from topology.quoting import quote_string

# The text of error 1231 shows 200 characters of the refused value (share/errmsg-utf8.txt, seen on
# 5.6.24 and 9.7.4). Error 1772 shows as many on 5.6, and only about 25 on 9.7.
GUARD_CHARACTERS_MAX = 200
# Of them, what the server itself adds to a message.
DETAIL_CHARACTERS_MAX = 110
_CUT = "..."
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Guard:
    """What must be true for the script to go on, and what to say if it is not."""

    condition: str  # an SQL expression
    message: str
    detail: str = ""  # an SQL expression, whose text is put behind the message

    def __post_init__(self) -> None:
        limit = GUARD_CHARACTERS_MAX - (DETAIL_CHARACTERS_MAX if self.detail else 0)
        if len(self.message) > limit:
            object.__setattr__(self, "message", self.message[: limit - len(_CUT)] + _CUT)

    def statements(self) -> tuple[str, ...]:
        """Return the statements that end the script if the condition does not hold.

        `completion_type` is set to itself, or to the message, which the server refuses with error
        1231. The client stops there. Where it was told not to stop (--force, `source`), @go is 0
        and no later statement of the script changes anything.
        """
        message = quote_string(self.message)
        if self.detail:
            message = f"CONCAT({message}, IFNULL(LEFT({self.detail}, {DETAIL_CHARACTERS_MAX}), ''))"
        return (
            f"SET @go = @go AND IFNULL(({self.condition}), FALSE);",
            (f"SET SESSION completion_type = IF(@go, @@SESSION.completion_type, {message});"),
        )


@dataclass(frozen=True, slots=True)
class Check:
    """A look at another server before a step: its script changes nothing."""

    server: str
    host: str
    port: int
    guards: tuple[Guard, ...]
    why: str
    unix_socket: str | None = None


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server is expected to hold when replication has come to rest, without new writes."""

    server: str
    gtid_executed: str
    gtid_purged: str
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One script, in the order of the plan. `number` counts from 1."""

    number: int
    effect: Action = field(repr=False)  # what the model was given; the rest says it in words
    server: str
    host: str
    port: int
    title: str
    why: str
    finding_ids: tuple[str, ...]
    preconditions: tuple[Guard, ...]
    statements: tuple[str, ...]
    verifications: tuple[Guard, ...]
    check: str  # what a person may look at
    undo: str
    estimated_seconds: int
    estimate_assumes: str
    if_stopped: str
    risk: str
    warnings: tuple[str, ...] = ()
    session: tuple[str, ...] = ()  # what the session is set to before the first precondition
    # This step's server, then every other server that the step changes, by the model.
    before: tuple[ServerState, ...] = ()
    after: tuple[ServerState, ...] = ()
    privileges: tuple[str, ...] = ()  # what the account needs on this server
    checks: tuple[Check, ...] = ()  # to be run first, on other servers
    unix_socket: str | None = None  # how the plan reached the server, if not by TCP

    def __post_init__(self) -> None:
        assert self.number >= 1, "steps are counted from 1"
        assert self.finding_ids, "a step answers a finding"
        assert self.verifications, "a step says when it has reached its goal"

    @property
    def action(self) -> str:
        """Return the name of what it does."""
        return type(self.effect).__name__

    @property
    def file_name(self) -> str:
        """Return the name of its script: number and server, with nothing a shell would mind."""
        return f"{self.number:02d}-{_UNSAFE.sub('_', self.server)}.sql"

    def check_name(self, check: Check) -> str:
        """Return the name of the script of a check."""
        return f"{self.number:02d}-check-{_UNSAFE.sub('_', check.server)}.sql"
