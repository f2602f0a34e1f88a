"""Each fault, on real servers, leads to exactly its finding; the healthy pair to none."""

from collections.abc import Callable

import pytest

from compose import faults, faults_channels, faults_content, faults_identity, faults_logs
from compose.native import load
from compose.native.installation import Clients
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from topology.adapters.collect import CollectLimits, collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.readings.target import Secret, ServerTarget


def targets_of(topology: Topology) -> list[ServerTarget]:
    return [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in topology.servers.items()
    ]


def audited(topology: Topology, limits: CollectLimits | None = None) -> ClusterAudit:
    return audit_cluster(collect_cluster("live", targets_of(topology), limits=limits))


def only(audit: ClusterAudit) -> Finding:
    """Return the one finding above info, which must be there and be alone."""
    grave = [finding for finding in audit.findings if finding.severity is not Severity.INFO]
    assert [finding.code for finding in grave] == [finding.code for finding in grave][:1], audit
    assert grave, audit
    assert audit.unknown == ()
    return grave[0]


def test_a_fresh_pair_is_clean(pair97: Pair) -> None:
    audit = audited(pair97)
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


def test_a_fresh_old_pair_is_clean(pair56: Pair) -> None:
    audit = audited(pair56)
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


@pytest.mark.slow  # test_healthy_live.py audits a chain and several replicas of one source
def test_a_chain_and_a_star_are_clean(chain97: Topology, star97: Topology) -> None:
    for topology in (chain97, star97):
        audit = audited(topology)
        assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


@pytest.mark.slow  # test_healthy_live.py has every shape under load
def test_a_pair_under_full_load_gives_no_alarm(pair97: Pair, mysql_clients: Clients) -> None:
    with load.write_load(list(pair97.servers.values()), clients=mysql_clients):
        audits = [audited(pair97) for _ in range(4)]
    for audit in audits:
        assert audit.verdict is Verdict.OK, audit
        assert {finding.severity for finding in audit.findings} <= {Severity.INFO}


def test_a_position_bypass_is_h1_and_nothing_else(pair97: Pair) -> None:
    fault = faults.position_bypass(pair97)
    finding = only(audited(pair97))
    assert (finding.code, finding.grade) == ("H1", Grade.PROVED)
    assert (finding.source, finding.replica) == ("a", "b")
    assert finding.gtid_set == GtidSet.parse(fault.skipped)


def test_a_write_on_the_wrong_server_is_e1(pair97: Pair) -> None:
    fault = faults.errant_transaction(pair97)
    finding = only(audited(pair97))
    assert (finding.code, finding.grade) == ("E1", Grade.LIKELY)
    assert (finding.source, finding.replica) == ("a", "b")
    assert finding.gtid_set == GtidSet.parse(fault.errant)
    assert finding.strategies[0].name == "start_channel"


def test_work_of_a_pair_waits_behind_a_channel_that_is_stopped(pair97: Pair) -> None:
    """Both are written to, and one channel stands for maintenance: nothing is errant."""
    for server, name in ((pair97.a, "of_a"), (pair97.b, "of_b")):
        server.execute(f"CREATE DATABASE {name}")
    pair97.settle()
    pair97.a.execute("STOP REPLICA IO_THREAD")
    waits = faults.commit(pair97.b, "CREATE DATABASE waits")
    audit = audited(pair97)
    finding = only(audit)
    assert (finding.code, audit.verdict) == ("A7", Verdict.WARNING)
    assert (finding.source, finding.replica, finding.gtid_set) == ("b", "a", GtidSet.parse(waits))
    assert "If clients must not write on b, these are errant" in finding.explanation
    # As it says: where only a is meant to be written to, the channel goes, and E1 is proved.
    pair97.a.execute("STOP REPLICA", "RESET REPLICA ALL")
    errant = only(audited(pair97))
    assert (errant.code, errant.grade, errant.gtid_set) == ("E1", Grade.PROVED, finding.gtid_set)


