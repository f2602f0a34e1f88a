"""Filters and START REPLICA UNTIL on real servers: what they keep from a replica is reported."""

import time

import pytest

from compose import faults_filters
from compose.faults import await_status, commit
from compose.faults_content import restart_with
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Pair, Topology
from gtid import GtidSet
from tests.repair.live import examine
from tests.topology.test_faults_live import audited, only
from topology.catalogue.findings import Grade, Severity, Verdict

NO_SERVER = 900_078  # the server_id of none: those of the tests begin at 1


def await_database(server: Server, name: str) -> None:
    deadline = time.monotonic() + 20
    while (name,) not in server.query("SHOW DATABASES"):
        assert time.monotonic() < deadline, server.replica_status()
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.mysql
def test_a_binary_log_filter_counts_only_where_a_server_has_replicas(chain97: Topology) -> None:
    restart_with(chain97["last"], "--binlog-ignore-db=filtered")
    assert audited(chain97).verdict is Verdict.OK, "the last server has no replicas"
    faults_filters.binary_log_filter(chain97)
    assert chain97["last"].query("SELECT * FROM filtered.t") == []
    finding = only(audited(chain97))
    assert (finding.code, finding.severity) == ("C11", Severity.WARNING)
    assert (finding.source, finding.grade) == ("middle", Grade.PROVED)
    assert "Binlog_ignore_db is filtered" in finding.explanation
    assert "last" in finding.explanation


@pytest.mark.mysql
def test_a_filter_of_a_channel_counts_above_other_replicas(chain97: Topology) -> None:
    fault = faults_filters.channel_filter(chain97)
    assert fault.source.value("COUNT(*) FROM filtered.t") == 1
    assert fault.replica.value("COUNT(*) FROM filtered.t") == 0
    audit = audited(chain97)
    assert audit.verdict is Verdict.OK, "for what is only below it, it is what was chosen"
    [finding] = [each for each in audit.findings if each.code == "C11"]
    assert (finding.replica, finding.grade) == ("middle", Grade.PROVED)
    assert "last cannot receive these changes" in finding.explanation
    assert "Replicate_Ignore_DB=filtered" in finding.explanation


@pytest.mark.slow
@pytest.mark.mysql
def test_a_filter_in_a_ring_is_a_warning_and_equal_ones_of_a_pair_are_none(
    installation97: Installation, pair97: Pair
) -> None:
    with shapes.ring(installation97) as ring:
        faults_filters.channel_filter(ring, source="a", on="b", replica="c")
        [finding] = [each for each in audited(ring).findings if each.code == "C11"]
        assert (finding.replica, finding.severity) == ("b", Severity.WARNING)
        assert "The channels form a ring" in finding.explanation
    faults_filters.channel_filter(pair97, source="a", on="b", replica="b")
    assert "C11" not in {each.code for each in audited(pair97).findings}


@pytest.mark.mysql
def test_an_applier_started_with_until_is_not_merely_stopped(pair97: Pair) -> None:
    faults_filters.started_until(pair97)
    finding = only(audited(pair97))
    assert finding.code == "A7"
    assert "UNTIL SQL_BEFORE_GTIDS" in finding.explanation
    pair97["b"].execute("STOP REPLICA", "START REPLICA")
    pair97.settle()
    assert audited(pair97).verdict is Verdict.OK


@pytest.mark.mysql
def test_ignored_server_ids_are_named_as_the_cause(pair56: Pair) -> None:
    b = pair56["b"]
    faults_filters.ignore_server(b, NO_SERVER - 1)
    assert audited(pair56).verdict is Verdict.OK, "nothing is missing"
    fault = faults_filters.ignored_transaction(pair56)
    finding = only(audited(pair56))
    assert (finding.code, finding.severity) == ("C11", Severity.CRITICAL)
    assert (finding.grade, finding.gtid_set) == (Grade.PROVED, GtidSet.parse(fault.gtids))
    assert [strategy.name for strategy in finding.strategies] == ["configure"]
    assert not examine(pair56).plan().steps, "nothing that is fetched again arrives"
    b.execute("STOP SLAVE", "CHANGE MASTER TO IGNORE_SERVER_IDS = ()", "START SLAVE")
    pair56.settle()
    assert audited(pair56).verdict is Verdict.OK
    # The server_id of no server now: the cause is one of several.
    fault = faults_filters.ignored_transaction(pair56, server_id=NO_SERVER)
    finding = only(audited(pair56))
    assert (finding.code, finding.grade) == ("H8", Grade.LIKELY)
    assert f"IGNORE_SERVER_IDS ({NO_SERVER})" in finding.explanation
    assert "refetch" not in [strategy.name for strategy in finding.strategies]
    assert not examine(pair56).plan().steps


