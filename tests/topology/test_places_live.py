"""What the place of a stopped channel in its source's log shows, on real servers."""

from compose import faults_applier as faults
from compose.faults import await_status
from compose.faults_content import restart_with
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from tests.topology.test_faults_live import audited
from topology.catalogue.findings import ClusterAudit, Grade, Severity


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


def assert_passed(audit: ClusterAudit, fault: faults.Passed) -> None:
    """Assert that H8 says what would be done twice, and nothing calls it a backlog."""
    assert audit.unknown == ()
    [passed] = [one for one in audit.findings if one.code == "H8"]
    assert passed.gtid_set == GtidSet.parse(fault.passed)
    assert passed.grade is Grade.LIKELY
    assert f"RESET BINARY LOGS AND GTIDS on {passed.replica}" in passed.explanation
    for other in audit.findings:
        if other.code in ("T1", "T2", "T3"):
            assert not other.gtid_set & passed.gtid_set, other
    above = {one.code for one in audit.findings if one.severity is not Severity.INFO}
    assert above == {"H8", "A7"}, audit


def test_a_replica_reset_with_an_old_purged_set_is_h8(star97: Topology) -> None:
    fault = faults.reset_with_old_purged(star97, source="source", replica="replica1", later_count=3)
    part = part_of(star97, "source", "replica1")
    assert_passed(audited(part), fault)
    restart_with(fault.replica, "--relay-log-recovery=ON", "--skip-replica-start=ON")
    assert_passed(audited(part), fault)


def test_an_old_replica_reset_with_an_old_purged_set_is_h8(pair56: Pair) -> None:
    pair56["a"].execute("STOP SLAVE", "RESET SLAVE ALL")  # a plain source and its replica
    fault = faults.reset_with_old_purged(pair56, later_count=3)
    assert_passed(audited(pair56), fault)
    restart_with(fault.replica, "--relay-log-recovery=ON", "--skip-slave-start=ON")
    assert_passed(audited(pair56), fault)


def test_a_replica_that_is_merely_stopped_is_not(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE before_it")
    star97.settle()
    replica.execute(replica.dialect.stop_replica)
    source.execute("CREATE DATABASE after_it")
    audit = audited(part_of(star97, "source", "replica1"))
    assert {one.code for one in audit.findings} == {"A7"}, audit
    replica.execute("START REPLICA IO_THREAD")
    source.execute("CREATE DATABASE later")
    audit = audited(part_of(star97, "source", "replica1"))
    assert {one.code for one in audit.findings} <= {"A7", "T2", "T3"}, audit
    assert all(one.grade is Grade.PROVED for one in audit.findings if one.code == "T2"), audit


def test_what_was_skipped_before_a_failover_is_not_only_backlog(star97: Topology) -> None:
    """The new source sends it behind later ones of the old one; its log has both commit times."""
    source, promoted, replica = star97["source"], star97["replica1"], star97["replica2"]
    skipped, newer = faults.update_skipped(source, replica)
    wait_for(promoted, newer)
    promoted.execute("STOP REPLICA", "RESET REPLICA ALL")
    replica.execute(
        "SET GLOBAL gtid_mode = ON",
        "STOP REPLICA",
        f"CHANGE REPLICATION SOURCE TO SOURCE_PORT = {promoted.port}, SOURCE_DELAY = 3600",
        "START REPLICA",
    )
    await_status(replica, lambda status: skipped in status["Retrieved_Gtid_Set"])
    audit = audited(part_of(star97, "replica1", "replica2"))
    [found] = [one for one in audit.findings if one.severity is not Severity.INFO]
    assert (found.code, found.severity, found.grade) == ("T1", Severity.WARNING, Grade.LIKELY)
    assert found.gtid_set == GtidSet.parse(skipped)
    assert "sql_replica_skip_counter" in found.explanation
