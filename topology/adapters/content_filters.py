"""Reads the filters of a live server, if its log has less of a transaction than the other.

The filters of the channel concerned and those of the binary log count. Filters that cannot be read
are None, and explain nothing.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import pymysql

from binlog.adapters.server_errors import read_answer
from binlog.errors import UnexpectedAnswer
from topology.adapters.connection import Way
from topology.readings.dialect import (
    BINARY_LOG_FILTERS,
    FILTER_COLUMNS,
    STATUS_COLUMNS,
    dialect_of,
)
from topology.readings.replication_filters import ReplicationFilters, ServerFilters
from topology.readings.version import ServerVersion, UnreadableVersion


def filters_of(connect: Way) -> ServerFilters | None:
    """Return a server's filters; None if they could not be read."""
    try:
        with closing(connect()) as connection, read_answer("its filters"):
            return _read(connection)
    except (pymysql.MySQLError, OSError, UnreadableVersion, UnexpectedAnswer):
        return None


def _read(connection: Any) -> ServerFilters:  # noqa: ANN401 - PyMySQL's
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SELECT @@GLOBAL.version AS version")
        dialect = dialect_of(ServerVersion.parse(cursor.fetchone()["version"]))
        cursor.execute(dialect.show_replica_status)
        channels = tuple((_source_of(row), _in(row, FILTER_COLUMNS)) for row in cursor.fetchall())
        cursor.execute(dialect.show_binary_log_status)
        logs = [_in(row, BINARY_LOG_FILTERS) for row in cursor.fetchall()]
    return ServerFilters(logs[0] if logs else ReplicationFilters(), channels)


def _source_of(row: Mapping[str, Any]) -> str:
    found = (row.get(name) for name in STATUS_COLUMNS["source_uuid"])
    return next((str(uuid) for uuid in found if uuid), "")


def _in(row: Mapping[str, Any], columns: Iterable[str]) -> ReplicationFilters:
    return ReplicationFilters.of((name, str(row[name])) for name in columns if row.get(name))
