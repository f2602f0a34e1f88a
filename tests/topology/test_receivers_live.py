"""Receivers that run and bring nothing, and commits that hang, on real servers."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
from pymysql.constants import ER

from compose.faults import await_status, commit
from compose.faults_applier import await_received, by_position
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from tests.topology.test_faults_live import audited, only, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade, Severity, Verdict
from topology.policy import Policy

_SEMISYNC = (
    "--plugin-load-add=semisync_source.so",
    "--plugin-load-add=semisync_replica.so",
    "--rpl-semi-sync-replica-enabled=ON",
    "--rpl-semi-sync-source-timeout=600000",
)
IMPATIENT = Policy(stall_seconds_max=1)


def impatiently(topology: Topology) -> ClusterAudit:
    return audit_cluster(collect_cluster("live", targets_of(topology), policy=IMPATIENT), IMPATIENT)


def test_a_reset_of_the_source_under_connected_receivers(star97: Topology) -> None:
    source = star97["source"]
    source.execute(*[f"CREATE DATABASE d{number}" for number in range(12)])
    star97.settle()
    had = source.value("@@gtid_executed")
    source.execute("RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{had}'")
    for _ in range(2):
        audit = audited(star97)
        assert {(one.code, one.grade, one.replica) for one in audit.findings} == {
            ("A4", Grade.PROVED, "replica1"),
            ("A4", Grade.PROVED, "replica2"),
        }
        assert audit.verdict is Verdict.CRITICAL
        source.execute("CREATE DATABASE after_the_reset")
        source.execute("DROP DATABASE after_the_reset")
    for name in ("replica1", "replica2"):  # as the finding says
        star97[name].execute("STOP REPLICA IO_THREAD", "START REPLICA IO_THREAD")
    star97.settle()
    assert audited(star97).verdict is Verdict.OK


def test_a_reset_of_an_old_source_under_a_connected_receiver(pair56: Pair) -> None:
    """5.6 sends nothing either, unless another log follows. Here nothing is missing yet."""
    a, b = pair56["a"], pair56["b"]
    a.execute("CREATE DATABASE wide", "CREATE TABLE wide.t (note VARCHAR(2000))")
    commit(a, "INSERT INTO wide.t VALUES (REPEAT('x', 2000))")
    pair56.settle()
    had = GtidSet.parse(str(a.value("@@GLOBAL.gtid_executed")))
    a.execute("RESET MASTER")
    for gtid in had.gtids():  # as `inject_empty` does
        a.execute(f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC")
    assert GtidSet.parse(str(b.value("@@GLOBAL.gtid_executed"))) == had
    audit = audited(pair56)
    assert [(one.code, one.grade, one.replica) for one in audit.findings] == [
        ("A4", Grade.PROVED, "b")
    ]
    a.execute("CREATE DATABASE after_the_reset")
    time.sleep(1)
    assert GtidSet.parse(str(b.value("@@GLOBAL.gtid_executed"))) == had
    b.execute("STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")  # as the finding says
    pair56.settle()
    assert audited(pair56).verdict is Verdict.OK


@pytest.mark.parametrize("shape", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_a_reset_of_the_source_of_a_file_position(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """Its receiver waits as well, and a restart alone is refused, as the finding says."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE wide", "CREATE TABLE wide.t (note VARCHAR(2000))")
    commit(a, "INSERT INTO wide.t VALUES (REPEAT('x', 2000))")
    pair.settle()
    by_position(b)
    await_status(b, lambda status: status["Replica_IO_Running"] == "Yes")
    had = GtidSet.parse(str(a.value("@@GLOBAL.gtid_executed")))
    a.execute(a.dialect.words.reset_binary_logs_and_gtids)
    for gtid in had.gtids():
        a.execute(f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC")
    [found] = [one for one in audited(pair).findings if one.code == "A4"]
    assert (found.grade, found.replica) == (Grade.PROVED, "b")
    assert "By file position its next connection is refused as well" in found.explanation
    b.execute(b.dialect.stop_replica, b.dialect.start_replica)
    await_status(b, lambda status: "position > file size" in status["Last_IO_Error"])
    b.execute(
        b.dialect.stop_replica,
        f"{b.dialect.words.change_source} {b.dialect.words.option_prefix}AUTO_POSITION = 1",
        b.dialect.start_replica,
    )
    wait_for(b, commit(a, "INSERT INTO wide.t VALUES ('after')"))


@contextmanager
def frozen_link(
    replica: Server, source: Server, *, bytes_left: int = 0
) -> Iterator[Callable[[], None]]:
    """Let a replica follow its source through a relay; the function given freezes the relay.

    It still passes `bytes_left` to the replica then.
    """
    frozen = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        replica.execute(
            replica.dialect.stop_replica,
            replica.dialect.change_source_to(port=listener.getsockname()[1]),
            replica.dialect.start_replica,
        )
        inner, _ = listener.accept()
        outer = socket.create_connection((source.host, source.port))

        def pass_on(end: socket.socket, other: socket.socket) -> None:
            left = bytes_left if end is outer else 0
            with suppress(OSError):  # either end may go away first
                while data := end.recv(65_536):
                    if frozen.is_set():
                        data, left = data[:left], max(0, left - len(data))
                    other.sendall(data)

        threads = [Thread(target=pass_on, args=ends) for ends in ((inner, outer), (outer, inner))]
        for thread in threads:
            thread.start()
        try:
            yield frozen.set
        finally:
            for end in (inner, outer):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            inner.close()
            outer.close()


def assert_dead_is_a4(topology: Topology, source: Server, replica: Server) -> None:
    with frozen_link(replica, source) as freeze:
        source.execute("CREATE DATABASE arrives")
        for server in topology.servers.values():
            shapes.wait_for(server, source.value("@@GLOBAL.gtid_executed"))
        assert impatiently(topology).verdict is Verdict.OK
        freeze()
        source.execute("CREATE DATABASE does_not_arrive")
        for server in topology.servers.values():
            if server is not replica:
                shapes.wait_for(server, source.value("@@GLOBAL.gtid_executed"))
        early = audited(topology)
        time.sleep(2.5)
        late = only(impatiently(topology))
    # C9: without its channel back, the second server of a pair is a replica that takes writes.
    found = [(one.code, one.severity) for one in early.findings if one.code != "C9"]
    assert found == [("T3", Severity.INFO)]
    assert (late.code, late.grade, late.severity) == ("A4", Grade.LIKELY, Severity.WARNING)
    assert "replica_net_timeout" in late.explanation


def test_a_connection_that_is_dead_and_not_known_to_be(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    assert_dead_is_a4(star97, source, replica)


@pytest.mark.parametrize("shape", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_half_of_a_transaction_does_not_clear_by_itself(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """The connection dies in the middle of a transaction: an applier has begun it already."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE half", "CREATE TABLE half.t (id INT PRIMARY KEY, x LONGBLOB)")
    pair.settle()
    with frozen_link(b, a, bytes_left=150_000) as freeze:
        shapes.wait_for(b, commit(a, "INSERT INTO half.t VALUES (1, 'all of it')"))
        freeze()
        rows = [f"INSERT INTO half.t VALUES ({key}, REPEAT('x', 50000))" for key in range(2, 22)]
        half = commit(a, "BEGIN", *rows, "COMMIT")
        time.sleep(1)
        early = audited(pair)
        time.sleep(2.5)
        late = only(impatiently(pair))
        b.execute(b.dialect.stop_receiver)
        stopped = audited(pair)
    b.kill()  # STOP REPLICA would wait 60 s for the other half (9.7.4)
    assert [(one.code, one.gtid_set) for one in early.findings] == [("T3", GtidSet.parse(half))]
    assert (late.code, late.grade, late.severity) == ("A4", Grade.LIKELY, Severity.WARNING)
    assert late.gtid_set == GtidSet.parse(half)
    assert only(stopped).code == "A7"
    assert "T2" not in {one.code for one in stopped.findings}


@pytest.mark.slow
def test_an_old_connection_that_is_dead_and_not_known_to_be(pair56: Pair) -> None:
    a, b = pair56.a, pair56.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    assert_dead_is_a4(pair56, a, b)


def test_an_old_source_sends_its_new_log(pair56: Pair) -> None:
    a, b = pair56.a, pair56.b
    a.execute("STOP SLAVE", "RESET SLAVE ALL")
    a.execute(*[f"CREATE DATABASE d{number}" for number in range(12)])
    pair56.settle()
    had = a.value("@@GLOBAL.gtid_executed")
    a.execute("RESET MASTER", f"SET GLOBAL gtid_purged = '{had}'")
    audit = audited(pair56)
    assert "A4" not in {one.code for one in audit.findings}
    a.execute("CREATE DATABASE after_the_reset")
    shapes.wait_for(b, a.value("@@GLOBAL.gtid_executed"))


@pytest.fixture(scope="module")
def semisync97(installation97: Installation) -> Iterator[Topology]:
    with shapes.star(installation97, extra=_SEMISYNC) as star:
        yield star


@pytest.mark.slow
def test_a_commit_that_waits_for_a_replica_for_long(semisync97: Topology) -> None:
    source = semisync97["source"]
    semisync97["replica2"].execute("STOP REPLICA")
    source.execute(
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
        "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 2",
    )
    client = Thread(target=source.execute, args=("CREATE DATABASE hangs",))
    client.start()
    try:
        time.sleep(2.5)
        early, late = audited(semisync97), impatiently(semisync97)
    finally:
        semisync97["replica2"].execute("START REPLICA")
        client.join()
    assert [one.severity for one in early.findings if one.code == "T4"] == [Severity.INFO]
    [found] = [one for one in late.findings if one.code == "T4"]
    assert (found.severity, found.grade, found.replica) == (
        Severity.WARNING,
        Grade.LIKELY,
        "replica1",
    )
    assert found.gtid_set <= GtidSet.parse(source.value("@@gtid_executed"))
    semisync97.settle()
    assert audited(semisync97).verdict is Verdict.OK


def test_an_old_receiver_is_refused_for_what_it_has_received_last(pair56: Pair) -> None:
    """It asks for it once more when it connects, and its source has purged it: T2's warning."""
    a, b = pair56.a, pair56.b
    a.execute("CREATE DATABASE last_one")
    pair56.settle()
    b.execute("STOP SLAVE SQL_THREAD")
    last = commit(a, "CREATE TABLE last_one.t (id INT PRIMARY KEY)")
    await_status(
        b, lambda status: GtidSet.parse(last) <= GtidSet.parse(status["Retrieved_Gtid_Set"])
    )
    a.execute("FLUSH LOGS")
    file, _ = a.binary_log_position()
    a.execute(f"PURGE BINARY LOGS TO '{file}'")
    b.execute("STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
    await_status(b, lambda status: status["Last_IO_Errno"] == ER.MASTER_FATAL_ERROR_READING_BINLOG)


def test_what_a_reset_source_counts_as_received_is_errant_below_it(chain97: Topology) -> None:
    """b had it and forgot it; c has it, and nothing brings it to b any more."""
    first, middle, last = chain97.servers.values()
    foreign = "aaaaaaaa-0000-11e1-91d6-02fc00000001"
    first.execute(f"SET gtid_next = '{foreign}:1'", "CREATE DATABASE foreign_one")
    chain97.settle()
    assert audited(chain97).verdict is Verdict.OK
    middle.execute("RESET BINARY LOGS AND GTIDS")
    first.execute("RESET BINARY LOGS AND GTIDS")
    audit = audited(chain97)
    assert audit.verdict is Verdict.CRITICAL
    errant = [one for one in audit.findings if (one.code, one.replica) == ("E1", last.name)]
    assert [one.gtid_set for one in errant] == [GtidSet.parse(f"{foreign}:1")]


@pytest.mark.parametrize("is_receiver_stopped", [False, True])
def test_a_stopped_applier_is_reported_while_its_source_is_dead(
    installation97: Installation, *, is_receiver_stopped: bool
) -> None:
    """Its relay log may have the last copy, and the error of its receiver does not hide that."""
    with shapes.pair(installation97) as pair:
        _stopped_below_a_dead_source(pair, is_receiver_stopped=is_receiver_stopped)


def _stopped_below_a_dead_source(pair: Pair, *, is_receiver_stopped: bool) -> None:
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair.settle()
    b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    waits = commit(a, "INSERT INTO d.t VALUES (1)")
    await_received(b, waits)
    if is_receiver_stopped:
        b.execute(b.dialect.stop_replica)
    targets = targets_of(pair)
    a.kill()
    if not is_receiver_stopped:
        await_status(b, lambda status: status["Last_IO_Errno"] != 0)
    audit = audit_cluster(collect_cluster("pair", targets))
    assert audit.verdict is Verdict.UNKNOWN
    [found] = [each for each in audit.findings if each.code == "A7"]
    assert found.replica == "b"
    assert "It has received 1 transaction that it has not applied" in found.explanation
    assert "the relay log may be the last copy" in found.explanation
