"""Counts the schemas of a server, which show a history that its GTID sets may not have."""

from contextlib import closing
from typing import Final

from topology.adapters.connection import connect
from topology.adapters.settled_sets import read_settled
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import ServerTarget

# 5.6 creates an empty schema `test` with every new data directory.
_OF_MYSQL: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys", "test"})


def schemas_count_of(
    server: ServerSnapshot, target: ServerTarget, seconds_max: float
) -> int | None:
    """Return how many schemas the server has besides MySQL's own.

    Return None if not all are shown, or if the server has committed or begun a transaction since it
    was read, which may have created them.
    """
    with closing(connect(target, timeout_seconds_max=seconds_max)) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SHOW DATABASES")
            names = {str(name).lower() for row in cursor.fetchall() for name in row.values()}
        owned, executed = read_settled(connection)
    is_as_read = not owned and executed == server.gtid_executed
    return len(names - _OF_MYSQL) if "mysql" in names and is_as_read else None
