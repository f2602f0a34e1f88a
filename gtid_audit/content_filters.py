"""Reads the filters of a live server: asked only where a log has less of a transaction.

Both the filters of its channels and those of its binary log count. Filters that cannot be read are
None: then they explain nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeAlias

import pymysql

from binlog.adapters.unexpected import read_answer
from binlog.errors import UnexpectedAnswer
from topology.dialect import BINARY_LOG_FILTERS, FILTER_COLUMNS, dialect_of
from topology.replication_filters import ReplicationFilters
from topology.version import ServerVersion, UnreadableVersion

Way: TypeAlias = Callable[[], Any]  # to a new connection


def filters_of(connect: Way) -> ReplicationFilters | None:
    """Return a server's filters; None if they could not be read."""
    try:
        with closing(connect()) as connection, read_answer("its filters"):
            return ReplicationFilters.of(_columns(connection))
    except (pymysql.MySQLError, OSError, UnreadableVersion, UnexpectedAnswer):
        return None


def _columns(connection: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - PyMySQL's
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("SELECT @@GLOBAL.version AS version")
        dialect = dialect_of(ServerVersion.parse(cursor.fetchone()["version"]))
        for statement in (dialect.show_replica_status, dialect.show_binary_log_status):
            cursor.execute(statement)
            for row in cursor.fetchall():
                for column in (*FILTER_COLUMNS, *BINARY_LOG_FILTERS):
                    if row.get(column):
                        yield column, str(row[column])
