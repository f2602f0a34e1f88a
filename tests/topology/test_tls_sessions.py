"""A second connection resumes the TLS session of the first, unless certificates are verified."""

import ssl
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compose.native.server import Server
from topology.adapters import tls_sessions
from topology.adapters.connection import connect
from topology.adapters.tls_contexts import unverified_context
from topology.adapters.tls_sessions import _Kept
from topology.readings.target import ServerTarget, SslMode


def is_resumed(target: ServerTarget) -> bool:
    with closing(connect(target, timeout_seconds_max=10.0)) as connection:
        tls: Any = connection._sock  # type: ignore[attr-defined]
        return bool(tls.session_reused)


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_sessions, "_kept", _Kept())


@pytest.mark.usefixtures("nothing_kept")
def test_the_session_with_a_server_is_resumed(mysql97: Server) -> None:
    target = ServerTarget(name="a", host=mysql97.host, port=mysql97.port, user="root")
    assert [is_resumed(target) for _ in range(3)] == [False, True, True]
    mysql97.restart()
    assert is_resumed(target) is False, "the server does not know it any more"
    assert is_resumed(target) is True


@pytest.mark.usefixtures("nothing_kept")
def test_a_connection_that_verifies_makes_a_full_handshake(mysql97: Server) -> None:
    ca = str(Path(mysql97.value("@@GLOBAL.datadir"), "ca.pem"))
    anyone = ServerTarget(name="a", host=mysql97.host, port=mysql97.port, user="root")
    target = replace(anyone, ssl_mode=SslMode.VERIFY_CA, ssl_ca=ca)
    assert [is_resumed(target) for _ in range(2)] == [False, False]


def test_a_session_is_of_its_context_and_the_oldest_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tls_sessions, "SESSIONS_MAX", 2)
    kept, context = _Kept(), unverified_context()
    sessions: list[Any] = [object() for _ in range(4)]
    for number in (0, 1, 0, 2):
        kept.put(context, (f"host{number}", 3306), sessions[number])
    found = [kept.get(context, (f"host{number}", 3306)) for number in range(3)]
    assert found == [sessions[0], None, sessions[2]]
    assert kept.get(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ("host0", 3306)) is None
    assert kept.get(context, ("host0", 3307)) is None
