"""What a procedure is: an action as a script and in words, before it has a number in a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from gtid import GtidSet
from repair.guard import Guard
from repair.model import Model, ModelChannel, ModelServer
from repair.privileges import StatementKind
from topology.dialect import Dialect, dialect_of
from topology.snapshot import ChannelSnapshot, ServerSnapshot


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
    # The last reading of each server of the model, by name: what the plan was made from. All of
    # them have sets, channels and a server_uuid (start.py, known_servers).
    seen: Mapping[str, ServerSnapshot] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """Return the words of the server."""
        return dialect_of(self.server.version)

    @property
    def arriving(self) -> GtidSet:
        """Return what the model expects the server to have afterwards and not before."""
        return self.after[self.server.name].executed - self.server.executed

    def executed(self, name: str) -> GtidSet:
        """Return gtid_executed of a server as it was read."""
        gtids = self.seen[name].gtid_executed
        assert gtids is not None, "only servers whose sets were read are in a plan"
        return gtids

    def channels(self, name: str) -> tuple[ChannelSnapshot, ...]:
        """Return the channels of a server as they were read."""
        channels = self.seen[name].channels
        assert channels is not None, "only servers whose channels were read are in a plan"
        return channels

    def channel(self, name: str) -> ChannelSnapshot:
        """Return a channel of the server as it was read: an action names one that exists."""
        return next(each for each in self.channels(self.server.name) if each.name == name)

    def source_uuid(self, name: str) -> UUID | None:
        """Return the server_uuid of the server from which a channel receives; None if unknown."""
        source = self.before.servers.get(self.known(name).source or "")
        return source.server_uuid if source is not None else self.channel(name).source_uuid

    def known(self, name: str) -> ModelChannel:
        """Return a channel of the server as the model has it."""
        channel = self.server.channel(name)
        assert channel is not None, "an action names a channel that exists"
        return channel
