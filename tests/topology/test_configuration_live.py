"""Remarks on configuration, on gaps and on early purges: each on real servers, and how it ends."""

import pymysql
import pytest

from compose import faults_configuration as faults
from compose.faults import await_status, commit, purge_until_gone
from compose.faults_applier import relay_position_moved
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from tests.repair.live import wait_until
from tests.topology.test_faults_live import audited, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding, Grade, Severity, Verdict
from topology.policy import Policy

pytestmark = pytest.mark.mysql
INFO, WARNING = Severity.INFO, Severity.WARNING


def found(topology: Topology, policy: Policy | None = None) -> dict[str, Finding]:
    """Return the findings of an audit by code; no code twice, and nothing unknown."""
    audit = audit_cluster(collect_cluster("live", targets_of(topology)), policy or Policy())
    assert audit.unknown == ()
    by_code = {each.code: each for each in audit.findings}
    assert len(by_code) == len(audit.findings), audit
    return by_code


def test_a_source_without_durability_is_c5(pair97: Pair) -> None:
    faults.relaxed_durability(pair97.a)
    [remark] = found(pair97).values()
    assert (remark.code, remark.severity, remark.replica) == ("C5", INFO, "a")
    assert "sync_binlog is 0 and innodb_flush_log_at_trx_commit is 2 on a" in remark.explanation
    assert audited(pair97).verdict is Verdict.OK
    strict = found(pair97, Policy(levels=(("C5", "warning"),)))
    assert strict["C5"].severity is WARNING


def test_workers_in_any_order_are_c7(pair97: Pair) -> None:
    faults.workers_out_of_order(pair97.b)
    [remark] = found(pair97).values()
    assert (remark.code, remark.severity, remark.replica) == ("C7", INFO, "b")


def test_a_short_retention_is_c8(pair97: Pair) -> None:
    faults.short_retention(pair97.a)
    [remark] = found(pair97).values()
    assert (remark.code, remark.severity, remark.replica) == ("C8", WARNING, "a")
    assert "a keeps its binary logs for 1 hour" in remark.explanation
    assert found(pair97, Policy(outage_seconds_max=3600)) == {}


def test_parallel_workers_by_position_are_c10(pair97: Pair) -> None:
    b = pair97.b
    words = b.dialect.words
    b.execute(
        b.dialect.stop_replica,
        f"{words.change_source} SOURCE_AUTO_POSITION = 0",
        b.dialect.start_replica,
    )
    remarks = found(pair97)
    assert remarks.keys() == {"C3", "C10"}
    assert remarks["C10"].severity is INFO


def test_the_same_keys_on_both_are_c12(pair97: Pair) -> None:
    faults.same_keys(pair97)
    [remark] = found(pair97).values()
    assert (remark.code, remark.source, remark.replica) == ("C12", "a", "b")
    pair97.b.execute("SET GLOBAL read_only = ON")
    assert found(pair97) == {}, "only one of them generates values now"


@pytest.mark.slow
def test_versions_that_refuse_each_other_are_c14(
    installation97: Installation, installation56: Installation
) -> None:
    with shapes.single(installation97) as source, shapes.single(installation56) as replica:
        replica.execute(
            replica.dialect.change_source_to(
                host=source.host, port=source.port, user="root", auto_position=1
            ),
            replica.dialect.start_replica,
        )
        await_status(replica, lambda status: bool(status["Last_IO_Errno"]))
        topology = Topology({"source": source, "replica": replica}, ())
        remark = found(topology)["C14"]
        assert (remark.severity, remark.source) == (Severity.CRITICAL, "source")
        assert "A4" not in found(topology), "the versions explain its error"


