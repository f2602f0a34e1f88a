"""SQL expressions with which a script queries a server about its channels, by version.

1. Statements and their terms come from topology/readings/dialect.py. This module has the queries
   that a plain SQL script can make without SHOW, because no expression can use the result of SHOW.
2. An expression returns NULL if the server does not show the answer.
3. The old terms appear here because old servers accept no others.

Sources: Reference Manual 5.6, "Replication Relay and Status Logs" and Slave_running; 5.7 and later,
"Performance Schema Replication Tables".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from binlog.quoting import quote_channel, quote_string
from topology.readings.dialect import Dialect, dialect_of
from topology.readings.version import ServerVersion


@dataclass(frozen=True, slots=True)
class ChannelQuestions:
    """SQL expressions about one channel of the server that runs the script."""

    # The applier runs, and the receiver is connected or tries to be; `runs` if no table shows it.
    applies: str
    runs: str  # both threads run and the receiver is connected
    any_runs: str  # one of the threads runs, or both do; 'FALSE' if no table shows it
    receives: str  # the receiver runs and is connected; 'NULL' if no table shows it
    only_receives: str  # the receiver runs, the applier does not; 'FALSE' if not shown
    auto_position: str  # 1, 0, or NULL where the server does not report it
    source_uuid: str  # text, or NULL if it is not known
    # What stopped the applier; NULL without an error. Both are 'NULL' if no table shows it.
    applier_errno: str
    applier_error: str
    # The settings with which the channel refuses what others apply, as text; NULL if none is set.
    restrictions: str
    checking_user: str  # PRIVILEGE_CHECKS_USER as text; NULL if there is none
    # ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS as text; NULL if it is OFF.
    assigned_gtids: str
    filters: str  # its replication filters as text; NULL if it has none or none is visible

    @classmethod
    def of(cls, version: ServerVersion, channel: str) -> "ChannelQuestions":
        """Return the queries for a version."""
        if not dialect_of(version).has_channels:
            assert not channel, "a server without channels has only the default one"
            return _FIVE_SIX
        name = quote_string(channel)
        return cls(
            applies=_APPLIES.replace("%", name),
            runs=_RUNS.replace("%", name),
            any_runs=_ANY_RUNS.replace("%", name),
            receives=_RECEIVES.replace("%", name),
            only_receives=_ONLY_RECEIVES.replace("%", name),
            auto_position=_AUTO_POSITION.replace("%", name),
            source_uuid=_SOURCE_UUID.replace("%", name),
            applier_errno=_applier_fact("LAST_ERROR_NUMBER").replace("%", name),
            applier_error=_applier_fact(
                "CONCAT('error ', LAST_ERROR_NUMBER, ': ', LAST_ERROR_MESSAGE)"
            ).replace("%", name),
            restrictions=_restrictions(version, _RESTRICTIONS).replace("%", name),
            checking_user=_restrictions(version, _RESTRICTIONS[:1]).replace("%", name),
            assigned_gtids=(
                _ASSIGNED_GTIDS.replace("%", name) if dialect_of(version).assigns_gtids else "NULL"
            ),
            filters=_FILTERS.replace("%", name) if version >= _FILTERS_SINCE else "NULL",
        )


@dataclass(frozen=True, slots=True)
class ChannelAddress:
    """The source address of a channel, as SHOW REPLICA STATUS shows it."""

    channel: str
    host: str
    port: int


def channels_are(version: ServerVersion, expected: Sequence[ChannelAddress]) -> str:
    """Return the condition that a server has exactly these channels, with these addresses.

    5.6 shows addresses in a table only with master_info_repository = TABLE. RESET SLAVE empties
    that table although the address stays (seen on 5.6.24), and CHANGE MASTER writes the row again.
    In 5.6 the condition is true if the table shows no address.
    """
    if not dialect_of(version).has_channels:
        rows = " OR ".join(
            f"(Host = {quote_string(each.host)} AND Port = {each.port})" for each in expected
        )
        others = f" WHERE NOT ({rows})" if rows else ""
        return (
            "@@GLOBAL.master_info_repository = 'FILE'"
            f" OR (SELECT COUNT(*) FROM mysql.slave_master_info{others}) = 0"
        )
    configured = f"(SELECT COUNT(*) FROM {_CONFIGURATION} WHERE HOST <> '' AND {_NOT_OF_A_GROUP})"
    conditions = [f"{configured} = {len(expected)}"]
    for each in expected:
        conditions.append(
            f"(SELECT COUNT(*) FROM {_CONFIGURATION} WHERE"
            f" {_NAME.format('')} = {quote_string(each.channel)}"
            f" AND HOST = {quote_string(each.host)} AND PORT = {each.port}) = 1"
        )
    return " AND ".join(conditions)


def waits_here(version: ServerVersion, gtids: str) -> str:
    """Return the condition that one of these, as SQL, was received and is not executed.

    5.6 shows what was received only in SHOW SLAVE STATUS, which no script can query: FALSE.
    """
    if not dialect_of(version).has_channels:
        return "FALSE"
    left = f"GTID_SUBTRACT({gtids}, @@GLOBAL.gtid_executed)"
    return (
        "EXISTS (SELECT 1 FROM performance_schema.replication_connection_status"
        f" WHERE GTID_SUBTRACT({left}, RECEIVED_TRANSACTION_SET) <> {left})"
    )


def tables_of_channels(version: ServerVersion) -> str:
    """Return the tables that scripts of a version query for channels."""
    return "performance_schema.*" if dialect_of(version).has_channels else "mysql.slave_master_info"


def unseen_address(version: ServerVersion, expected: ChannelAddress) -> str:
    """Return what the operator must compare because a script may not see it; "" if it sees it."""
    if dialect_of(version).has_channels:
        return ""
    return (
        "a script sees a channel's address only with master_info_repository = TABLE; run SHOW SLAVE"
        f" STATUS: Master_Host must be {expected.host}, Master_Port {expected.port}"
    )


_CONFIGURATION = "performance_schema.replication_connection_configuration"
_NOT_OF_A_GROUP = "CHANNEL_NAME NOT IN ('group_replication_applier', 'group_replication_recovery')"
# The column's own collation treats é as e; two channels may differ only in that.
_NAME = "CONVERT({}CHANNEL_NAME USING utf8mb4) COLLATE utf8mb4_bin"
# `%` is replaced by the quoted name of the channel.
_RUNS = (
    "(SELECT COUNT(*) FROM performance_schema.replication_connection_status AS receiver,"
    " performance_schema.replication_applier_status AS applier"
    f" WHERE {_NAME.format('receiver.')} = % AND {_NAME.format('applier.')} = %"
    " AND receiver.SERVICE_STATE = 'ON' AND applier.SERVICE_STATE = 'ON') = 1"
)
# A receiver that was just started, or cannot connect, also runs: CONNECTING.
_ONLY_RECEIVES = _RUNS.replace(
    "receiver.SERVICE_STATE = 'ON' AND applier.SERVICE_STATE = 'ON'",
    "receiver.SERVICE_STATE <> 'OFF' AND applier.SERVICE_STATE = 'OFF'",
)
assert _ONLY_RECEIVES != _RUNS
_APPLIES = _RUNS.replace("receiver.SERVICE_STATE = 'ON'", "receiver.SERVICE_STATE <> 'OFF'")
assert _APPLIES != _RUNS
_ANY_RUNS = _RUNS.replace(
    "receiver.SERVICE_STATE = 'ON' AND applier.SERVICE_STATE = 'ON'",
    "(receiver.SERVICE_STATE <> 'OFF' OR applier.SERVICE_STATE <> 'OFF')",
)
assert _ANY_RUNS != _RUNS
_RECEIVES = (
    "(SELECT COUNT(*) FROM performance_schema.replication_connection_status"
    f" WHERE {_NAME.format('')} = % AND SERVICE_STATE = 'ON') = 1"
)
_AUTO_POSITION = (
    f"(SELECT MAX(AUTO_POSITION = '1') FROM {_CONFIGURATION} WHERE {_NAME.format('')} = %)"
)
_SOURCE_UUID = (
    "(SELECT MAX(NULLIF(SOURCE_UUID, ''))"
    f" FROM performance_schema.replication_connection_status WHERE {_NAME.format('')} = %)"
)


def _applier_fact(column: str) -> str:
    """Return one column of the error that stopped an applier: a worker's, else the coordinator's.

    The coordinator only reports that a worker has stopped. Without workers, the row of worker 0 has
    the applier's own error.
    """
    worker, coordinator = (
        f"(SELECT {column} FROM performance_schema.replication_applier_status_by_{table}"
        f" WHERE {_NAME.format('')} = % AND LAST_ERROR_NUMBER <> 0 ORDER BY THREAD_ID LIMIT 1)"
        for table in ("worker", "coordinator")
    )
    return f"COALESCE({worker}, {coordinator})"


# Slave_running is ON only while both threads run and the receiver is connected (5.6). The table is
# empty unless master_info_repository is TABLE: then the answer is NULL.
_SLAVE_RUNNING = (
    "(SELECT VARIABLE_VALUE = 'ON' FROM information_schema.GLOBAL_STATUS"
    " WHERE VARIABLE_NAME = 'SLAVE_RUNNING')"
)
_FIVE_SIX = ChannelQuestions(
    applies=_SLAVE_RUNNING,
    runs=_SLAVE_RUNNING,
    any_runs="FALSE",
    receives="NULL",
    only_receives="FALSE",
    auto_position="(SELECT MAX(Enabled_auto_position) FROM mysql.slave_master_info)",
    source_uuid="(SELECT MAX(NULLIF(Uuid, '')) FROM mysql.slave_master_info)",
    applier_errno="NULL",
    applier_error="NULL",
    restrictions="NULL",
    checking_user="NULL",
    assigned_gtids="NULL",
    filters="NULL",
)

_ASSIGNED_GTIDS = (
    "(SELECT NULLIF(MAX(ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE), 'OFF')"
    f" FROM performance_schema.replication_applier_configuration WHERE {_NAME.format('')} = %)"
)

# A filter that was removed keeps its row, with an empty rule.
_FILTERS_SINCE = ServerVersion(8, 0, 1)
_FILTERS = (
    "(SELECT NULLIF(MAX(CONCAT(FILTER_NAME, ' = ', FILTER_RULE)), '')"
    " FROM performance_schema.replication_applier_filters"
    f" WHERE {_NAME.format('')} = % AND FILTER_RULE <> '')"
)


# Options of CHANGE REPLICATION SOURCE: the column of replication_applier_configuration, the first
# version with it, and its value without a restriction.
_RESTRICTIONS = (
    ("PRIVILEGE_CHECKS_USER", ServerVersion(8, 0, 18), "IS NULL"),
    ("REQUIRE_ROW_FORMAT", ServerVersion(8, 0, 19), "= 'NO'"),
    ("REQUIRE_TABLE_PRIMARY_KEY_CHECK", ServerVersion(8, 0, 20), "<> 'ON'"),
)


def _restrictions(version: ServerVersion, options: Sequence[tuple[str, ServerVersion, str]]) -> str:
    texts = [
        f"IF({column} {free}, NULL, CONCAT('{column} = ', {column}))"
        for column, since, free in options
        if version >= since
    ]
    if not texts:
        return "NULL"
    table = "performance_schema.replication_applier_configuration"
    return (
        f"(SELECT NULLIF(MAX(CONCAT_WS(', ', {', '.join(texts)})), '') FROM {table}"
        f" WHERE {_NAME.format('')} = %)"
    )


def uptime_question(version: ServerVersion) -> str:
    """Return the query for the number of seconds since a server started."""
    schema = "performance" if dialect_of(version).has_channels else "information"
    return (
        f"SELECT VARIABLE_VALUE FROM {schema}_schema.global_status WHERE VARIABLE_NAME = 'Uptime'"
    )


def position_wait(dialect: Dialect, *, channel: str, file: str, position: int, seconds: int) -> str:
    """Return the expression that waits for the applier to pass a position in the source's log.

    NULL: the applier does not run. -1: timeout. Otherwise the applier has passed the position.
    """
    arguments = [quote_string(file), str(position), str(seconds)]
    if dialect.has_channels:
        arguments.append(quote_string(channel))
    return f"{dialect.wait_for_position}({', '.join(arguments)})"


def for_channel(dialect: Dialect, channel: str) -> str:
    """Return ` FOR CHANNEL …` if the version has channels and this is not the default channel."""
    return dialect.for_channel(quote_channel(channel))
