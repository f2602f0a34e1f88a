"""What a procedure is: an action as a script and in words, before it has a number in a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gtid import GtidSet
from repair.guard import Guard
from repair.model import Model, ModelServer
from repair.privileges import StatementKind
from topology.dialect import Dialect, dialect_of
from topology.snapshot import ServerSnapshot


@dataclass(frozen=True, slots=True)
class Procedure:
    """An action as a script and in words: what becomes a step."""

    title: str
    preconditions: tuple[Guard, ...]
    statements: tuple[str, ...]
    verifications: tuple[Guard, ...]
    check: str
    undo: str
    estimated_seconds: int
    estimate_assumes: str
    if_stopped: str
    risk: str
    warnings: tuple[str, ...] = ()
    session: tuple[str, ...] = ()  # what the session is set to before the first precondition
    needs: tuple[StatementKind, ...] = ()  # the kinds of its statements that need privileges


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an action is carried out: the servers before and after it, by the model."""

    server: ModelServer
    before: Model
    after: Model
    # The last reading of each server, by name: what the plan was made from.
    seen: Mapping[str, ServerSnapshot] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """Return the words of the server."""
        return dialect_of(self.server.version)

    @property
    def arriving(self) -> GtidSet:
        """Return what the model expects the server to have afterwards and not before."""
        return self.after[self.server.name].executed - self.server.executed

    def delay_seconds(self, channel: str) -> int:
        """Return SOURCE_DELAY of a channel of the server, as it was read."""
        channels = self.seen[self.server.name].channels or ()
        return next((each.delay_seconds for each in channels if each.name == channel), 0)
