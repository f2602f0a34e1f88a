"""A write load on several servers at once: thousands of small transactions per second.

The ``mysqlslap`` program writes, so that the load does not compete with Python's threads for the
interpreter. Each server writes into its own table; no row is ever written from two sides. This
module does not know how the servers replicate.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compose.native.installation import Clients
from compose.native.processes import Child, current_supervisor
from compose.native.provision import provision_clients
from compose.native.server import Server

_FOREVER = 2_000_000_000
_STOP_SECONDS_MAX = 10.0
_FIRST_WRITE_SECONDS_MAX = 30.0
_POLL_SECONDS = 0.02


@contextmanager
def write_load(
    servers: Sequence[Server],
    *,
    clients: Clients | None = None,
    connections: int = 2,
    pause_seconds: float = 0.0,
) -> Iterator[None]:
    """Write to every server from ``connections`` sessions each until the block ends.

    Each session waits ``pause_seconds`` between two transactions, to leave CPU time to others.

    The block begins when every server has been written to. At its end, raises LoadEnded if a writer
    ended earlier: then the block did not run under load.
    """
    command = (clients or provision_clients()).command("mysqlslap")
    for server in servers:
        server.execute(
            f"CREATE DATABASE IF NOT EXISTS {schema_of(server)}",
            f"CREATE TABLE IF NOT EXISTS {schema_of(server)}.written"
            " (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload VARCHAR(40))",
        )
    writers: list[tuple[Server, Child]] = []
    ended = []
    try:
        for server in servers:
            written = _last_written(server)
            writers.append((server, _writer(command, server, connections, pause_seconds)))
            _await_write_after(written, *writers[-1])
        yield
    finally:
        for server, writer in writers:
            if _has_ended(server, writer):
                ended.append(_log_of(server).read_text(errors="replace"))
            writer.send(signal.SIGKILL)
            writer.wait(timeout_seconds_max=_STOP_SECONDS_MAX)
    if ended:
        raise LoadEnded("\n".join(ended))


class LoadEnded(Exception):
    """A writer ended too early; the message is its output."""


def schema_of(server: Server) -> str:
    """Return the schema only this server writes to."""
    return f"load_{server.name}_{server.server_id}"


def _has_ended(server: Server, writer: Child) -> bool:
    """Return whether a writer has ended or lost a session: then the load is incomplete."""
    return writer.status() is not None or bool(_log_of(server).read_text(errors="replace"))


def _last_written(server: Server) -> int:
    return int(server.value(f"COALESCE(MAX(id), 0) FROM {schema_of(server)}.written"))


def _await_write_after(written: int, server: Server, writer: Child) -> None:
    deadline = time.monotonic() + _FIRST_WRITE_SECONDS_MAX
    while _last_written(server) <= written:
        if _has_ended(server, writer) or time.monotonic() > deadline:
            raise LoadEnded(_log_of(server).read_text(errors="replace") or "nothing was written")
        time.sleep(_POLL_SECONDS)


def _log_of(server: Server) -> Path:
    return server.folder / "load.log"


def _writer(command: list[str], server: Server, connections: int, pause_seconds: float) -> Child:
    statements = ["INSERT INTO written (payload) VALUES (REPEAT('x', 20))"]
    if pause_seconds:
        statements.append(f"DO SLEEP({pause_seconds})")
    _log_of(server).unlink(missing_ok=True)  # errors of an earlier load do not count
    return current_supervisor().start(
        [
            *command,
            *("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP"),
            f"--create-schema={schema_of(server)}",
            "--no-drop",
            "--silent",
            f"--concurrency={connections}",
            f"--number-of-queries={_FOREVER}",
            "--delimiter=;",
            f"--query={';'.join(statements)}",
        ],
        folder=server.folder,
        output=_log_of(server),
        environment={},
    )
