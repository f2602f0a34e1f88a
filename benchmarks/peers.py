"""The servers that ours is measured beside: with packets, buffers and sessions fit for the work."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pymysql.cursors import Cursor

from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import MODERN, provision

_ANSWER_SECONDS_MAX = 600.0
_ROWS_PER_INSERT = 5_000

# Texts of 16 MB go in and come out; a table is read from memory, as our columns are.
_SETTINGS = Settings(
    extra=(
        "--max-allowed-packet=256M",
        "--innodb-buffer-pool-size=512M",
        "--innodb-redo-log-capacity=512M",
    )
)


class TimedSession:
    """One session of a server; every question is timed."""

    def __init__(self, cursor: Cursor, *, name: str) -> None:
        self._cursor = cursor
        self.name = name

    def ask(self, sql: str, args: Sequence[object] = ()) -> tuple[float, Any]:
        """Return the seconds until the answer was here, and its first value."""
        begun = time.perf_counter()
        self._cursor.execute(sql, args)
        rows = self._cursor.fetchall()
        return time.perf_counter() - begun, rows[0][0] if rows else None

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all that the server answers."""
        self._cursor.execute(sql)
        return list(self._cursor.fetchall())

    def load(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Make a table and fill it, without writing a binary log."""
        self._cursor.execute("SET SESSION sql_log_bin = OFF")
        self._cursor.execute("CREATE DATABASE IF NOT EXISTS bench")
        self._cursor.execute("USE bench")
        self._cursor.execute(f"CREATE TABLE {table} ({columns})")
        values = ", ".join(["%s"] * len(rows[0]))
        for first in range(0, len(rows), _ROWS_PER_INSERT):
            self._cursor.executemany(
                f"INSERT INTO {table} VALUES ({values})",
                rows[first : first + _ROWS_PER_INSERT],
            )


def modern() -> Installation:
    """Return the server that peers run on."""
    return provision(MODERN)


@contextmanager
def mysqld() -> Iterator[TimedSession]:
    """Run a server and give one session of it."""
    with (
        shapes.single(modern(), settings=_SETTINGS) as server,
        server.connect(timeout_seconds_max=_ANSWER_SECONDS_MAX) as connection,
        connection.cursor() as cursor,
    ):
        yield TimedSession(cursor, name=f"mysqld {server.version_text}")
