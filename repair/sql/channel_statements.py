"""The statements that start, stop or switch one channel: MySQL's own, or a service's procedures.

Scripts ask here, and nothing else in them depends on who provides the server.
"""

from dataclasses import dataclass

from repair.sql.channel_queries import for_channel
from repair.sql.privileges import StatementKind
from repair.sql.service_calls import ServiceCalls
from topology.readings.dialect import Dialect


@dataclass(frozen=True, slots=True)
class ChannelStatements:
    """The statements for one channel of a server."""

    stop: str
    start: str
    by_sets: str  # switches to auto-position, while it is stopped
    # For its receiver alone; "" if only both threads can be started and stopped.
    start_receiver: str
    stop_receiver: str
    kind: StatementKind  # of all of them: what an account needs for them

    @classmethod
    def of_server(cls, dialect: Dialect, channel: str) -> "ChannelStatements":
        """Return MySQL's own statements for a channel, "" for the default one."""
        suffix = for_channel(dialect, channel)
        return cls(
            stop=f"{dialect.stop_replica}{suffix}",
            start=f"{dialect.start_replica}{suffix}",
            by_sets=f"{dialect.change_source} {dialect.option_prefix}AUTO_POSITION = 1{suffix}",
            start_receiver=f"{dialect.start_replica} IO_THREAD{suffix}",
            stop_receiver=f"{dialect.stop_replica} IO_THREAD{suffix}",
            kind=StatementKind.STEER_CHANNEL,
        )

    @classmethod
    def of_service(cls, calls: ServiceCalls, channel: str, *, alone: bool) -> "ChannelStatements":
        """Return the calls of a service's procedures for a channel, "" for the default one.

        A channel is `alone` if the server has no other one.
        """
        return cls(
            stop=calls.stopping(channel, alone=alone),
            start=calls.starting(channel, alone=alone),
            by_sets=calls.switching(channel, alone=alone),
            start_receiver="",
            stop_receiver="",
            kind=StatementKind.CALL_SERVICE,
        )
