"""A server to which a connection failed costs a plan one limit of time, and not one a question."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from repair.adapters import servers_to_read as module
from repair.adapters.servers_to_read import ServersToRead
from tests.snapshots import A, B, a_cluster, a_server, an_unread
from topology.readings.target import ServerTarget

TARGETS = {name: ServerTarget(name, "127.0.0.1", 1, "root") for name in "ab"}


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every connection fail, and return the names of the servers that were tried."""
    found: list[str] = []

    def refuse(target: ServerTarget, **_: Any) -> None:
        found.append(target.name)
        raise pymysql.err.OperationalError(2013, "no answer in time")

    monkeypatch.setattr(module, "connect", refuse)
    return found


def test_a_server_that_does_not_answer_is_tried_once(tried: list[str]) -> None:
    snapshot = a_cluster("cluster", a_server("a", A, ""), a_server("b", B, ""))
    servers = ServersToRead.of(snapshot, TARGETS, 1.0)
    for _ in range(2):
        assert servers.answers("ab", lambda name, _: name) == {}
        with pytest.raises(pymysql.err.OperationalError, match="no answer in time"):
            servers.connect("a")
    assert tried == ["a", "b"]


def test_a_server_that_the_audit_did_not_reach_is_not_tried(tried: list[str]) -> None:
    unread = an_unread("b")
    [fact] = [each for each in unread.unread if each.fact == "connection"]
    servers = ServersToRead.of(a_cluster("cluster", a_server("a", A, ""), unread), TARGETS, 1.0)
    with pytest.raises(pymysql.err.OperationalError, match=fact.detail):
        servers.connect("b")
    assert tried == []
