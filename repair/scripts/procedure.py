"""The type of a procedure: an action as a script and as text, before it has a number in a plan."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from gtid import GtidSet
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.sql.channel_statements import ChannelStatements
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind, withheld_from
from repair.sql.service_calls import ServiceCalls, service_calls, untested
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ThreadState
from topology.readings.vendors import row_of


@dataclass(frozen=True, slots=True)
class Procedure:
    """An action as a script and as text: what a step runs, and what it says about it."""

    title: str
    preconditions: tuple[Guard, ...]
    statements: tuple[str, ...]
    verifications: tuple[Guard, ...]
    check: str  # what the operator may check
    undo: str
    estimated_seconds: int
    estimate_assumes: str
    if_stopped: str
    risk: str
    warnings: tuple[str, ...] = ()
    session: tuple[str, ...] = ()  # session settings before the first precondition
    needs: tuple[StatementKind, ...] = ()  # the kinds of its statements that need privileges


@dataclass(frozen=True, slots=True)
class Setting:
    """The context of an action: the servers before and after it, according to the model."""

    server: ModelServer
    before: Model
    after: Model
    # The last reading of each server of the model, by name, from which the plan was made. All of
    # them have channels (initial_model.py, known_servers).
    seen: Mapping[str, ReadServer] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the server."""
        return dialect_of(self.server.version)

    def calls_for(self, kind: StatementKind) -> ServiceCalls | None:
        """Return the procedures of the server's service if its accounts may not do it themselves.

        None if they may, or if the service has no procedures that are known.
        """
        server = self.server
        if withheld_from((kind,), server.version, row_of(server.vendor).withheld) is None:
            return None
        return service_calls(server.vendor, server.version)

    def channel_statements(self, channel: str, *, switches: bool = False) -> ChannelStatements:
        """Return the statements for a channel of the server.

        Args:
            channel: its name.
            switches: whether it is to be switched to auto-position.
        """
        calls = self.calls_for(StatementKind.STEER_CHANNEL)
        alone = len(self.server.channels) == 1
        if calls is not None and calls.steers(channel, switches=switches, alone=alone):
            return ChannelStatements.of_service(calls, channel, alone=alone)
        return ChannelStatements.of_server(self.dialect, channel)

    def untested_calls(self, needs: Collection[StatementKind]) -> tuple[str, ...]:
        """Return the warning that the procedures of the server's service were not tested."""
        vendor = self.server.vendor
        if vendor is None or StatementKind.CALL_SERVICE not in needs:
            return ()
        return (untested(vendor),)

    @property
    def arriving(self) -> GtidSet:
        """Return what the model expects the server to have afterwards but not before."""
        return self.after[self.server.name].executed - self.server.executed

    def executed(self, name: str) -> GtidSet:
        """Return gtid_executed of a server as it was read."""
        return self.seen[name].gtid_executed

    def channels(self, name: str) -> tuple[ChannelSnapshot, ...]:
        """Return the channels of a server as they were read."""
        channels = self.seen[name].channels
        assert channels is not None, "only servers whose channels were read are in a plan"
        return channels

    def channel(self, name: str) -> ChannelSnapshot:
        """Return a channel of the server as it was read; actions refer to existing channels."""
        return next(each for each in self.channels(self.server.name) if each.name == name)

    def source_uuid(self, name: str) -> UUID | None:
        """Return the server_uuid of the source of a channel; None if unknown."""
        source = self.before.servers.get(self.known(name).source or "")
        return source.server_uuid if source is not None else self.channel(name).source_uuid

    def awaits_source(self, name: str) -> bool:
        """Return whether the receiver of a channel tries to reach a source that was not read.

        It may be dead. The applier can do its work in any case.
        """
        is_read = self.known(name).source in self.before.servers
        return not is_read and self.channel(name).receiver is ThreadState.CONNECTING

    def known(self, name: str) -> ModelChannel:
        """Return a channel of the server as the model has it."""
        channel = self.server.channel(name)
        assert channel is not None, "an action refers to an existing channel"
        return channel
