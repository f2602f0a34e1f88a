"""How a script asks a server about its own channels: SQL expressions, by version.

1. Statements and their words come from topology/dialect.py. Here are the questions a plain SQL
   script can ask without SHOW, whose answer no expression can use.
2. An expression that cannot know answers NULL.
3. The old words appear here because old servers know no others.

Sources: Reference Manual 5.6, "Replication Relay and Status Logs" and Slave_running; 5.7 and later,
"Performance Schema Replication Tables".
"""

from dataclasses import dataclass

from topology.dialect import Dialect, dialect_of
from topology.quoting import quote_string
from topology.version import ServerVersion


@dataclass(frozen=True, slots=True)
class ChannelQuestions:
    """SQL expressions about one channel of the server that runs the script."""

    runs: str  # both threads run and the receiver is connected
    auto_position: str  # 1, 0, or NULL where the server does not say
    source_uuid: str  # text, or NULL while it is not known

    @classmethod
    def of(cls, version: ServerVersion, channel: str) -> "ChannelQuestions":
        """Return the questions a version understands."""
        if not dialect_of(version).has_channels:
            assert not channel, "a server without channels has only the default one"
            return _FIVE_SIX
        name = quote_string(channel)
        return cls(
            runs=_RUNS.replace("%", name),
            auto_position=_AUTO_POSITION.replace("%", name),
            source_uuid=_SOURCE_UUID.replace("%", name),
        )


# `%` stands for the quoted name of the channel.
_RUNS = (
    "(SELECT COUNT(*) FROM performance_schema.replication_connection_status AS receiver"
    " JOIN performance_schema.replication_applier_status AS applier USING (CHANNEL_NAME)"
    " WHERE CHANNEL_NAME = % AND receiver.SERVICE_STATE = 'ON'"
    " AND applier.SERVICE_STATE = 'ON') = 1"
)
_AUTO_POSITION = (
    "(SELECT MAX(AUTO_POSITION = '1')"
    " FROM performance_schema.replication_connection_configuration WHERE CHANNEL_NAME = %)"
)
_SOURCE_UUID = (
    "(SELECT MAX(NULLIF(SOURCE_UUID, ''))"
    " FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = %)"
)

# Slave_running is ON only while both threads run and the receiver is connected (5.6). The table is
# empty unless master_info_repository is TABLE: then the answer is NULL.
_FIVE_SIX = ChannelQuestions(
    runs=(
        "(SELECT VARIABLE_VALUE = 'ON' FROM information_schema.GLOBAL_STATUS"
        " WHERE VARIABLE_NAME = 'SLAVE_RUNNING')"
    ),
    auto_position="(SELECT MAX(Enabled_auto_position) FROM mysql.slave_master_info)",
    source_uuid="(SELECT MAX(NULLIF(Uuid, '')) FROM mysql.slave_master_info)",
)


def position_wait(dialect: Dialect, *, channel: str, file: str, position: int, seconds: int) -> str:
    """Return the expression that waits for the applier to pass a place in the source's log.

    NULL: the applier does not run. -1: not in time. Otherwise it has passed.
    """
    arguments = [quote_string(file), str(position), str(seconds)]
    if dialect.has_channels:
        arguments.append(quote_string(channel))
    return f"{dialect.wait_for_position}({', '.join(arguments)})"


def for_channel(dialect: Dialect, channel: str) -> str:
    """Return ` FOR CHANNEL …` where the version has channels and this is not the default one."""
    return dialect.for_channel(quote_string(channel))