def test_a_write_on_a_replica_is_e1_and_proved(star97: Topology) -> None:
    fault = faults.errant_transaction(star97, on="replica1")
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("E1", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.errant)
    assert "Content: 1 data, 2 DDL (errant.t: 1 row), committed 20" in finding.explanation


def test_an_errant_transaction_whose_log_is_purged_is_e2(star97: Topology) -> None:
    fault = faults.errant_transaction(star97, on="replica1")
    replica = star97["replica1"]
    replica.execute("FLUSH BINARY LOGS")
    replica.execute(f"PURGE BINARY LOGS TO '{replica.binary_log_position()[0]}'")
    finding = only(audited(star97))
    assert finding.code == "E2"
    assert finding.gtid_set == GtidSet.parse(fault.errant)


def test_a_crash_that_loses_the_tail_is_e3(pair97: Pair) -> None:
    fault = faults.lost_tail_crash(pair97)
    finding = only(audited(pair97))
    assert (finding.code, finding.grade) == ("E3", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.lost)


def test_a_purge_under_a_stopped_replica_is_p1(pair97: Pair) -> None:
    faults.purge_under_stopped_replica(pair97)
    finding = only(audited(pair97))
    assert (finding.code, finding.source, finding.replica) == ("P1", "a", "b")


def test_a_bypass_that_a_donor_still_has_is_h3(star97: Topology) -> None:
    """Both of the replica's threads run, and show no error."""
    fault = faults.bypassed_and_purged(star97, source="source", replica="replica1")
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("H3", Grade.PROVED)
    assert (finding.source, finding.replica) == ("source", "replica1")
    assert finding.gtid_set == GtidSet.parse(fault.skipped)
    assert "replica2 can still send them" in finding.explanation
    replica2 = star97["replica2"]
    replica2.execute("FLUSH BINARY LOGS")
    faults.purge_until_gone(replica2, fault.skipped)
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("H4", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.skipped)


def test_another_name_of_the_logs_is_p1(star97: Topology) -> None:
    """The source refuses the file of the channel (1236), although its number is not the lowest."""
    fault = faults.bypassed_and_purged(star97, source="source", replica="replica1")
    assert only(audited(star97)).code == "H3"
    fault.replica.execute(fault.replica.dialect.stop_replica)
    faults_content.restart_with(fault.source, "--log-bin=newbin")
    codes = {each.code for each in audited(star97).findings if each.replica == "replica1"}
    assert "P1" in codes
    assert not codes & {"H3", "H4"}
    fault.replica.execute(fault.replica.dialect.start_replica)
    faults.await_status(
        fault.replica, lambda status: "first log file name" in str(status["Last_IO_Error"])
    )


def test_a_log_that_was_lost_is_h5(star97: Topology) -> None:
    """Nothing is purged, so the source refuses no receiver, and cannot send what was in the log."""
    fault = faults_logs.log_lost(star97, source="source", replica="replica1")
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("H5", Grade.PROVED)
    assert (finding.source, finding.replica) == ("source", "replica1")
    assert finding.gtid_set == GtidSet.parse(fault.lost)
    assert "the binary logs of replica2 have them" in finding.explanation


def test_a_lost_log_is_h5_before_a_receiver_has_passed_it(pair97: Pair) -> None:
    """The numbers of the logs have a gap: so what is due is searched for in the others."""
    fault = faults_logs.log_lost(pair97, is_passed=False)
    found = {each.code: each for each in audited(pair97).findings}
    assert set(found) == {"E1", "H5"}  # a has it too much, as a replica of b: the channel stands
    assert found["H5"].grade is Grade.PROVED
    assert found["H5"].gtid_set == GtidSet.parse(fault.lost)
    fault.replica.execute(fault.replica.dialect.start_replica)
    pair97.a.execute("INSERT INTO lost_log.t () VALUES ()")
    faults.await_status(
        fault.replica, lambda status: str(status["Executed_Gtid_Set"]).endswith(":1-2:5-6")
    )
    assert only(audited(pair97)).code == "H5"


