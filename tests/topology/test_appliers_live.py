"""Appliers on real servers: what they passed is H8, what holds them up is A5 or A8, or a delay."""

import re
import time

import pytest
from pymysql.constants import ER

from compose import faults_applier as faults
from compose.faults import await_status, commit, table_on
from compose.native import load
from compose.native.installation import Clients
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, await_uptime, wait_for
from gtid import GtidSet
from tests.snapshots import a_cluster
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.gtid_waits import owning_channel
from topology.policy import Policy
from topology.questions.contents_to_compare import suspects_in
from topology.readings.target import ServerTarget

SOON = Policy(lock_wait_seconds_max=1, stall_seconds_max=1)
LONGER_SECONDS = 2.2  # than both limits of SOON, by the server's whole seconds


def audited(topology: Topology, policy: Policy | None = None) -> ClusterAudit:
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in topology.servers.items()
    ]
    return audit_cluster(collect_cluster("live", targets, policy=policy), policy)


def above_info(audit: ClusterAudit) -> dict[str, Finding]:
    assert audit.unknown == ()
    found = [each for each in audit.findings if each.severity is not Severity.INFO]
    assert len({each.code for each in found}) == len(found), audit
    return {each.code: each for each in found}


# -- passed ---------------------------------------------------------------------------------------


def assert_passed(audit: ClusterAudit, fault: faults.Passed) -> None:
    found = above_info(audit)
    # C3: RELAY_LOG_POS needs a file position. A4: after a reset of b the receiver of a gets nothing.
    # C4: the skip counter needs gtid_mode = ON_PERMISSIVE, with which a refuses b's next connection.
    assert found.keys() <= {"H8", "C3", "A4", "C4"}, audit
    assert "A4" not in found or (found["A4"].replica, fault.rows_are_there) == ("a", True)
    finding = found["H8"]
    # What was received may be of a former history of a.
    assert (finding.source, finding.replica, finding.grade) == ("a", "b", Grade.LIKELY)
    assert finding.gtid_set == GtidSet.parse(fault.passed)
    assert ("RESET BINARY LOGS AND GTIDS on b" in finding.explanation) is fault.rows_are_there
    assert not [each for each in audit.findings if each.code in ("T1", "T2")]


def test_a_reset_on_a_running_replica_is_h8(pair97: Pair) -> None:
    fault = faults.reset_on_replica(pair97)
    assert_passed(audited(pair97), fault)
    # What comes later is applied; what was forgotten stays so.
    wait_for(pair97["b"], commit(pair97["a"], "CREATE DATABASE after_reset"))
    assert_passed(audited(pair97), fault)


def test_a_reset_on_a_replica_with_nothing_received_is_h8_and_not_h1(pair97: Pair) -> None:
    fault = faults.reset_on_replica(pair97, received_again=False)
    audit = audited(pair97)
    assert_passed(audit, fault)
    text = above_info(audit)["H8"].explanation
    assert "RESET BINARY LOGS AND GTIDS on b" in text
    assert "no event for them" not in text, "the log of a shows them"


def test_a_reset_on_an_old_running_replica_is_h8(pair56: Pair) -> None:
    await_uptime(pair56["b"])
    fault = faults.reset_on_replica(pair56)
    assert_passed(audited(pair56), fault)


def test_a_reset_on_an_old_replica_with_workers_is_h8(pair56: Pair) -> None:
    with_workers(pair56["b"])
    await_uptime(pair56["b"])
    fault = faults.reset_on_replica(pair56)
    assert_passed(audited(pair56), fault)


def test_an_applier_moved_in_its_relay_log_is_h8(pair97: Pair) -> None:
    fault = faults.relay_position_moved(pair97)
    assert_passed(audited(pair97), fault)
    wait_for(pair97["b"], commit(pair97["a"], "CREATE DATABASE after_move"))
    assert_passed(audited(pair97), fault)


def test_an_old_applier_moved_in_its_relay_log_is_h8(pair56: Pair) -> None:
    await_uptime(pair56["b"])
    fault = faults.relay_position_moved(pair56)
    assert_passed(audited(pair56), fault)


