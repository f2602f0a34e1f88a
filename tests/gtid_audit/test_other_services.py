"""Every command that connects, on the port of another service, or of a server that wants too much."""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gtid_audit.cli import run
from tests.fake_server import PASSWORD, Peer, fake_server
from tests.topology.test_connection import caching_sha2, clear_password, http, ssh

SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"
COMMANDS: list[tuple[str, ...]] = [
    ("pair", "{dsn}", "{other}"),
    ("binlog", "show", SET, "{dsn}"),
    ("binlog", "show", SET, "{dsn}", "--undo", "--schema-from", "{dsn}"),
    ("binlog", "scan", "{dsn}"),
    ("binlog", "locate", SET, "{dsn}"),
    ("binlog", "compare", "{dsn}", "{other}"),
    ("binlog", "schema", "follow", "{dsn}", "--store", "{tmp}/store"),
    ("repair", "plan", "--pair", "{dsn}", "{other}", "--out", "{tmp}/plan"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(each[:2]) for each in COMMANDS])
@pytest.mark.parametrize(
    "service",
    [
        (ssh, "not a MySQL server: it sent 'SSH-2.0-OpenSSH_9.2p1 Debian-2'"),
        (http, "not a MySQL server: it sent 'HTTP/1.1 400 Bad Request'"),
        (clear_password, "the password was not sent"),
        (caching_sha2, "the password was not sent"),
    ],
)
def test_the_reason_is_reported_at_once(
    command: tuple[str, ...],
    service: tuple[Callable[[Peer], None], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serve, said = service
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", PASSWORD)
    monkeypatch.setenv("COLUMNS", "400")
    with fake_server(serve) as server, fake_server(serve) as other:
        dsn = f"mysql://u@127.0.0.1:{server.port}/"
        names = {"dsn": dsn, "other": f"mysql://u@127.0.0.1:{other.port}/", "tmp": tmp_path}
        status = run([*(word.format(**names) for word in command), "--timeout", "5"])
        received = server.received + other.received
    texts = capsys.readouterr()
    assert status == 3
    assert said in " ".join((texts.out + texts.err).split())
    assert len(server.peers) == 1, "it is not tried again"
    assert len(other.peers) <= 1, "nor is the other one"
    assert PASSWORD.encode() not in received


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(each[:2]) for each in COMMANDS])
def test_a_closed_port_is_reported_at_once(
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A dump that breaks off is tried again; a server that was never reached is not."""
    monkeypatch.setenv("GTID_AUDIT_PASSWORD", PASSWORD)
    monkeypatch.setenv("COLUMNS", "400")
    waits: list[float] = []
    # In this module only: other threads of the process (those of Spark's driver) sleep too.
    its_time = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    monkeypatch.setattr("binlog.adapters.stream_session.time", its_time)
    with (
        socket.create_server(("127.0.0.1", 0)) as first,
        socket.create_server(("127.0.0.1", 0)) as second,
    ):
        ports = [each.getsockname()[1] for each in (first, second)]
    dsn, other = (f"mysql://u@127.0.0.1:{port}/" for port in ports)
    names = {"dsn": dsn, "other": other, "tmp": tmp_path}
    status = run([*(word.format(**names) for word in command), "--timeout", "5"])
    texts = capsys.readouterr()
    assert status == 3
    assert "Connection refused" in texts.out + texts.err
    assert waits == []
