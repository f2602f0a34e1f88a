"""A live server's logs as they are compared: what is asked for, and when the asking ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn
from uuid import UUID

import pymysql
import pytest

from binlog.adapters import compare_server
from binlog.adapters.compare_all import last_of_each_tsid
from binlog.adapters.compare_server import (
    ComparedServer,
    ServerCompared,
    Since,
    Starts,
    uuid_or_none,
)
from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut
from binlog.errors import DumpBroken
from binlog.scan import EventGroup
from compose.native.server import Server, free_port
from gtid import GNO_END, GtidSet
from tests.binlog.builders import UUID_A, Log
from tests.binlog.logs_in_memory import MemoryLogs
from tests.binlog.material import connect_arguments
from tests.binlog.test_stream_cuts import large  # a fixture: 60 transactions of 1 MB

__all__ = ["large"]


def a(ranges: str) -> GtidSet:
    return GtidSet.parse(f"{UUID_A}:{ranges}")


def given(compared: ServerCompared, wanted: GtidSet) -> GtidSet:
    groups = compared.groups_of(wanted)
    return GtidSet.of(group.transaction.gtid for group in groups if group.transaction.gtid)


class Told:
    """A server with transactions 1 to 2000; it complains when it is asked for the last of them."""

    asked: GtidSet

    def __init__(self, connect: object, *, timeout_seconds_max: float) -> None:
        assert (connect, timeout_seconds_max) == ({}, 7)

    def events_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        type(self).asked = wanted
        log = Log()
        for gtid in wanted.gtids():
            log.gtid(gtid.gno)
            log.query("CREATE TABLE t (a INT)")
        given = list(MemoryLogs({"log": bytes(log)}).events_of(wanted))
        yield from given[:-1]
        pytest.fail("what was wanted was there already")


@pytest.mark.parametrize(
    ("executed", "purged", "wanted", "asked"),
    [
        ("1-2000", "0", "1-4", "1-4:6:9:21:69:261:1029"),
        ("1-2000", "1-2:9-80", "1-4", "3-4:6:261:1029"),
        ("1-2000", "0", "3:1990-1994", "3:1990-1994:1996:1999"),
        (f"1-9:{GNO_END - 9}-{GNO_END - 1}", "0", f"{GNO_END - 5}", f"{GNO_END - 5}:{GNO_END - 3}"),
    ],
)
def test_some_from_behind_are_asked_for_and_none_of_them_given(
    executed: str, purged: str, wanted: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make the server send what it has; nobody waits until it has skipped its whole log."""
    monkeypatch.setattr(compare_server, "ServerLogs", Told)
    gone = GtidSet() if purged == "0" else a(purged)
    state = ComparedServer("a", UUID_A, a(executed), gone, ("binlog.000001",))
    compared = ServerCompared(state, {}, timeout_seconds_max=7)
    assert given(compared, a(wanted)) == a(wanted) - gone
    assert Told.asked == a(asked)


def test_of_a_large_log_the_first_are_there_and_no_more(large: Server) -> None:
    executed = GtidSet.parse(large.value("@@GLOBAL.gtid_executed"))
    uuid = UUID(large.value("@@GLOBAL.server_uuid"))
    state = ComparedServer("a", uuid, executed, GtidSet(), ("binlog.000001",))
    compared = ServerCompared(state, connect_arguments(large), timeout_seconds_max=10)
    for wanted in (executed.first(3), executed - executed.first(58), executed):
        assert given(compared, wanted) == wanted


@pytest.mark.parametrize(
    ("ranges", "size", "expected"),
    [
        ("1-100", 3, "98-100"),
        ("1-5:9:11-12", 3, "9:11-12"),
        ("1-5:9:11-12", 4, "5:9:11-12"),
        ("1-5:9:11-12", 9, "1-5:9:11-12"),
    ],
)
def test_the_newest_of_each_tsid(ranges: str, size: int, expected: str) -> None:
    gtids = GtidSet.parse(f"{UUID_A}:{ranges},{UUID(int=7)}:1-9:tag:4")
    newest = last_of_each_tsid(gtids, size)
    assert newest.from_uuid(UUID_A) == GtidSet.parse(f"{UUID_A}:{expected}")
    of_other = f"{UUID(int=7)}:{10 - size}-9:tag:4"
    assert newest.without_uuid(UUID_A) == GtidSet.parse(of_other)


def test_where_no_server_answers_nobody_waits_for_one() -> None:
    nowhere = {"host": "127.0.0.1", "port": free_port("127.0.0.1"), "user": "root"}
    begun = time.monotonic()
    with pytest.raises(DumpBroken, match="no connection to the server"):
        list(ServerLogs(nowhere, timeout_seconds_max=30).events_of(GtidSet.parse(f"{UUID_A}:1")))
    with pytest.raises(DumpBroken, match="no connection to the server"):
        list(ledger_of_server(nowhere, AllBut(GtidSet()), timeout_seconds_max=30))
    assert time.monotonic() - begun < 5


def test_what_a_member_commits_under_the_uuid_of_its_group_is_its_own() -> None:
    group, other = UUID(int=7), UUID(int=8)
    state = ComparedServer("m", UUID_A, GtidSet(), GtidSet(), (), group_name=group)
    gtids = GtidSet.parse(f"{UUID_A}:1,{group}:2,{other}:3")
    assert state.own(gtids) == GtidSet.parse(f"{UUID_A}:1,{group}:2")
    alone = replace(state, group_name=None)
    assert alone.own(gtids) == GtidSet.parse(f"{UUID_A}:1")
    assert uuid_or_none(str(group)) == group
    assert uuid_or_none("") is uuid_or_none(None) is uuid_or_none("AUTOMATIC") is None


@pytest.mark.parametrize("looked_at", [Starts.EVERY, Since(0)])
def test_around_the_restarts_of_a_server_without_own_transactions_nothing_is_read(
    looked_at: Starts | Since,
) -> None:
    def refuse() -> NoReturn:
        raise pymysql.err.OperationalError(2003, "no server answers here")

    other = GtidSet.parse(f"{UUID(int=8)}:1-5")
    replica = ComparedServer("r", UUID_A, other, GtidSet(), ("binlog.000001",), up_since_seconds=0)
    assert list(ServerCompared(replica, refuse, 5, looked_at).starts()) == []
    source = replace(replica, executed=other | a("1"))
    with pytest.raises(DumpBroken, match="no server answers here"):
        list(ServerCompared(source, refuse, 5, looked_at).starts())