def test_a_transaction_that_the_counter_skipped_is_h8(pair97: Pair) -> None:
    fault = faults.skipped_by_counter(pair97, later_count=2)
    assert_passed(audited(pair97), fault)


def test_what_was_received_last_was_received_for_sure(pair97: Pair) -> None:
    fault = faults.skipped_by_counter(pair97)
    finding = above_info(audited(pair97))["H8"]
    assert (finding.grade, finding.gtid_set) == (Grade.PROVED, GtidSet.parse(fault.passed))
    assert "which has reused these GTIDs" not in finding.explanation


def test_what_an_applier_passed_is_h8_under_load(pair97: Pair, mysql_clients: Clients) -> None:
    """The applier is never idle, and the same transactions are reported in every audit."""
    fault = faults.relay_position_moved(pair97)
    passed = GtidSet.parse(fault.passed)
    with load.write_load([pair97["a"]], clients=mysql_clients, pause_seconds=0.01):
        time.sleep(1)
        found = [above_info(audited(pair97)) for _ in range(5)]
    for each in found:
        assert each.keys() <= {"H8", "C3"}
        if "H8" in each:
            assert each["H8"].gtid_set <= passed
    assert sum("H8" in each for each in found) >= 3, found


@pytest.mark.slow
def test_a_single_worker_that_passed_one_is_never_proved_to_come_to_it(
    pair97: Pair, mysql_clients: Clients
) -> None:
    """The malign twin: H8 while the source writes, or a doubt; not "clears by itself", proved."""
    with_one_worker(pair97["b"])
    fault = faults.skipped_by_counter(pair97)
    passed = GtidSet.parse(fault.passed)
    with load.write_load([pair97["a"]], clients=mysql_clients, pause_seconds=0.005):
        time.sleep(1)
        audits = [audited(pair97) for _ in range(8)]
    for audit in audits:
        about = [each for each in audit.findings if each.gtid_set & passed]
        assert about, audit
        assert all(each.code == "H8" or each.grade is Grade.LIKELY for each in about), audit
    assert sum("H8" in above_info(audit) for audit in audits) >= 6, audits


@pytest.mark.slow
def test_a_single_worker_under_load_that_passed_none_is_a_backlog(
    pair97: Pair, mysql_clients: Clients
) -> None:
    """The benign twin, by file position, with a lock of a second on the replica."""
    a, b = pair97.a, pair97.b
    with_one_worker(b)
    table_on(a, b, "held")
    pair97.settle()
    with load.write_load([a], clients=mysql_clients, pause_seconds=0.005):
        for _ in range(4):
            with b.connect() as session, session.cursor() as cursor:
                cursor.execute("FLUSH TABLES WITH READ LOCK")
                audit = audited(pair97)
                cursor.execute("UNLOCK TABLES")
            assert "H8" not in above_info(audit), audit
            assert "H8" not in above_info(audited(pair97))


# -- held up --------------------------------------------------------------------------------------


def with_one_worker(server: Server) -> None:
    """Let a replica apply with one worker."""
    server.execute(
        server.dialect.stop_replica,
        "SET GLOBAL replica_parallel_workers = 1",
        server.dialect.start_replica,
    )


def with_workers(server: Server, count: int = 2) -> None:
    """Let a 5.6 replica apply with workers."""
    server.execute(
        server.dialect.stop_applier,
        f"SET GLOBAL slave_parallel_workers = {count}",
        server.dialect.start_applier,
    )


def assert_blocked(topology: Topology, lock: str, *, grade: Grade) -> ClusterAudit:
    with faults.held_up(topology, lock, count=2) as fault:
        early = audited(topology)  # before the limit
        time.sleep(LONGER_SECONDS)
        late = audited(topology, SOON)
        within_limits = audited(topology)
    for audit in (early, within_limits):
        assert (audit.verdict, above_info(audit)) == (Verdict.OK, {})
        waiting = [each for each in audit.findings if each.code == "T2"]
        assert [each.gtid_set for each in waiting] == [GtidSet.parse(fault.held)]
        assert "by itself" not in waiting[0].explanation
    found = above_info(late)
    assert found.keys() == {"A5"}, late
    assert (found["A5"].source, found["A5"].replica) == ("a", "b")
    assert found["A5"].grade is grade
    assert found["A5"].gtid_set <= GtidSet.parse(fault.held)
    assert found["A5"].gtid_set
    assert not [each for each in late.findings if each.code in ("T1", "T2")]
    assert above_info(audited(topology, SOON)) == {}  # and gone with the lock
    return late


