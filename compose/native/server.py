"""One MySQL server as a process on this machine: started, queried, stopped, killed, frozen.

1. Its data directory, socket and log are its own, below the run folder, and are removed with it.
2. It listens on loopback by default, with account root without a password.
3. Each statement uses a new connection, so that no session state passes from one call to the next.
4. This module does not know about topologies.
"""

import itertools
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor, DictCursor

from compose.native.cache import Progress, silent
from compose.native.command import Settings, server_command
from compose.native.installation import Clients, Installation, Version
from compose.native.processes import Child, current_supervisor
from compose.native.provision import (
    copy_data_directory,
    provision_clients,
    seed_data_directory,
)
from compose.native.server_setup import ServerSetup, dialect_of, new_words

if TYPE_CHECKING:
    from compose.containers.server_container import ServerContainer

Row = tuple[Any, ...]

_PORTS = range(20000, 32000)
# Below the range from which Linux assigns ports for outgoing connections (from 32768). So no other
# connection takes a stopped server's port before it restarts.
_START_ATTEMPTS = 5
_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_ATTEMPT_SECONDS_MAX = 2.0
_POLL_SECONDS = 0.02
_ER_NO_SUCH_THREAD = 1094
_PORT_TAKEN = re.compile(r"Address already in use|Bind on TCP/IP port|server running on port")

_server_ids = itertools.count(1)
_random = random.SystemRandom()  # independent of test seeds: two runs must choose differently


class ServerFailed(Exception):
    """A server did not start, or did not stop; the message ends with its error log."""


