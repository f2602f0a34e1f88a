"""Behind which starts of real servers an audit looks: all that are recent, and what is purged."""

import json
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from pymysql.connections import Connection

from binlog.adapters.compare_server import ComparedServer, ServerCompared, Since
from binlog.content.reuse import FIRST_COMPARED, Unread
from binlog.content.server_starts import ServerStart
from compose import faults, faults_content
from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from tests.gtid_audit.build import run_cli
from topology.adapters.mysql import connect
from topology.readings.target import ServerTarget

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def audited(pair: Pair) -> dict[str, Any]:
    done = run_cli("pair", pair.a.dsn, pair.b.dsn, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_reuse_behind_an_earlier_start_of_the_day_is_found(pair97: Pair) -> None:
    fault = faults.reused_numbers(pair97)
    pair97.a.restart()
    pair97.a.execute("CREATE DATABASE after_the_second_start")
    pair97.settle()
    [finding] = audited(pair97)["findings"]
    assert (finding["code"], finding["severity"]) == ("E4", "critical")
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)


def test_reuse_is_found_behind_what_the_replica_has_purged(pair97: Pair) -> None:
    b = pair97.b
    b.execute("SET GLOBAL max_binlog_size = 4096")  # about a dozen transactions
    fault = faults.reused_numbers(pair97, lost_count=40)
    b.execute("SET GLOBAL max_binlog_size = DEFAULT")
    names = [str(row[0]) for row in b.query("SHOW BINARY LOGS")]
    b.execute(f"PURGE BINARY LOGS TO '{names[-2]}'")
    reused = GtidSet.parse(fault.reused)
    still_there = reused - GtidSet.parse(b.value("@@GLOBAL.gtid_purged"))
    assert still_there
    assert not still_there & reused.first(FIRST_COMPARED)
    [finding] = audited(pair97)["findings"]
    assert (finding["code"], finding["severity"]) == ("E4", "critical")
    assert GtidSet.parse(finding["gtid_set"]) == still_there


def test_reuse_is_found_behind_free_numbers_that_the_source_filled_first(pair97: Pair) -> None:
    fault = faults_content.reused_above_free_gnos(pair97)
    assert pair97.a.value("@@GLOBAL.gtid_executed") == pair97.b.value("@@GLOBAL.gtid_executed")
    [finding] = audited(pair97)["findings"]
    assert (finding["code"], finding["severity"], finding["grade"]) == ("E4", "critical", "proved")
    assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.lost)


def _compared(server: Server, *, since: int, full: frozenset[str] = frozenset()) -> ServerCompared:
    def way() -> "Connection[Any]":
        target = ServerTarget(server.name, server.host, server.port, "root")
        return connect(target, timeout_seconds_max=10)

    with closing(way()) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
        [uptime] = cursor.fetchall()
    state = ComparedServer(
        name=server.name,
        server_uuid=UUID(server.value("@@GLOBAL.server_uuid")),
        executed=GtidSet.parse(server.value("@@GLOBAL.gtid_executed")),
        purged=GtidSet(),
        log_names=tuple(str(row[0]) for row in server.query("SHOW BINARY LOGS")),
        full_logs=full,
        up_since_seconds=int(server.value("UNIX_TIMESTAMP()")) - int(uptime["Value"]),
    )
    return ServerCompared(state, way, 10, Since(since))


def test_logs_begun_because_the_one_before_was_full_are_not_asked(pair97: Pair) -> None:
    a = pair97.a
    a.execute("CREATE DATABASE own")
    begun = int(a.value("UNIX_TIMESTAMP()"))
    a.restart()
    a.execute(*["FLUSH BINARY LOGS"] * 12)
    names = [str(row[0]) for row in a.query("SHOW BINARY LOGS")]
    every = _compared(a, since=begun - 3600)
    starts = list(every.starts())
    assert all(isinstance(each, ServerStart) for each in starts)
    assert every.heads_read == len(names)
    latest = starts[0]
    assert isinstance(latest, ServerStart)
    at = names.index(latest.file)
    some = _compared(a, since=begun - 3600, full=frozenset(names[at:]))
    assert list(some.starts()) == starts
    assert some.heads_read <= at + 1 + len(names).bit_length()
    recent = _compared(a, since=begun, full=frozenset(names[at:]))
    assert latest in recent.starts()
    a.execute(f"PURGE BINARY LOGS TO '{names[at + 1]}'")
    gone = _compared(a, since=begun - 3600)
    reason = "the log that began at its latest restart is purged"
    assert list(gone.starts()) == [Unread("a", reason, is_lasting=True)]
    a.restart()
    [start, unread] = _compared(a, since=begun - 3600).starts()
    assert isinstance(start, ServerStart)
    reason = "the log that began at an earlier restart is purged"
    assert unread == Unread("a", reason, is_lasting=True)