@pytest.mark.parametrize(
    "lock",
    [
        "metadata lock",
        "FLUSH TABLES WITH READ LOCK",
        pytest.param("row lock", marks=pytest.mark.slow),  # it waits for a retry
        pytest.param("prepared XA transaction", marks=pytest.mark.slow),  # 4 s
    ],
)
def test_an_applier_that_waits_for_a_lock_is_a5(pair97: Pair, lock: str) -> None:
    audit = assert_blocked(pair97, lock, grade=Grade.PROVED)
    assert "XA RECOVER" in above_info(audit)["A5"].explanation
    if lock == "row lock":
        assert_retried(pair97)


def assert_retried(topology: Topology) -> None:
    """Let the wait for a row end in error 1205 again and again: it is A5 in the pauses as well."""
    b = topology["b"]
    wait_for(b, commit(topology["a"], "DROP DATABASE applier"))
    b.execute(
        "SET GLOBAL innodb_lock_wait_timeout = 1",
        "SET GLOBAL replica_transaction_retries = 1000",
        b.dialect.stop_applier,
        b.dialect.start_applier,
    )
    with faults.held_up(topology, "row lock"):
        deadline, grades = time.monotonic() + 60, set[Grade]()
        while grades != {Grade.PROVED, Grade.LIKELY}:
            assert time.monotonic() < deadline, grades
            found = above_info(audited(topology, SOON))
            assert found.keys() <= {"A5"}, found
            if "A5" in found:
                grades.add(found["A5"].grade)
                is_pause = "tries again" in found["A5"].explanation
                assert is_pause is (found["A5"].grade is Grade.LIKELY)
    for name in ("innodb_lock_wait_timeout", "replica_transaction_retries"):
        b.execute(f"SET GLOBAL {name} = DEFAULT")


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["LOCK TABLES", "LOCK INSTANCE FOR BACKUP"])
def test_an_applier_that_waits_for_another_lock_is_a5(pair97: Pair, lock: str) -> None:
    assert_blocked(pair97, lock, grade=Grade.PROVED)


def test_an_applier_behind_a_session_that_owns_the_gtid_is_a5(pair97: Pair) -> None:
    audit = assert_blocked(pair97, "owned GTID", grade=Grade.LIKELY)
    finding = above_info(audit)["A5"]
    assert "ROLLBACK or KILL" in finding.explanation
    # If the session commits instead, only the content shows it.
    assert suspects_in(a_cluster("no server"), audit.findings) == finding.gtid_set


@pytest.mark.parametrize(
    "lock",
    [
        "LOCK TABLES",
        pytest.param("metadata lock", marks=pytest.mark.slow),
        pytest.param("FLUSH TABLES WITH READ LOCK", marks=pytest.mark.slow),
    ],
)
def test_an_old_applier_that_waits_for_a_table_is_a5(pair56: Pair, lock: str) -> None:
    assert_blocked(pair56, lock, grade=Grade.LIKELY)


@pytest.mark.slow
def test_an_old_worker_that_waits_for_a_table_is_a5(pair56: Pair) -> None:
    with_workers(pair56["b"], 2)
    assert_blocked(pair56, "LOCK TABLES", grade=Grade.LIKELY)


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_an_old_applier_that_waits_for_a_row_is_a5_and_one_at_work_is_a8(
    pair56: Pair, workers: int
) -> None:
    """Both are in "System lock", or at a statement: only InnoDB shows the row lock."""
    if workers:
        with_workers(pair56["b"], workers)
    audit = assert_blocked(pair56, "row lock", grade=Grade.LIKELY)
    assert "row lock" in above_info(audit)["A5"].explanation
    assert suspects_in(a_cluster("no server"), audit.findings) == GtidSet()
    if not workers:
        long_statement(pair56)
        time.sleep(LONGER_SECONDS)
        assert above_info(audited(pair56, SOON)).keys() == {"A8"}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_an_old_applier_behind_a_session_that_owns_the_gtid_is_a5(
    pair56: Pair, workers: int
) -> None:
    if workers:
        with_workers(pair56["b"], workers)
    assert_blocked(pair56, "owned GTID", grade=Grade.LIKELY)