@pytest.mark.parametrize("family", ["9.7", "5.6"])
def test_a_gap_in_own_gtids_is_filled_and_applied(
    family: str, request: pytest.FixtureRequest
) -> None:
    """Why such a gap is no finding: no audited server has it, so none skips what fills it."""
    pair: Pair = request.getfixturevalue(f"pair{family.replace('.', '')}")
    gap = faults.own_gap(pair.a)
    pair.settle()
    assert found(pair) == {}
    for number in range(4):
        pair.a.execute(f"CREATE DATABASE filled{number}")
    pair.settle()
    assert GtidSet.parse(gap) <= GtidSet.parse(str(pair.b.value("@@GLOBAL.gtid_executed")))
    assert len(pair.b.query("SHOW DATABASES LIKE 'filled%'")) == 4


def test_many_intervals_are_f1(pair97: Pair) -> None:
    other = "6a3e3b5e-0000-11ee-8000-000000000001"
    faults.by_hand(pair97.a, *(f"{other}:{2 * number + 1}" for number in range(101)))
    pair97.settle()
    allowed = Policy(intervals_max=100)
    audit = audit_cluster(collect_cluster("live", targets_of(pair97)), allowed)
    assert [(each.code, each.replica) for each in audit.findings] == [("F1", "a"), ("F1", "b")]
    assert audit.findings[0].gtid_set.gtid_count == 100
    assert found(pair97) == {}, "1,000 are allowed by default"


def test_uuids_of_no_server_are_e5_and_f2(star97: Topology) -> None:
    """E5 while the servers differ in them; F2 where all have the same of more than four."""
    source, replica = star97["source"], star97["replica1"]
    gtids = [f"6a3e3b5e-0000-11ee-8000-00000000000{number}:1" for number in range(1, 6)]
    faults.by_hand(source, *gtids[:4])
    star97.settle()
    assert found(star97) == {}, "four are no burden"
    replica.execute(replica.dialect.stop_replica)
    faults.by_hand(source, gtids[4])
    wait_for(star97["replica2"], gtids[4])
    remarks = found(star97)
    assert remarks.keys() == {"A7", "E5"}
    assert remarks["E5"].gtid_set == GtidSet.parse(gtids[4])
    assert "replica1 does not have all of them" in remarks["E5"].explanation
    replica.execute(replica.dialect.start_replica)
    star97.settle()
    [remark] = found(star97).values()
    assert (remark.code, remark.severity) == ("F2", INFO)
    assert remark.gtid_set == GtidSet.parse(",".join(gtids))


@pytest.mark.slow
def test_a_server_stops_when_its_numbers_are_used_up(installation97: Installation) -> None:
    with shapes.single(installation97) as server:
        faults.numbers_used_up(server, left=3)
        topology = Topology({server.name: server}, ())
        [remark] = found(topology).values()
        assert (remark.code, remark.severity) == ("F3", WARNING)
        assert "can commit 3 more transactions" in remark.explanation
        for number in range(3):
            server.execute(f"CREATE DATABASE last{number}")
        with pytest.raises(pymysql.MySQLError, match=r"1598.*reached the maximum value"):
            server.execute("CREATE DATABASE too_many")
        wait_until(lambda: not server.running)


def test_only_the_relay_log_has_it_is_p2(pair97: Pair) -> None:
    gtid = faults.purged_under_stopped_applier(pair97)
    remarks = found(pair97)
    assert remarks.keys() == {"A7", "P2", "T2"}
    assert remarks["P2"].severity is WARNING
    assert remarks["P2"].gtid_set == GtidSet.parse(gtid)
    b = pair97.b
    b.execute(f"{b.dialect.start_replica} SQL_THREAD")
    wait_for(b, gtid)
    assert found(pair97) == {}


def test_p2_becomes_1236_where_the_relay_log_is_deleted(pair97: Pair) -> None:
    faults.purged_under_stopped_applier(pair97)
    b = pair97.b
    b.execute(b.dialect.stop_replica, "CHANGE REPLICATION SOURCE TO SOURCE_CONNECT_RETRY = 1")
    b.execute(b.dialect.start_replica)
    await_status(b, lambda status: bool(status["Last_IO_Errno"]))
    assert "P1" in found(pair97)