def test_a_long_part_of_a_lost_log_is_likely(pair56: Pair) -> None:
    fault = faults_logs.log_lost(pair56, lost_count=130)
    finding = only(audited(pair56))
    assert (finding.code, finding.grade) == ("H5", Grade.LIKELY)
    assert finding.gtid_set == GtidSet.parse(fault.lost)


@pytest.mark.slow
def test_a_lost_log_whose_transaction_a_relay_log_hides_is_likely(pair56: Pair) -> None:
    """The benign twin: nothing is missing once the applier runs, and no set shows that."""
    pair56.a.execute(pair56.a.dialect.stop_replica, pair56.a.dialect.reset_replica)
    fault = faults_logs.log_lost_after_receipt(pair56)
    lost = GtidSet.parse(fault.lost)
    retrieved = str(fault.replica.replica_status()["Retrieved_Gtid_Set"])
    assert not GtidSet.parse(retrieved) & lost
    [h5] = [each for each in audited(pair56).findings if each.code == "H5"]
    assert (h5.grade, h5.gtid_set) == (Grade.LIKELY, lost)
    assert "if it is this one, b applies it" in h5.explanation
    fault.replica.execute(fault.replica.dialect.start_replica)
    wait_for(fault.replica, fault.lost)
    assert "H5" not in {each.code for each in audited(pair56).findings}
    rows = [each.value("COUNT(*) FROM lost_log.t") for each in (fault.source, fault.replica)]
    assert rows == [3, 3]


def test_a_bypass_whose_file_is_purged_as_well_is_p1(pair97: Pair) -> None:
    """It is refused, by file position as well."""
    fault = faults.position_bypass(pair97)
    fault.replica.execute(fault.replica.dialect.stop_replica)
    fault.source.execute("FLUSH BINARY LOGS")
    faults.purge_until_gone(fault.source, fault.skipped)
    finding = only(audited(pair97))
    assert (finding.code, finding.grade) == ("P1", Grade.PROVED)
    fault.replica.execute(fault.replica.dialect.start_replica)
    faults.await_status(fault.replica, lambda status: status["Replica_IO_Running"] == "No")


def test_the_failing_create_view_is_a1(pair56: Pair) -> None:
    faults.failing_create_view(pair56)
    finding = only(audited(pair56))
    assert (finding.code, finding.grade) == ("A1", Grade.PROVED)
    assert finding.strategies[0].name == "position_bypass"


def test_a_tail_gap_is_t1_and_no_alarm(pair97: Pair) -> None:
    with faults.tail_gap(pair97):
        audit = audited(pair97)
    assert audit.verdict is Verdict.OK
    found = [(finding.code, finding.grade) for finding in audit.findings]
    assert found == [("C7", Grade.PROVED), ("T1", Grade.PROVED)], "and workers in any order"


def test_a_duplicate_server_uuid_is_c1(pair97: Pair) -> None:
    faults_identity.duplicate_server_uuid(pair97)
    assert only(audited(pair97)).code == "C1"


def test_a_row_conflict_is_a2(pair97: Pair) -> None:
    a, b = pair97["a"], pair97["b"]
    a.execute("CREATE DATABASE conflict", "CREATE TABLE conflict.t (id INT PRIMARY KEY)")
    pair97.settle()
    _without_log(b, "INSERT INTO conflict.t VALUES (1)")
    a.execute("INSERT INTO conflict.t VALUES (1)")
    _until(lambda: bool(b.replica_status()["Last_SQL_Errno"]))
    finding = only(audited(pair97))
    assert finding.code == "A2"
    assert "1062" in finding.explanation


def test_another_applier_error_is_a3(pair97: Pair) -> None:
    a, b = pair97["a"], pair97["b"]
    _without_log(b, "CREATE DATABASE already_there")
    a.execute("CREATE DATABASE already_there")
    _until(lambda: bool(b.replica_status()["Last_SQL_Errno"]))
    assert only(audited(pair97)).code == "A3"


