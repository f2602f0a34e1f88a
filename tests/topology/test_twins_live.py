"""Benign and malign causes that look the same, on real servers: the evidence separates them.

Where it does not, the grade is `likely` and the finding names the causes that remain.
"""

import time
from dataclasses import replace

import pytest

from compose import faults, faults_applier, faults_channels, faults_history
from compose.faults import await_status, commit, table_on
from compose.faults_content import restart_with
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, wait_for
from gtid import GtidSet
from gtid_audit.tasks import cluster_contents
from tests.repair.live import REMARKS, examine, run_plan
from tests.topology.test_faults_live import audited, only, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.policy import Policy

pytestmark = [pytest.mark.slow, pytest.mark.mysql]

# Start and uptime have whole seconds, and a claim needs two: commit later than the server started.
SECONDS_APART = 3.1


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


def above_info(audit: ClusterAudit) -> dict[str, Finding]:
    found = [each for each in audit.findings if each.severity is not Severity.INFO]
    assert len({each.code for each in found}) == len(found), audit
    return {each.code: each for each in found}


def with_contents(topology: Topology) -> ClusterAudit:
    """Audit as `pair --content` does."""
    targets = targets_of(topology)
    snapshot = collect_cluster("live", targets)
    contents = cluster_contents.look_at_contents(
        snapshot, targets, chosen=True, say=lambda _text: None
    ).reading
    return audit_cluster(snapshot.with_contents(contents))


def one_way(pair: Pair) -> Pair:
    """Make a plain source and its replica of a pair."""
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    return pair


def purge(server: Server, gtids: str) -> None:
    server.execute("FLUSH BINARY LOGS")

    def is_gone() -> bool:
        server.execute(f"PURGE BINARY LOGS TO '{server.binary_log_position()[0]}'")
        return bool(server.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)", [gtids])[0][0])

    faults._await(is_gone, lambda: f"{server.name} does not purge {gtids}")


# -- lost by a crash, or committed by a copy of the server ----------------------------------------


def test_what_a_copy_of_a_server_committed_is_not_proved_to_be_lost(star97: Topology) -> None:
    """Its twin, a lost tail, is proved: the channel has received it from the origin."""
    time.sleep(SECONDS_APART)
    fault = faults_history.committed_by_copy(star97)
    seen = part_of(star97, "source", "replica1")
    running = only(audited(seen))
    assert (running.code, running.grade) == ("E6", Grade.LIKELY)
    fault.origin.stop()
    time.sleep(1.1)
    fault.origin.start()
    await_status(fault.replica, faults._source_refused)
    restarted = only(audited(seen))
    assert (restarted.code, restarted.grade) == ("E3", Grade.LIKELY)
    for finding in (running, restarted):
        assert finding.gtid_set == GtidSet.parse(fault.gtid)
        assert "another server that commits under the same server_uuid" in finding.explanation
        assert finding.strategies[0].name == "check_data"
    whole = audited(star97)
    found = {each.code for each in whole.findings if each.severity is not Severity.INFO}
    assert found == {"C1"}, whole


def test_a_lost_tail_is_proved_also_behind_a_restarted_receiver(star97: Topology) -> None:
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    fault.replica.execute(fault.replica.dialect.stop_replica, fault.replica.dialect.start_replica)
    await_status(fault.replica, faults._source_refused)
    finding = only(audited(part_of(star97, "source", "replica1")))
    assert (finding.code, finding.grade) == ("E3", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.lost)


def test_a_lost_tail_under_a_former_server_uuid_is_no_proof_of_a_client(star97: Topology) -> None:
    """Its server has another UUID since. A session that sets gtid_next leaves the same."""
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    fault.source.kill()
    (fault.source.datadir / "auto.cnf").unlink()
    fault.source.start()
    replica = fault.replica
    replica.execute(replica.dialect.stop_replica, replica.dialect.start_replica)
    await_status(replica, faults._both_threads_run)
    names_both = errant_of_no_server(part_of(star97, "source", "replica1"), fault.lost)
    by_hand = "11111111-2222-3333-4444-555555555555:1"
    replica.execute(f"SET SESSION gtid_next = '{by_hand}'", "BEGIN", "COMMIT")
    twin = errant_of_no_server(part_of(star97, "source", "replica1"), f"{fault.lost},{by_hand}")
    assert [each.name for each in twin.strategies] == [each.name for each in names_both.strategies]


