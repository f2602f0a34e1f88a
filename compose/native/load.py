"""A write load on several servers at once: thousands of small transactions a second.

The ``mysqlslap`` program writes, so that the load does not compete with Python's threads for the
interpreter. Each server writes into a table of its own; no row is ever written from two sides.
It does not know what the servers are to each other.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from compose.native.installation import Clients
from compose.native.processes import Child, current_supervisor
from compose.native.provision import provision_clients
from compose.native.server import Server

_FOREVER = 2_000_000_000
_STOP_SECONDS_MAX = 10.0


@contextmanager
def write_load(
    servers: Sequence[Server], *, clients: Clients | None = None, connections: int = 2
) -> Iterator[None]:
    """Write to every server from ``connections`` sessions each until the block ends.

    Raises LoadEnded at the end if a writer did not live to see it: then the block did not run
    under load.
    """
    command = (clients or provision_clients()).command("mysqlslap")
    for server in servers:
        server.execute(
            f"CREATE DATABASE IF NOT EXISTS {schema_of(server)}",
            f"CREATE TABLE IF NOT EXISTS {schema_of(server)}.written"
            " (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload VARCHAR(40))",
        )
    writers = [_writer(command, server, connections) for server in servers]
    ended = []
    try:
        yield
    finally:
        for server, writer in zip(servers, writers, strict=True):
            if writer.status() is not None:
                ended.append((server.folder / "load.log").read_text(errors="replace"))
            writer.send(signal.SIGKILL)
            writer.wait(timeout_seconds_max=_STOP_SECONDS_MAX)
    if ended:
        raise LoadEnded("\n".join(ended))


class LoadEnded(Exception):
    """A writer ended before it was told to; the message is what it printed."""


def schema_of(server: Server) -> str:
    """Return the schema only this server writes to."""
    return f"load_{server.name}_{server.server_id}"


def _writer(command: list[str], server: Server, connections: int) -> Child:
    return current_supervisor().start(
        [
            *command,
            *("--user=root", f"--host={server.host}", f"--port={server.port}", "--protocol=TCP"),
            f"--create-schema={schema_of(server)}",
            "--no-drop",
            "--silent",
            f"--concurrency={connections}",
            f"--number-of-queries={_FOREVER}",
            "--query=INSERT INTO written (payload) VALUES (REPEAT('x', 20))",
        ],
        folder=server.folder,
        output=server.folder / "load.log",
        environment={},
    )