def long_statement(topology: Pair) -> str:
    """Commit a statement that takes 8 s on b; return all that a has executed.

    A busy machine takes seconds for an audit.
    """
    a, b = topology["a"], topology["b"]
    table_on(a, b, "slow")
    with a.connect() as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        sleeps = f"SLEEP(IF(@@server_id = {b.value('@@GLOBAL.server_id')}, 8, 0))"
        cursor.execute(f"INSERT INTO slow.t (id) VALUES (1 + {sleeps})")
    return str(a.value("@@GLOBAL.gtid_executed"))


@pytest.mark.slow
def test_an_applier_at_one_statement_for_long_is_a8(pair97: Pair) -> None:
    held = long_statement(pair97)
    time.sleep(LONGER_SECONDS)
    found = above_info(audited(pair97, SOON))
    assert found.keys() == {"A8"}
    assert re.search(r"for [2-9] s", found["A8"].explanation)
    wait_for(pair97["b"], held)
    assert above_info(audited(pair97, SOON)) == {}


def test_a_delayed_replica_is_a_backlog_that_names_the_delay(pair97: Pair) -> None:
    fault = faults.delayed(pair97)
    time.sleep(LONGER_SECONDS)
    audit = audited(pair97, SOON)
    assert (audit.verdict, above_info(audit)) == (Verdict.OK, {})
    (finding,) = [each for each in audit.findings if each.code == "T2"]
    assert (finding.grade, finding.gtid_set) == (Grade.PROVED, GtidSet.parse(fault.held))
    assert "SOURCE_DELAY delays them by 3600 s" in finding.explanation


def test_nothing_clears_by_itself_behind_until(pair97: Pair) -> None:
    """Held up by SOURCE_DELAY, and started to stop before the second transaction."""
    fault = faults.delayed(pair97)
    held = GtidSet.parse(fault.held)
    second = next(iter((held - held.first(1)).first(1).intervals()))
    stop = f"{second[0].uuid}:{second[1]}"
    pair97.b.execute(
        "STOP REPLICA SQL_THREAD", f"START REPLICA SQL_THREAD UNTIL SQL_BEFORE_GTIDS = '{stop}'"
    )
    (running,) = [each for each in audited(pair97).findings if each.code == "T2"]
    pair97.b.execute("STOP REPLICA SQL_THREAD")
    (stopped,) = [each for each in audited(pair97).findings if each.code == "T2"]
    for finding in (running, stopped):
        assert (finding.gtid_set, finding.strategies) == (held, ())


def test_an_old_delayed_replica_is_a_backlog(pair56: Pair) -> None:
    fault = faults.delayed(pair56)
    time.sleep(LONGER_SECONDS)
    audit = audited(pair56, SOON)
    assert (audit.verdict, above_info(audit)) == (Verdict.OK, {})
    (finding,) = [each for each in audit.findings if each.code == "T2"]
    assert (finding.grade, finding.gtid_set) == (Grade.PROVED, GtidSet.parse(fault.held))
    assert "SOURCE_DELAY delays them by 3600 s" in finding.explanation


@pytest.mark.parametrize("workers", [0, 2])
def test_an_account_that_cannot_see_the_workers_of_5_6_knows_nothing_of_them(
    pair56: Pair, workers: int
) -> None:
    b = pair56["b"]
    with_workers(b, workers)
    b.execute("GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO looks_on@'%'")
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user=user)
        for (name, server), user in zip(pair56.servers.items(), ("root", "looks_on"), strict=True)
    ]
    audit = audit_cluster(collect_cluster("live", targets))
    hidden = {(each.server, each.fact) for each in audit.unknown}
    assert hidden == ({("b", "workers")} if workers else set())