def errant_of_no_server(topology: Topology, gtids: str) -> Finding:
    finding = only(audited(topology))
    assert (finding.code, finding.grade, finding.gtid_set) == (
        "E1",
        Grade.LIKELY,
        GtidSet.parse(gtids),
    )
    assert "a session set gtid_next" in finding.explanation
    assert "restored and given a new server_uuid" in finding.explanation
    return finding


def test_the_refusal_of_a_gtid_made_by_hand_stands_beside_it_on_5_6(pair56: Pair) -> None:
    """A lost tail is refused in the same words, and is one cause: E3 explains the refusal."""
    one_way(pair56)
    fault = faults_history.made_by_hand(pair56, owner="a", written_on="b")
    assert above_info(audited(pair56)).keys() == {"H7"}
    fault.owner.restart()
    # A receiver that met the server while it was down waits 60 s before it connects again.
    fault.written_on.execute("STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
    await_status(fault.written_on, faults._source_refused)
    found = above_info(audited(pair56))
    assert found.keys() == {"A4", "H7"}
    assert (found["A4"].severity, found["H7"].grade) == (Severity.CRITICAL, Grade.PROVED)


# -- passed by the applier, bypassed by position, or on its way -----------------------------------


def test_what_the_counter_skipped_is_no_backlog_behind_a_lock(pair97: Pair) -> None:
    impatient = Policy(lock_wait_seconds_max=1, stall_seconds_max=1)
    with faults_applier.skipped_behind_lock(one_way(pair97)) as (passed, held):
        early = audited(pair97)
        time.sleep(2.2)  # longer than both limits, by the server's whole seconds
        snapshot = collect_cluster("live", targets_of(pair97), policy=impatient)
        late = audit_cluster(snapshot, impatient)
    [waiting] = [each for each in early.findings if each.code == "T2"]
    assert waiting.gtid_set == GtidSet.parse(held.held)
    assert above_info(late).keys() == {"H8", "A5", "C3"}
    after = audited(pair97)
    for audit in (early, late, after):
        h8 = above_info(audit)["H8"]
        # The logs of the source begin with it: a RESET would look the same.
        assert (h8.gtid_set, h8.grade) == (GtidSet.parse(passed.passed), Grade.LIKELY)
        assert "sql_replica_skip_counter" in h8.explanation
    assert not [each for each in after.findings if each.code.startswith("T")]


def test_what_was_skipped_and_is_fetched_again_is_not_only_backlog(pair97: Pair) -> None:
    """Behind later updates of its row it makes the row older: the sets do not show it afterwards."""
    source, replica = one_way(pair97).a, pair97.b
    skipped, _ = faults_applier.update_skipped(source, replica)
    # SOURCE_DELAY deletes the relay logs and holds what the receiver fetches again.
    replica.execute(
        "SET GLOBAL gtid_mode = ON",
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600",
        "START REPLICA",
    )
    await_status(replica, lambda status: skipped in status["Retrieved_Gtid_Set"])
    found = above_info(audited(pair97))["T1"]
    assert (found.severity, found.grade) == (Severity.WARNING, Grade.LIKELY)
    assert found.gtid_set == GtidSet.parse(skipped)
    replica.execute(
        "STOP REPLICA SQL_THREAD",
        "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0",
        "START REPLICA SQL_THREAD",
    )
    wait_for(replica, skipped)
    assert source.query("SELECT note FROM late.t WHERE id = 7") == [("newest",)]
    assert replica.query("SELECT note FROM late.t WHERE id = 7") == [("older",)]


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_hole_that_a_restart_made_anonymous_names_both_causes(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair = one_way(request.getfixturevalue(shape))
    fault = faults_applier.relay_position_moved(pair, later_count=2)
    passed = above_info(audited(pair))["H8"]
    assert passed.grade is Grade.LIKELY
    assert "RESET BINARY LOGS AND GTIDS on a, which has reused these GTIDs" in passed.explanation
    restart_with(pair.b, "--relay-log-recovery=ON")
    await_status(pair.b, faults._both_threads_run)
    hole = above_info(audited(pair))["H1"]
    assert (hole.grade, hole.gtid_set) == (Grade.LIKELY, GtidSet.parse(fault.passed))
    assert "RELAY_LOG_POS, sql_replica_skip_counter" in hole.explanation
    # With auto-position the source sends them: nothing is left of either.
    pair.b.execute(
        pair.b.dialect.stop_replica,
        pair.b.dialect.change_source_to(auto_position=1),
        pair.b.dialect.start_replica,
    )
    wait_for(pair.b, fault.passed)
    pair.settle()
    assert audited(pair).verdict is Verdict.OK


def test_what_a_file_position_may_have_passed_is_never_proved_to_come(
    installation97: Installation,
) -> None:
    with faults_channels.moved_past_and_waiting(installation97) as fault:
        waiting = audited(fault.topology)
        skipped, unread = GtidSet.parse(fault.skipped), GtidSet.parse(fault.unread)
        found = {each.code: each for each in waiting.findings}
        assert found.keys() - REMARKS == {"H1", "C3", "T2", "T3"}, waiting
        assert (found["T3"].grade, found["T3"].gtid_set) == (Grade.LIKELY, unread)
        assert "An audit shows whether they arrive" in found["T3"].explanation
        assert (found["H1"].grade, found["H1"].gtid_set) == (Grade.LIKELY, skipped)
        # By the sets alone nothing separates the two: the place in the log is not known.
        snapshot = collect_cluster("live", targets_of(fault.topology))
        blind = tuple(replace(server, history_evidence=None) for server in snapshot.last)
        [behind] = [
            each
            for each in audit_cluster(replace(snapshot, last=blind)).findings
            if each.code == "T3"
        ]
        assert (behind.grade, behind.gtid_set) == (Grade.LIKELY, skipped | unread)


# -- maintenance, or data -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_only_maintenance_is_left_out_unasked(shape: str, request: pytest.FixtureRequest) -> None:
    pair = one_way(request.getfixturevalue(shape))
    table_on(pair.a, pair.b, "kept")
    upkeep = commit(pair.b, "ANALYZE TABLE kept.t", "FLUSH PRIVILEGES", "OPTIMIZE TABLE kept.t")
    run_plan(pair, examine(pair).plan())
    audit = with_contents(pair)
    assert audit.verdict is Verdict.OK, audit
    [left] = [each for each in audit.findings if each.code not in REMARKS]
    assert (left.code, left.gtid_set) == ("E4", GtidSet.parse(upkeep))
    data = commit(
        pair.b,
        "/* ANALYZE TABLE kept.t */ TRUNCATE TABLE kept.t",
        "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
        "CREATE USER kept@'%'",
    )
    plan = examine(pair).plan()
    assert not plan.steps, "each of them needs a decision"
    for gtid in GtidSet.parse(data).gtids():  # as an operator might do
        pair.a.execute(f"SET SESSION gtid_next = '{gtid}'", "BEGIN", "COMMIT")
    found = above_info(with_contents(pair))
    assert found.keys() - REMARKS == {"E4"}
    assert found["E4"].gtid_set == GtidSet.parse(data)
    pair.b.execute(
        "SET SESSION sql_log_bin = 0",
        "DELETE FROM mysql.time_zone ORDER BY Time_zone_id DESC LIMIT 1",
    )


def test_a_setting_that_hides_errors_is_not_taken_for_rows_that_differ(pair97: Pair) -> None:
    a, b = one_way(pair97).a, pair97.b
    table_on(a, b, "drifts")
    b.execute("SET GLOBAL replica_exec_mode = 'IDEMPOTENT'")
    wait_for(b, commit(a, "INSERT INTO drifts.t VALUES (1, 'a')"))
    assert above_info(with_contents(pair97)).keys() == {"C15"}
    b.execute("SET SESSION sql_log_bin = 0", "INSERT INTO drifts.t VALUES (2, 'b')")
    wait_for(b, met := commit(a, "INSERT INTO drifts.t VALUES (2, 'a')"))
    found = above_info(with_contents(pair97))
    assert found.keys() == {"C15", "E4"}
    assert (found["E4"].grade, found["E4"].gtid_set) == (Grade.LIKELY, GtidSet.parse(met))


# -- seen in part ---------------------------------------------------------------------------------


def test_a_donor_is_named_or_said_to_be_unread(chain97: Topology) -> None:
    chain = chain97
    first, middle, last = (chain[name] for name in ("first", "middle", "last"))
    table_on(first, middle, "donated")
    chain.settle()
    last.execute(last.dialect.stop_replica)
    needed = commit(first, *["INSERT INTO donated.t () VALUES ()"] * 3)
    wait_for(middle, needed)
    purge(middle, needed)
    last.execute(last.dialect.start_replica)
    await_status(last, faults._source_refused)
    whole = only(audited(chain))
    assert (whole.code, whole.gtid_set) == ("P1", GtidSet.parse(needed))
    assert "first can still send them" in whole.explanation
    assert whole.strategies[0].name == "donor_refetch"
    seen = above_info(audited(part_of(chain, "middle", "last")))
    assert seen.keys() == {"P1", "J4"}
    address = f"{first.host}:{first.port}"
    assert f"{address} may have them; gtid-audit did not read that" in seen["P1"].explanation
    purge(first, needed)
    gone = only(audited(chain))
    assert (gone.code, [each.name for each in gone.strategies]) == ("P1", ["reclone"])
    assert not examine(chain).plan().steps


def test_a_replica_left_behind_by_a_part_with_an_unread_source(
    installation97: Installation,
) -> None:
    plan = TopologyPlan(names=("out", "r", "s"), links=(Link("out", "s"), Link("s", "r")))
    with shapes.running(installation97, plan) as chain:
        out, r, s = (chain[name] for name in plan.names)
        table_on(s, r, "behind")
        seen = part_of(chain, "r", "s")
        declared = Policy(external_sources=frozenset({f"{out.host}:{out.port}"}))

        def found() -> ClusterAudit:
            return audit_cluster(
                collect_cluster("live", targets_of(seen), policy=declared), declared
            )

        assert (found().verdict, found().findings) == (Verdict.OK, ()), "a healthy chain"
        # The ends of a chain are linked by the unread server.
        ends = part_of(chain, "out", "r")
        address = f"{s.host}:{s.port}"
        external = Policy(external_sources=frozenset({address}))
        audit = audit_cluster(collect_cluster("live", targets_of(ends), policy=external), external)
        assert audit.verdict is Verdict.OK, audit
        r.execute(r.dialect.stop_replica, r.dialect.reset_replica)
        assert above_info(found()).keys() == {"J1"}
        missing = commit(s, "INSERT INTO behind.t (note) VALUES ('on s')")
        assert above_info(found())["J1"].gtid_set == GtidSet.parse(missing)
        out.kill()  # unreachable: nothing changes
        await_status(s, lambda status: status["Replica_IO_Running"] == "Connecting")
        assert above_info(found()).keys() == {"J1", "A4"}
        own = commit(r, "INSERT INTO behind.t (note) VALUES ('on r')")
        j3 = above_info(found())["J3"]
        assert (j3.gtid_set, j3.grade, j3.source) == (GtidSet.parse(own), Grade.LIKELY, "s")
        assert f"{out.host}:{out.port}" in j3.explanation
        assert not examine(seen).plan().steps


def test_a_way_home_that_waits_refuses_or_is_not_read(installation97: Installation) -> None:
    with shapes.ring(installation97) as ring:
        a, b, c = (ring[name] for name in "abc")
        table_on(a, b, "home")
        ring.settle()
        seen = part_of(ring, "a", "b")
        c.execute("STOP REPLICA")
        waiting = commit(b, "INSERT INTO home.t (note) VALUES ('waits')")
        stopped = only(audited(ring))
        assert (stopped.code, stopped.gtid_set) == ("A7", GtidSet.parse(waiting))
        assert _errant_in_part(seen).gtid_set == GtidSet.parse(waiting)
        part = examine(seen)
        assert not part.plan().steps
        chosen = part.plan({"E1": "inject_empty"})
        assert f"not part of this audit: {c.host}:{c.port}" in chosen.warnings[0]
        c.execute("START REPLICA")
        ring.settle()
        # Refused with 13117: the receiver's error is the one cause.
        b.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
        c.execute("STOP REPLICA")
        refused = commit(b, "INSERT INTO home.t (note) VALUES ('refused')")
        c.execute("START REPLICA")
        await_status(c, lambda status: status["Last_IO_Errno"] == 13117)
        assert "A4" in above_info(audited(ring))
        assert "E1" not in above_info(audited(ring))
        assert not examine(ring).plan().steps
        assert _errant_in_part(seen).gtid_set == GtidSet.parse(refused)
        b.execute("SET GLOBAL gtid_mode = ON")
        c.execute("START REPLICA")
        ring.settle()
        assert audited(ring).verdict is Verdict.OK
        # The holder has purged them: starting the channel brings nothing.
        c.execute("STOP REPLICA")
        gone = commit(b, "INSERT INTO home.t (note) VALUES ('purged')")
        purge(b, gone)
        found = above_info(audited(ring))
        assert found.keys() == {"P1", "E2"}
        assert (found["E2"].grade, found["P1"].replica) == (Grade.LIKELY, "c")
        assert "starting it applies them" not in found["E2"].explanation
        c.execute("START REPLICA")  # 13114
        await_status(c, faults._source_refused)
        assert only(audited(ring)).code == "P1"
        assert not examine(ring).plan().steps


def _errant_in_part(seen: Topology) -> Finding:
    audit = audited(seen)
    [errant] = [each for each in audit.findings if each.code == "E1"]
    assert (errant.grade, errant.severity) == (Grade.LIKELY, Severity.WARNING)
    assert [each.name for each in errant.strategies] == ["add_servers"]
    assert audit.verdict is Verdict.UNKNOWN
    return errant


def test_a_gap_behind_an_external_source_is_j4(installation97: Installation) -> None:
    plan = TopologyPlan(("first", "out", "last"), (Link("first", "out"), Link("out", "last")))
    with shapes.running(installation97, plan) as chain:
        first, out, last = (chain[name] for name in plan.names)
        declared = Policy(external_sources=frozenset({f"{out.host}:{out.port}"}))

        def found() -> ClusterAudit:
            ends = targets_of(part_of(chain, "first", "last"))
            return audit_cluster(collect_cluster("live", ends, policy=declared), declared)

        table_on(first, last, "ends")
        assert (found().verdict, found().findings) == (Verdict.OK, ()), "a healthy chain"
        out.execute(out.dialect.stop_replica)
        commit(first, "INSERT INTO ends.t (note) VALUES ('waits')")
        assert found().verdict is Verdict.OK, "behind, and without a gap: it may be on its way"
        out.execute(out.dialect.start_replica)
        fault = faults.position_bypass(chain, source="first", replica="out")
        wait_for(last, fault.applied)
        j4 = only(found())
        assert (j4.code, j4.grade, j4.severity) == ("J4", Grade.LIKELY, Severity.WARNING)
        assert j4.gtid_set == GtidSet.parse(fault.skipped)