def test_a_candidate_that_breaks_its_sibling_is_p5(star97: Topology) -> None:
    gtid = faults.purged_on_sibling(star97, replica="replica1", sibling="replica2")
    remarks = found(star97)
    assert remarks.keys() == {"A7", "P5"}
    assert (remarks["P5"].source, remarks["P5"].replica) == ("replica2", "replica1")
    assert remarks["P5"].gtid_set == GtidSet.parse(gtid)
    candidate, replica = star97["replica2"], star97["replica1"]
    replica.execute(
        replica.dialect.change_source_to(
            host=candidate.host, port=candidate.port, user="root", auto_position=1
        ),
        replica.dialect.start_replica,
    )
    await_status(replica, lambda status: status["Last_IO_Errno"] == 13114)


def test_a_sibling_that_is_only_behind_is_no_p5(star97: Topology) -> None:
    """The benign twin: it applies what its sibling has purged as soon as a lock is released."""
    replica, sibling = star97["replica1"], star97["replica2"]
    star97["source"].execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    star97.settle()
    with replica.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES d.t READ")
        gtid = commit(star97["source"], "INSERT INTO d.t VALUES (1)")
        wait_for(sibling, gtid)
        sibling.execute("FLUSH BINARY LOGS")
        purge_until_gone(sibling, gtid)
        assert found(star97).keys() <= {"T1", "T2"}
        cursor.execute("UNLOCK TABLES")
    wait_for(replica, gtid)
    assert found(star97) == {}


def test_an_applier_that_is_only_behind_makes_p2_info(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    with b.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES d.t READ")
        gtid = commit(a, "INSERT INTO d.t VALUES (1)")
        number = gtid.rpartition(":")[2]
        await_status(b, lambda status: number in str(status["Retrieved_Gtid_Set"]))
        a.execute("FLUSH BINARY LOGS")
        purge_until_gone(a, gtid)
        remarks = found(pair97)
        assert remarks["P2"].severity is INFO
        assert {each.severity for each in remarks.values()} == {INFO}
        cursor.execute("UNLOCK TABLES")
    wait_for(b, gtid)
    assert found(pair97) == {}


def test_what_a_stopped_applier_has_passed_is_h8_and_not_h2(pair97: Pair) -> None:
    """The malign twin of a crash gap: the sets look the same, and the gap stays."""
    fault = relay_position_moved(pair97, later_count=2)
    pair97.b.execute(f"{pair97.b.dialect.stop_replica} SQL_THREAD")
    remarks = found(pair97)
    assert remarks["H8"].gtid_set == GtidSet.parse(fault.passed)
    assert "H2" not in remarks


def test_a_hole_that_was_set_with_gtid_purged_is_no_proved_h2(pair97: Pair) -> None:
    """The relay log and the sets look like a crash gap; no worker has applied the later one."""
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica)
    faults.workers_out_of_order(b)
    b.execute(f"{b.dialect.stop_replica} SQL_THREAD")
    missing = commit(a, "CREATE DATABASE d")
    later = commit(a, "CREATE TABLE d.t (id INT PRIMARY KEY)")
    number = later.rpartition(":")[2]
    await_status(b, lambda status: number in str(status["Retrieved_Gtid_Set"]))
    declared = f"{b.value('@@GLOBAL.gtid_executed')},{later}"
    b.execute(b.dialect.stop_replica, b.dialect.words.reset_binary_logs_and_gtids)
    b.execute(f"SET GLOBAL gtid_purged = '{declared}'")
    [remark] = [each for each in audited(pair97).findings if each.code == "H2"]
    assert (remark.gtid_set, remark.grade) == (GtidSet.parse(missing), Grade.LIKELY)
    assert "If gtid_purged was set by hand" in remark.explanation
