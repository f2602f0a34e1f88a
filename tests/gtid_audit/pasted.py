"""Saves what the real mysql client prints, as docs/offline.md tells an operator to do it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compose.native.installation import Clients
from compose.native.server import Server
from topology.adapters.offline.statements_to_paste import script_for
from topology.readings.version import ServerVersion

VERTICAL: Sequence[str] = ("--vertical",)


def printed(
    server: Server, clients: Clients, statements: str, *, options: Sequence[str] = VERTICAL
) -> str:
    """Return what the client prints, with its errors, in their order."""
    call = [*clients.command("mysql"), "--user=root", "--host=127.0.0.1", f"--port={server.port}"]
    done = subprocess.run(
        [*call, "--force", *options],
        input=statements,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def answered(server: Server, clients: Clients, *, options: Sequence[str] = VERTICAL) -> str:
    """Return the output of --questions for the server's version, between two times."""
    version = ServerVersion.parse(server.value("@@GLOBAL.version"))
    output = printed(server, clients, script_for(version), options=options)
    return f"{_now()}{output}{_now()}"


def save_round(
    servers: Mapping[str, Server],
    clients: Clients,
    folder: Path,
    which: str,
    *,
    options: Sequence[str] = VERTICAL,
) -> None:
    """Save the output of all servers: NAME.first.txt, NAME.second.txt, or NAME.txt."""
    folder.mkdir(exist_ok=True)
    for name, server in servers.items():
        path = folder / ".".join(filter(None, (name, which, "txt")))
        path.write_text(answered(server, clients, options=options))


def _now() -> str:
    return subprocess.run(
        ["date", "-u", "+%FT%TZ"], capture_output=True, text=True, check=True
    ).stdout