@pytest.mark.slow
@pytest.mark.mysql
def test_a_source_that_does_not_log_what_it_receives_is_the_cause_of_p1(chain97: Topology) -> None:
    faults_filters.without_logged_updates(chain97, on="last")
    assert audited(chain97).verdict is Verdict.OK, "the last server has no replicas"
    faults_filters.without_logged_updates(chain97)
    finding = only(audited(chain97))
    assert (finding.code, finding.source, finding.replica) == ("C6", "middle", "last")
    _stays_by_file_position(chain97)
    fault = faults_filters.unlogged_updates(chain97)
    finding = only(audited(chain97))
    assert (finding.code, finding.source, finding.replica) == ("P1", "middle", "last")
    assert finding.gtid_set == GtidSet.parse(fault.gtids)
    assert "log_replica_updates is OFF on middle" in finding.explanation
    assert "has purged" not in finding.explanation
    names = [strategy.name for strategy in finding.strategies]
    assert names == ["configure", "donor_refetch", "reclone"]
    restart_with(chain97["first"], "--skip-log-bin")
    found = {(each.code, each.source): each for each in audited(chain97).findings}
    assert found["A4", "first"].severity is Severity.CRITICAL, "before or after it was refused"


def _stays_by_file_position(chain: Topology) -> None:
    """By auto-position the source would refuse the replica as soon as it has received more."""
    last = chain["last"]
    for value in (0, 1):
        last.execute(
            last.dialect.stop_replica,
            f"CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = {value}",
            last.dialect.start_replica,
        )
        await_status(last, lambda status: status["Replica_IO_Running"] == "Yes")
        if value == 0:
            for plan in (examine(chain).plan(), examine(chain).plan({"C3": "auto_position_on"})):
                assert not plan.steps
                [why] = [each.why for each in plan.not_planned if each.code == "C3"]
                assert "does not log what it receives" in why
                assert "Set log_replica_updates = ON on middle first" in why


@pytest.mark.mysql
def test_a_waiting_skip_counter_is_c15_and_the_mode_that_permits_it_c4(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    set_counter = "SET GLOBAL sql_replica_skip_counter = 1"
    b.execute(b.dialect.stop_applier, set_counter, b.dialect.start_applier)
    assert audited(pair97).verdict is Verdict.OK, "with gtid_mode = ON it skips nothing"
    b.execute(
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        b.dialect.stop_applier,
        set_counter,
        b.dialect.start_applier,
    )
    by_code = {each.code: each for each in audited(pair97).findings}
    assert by_code.keys() == {"C15", "C4"}
    assert by_code["C15"].replica == "b"
    latent = by_code["C4"]
    assert (latent.source, latent.replica, latent.grade) == ("b", "a", Grade.PROVED)
    assert "is connected, and continues" in latent.explanation
    a.execute(a.dialect.stop_receiver, a.dialect.start_receiver)
    await_status(a, lambda status: status["Replica_IO_Running"] == "No")
    by_code = {each.code: each for each in audited(pair97).findings}
    assert by_code.keys() == {"C15", "A4"}, "as C4 forecast it"
    assert "gtid_mode is not ON on its source" in by_code["A4"].explanation
    commit(a, "CREATE DATABASE skipped", "CREATE DATABASE applied")
    await_database(b, "applied")
    assert ("skipped",) not in b.query("SHOW DATABASES")
    assert {each.code for each in audited(pair97).findings} >= {"H8"}


@pytest.mark.mysql
def test_a_receiver_that_refuses_an_equal_server_id_has_dropped_nothing(pair56: Pair) -> None:
    fault = faults_filters.equal_server_id(pair56)
    finding = only(audited(pair56))
    assert (finding.code, finding.gtid_set) == ("C2", GtidSet.parse(fault.gtids))
    assert "stopped with error 1593" in finding.explanation
    assert "b drops" not in finding.explanation
    assert "1 transaction is missing" in finding.explanation
