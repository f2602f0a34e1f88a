"""Clients that write to servers in the background, and stop at a word.

Unlike compose.native.load, a writer can be held between two transactions. So what another session
commits meanwhile is known by the difference of two sets.
"""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pymysql

from compose.native.server import Server

_PAUSE_SECONDS = (0.002, 0.012)
_RETRY_SECONDS = 0.2
_STOP_SECONDS_MAX = 70.0
_TAGS_SINCE = (8, 3)


class Writers:
    """One thread per server; each writes to a schema of its own."""

    def __init__(self, servers: Sequence[Server], seed: str) -> None:
        self._seed = seed
        self._servers = servers
        self._gates = {server.name: threading.RLock() for server in servers}
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._problems: list[str] = []
        self._only_inserts = False

    def start(self) -> None:
        """Create the schemas, and begin to write."""
        for server in self._servers:
            server.execute(
                f"CREATE DATABASE day_{server.name}",
                f"CREATE TABLE day_{server.name}.t"
                " (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT, note VARCHAR(60))",
            )
        for server in self._servers:
            thread = threading.Thread(target=self._write, args=(server,), daemon=True)
            thread.start()
            self._threads.append(thread)

    @contextmanager
    def held(self, *names: str) -> Iterator[None]:
        """Let the writers of these servers wait between two transactions; without names: all."""
        with ExitStack() as stack:
            for name in names or tuple(self._gates):
                if name in self._gates:
                    stack.enter_context(self._gates[name])
            yield

    def insert_only(self) -> None:
        """Write no row again from now on: a replica may miss any of these transactions."""
        with self.held():
            self._only_inserts = True

    def stop(self) -> None:
        """End all writers. Raises AssertionError for an error that no fault explains."""
        self._ended.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS_MAX)
            assert not thread.is_alive(), "a writer does not end"
        self._threads = []
        assert not self._problems, self._problems[:3]

    def _write(self, server: Server) -> None:
        dice = random.Random(f"{self._seed}:{server.name}")
        while not self._ended.is_set():
            try:
                with (
                    server.connect(timeout_seconds_max=60.0) as session,
                    session.cursor() as cursor,
                ):
                    while not self._ended.is_set():
                        if self._gates[server.name].acquire(timeout=_RETRY_SECONDS):
                            try:
                                chosen = 0.0 if self._only_inserts else dice.random()
                                for statement in _transaction(server, dice, chosen):
                                    cursor.execute(statement)
                            finally:
                                self._gates[server.name].release()
                            time.sleep(dice.uniform(*_PAUSE_SECONDS))
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                self._ended.wait(_RETRY_SECONDS)  # the server is down, or a session was killed
            except pymysql.err.MySQLError as problem:
                self._problems.append(f"{server.name}: {problem}")
                return


def _transaction(server: Server, dice: random.Random, chosen: float) -> list[str]:
    """Return the statements of one transaction of an ordinary day."""
    table = f"day_{server.name}.t"
    insert = f"INSERT INTO {table} (n, note) VALUES ({dice.randrange(1000)}, REPEAT('x', 30))"
    if chosen < 0.70:
        return [insert]
    if chosen < 0.85:
        return ["BEGIN", insert, f"UPDATE {table} SET n = n + 1 ORDER BY id DESC LIMIT 5", "COMMIT"]
    if chosen < 0.93 and server.version >= _TAGS_SINCE:
        return ["SET gtid_next = 'AUTOMATIC:day'", insert, "SET gtid_next = 'AUTOMATIC'"]
    if chosen < 0.97:
        rows = ", ".join(f"({each}, REPEAT('y', 50))" for each in range(500))
        return [f"INSERT INTO {table} (n, note) VALUES {rows}"]
    if chosen < 0.985:
        return [f"DELETE FROM {table} ORDER BY id LIMIT 300"]
    return [
        f"CREATE TABLE IF NOT EXISTS day_{server.name}.brief LIKE {table}",
        f"DROP TABLE IF EXISTS day_{server.name}.brief",
    ]