def test_a_receiver_without_its_account_is_a4(pair97: Pair) -> None:
    fault = faults_channels.refused_with_backlog(pair97)
    audit = audited(pair97)
    finding = only(audit)
    assert (finding.code, finding.replica) == ("A4", "b")
    assert "1045" in finding.explanation
    # What it is missing does not count as on its way.
    [behind] = [each for each in audit.findings if each.severity is Severity.INFO]
    assert (behind.code, behind.grade) == ("T3", Grade.LIKELY)
    assert behind.gtid_set == GtidSet.parse(fault.missing)
    assert "waits for a connection: error 1045" in behind.explanation
    assert "by itself" not in behind.explanation


@pytest.mark.parametrize("thread", ["IO_THREAD", "SQL_THREAD"])
def test_a_thread_stopped_by_hand_is_a7(pair97: Pair, thread: str) -> None:
    pair97["b"].execute(f"STOP REPLICA {thread}")
    finding = only(audited(pair97))
    assert (finding.code, finding.replica) == ("A7", "b")
    assert "reset" not in finding.explanation  # it has executed nothing: it is new


def test_servers_that_nothing_links_are_j1(pair97: Pair) -> None:
    for server in (pair97["a"], pair97["b"]):
        server.execute("STOP REPLICA", "RESET REPLICA ALL")
    finding = only(audited(pair97))
    assert finding.code == "J1"
    assert {finding.source, finding.replica} == {"a", "b"}


def test_auto_position_off_without_a_hole_is_c3(pair97: Pair) -> None:
    a, b = pair97["a"], pair97["b"]
    log_file, log_pos = a.binary_log_position()
    b.execute(
        "STOP REPLICA",
        b.dialect.change_source_to(auto_position=0, log_file=log_file, log_pos=log_pos),
        "START REPLICA",
    )
    assert only(audited(pair97)).code == "C3"


def test_a_hung_server_is_unknown_within_its_time(pair97: Pair) -> None:
    with faults.hung_server(pair97["b"]):
        audit = audited(pair97, CollectLimits(server_seconds_max=1.0))
    assert audit.verdict is Verdict.UNKNOWN
    assert [(finding.code, finding.replica) for finding in audit.findings] == [("U1", "b")]
    assert [(unknown.server, unknown.fact) for unknown in audit.unknown] == [("b", "connection")]
    assert "timeout" in audit.unknown[0].reason


def test_a_refused_password_is_unknown(pair97: Pair) -> None:
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root", password=password)
        for (name, server), password in zip(
            pair97.servers.items(), (Secret(""), Secret("wrong-one")), strict=True
        )
    ]
    audit = audit_cluster(collect_cluster("live", targets))
    assert audit.verdict is Verdict.UNKNOWN
    assert [(unknown.server, unknown.fact) for unknown in audit.unknown] == [("b", "connection")]
    assert "refused" in audit.unknown[0].reason
    assert "wrong-one" not in repr(audit)


def test_a_missing_privilege_is_named_and_unknown(pair97: Pair) -> None:
    b = pair97["b"]
    pair97["a"].execute("CREATE USER nobody@'%'")  # may log in, and see nothing
    pair97.settle()
    targets = [
        ServerTarget(name="a", host=pair97["a"].host, port=pair97["a"].port, user="root"),
        ServerTarget(name="b", host=b.host, port=b.port, user="nobody"),
    ]
    audit = audit_cluster(collect_cluster("live", targets))
    assert audit.verdict is Verdict.UNKNOWN
    facts = {(unknown.server, unknown.fact) for unknown in audit.unknown}
    assert {("b", "channels"), ("b", "log_end"), ("b", "binary_logs")} <= facts
    assert all("privilege" in unknown.reason for unknown in audit.unknown)


def _without_log(server: Server, statement: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(statement)


def _until(condition: Callable[[], bool]) -> None:
    faults._await(condition, lambda: "the condition never held")
