"""The statements that build a topology, in the words of old and of new servers.

The only file of compose with the words old servers use. Sources: the reference manuals of 5.6
(CHANGE MASTER TO, SHOW SLAVE STATUS) and 9.7 (CHANGE REPLICATION SOURCE TO, SHOW REPLICA STATUS).
"""

from dataclasses import dataclass

from compose.native.installation import Version


@dataclass(frozen=True, slots=True)
class Dialect:
    """One generation of replication statements. ``change_source`` lacks its option list."""

    change_source: str
    option_prefix: str
    start_replica: str
    stop_replica: str
    reset_replica: str
    start_receiver: str
    stop_receiver: str
    start_applier: str
    stop_applier: str
    replica_status: str
    binary_log_status: str
    parallel_applier: tuple[str, ...]
    """Workers that commit in any order; to be set while the applier is stopped."""
    server_options: tuple[str, ...]
    source_options: tuple[str, ...]

    def change_source_to(self, **options: str | int) -> str:
        """Return the statement that points a replica at its source; names without their prefix.

        ``host``, ``port``, ``user``, ``auto_position``, ``connect_retry``, ``log_file``,
        ``log_pos``.
        """
        pairs = [
            f"{self.option_prefix}_{name.upper()} = "
            + (str(value) if isinstance(value, int) else f"'{value}'")
            for name, value in options.items()
        ]
        return f"{self.change_source} {', '.join([*pairs, *self.source_options])}"


_OLD = Dialect(
    change_source="CHANGE MASTER TO",
    option_prefix="MASTER",
    start_replica="START SLAVE",
    stop_replica="STOP SLAVE",
    reset_replica="RESET SLAVE ALL",
    start_receiver="START SLAVE IO_THREAD",
    stop_receiver="STOP SLAVE IO_THREAD",
    start_applier="START SLAVE SQL_THREAD",
    stop_applier="STOP SLAVE SQL_THREAD",
    replica_status="SHOW SLAVE STATUS",
    binary_log_status="SHOW MASTER STATUS",
    parallel_applier=("SET GLOBAL slave_parallel_workers = 4",),
    server_options=(
        "--log-slave-updates",
        "--slave-net-timeout=10",
        "--master-info-repository=TABLE",
        "--relay-log-info-repository=TABLE",
        "--binlog-format=ROW",
        "--innodb-log-file-size=4M",
        "--performance-schema=OFF",
    ),
    source_options=(),
)

_NEW = Dialect(
    change_source="CHANGE REPLICATION SOURCE TO",
    option_prefix="SOURCE",
    start_replica="START REPLICA",
    stop_replica="STOP REPLICA",
    reset_replica="RESET REPLICA ALL",
    start_receiver="START REPLICA IO_THREAD",
    stop_receiver="STOP REPLICA IO_THREAD",
    start_applier="START REPLICA SQL_THREAD",
    stop_applier="STOP REPLICA SQL_THREAD",
    replica_status="SHOW REPLICA STATUS",
    binary_log_status="SHOW BINARY LOG STATUS",
    parallel_applier=(
        "SET GLOBAL replica_parallel_workers = 4",
        "SET GLOBAL replica_preserve_commit_order = OFF",
    ),
    server_options=(
        "--log-replica-updates=ON",
        "--replica-net-timeout=10",
        "--mysqlx=OFF",
        # The smallest server that still shows its workers, locks and threads.
        "--innodb-redo-log-capacity=32M",
        "--innodb-log-buffer-size=1M",
        "--innodb-log-writer-threads=OFF",
        "--innodb-page-cleaners=1",
        "--innodb-purge-threads=1",
        "--temptable-max-ram=2M",
        "--performance-schema-max-thread-instances=128",
        "--performance-schema-accounts-size=10",
        "--performance-schema-hosts-size=10",
        "--performance-schema-users-size=10",
        "--performance-schema-error-size=0",
        "--performance-schema-digests-size=100",
        "--performance-schema-events-statements-history-long-size=10",
        "--performance-schema-events-stages-history-long-size=10",
        "--performance-schema-events-transactions-history-long-size=10",
        "--performance-schema-events-waits-history-long-size=10",
    ),
    # Without TLS, caching_sha2_password needs the source's key (seen on 9.7.4).
    source_options=("GET_SOURCE_PUBLIC_KEY = 1",),
)

_NEW_FROM: Version = (8, 4, 0)  # the last old form is gone, every new one is there


def dialect_of(version: Version) -> Dialect:
    """Return the statements of a server; between 5.6 and 8.4 the old ones are understood."""
    return _NEW if version >= _NEW_FROM else _OLD


def new_words(column: str) -> str:
    """Return a status column in today's words: ``Slave_IO_Running`` is ``Replica_IO_Running``."""
    return column.replace("Master", "Source").replace("Slave", "Replica")