class Server:
    """A server with its files; ``start()`` starts its process.

    ``host``, ``port`` and ``dsn`` are its address. The port is chosen at the first start and kept
    from then on.
    """

    def __init__(
        self,
        installation: Installation,
        name: str,
        *,
        settings: Settings | None = None,
        progress: Progress = silent,
    ) -> None:
        self.installation = installation
        self.name = name
        self.settings = settings or Settings()
        self.server_id = next(_server_ids)
        self.host = "127.0.0.1"
        self.port = 0
        self._supervisor = current_supervisor()
        self._child: Child | ServerContainer | None = None
        self.folder = self._supervisor.folder / f"{self.server_id}-{name}"
        self.datadir = self.folder / "data"
        self.error_log = self.folder / "error.log"
        self.folder.mkdir()
        copy_data_directory(seed_data_directory(installation, progress=progress), self.datadir)
        # 5.6 generates equal UUIDs for servers that start at the same moment.
        (self.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={uuid4()}\n")

    def __repr__(self) -> str:
        return f"<Server {self.name} {self.version_text} {self.dsn}>"

    # ---- address and version

    @property
    def version(self) -> Version:
        """Return the server's version as integers."""
        return self.installation.version

    @property
    def version_text(self) -> str:
        """Return the version with dots."""
        return ".".join(map(str, self.version))

    @property
    def dialect(self) -> ServerSetup:
        """Return the statements that this server understands."""
        return dialect_of(self.version)

    @property
    def dsn(self) -> str:
        """Return the address in the form that the command line takes."""
        return f"mysql://root@{self.host}:{self.port}/"

    @property
    def socket_path(self) -> Path:
        """Return the Unix socket; paths longer than 107 bytes cannot be connected to (unix(7))."""
        return self.datadir / "mysql.sock"

    @property
    def pid(self) -> int:
        """Return the process id of the running mysqld."""
        assert self._child is not None, f"{self.name} was not started"
        return self._child.pid

    @property
    def running(self) -> bool:
        """Return whether the process exists, frozen or not."""
        return self._child is not None and self._child.status() is None

    # ---- start and stop

    def start(self) -> None:
        """Start the process and return when it responds.

        Raises ServerFailed with the error log if it does not. If another process takes the port
        between the choice and the start, another port is chosen. Once used, a port is kept.
        """
        assert not self.running, f"{self.name} is already running"
        keep_port = self.port != 0
        for _ in range(_START_ATTEMPTS):
            if not keep_port:
                self.port = free_port(self.settings.bind_address)
            log_start = self.error_log.stat().st_size if self.error_log.exists() else 0
            self._child = self._started()
            if self._await_ready():
                return
            if not _PORT_TAKEN.search(self._log_since(log_start)):
                break
        raise ServerFailed(f"{self.name} did not start:\n{self._complaints(log_start)}")

    def stop(self) -> None:
        """Shut down normally and wait for the end. A frozen server is continued first.

        A source whose replicas reconnect at once may take 10 s (seen on 9.7.4); ``kill`` never
        does. A shutdown of 9.7.4 may also wait for ever, and its log does not say why (seen
        twice in 28,000 tests). Such a server is killed, recovers, and is shut down again.
        """
        if not self.running:
            return
        assert self._child is not None
        self._child.send(signal.SIGCONT)
        if not self._has_shut_down():
            self.kill()
            self.start()
            if not self._has_shut_down():
                raise ServerFailed(f"{self.name} did not stop:\n{self.error_log_tail()}")

    def _has_shut_down(self) -> bool:
        """Ask for a shutdown; return whether the process ended within the time."""
        assert self._child is not None
        self._end_replication()
        self._child.send(signal.SIGTERM)
        try:
            self._child.wait(timeout_seconds_max=_STOP_SECONDS_MAX)
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """End the process with SIGKILL: data that it had not passed to the kernel is lost."""
        if not self.running:
            return
        assert self._child is not None
        self._child.send(signal.SIGKILL)
        self._child.wait(timeout_seconds_max=_STOP_SECONDS_MAX)

    def discard(self) -> None:
        """Kill the process and remove the server's files."""
        self.kill()
        shutil.rmtree(self.folder)

    def restart(self) -> None:
        """Shut down normally and start again on the same port."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop every thread with SIGSTOP: connections stay open, and the server never responds."""
        assert self._child is not None
        self._child.send(signal.SIGSTOP)
        deadline = time.monotonic() + _STOP_SECONDS_MAX
        while not self._child.is_stopped():
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not freeze")
            time.sleep(_POLL_SECONDS)

    def thaw(self) -> None:
        """Continue a frozen server."""
        assert self._child is not None
        self._child.send(signal.SIGCONT)

    # ---- statements

    @contextmanager
    def connect(
        self, *, cursor: type[Cursor] = Cursor, timeout_seconds_max: float = 60.0
    ) -> Iterator["Connection[Any]"]:
        """Provide a new session, in autocommit mode, and close it at the end."""
        connection = pymysql.connect(
            host=self.host,
            port=self.port,
            user="root",
            ssl_disabled=True,  # on loopback; making a TLS context takes 60 ms each time
            autocommit=True,
            cursorclass=cursor,
            connect_timeout=int(timeout_seconds_max) or 1,
            read_timeout=timeout_seconds_max,
            write_timeout=timeout_seconds_max,
        )
        try:
            yield connection
        finally:
            connection.close()

    def query(self, sql: str, args: Sequence[object] | None = None) -> list[Row]:
        """Run one statement on a new connection and return its rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    def execute(self, *statements: str) -> None:
        """Run statements one after the other in one new session."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def value(self, expression: str) -> Any:  # noqa: ANN401 - any column type
        """Return the value of one expression: ``server.value("@@GLOBAL.server_uuid")``."""
        return self.query(f"SELECT {expression}")[0][0]

    def binary_log_position(self) -> tuple[str, int]:
        """Return the file and offset where the next event will be written."""
        file, offset = self.query(self.dialect.binary_log_status)[0][:2]
        return str(file), int(offset)

    def replica_status(self) -> dict[str, Any]:
        """Return the first channel's status with current column names; empty if there is none."""
        with self.connect(cursor=DictCursor) as connection, connection.cursor() as cursor:
            cursor.execute(self.dialect.replica_status)
            row = cursor.fetchone()
        return {new_words(column): value for column, value in (row or {}).items()}

    def client(
        self, script: str | Path, *options: str, clients: Clients | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a script, text or file, with the ordinary ``mysql`` client; check its status."""
        text = script.read_text() if isinstance(script, Path) else script
        return subprocess.run(
            [
                *(clients or provision_clients()).command("mysql"),
                *("--user=root", f"--host={self.host}", f"--port={self.port}", "--protocol=TCP"),
                *options,
            ],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def error_log_tail(self, lines: int = 40) -> str:
        """Return the end of the error log."""
        if not self.error_log.exists():
            return ""
        text = self.error_log.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    # ---- helpers

    def _end_replication(self) -> None:
        """Stop this server's receiver and end the sessions that replicas read from.

        Shutdown waits up to 10 s for each kind (seen on 9.7.4). Threads that run now will start
        again with the server.
        """
        if self.replica_status():
            self.execute(self.dialect.stop_replica)
        for (session,) in self.query(
            "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        ):
            try:
                self.execute(f"KILL {session}")
            except pymysql.err.MySQLError as failure:
                if failure.args[0] != _ER_NO_SUCH_THREAD:  # it may have ended by itself
                    raise

    def _started(self) -> "Child | ServerContainer":
        """Start mysqld as a process of this machine, or in a container of its image."""
        if self.installation.image:
            # Needs testcontainers, which only the extra dev brings.
            from compose.containers.server_container import start_container

            return start_container(
                self._supervisor,
                self.installation,
                self._command(),
                folder=self.folder,
                output=self.error_log,
            )
        return self._supervisor.start(
            self._command(),
            folder=self.folder,
            output=self.error_log,
            environment=self.installation.environment,
        )

    def _command(self) -> list[str]:
        return server_command(
            self.installation,
            self.settings,
            datadir=self.datadir,
            host=self.host,
            port=self.port,
            server_id=self.server_id,
        )

    def _log_since(self, offset: int) -> str:
        with self.error_log.open("rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def _complaints(self, offset: int) -> str:
        """Return the log's errors since an offset; 5.6 logs many lines after the relevant one."""
        errors = [line for line in self._log_since(offset).splitlines() if "[ERROR]" in line]
        return "\n".join(errors) or self.error_log_tail()

    def _await_ready(self) -> bool:
        """Return True when *this* server responds, False when its process has ended.

        Another server may have the port and may never respond. So attempts are short, and the data
        directory shows which server responds.
        """
        deadline = time.monotonic() + _START_SECONDS_MAX
        while self.running:
            try:
                if self._is_answering():
                    return True
            except pymysql.err.MySQLError:
                pass  # not yet, or another server; the process's end or the deadline ends the loop
            if time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(
                    f"{self.name} does not answer after {_START_SECONDS_MAX} s:\n"
                    f"{self.error_log_tail()}"
                )
            time.sleep(_POLL_SECONDS)
        return False

    def _is_answering(self) -> bool:
        attempt = self.connect(timeout_seconds_max=_ATTEMPT_SECONDS_MAX)
        with attempt as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.datadir")
            (datadir,) = cursor.fetchone() or ("",)
        return Path(datadir).resolve() == self.datadir.resolve()


def free_port(address: str) -> int:
    """Return a port that is free now. It may be taken a moment later: the caller tries again."""
    for port in _random.sample(_PORTS, k=200):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    raise ServerFailed(f"no free port on {address} between {_PORTS.start} and {_PORTS.stop}")
