"""The statements that build a topology, and the options that keep its servers small.

The keywords come from topology.readings.dialect, the one table of version words. This module adds
what only tests need: server options, a parallel applier, status columns under their current names.
"""

from dataclasses import dataclass

from binlog.quoting import quote_string
from compose.native.installation import Version
from topology.readings.dialect import STATUS_COLUMNS, Dialect
from topology.readings.dialect import dialect_of as words_of
from topology.readings.version import ServerVersion


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """How to set up a server of one version."""

    words: Dialect
    parallel_applier: tuple[str, ...]
    """Workers that commit in any order; to be set while the applier is stopped."""
    server_options: tuple[str, ...]
    source_options: tuple[str, ...]

    @property
    def start_replica(self) -> str:
        """Return the statement that starts both threads."""
        return self.words.start_replica

    @property
    def stop_replica(self) -> str:
        """Return the statement that stops both threads."""
        return self.words.stop_replica

    @property
    def reset_replica(self) -> str:
        """Return the statement that removes the channel."""
        return f"{self.words.reset_replica} ALL"

    @property
    def start_receiver(self) -> str:
        """Return the statement that starts the receiver."""
        return f"{self.words.start_replica} IO_THREAD"

    @property
    def stop_receiver(self) -> str:
        """Return the statement that stops the receiver."""
        return f"{self.words.stop_replica} IO_THREAD"

    @property
    def start_applier(self) -> str:
        """Return the statement that starts the applier."""
        return f"{self.words.start_replica} SQL_THREAD"

    @property
    def stop_applier(self) -> str:
        """Return the statement that stops the applier."""
        return f"{self.words.stop_replica} SQL_THREAD"

    @property
    def replica_status(self) -> str:
        """Return the statement that shows the channels."""
        return self.words.show_replica_status

    @property
    def binary_log_status(self) -> str:
        """Return the statement that shows the end of the binary log."""
        return self.words.show_binary_log_status

    def change_source_to(self, **options: str | int) -> str:
        """Return the statement that points a replica at its source; option names have no prefix.

        ``host``, ``port``, ``user``, ``auto_position``, ``connect_retry``, ``retry_count``,
        ``log_file``, ``log_pos``.
        """
        pairs = [
            f"{self.words.option_prefix}{name.upper()} = "
            + (str(value) if isinstance(value, int) else quote_string(value))
            for name, value in options.items()
        ]
        return f"{self.words.change_source} {', '.join([*pairs, *self.source_options])}"


# Before 8.4: the old names still work there, and the new ones do not work in all of these versions.
_OLD_PARALLEL = ("SET GLOBAL slave_parallel_workers = 4",)
_OLD_OPTIONS = (
    "--log-slave-updates",
    "--slave-net-timeout=10",
    "--master-info-repository=TABLE",
    "--relay-log-info-repository=TABLE",
    "--binlog-format=ROW",
    "--innodb-log-file-size=4M",
    "--performance-schema=OFF",
)
_NEW_PARALLEL = (
    "SET GLOBAL replica_parallel_workers = 4",
    "SET GLOBAL replica_preserve_commit_order = OFF",
)
_NEW_OPTIONS = (
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
)
_NEW_FROM: Version = (8, 4, 0)


def dialect_of(version: Version) -> ServerSetup:
    """Return how to set up a server of this version."""
    words = words_of(ServerVersion(*version))
    is_new = version >= _NEW_FROM
    return ServerSetup(
        words=words,
        parallel_applier=_NEW_PARALLEL if is_new else _OLD_PARALLEL,
        server_options=_NEW_OPTIONS if is_new else _OLD_OPTIONS,
        # Without TLS, caching_sha2_password needs the source's key (seen on 9.7.4).
        source_options=("GET_SOURCE_PUBLIC_KEY = 1",) if is_new else (),
    )


def new_words(column: str) -> str:
    """Return a status column's current name, which STATUS_COLUMNS lists first."""
    for names in STATUS_COLUMNS.values():
        if column in names:
            return names[0]
    return column