# -- reads nothing --------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_applier_whose_relay_log_file_is_gone_is_a8(pair97: Pair) -> None:
    fault = faults.relay_log_gone(pair97)
    _await_worker_seconds(fault.replica, SOON.stall_seconds_max + 1)
    finding = above_info(audited(pair97, SOON))["A8"]
    assert (finding.source, finding.replica, finding.grade) == ("a", "b", Grade.LIKELY)
    assert "No worker has had a transaction since the applier started" in finding.explanation
    # More to come does not make it look busy, and the way out that the text names helps.
    last = commit(fault.source, "INSERT INTO applier.t () VALUES ()")
    faults.await_received(fault.replica, last)
    assert "A8" in above_info(audited(pair97, SOON))
    fault.replica.execute("STOP REPLICA", "RESET REPLICA", "START REPLICA")
    wait_for(fault.replica, fault.held)
    wait_for(fault.replica, last)
    assert above_info(audited(pair97, SOON)) == {}


def _await_worker_seconds(replica: Server, seconds: int) -> None:
    """Wait until every worker has shown the same state for longer, by whole seconds."""
    asks = "MIN(PROCESSLIST_TIME) FROM performance_schema.threads WHERE NAME LIKE '%replica_worker'"
    while int(replica.query(f"SELECT {asks}")[0][0]) <= seconds:
        time.sleep(0.1)


def test_an_applier_behind_that_of_another_channel_is_told_so(star97: Topology) -> None:
    """Two channels bring the same transaction: no session owns its GTID, another worker does."""
    source, middle, both = (star97[name] for name in ("source", "replica1", "replica2"))
    table_on(source, both, "twice")
    wait_for(both, commit(source, "INSERT INTO twice.t VALUES (1, 'held')"))
    change = both.dialect.change_source_to(host=middle.host, port=middle.port, user="replication")
    both.execute(f"{change} FOR CHANNEL 'second'", "START REPLICA FOR CHANNEL 'second'")
    with both.connect() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM twice.t WHERE id = 1 FOR UPDATE")
        waits = commit(source, "UPDATE twice.t SET note = 'waits' WHERE id = 1")
        wait_for(middle, waits)
        time.sleep(LONGER_SECONDS)
        found = [each for each in audited(star97, SOON).findings if each.code == "A5"]
        cursor.execute("ROLLBACK")
    assert {each.channel for each in found} == {"", "second"}
    assert all(each.gtid_set == GtidSet.parse(waits) for each in found)
    [owner] = [each for each in found if owning_channel(each) is None]
    [behind] = [each for each in found if owning_channel(each) is not None]
    assert owning_channel(behind) == owner.channel
    assert "No client session holds the lock" in behind.explanation
    assert "ROLLBACK" not in behind.explanation
    wait_for(both, waits)


def test_what_failed_and_counts_as_executed_is_named_and_compared_later(pair97: Pair) -> None:
    """MyISAM keeps the rows before the one that conflicts, and their GTID: a start skips the rest."""
    a, b = pair97["a"], pair97["b"]
    a.execute("CREATE DATABASE part", "CREATE TABLE part.t (id INT PRIMARY KEY) ENGINE=MyISAM")
    pair97.settle()
    b.execute("SET sql_log_bin = 0", "INSERT INTO part.t VALUES (3)")
    gtid = commit(a, "INSERT INTO part.t VALUES (1), (2), (3), (4)")
    await_status(b, lambda status: status["Last_SQL_Errno"] == ER.DUP_ENTRY)
    audit = audited(pair97)
    finding = above_info(audit)["A2"]
    assert "counts as executed on b although it failed" in finding.explanation
    assert suspects_in(a_cluster("no server"), audit.findings) == GtidSet.parse(gtid)
    b.execute("SET sql_log_bin = 0", "DELETE FROM part.t WHERE id = 3", "START REPLICA")
    await_status(b, lambda status: status["Replica_SQL_Running"] == "Yes")
    there = [number for (number,) in b.query("SELECT id FROM part.t ORDER BY id")]
    assert there == [1, 2], "the sets are equal, and two rows are missing"
