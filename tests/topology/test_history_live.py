"""Faults of histories, joining, identity and partial views on real servers: see test_faults_live."""

from collections.abc import Iterator

import pytest

from compose import faults, faults_channels, faults_history
from compose.faults import await_status
from compose.native import load, shapes
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, await_uptime
from gtid import GtidSet
from gtid_audit.tasks import cluster_contents
from tests.repair.live import examine
from tests.topology.test_faults_live import audited, only, targets_of
from topology.adapters.collect import collect_cluster
from topology.adapters.log_answers import with_history_evidence
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.catalogue.strategy_table import STRATEGIES
from topology.policy import Policy
from topology.questions.log_questions import LogQuestions


def facts_in(finding: Finding) -> dict[str, str]:
    return {fact.fact: fact.value for fact in finding.evidence}


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


def codes(audit: ClusterAudit) -> list[tuple[str, Grade, Severity]]:
    return [(one.code, one.grade, one.severity) for one in audit.findings]


# -- lost, reset, made by hand --------------------------------------------------------------------


def test_a_reset_of_the_source_is_e6_and_proved(star97: Topology) -> None:
    await_uptime(star97["source"])
    fault = faults_history.reset_history(star97)
    audit = audited(part_of(star97, "source", "replica1"))
    finding = only(audit)
    assert (finding.code, finding.grade) == ("E6", Grade.PROVED), audit
    assert finding.gtid_set == GtidSet.parse(fault.forgotten)
    names = [strategy.name for strategy in finding.strategies]
    assert not {"redo_on_source", "undo_on_replica", "inject_empty"} & set(names)
    assert facts_in(finding)["restarted since they were committed"] == "no"


def test_a_reset_before_a_restart_is_likely_and_names_the_crash(star97: Topology) -> None:
    fault = faults_history.reset_history(star97)
    fault.source.kill()
    fault.source.start()
    finding = only(audited(part_of(star97, "source", "replica1")))
    assert (finding.code, finding.grade) == ("E6", Grade.LIKELY)
    assert "crash" in finding.explanation


def test_a_reset_of_an_old_source_is_e6(pair56: Pair) -> None:
    pair56.a.execute("STOP SLAVE", "RESET SLAVE ALL")  # a plain source and its replica
    await_uptime(pair56.a)
    fault = faults_history.reset_history(pair56, source="a", replica="b")
    finding = only(audited(pair56))
    assert (finding.code, finding.grade) == ("E6", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.forgotten)


def test_a_lost_tail_of_an_old_source_is_e3(pair56: Pair) -> None:
    fault = faults.lost_tail_crash(pair56)
    finding = only(audited(pair56))
    assert finding.code == "E3"
    assert finding.gtid_set == GtidSet.parse(fault.lost)


def test_a_lost_tail_is_counted_by_its_distance_and_not_by_its_size(pair97: Pair) -> None:
    """It lies above free GNOs, which the source gives to its next transactions first."""
    uuid, row = pair97.a.value("@@GLOBAL.server_uuid"), "INSERT INTO lost.t (note) VALUES ('lost')"
    tail = [each for gno in (41, 42, 43) for each in (f"SET gtid_next = '{uuid}:{gno}'", row)]
    fault = faults.lost_tail_crash(pair97, statements=tail)
    finding = only(audited(pair97))
    assert (finding.code, finding.gtid_set) == ("E3", GtidSet.parse(f"{uuid}:41-43"))
    free = 40 - GtidSet.parse(str(fault.source.value("@@GLOBAL.gtid_executed"))).gtid_count
    assert facts_in(finding)["commits until the first is reused"] == str(free + 1)
    assert facts_in(finding)["commits until the GTIDs are all reused"] == str(free + 3)
    write = "INSERT INTO lost.t () VALUES ()"
    for count, reused in ((free, ""), (1, f"{uuid}:41"), (2, f"{uuid}:41-43")):
        faults.commit(fault.source, *[write] * count)
        executed = GtidSet.parse(str(fault.source.value("@@GLOBAL.gtid_executed")))
        assert finding.gtid_set & executed == GtidSet.parse(reused), "the distance was true"


@pytest.mark.slow
def test_a_lost_tail_with_a_tag_is_reused_by_transactions_with_the_tag(pair97: Pair) -> None:
    tag, row = "SET gtid_next = 'AUTOMATIC:dba'", "INSERT INTO lost.t VALUES (1000, 'lost')"
    fault = faults.lost_tail_crash(pair97, statements=[tag, row])
    source = fault.source
    faults.commit(source, *[f"INSERT INTO lost.t VALUES ({number}, '')" for number in range(1, 7)])
    finding = only(audited(pair97))
    assert (finding.code, finding.gtid_set) == ("E3", GtidSet.parse(fault.lost))
    assert "1st next transaction. Only transactions with the same tag count." in finding.explanation
    faults.commit(source, tag, "INSERT INTO lost.t VALUES (2000, 'reused')")
    fault.replica.execute(fault.replica.dialect.start_replica)
    pair97.settle()
    rows = [server.query("SELECT note FROM lost.t ORDER BY id") for server in (source, pair97.b)]
    assert rows[0] != rows[1], "and the sets are equal"
    with_contents = only(audited_with_contents(pair97))
    assert (with_contents.code, with_contents.gtid_set) == ("E4", finding.gtid_set)


def audited_with_contents(topology: Topology) -> ClusterAudit:
    """Audit as `pair` does behind a recent start."""
    targets = targets_of(topology)
    snapshot = collect_cluster("live", targets)
    contents = cluster_contents.look_at_contents(
        snapshot, targets, None, say=lambda _text: None
    ).reading
    return audit_cluster(snapshot.with_contents(contents))


def test_a_gtid_made_by_hand_is_h7_with_its_distance(star97: Topology) -> None:
    fault = faults_history.made_by_hand(star97)
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("H7", Grade.PROVED)
    assert (finding.source, finding.replica) == ("source", "replica1")
    assert finding.gtid_set == GtidSet.parse(fault.gtid)
    own = GtidSet.parse(str(fault.owner.value("@@GLOBAL.gtid_executed"))).gtid_count
    assert facts_in(finding)["commits until the first is reused"] == str(50 - own)
    fault.owner.restart()
    await_status(fault.written_on, lambda status: status["Last_IO_Errno"] == 13114)
    await_status(star97["replica2"], lambda status: status["Replica_IO_Running"] == "Yes")
    found = {each.code: each for each in audited(star97).findings}
    assert found.keys() == {"A4", "H7"}
    assert found["A4"].severity is Severity.CRITICAL
    fault.owner.execute(*["INSERT INTO by_hand.t () VALUES ()"] * (50 - own))
    reused = GtidSet.parse(str(fault.owner.value("@@GLOBAL.gtid_executed")))
    assert finding.gtid_set <= reused, "the distance was true"


@pytest.mark.slow
def test_a_gtid_made_by_hand_next_to_a_lost_tail_is_not_lost(star97: Topology) -> None:
    """The log shows both server_ids: of the source in the tail, of the replica behind it."""
    fault = faults.lost_tail_crash(star97, source="source", replica="replica1")
    uuid, _, numbers = fault.lost.rpartition(":")
    by_hand = f"{uuid}:{int(numbers.rpartition('-')[2]) + 1}"
    fault.replica.execute(
        f"SET SESSION gtid_next = '{by_hand}'",
        "CREATE DATABASE by_hand",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )
    audit = audited(part_of(star97, "source", "replica1"))
    found = {each.code: each for each in audit.findings if each.severity is not Severity.INFO}
    assert found.keys() == {"E3", "H7"}, audit
    assert found["E3"].gtid_set == GtidSet.parse(fault.lost)
    assert found["H7"].gtid_set == GtidSet.parse(by_hand)
    assert found["E3"].grade is Grade.PROVED
    # Without a gap below it, a copied auto.cnf on that server would show the same.
    assert found["H7"].grade is Grade.LIKELY
    assert "another server that commits under the same server_uuid" in found["H7"].explanation


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_gtid_purged_that_is_too_large_is_among_the_causes(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """No server has lost these transactions: there were none."""
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    fault = faults_history.declared_too_much(pair)
    [finding] = [one for one in audited(pair).findings if one.code in ("E3", "E6", "H7")]
    assert (finding.grade, finding.gtid_set) == (Grade.LIKELY, GtidSet.parse(fault.gtid))
    assert "SET GLOBAL gtid_purged on b, by hand or with a backup" in finding.explanation
    plan = examine(pair)
    for strategy in ("redo_on_source", "undo_on_replica"):
        assert not plan.plan({finding.code: strategy}).steps, "there is nothing to redo or undo"
    # Its twin has logged them.
    pair.b.execute(pair.b.dialect.stop_replica, pair.b.dialect.words.reset_binary_logs_and_gtids)
    pair.b.execute(f"SET GLOBAL gtid_purged = '{pair.a.value('@@GLOBAL.gtid_executed')}'")
    by_hand = fault.gtid.rpartition("-")[0]
    pair.b.execute(f"SET gtid_next = '{by_hand}'", "CREATE DATABASE by_hand")
    [finding] = [one for one in audited(pair).findings if one.code in ("E3", "E6", "H7")]
    assert finding.gtid_set == GtidSet.parse(by_hand)
    assert "SET GLOBAL gtid_purged" not in finding.explanation


# -- what is seen in part -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring97(installation97: Installation) -> Iterator[Topology]:
    with shapes.ring(installation97) as ring:
        yield ring


@pytest.mark.slow
def test_a_ring_gives_no_alarm_whole_or_seen_in_part(
    ring97: Topology, mysql_clients: Clients
) -> None:
    part = part_of(ring97, "a", "b")
    external = Policy(external_sources=frozenset({f"127.0.0.1:{ring97['c'].port}"}))
    with load.write_load([ring97["b"]], clients=mysql_clients, connections=1):
        audits = [audited(part) for _ in range(2)]
        declared = [
            audit_cluster(collect_cluster("live", targets_of(part), policy=external), external)
            for _ in range(4)
        ]
        whole = [audited(ring97) for _ in range(2)]
    ring97.settle()
    silent = audit_cluster(collect_cluster("live", targets_of(part), policy=external), external)
    assert (silent.verdict, silent.findings, silent.unknown) == (Verdict.OK, (), ())
    for audit in (*whole, *declared):
        assert (audit.verdict, audit.unknown) == (Verdict.OK, ()), audit
        assert {one.severity for one in audit.findings} <= {Severity.INFO}, audit
    for audit in audits:
        assert audit.verdict is Verdict.UNKNOWN
        assert all(one.severity is not Severity.CRITICAL for one in audit.findings), audit
        assert "J4" in {one.code for one in audit.findings}


def test_what_waits_in_the_unseen_part_is_likely_and_names_it(ring97: Topology) -> None:
    ring97.settle()
    ring97["c"].execute("STOP REPLICA")
    try:
        waiting = faults.commit(ring97["b"], "CREATE DATABASE on_its_way")
        audit = audited(part_of(ring97, "a", "b"))
        whole = audited(ring97)
    finally:
        ring97["c"].execute("START REPLICA")
        ring97.settle()
    [errant] = [one for one in audit.findings if one.code == "E1"]
    assert (errant.grade, errant.gtid_set) == (Grade.LIKELY, GtidSet.parse(waiting))
    assert f"127.0.0.1:{ring97['c'].port}" in errant.explanation
    assert errant.strategies == (STRATEGIES["add_servers"],)
    assert audit.verdict is Verdict.UNKNOWN
    # Seen whole, the stopped channel is the one cause.
    assert only(whole).code == "A7"
    assert only(whole).gtid_set == GtidSet.parse(waiting)


def test_a_replica_alone_is_compared_with_nothing(star97: Topology) -> None:
    """Nothing but its source could show what it is missing, or has too much."""
    source, replica = star97["source"], star97["replica1"]
    star97.settle()
    faults.commit(replica, "CREATE DATABASE errant")
    alone = part_of(star97, "replica1")
    audit = audited(alone)
    assert codes(audit) == [("J4", Grade.UNKNOWN, Severity.WARNING)]
    assert audit.verdict is Verdict.UNKNOWN
    assert f"127.0.0.1:{source.port}" in audit.findings[0].explanation
    # Of two channels, one comes from a server of the audit: the other one is still named.
    second = star97["replica2"]
    change = second.dialect.change_source_to(
        host=replica.host, port=replica.port, user="replication", auto_position=1
    )
    second.execute(f"{change} FOR CHANNEL 'inside'", "START REPLICA FOR CHANNEL 'inside'")
    shapes.wait_for(second, replica.value("@@GLOBAL.gtid_executed"))
    audit = audited(part_of(star97, "replica1", "replica2"))
    assert audit.verdict is Verdict.UNKNOWN
    assert {(one.code, one.replica) for one in audit.findings} == {
        ("J4", "replica1"),
        ("J4", "replica2"),
    }


def test_the_ends_of_a_chain_are_not_called_unlinked(chain97: Topology) -> None:
    audit = audited(part_of(chain97, "first", "last"))
    assert codes(audit) == [("J4", Grade.UNKNOWN, Severity.WARNING)]
    assert audit.verdict is Verdict.UNKNOWN
    assert f"127.0.0.1:{chain97['middle'].port}" in audit.findings[0].explanation


def test_a_source_that_was_replaced_is_not_ok_until_its_receiver_has_connected(
    pair97: Pair,
) -> None:
    """A clone with a new server_uuid: what the receiver shows of its source is of the former one."""
    former = str(pair97.a.value("@@GLOBAL.server_uuid"))
    source = faults_history.source_replaced(pair97)
    audit = audited(pair97)
    assert audit.verdict is not Verdict.OK
    [replaced] = [one for one in audit.findings if one.code == "J4"]
    assert (replaced.replica, replaced.grade) == ("b", Grade.UNKNOWN)
    assert facts_in(replaced)["source's server_uuid"] == former
    assert "The source of b was replaced" in replaced.explanation
    faults_history.readmit(source, pair97.b)
    pair97.settle()
    assert audited(pair97).verdict is Verdict.OK


# -- joining --------------------------------------------------------------------------------------


def test_an_old_source_that_returns_with_a_tail_is_j3(star97: Topology) -> None:
    fault = faults_history.failover_with_tail(star97)
    finding = only(audited(star97))
    assert (finding.code, finding.replica) == ("J3", "source")
    assert finding.gtid_set == GtidSet.parse(fault.tail)
    assert "Content: data (" in finding.explanation
    assert "inject_empty" not in {strategy.name for strategy in finding.strategies}


def test_an_old_source_that_is_attached_with_its_tail_is_not_ok(star97: Topology) -> None:
    """Its rows meet those of the new source: A2 and E1 have one cause, and A2 names it."""
    fault = faults_history.attached_with_tail(star97, equal_keys=True)
    found = examine(star97)
    severe = {one.code: one for one in found.audit.findings if one.severity is not Severity.INFO}
    assert severe.keys() == {"A2", "E1"}, found.audit
    assert {one.severity for one in severe.values()} == {Severity.CRITICAL}
    assert severe["E1"].gtid_set == GtidSet.parse(fault.tail)
    assert "2 transactions that replica1 does not have (see E1" in severe["A2"].explanation
    assert "may have written or deleted the row" in severe["A2"].explanation
    plan = found.plan()
    assert not plan.steps
    assert "tail.t (2 inserted)" in str(plan.not_planned)
    assert {each.code for each in plan.afterwards} == {"A2", "E1"}


def test_a_detached_replica_can_join_until_it_is_purged(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    star97.settle()
    replica.execute("STOP REPLICA", "RESET REPLICA ALL")
    missing = faults.commit(source, "CREATE DATABASE missing_there")
    audit = audited(star97)
    finding = only(audit)
    assert (finding.code, finding.replica, audit.verdict) == ("J1", "replica1", Verdict.WARNING)
    assert finding.gtid_set == GtidSet.parse(missing)
    shapes.wait_for(star97["replica2"], missing)
    for server in (source, star97["replica2"]):
        _purge(server, missing)
    finding = only(audited(star97))
    assert (finding.code, finding.gtid_set) == ("J2", GtidSet.parse(missing))


def test_a_server_that_was_reset_is_not_new(star97: Topology) -> None:
    source, replica = star97["source"], star97["replica1"]
    faults.table_on(source, replica, "kept")
    star97.settle()
    replica.execute(
        "STOP REPLICA",
        "RESET REPLICA ALL",
        replica.dialect.words.reset_binary_logs_and_gtids,
    )
    finding = only(audited(star97))
    assert (finding.code, finding.replica, finding.grade) == ("J1", "replica1", Grade.LIKELY)
    assert "It has 1 schema of its own." in finding.explanation
    assert "RESET BINARY LOGS AND GTIDS" in finding.explanation
    assert "is new" not in finding.explanation
    replica.execute("SET SESSION sql_log_bin = 0", "DROP DATABASE kept")
    finding = only(audited(star97))
    assert (finding.code, finding.grade) == ("J1", Grade.PROVED)
    assert "It is new" in finding.explanation
    targets = {each.name: each for each in targets_of(star97)}
    before = collect_cluster("live", list(targets.values()))
    replica.execute("CREATE DATABASE made_after_the_reading")
    for snapshot, count in (
        (before, None),
        (collect_cluster("live", list(targets.values())), 1),
    ):
        asked = {"replica1": LogQuestions(schemas=True)}
        answered = with_history_evidence(snapshot, targets, asked, seconds_max=5.0)
        [evidence] = [each.history_evidence for each in answered.last if each.name == "replica1"]
        assert evidence is not None
        assert (evidence.schemas_count, evidence.unread) == (count, "")


@pytest.mark.slow
def test_a_server_with_a_new_uuid_drops_what_it_committed_before(star97: Topology) -> None:
    """As after a clone: another server_uuid, the same server_id, and none of its transactions."""
    source, replica = star97["source"], star97["replica1"]
    former = faults.commit(source, "CREATE DATABASE former")
    star97.settle()
    replica.execute("STOP REPLICA", "RESET REPLICA ALL")
    source.stop()
    (source.datadir / "auto.cnf").unlink()
    source.start()
    source.execute(source.dialect.words.reset_binary_logs_and_gtids)
    shapes.follow(source, replica)
    later = faults.commit(replica, "CREATE DATABASE later")
    shapes.wait_for(source, later)
    found = audited(part_of(star97, "source", "replica1")).findings
    [dropped] = [one for one in found if one.code == "C2"]
    assert (dropped.source, dropped.replica, dropped.grade) == ("replica1", "source", Grade.PROVED)
    assert dropped.gtid_set == GtidSet.parse(former)
    others = [one for one in found if one.gtid_set & dropped.gtid_set and one is not dropped]
    assert [one.code for one in others] == ["E5"], "its former server_uuid is no server's"


def _purge(server: Server, gtids: str) -> None:
    server.execute("FLUSH BINARY LOGS")

    def is_gone() -> bool:
        server.execute(f"PURGE BINARY LOGS TO '{server.binary_log_position()[0]}'")
        return bool(server.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)", [gtids])[0][0])

    faults._await(is_gone, lambda: f"{server.name} does not purge {gtids}")


def test_what_two_sources_do_not_have_is_one_finding(star97: Topology) -> None:
    fault = faults_channels.errant_below_two_sources(star97)
    found = examine(star97)
    finding = only(found.audit)
    assert (finding.code, finding.replica, finding.grade) == ("E1", "replica2", Grade.PROVED)
    assert finding.gtid_set == GtidSet.parse(fault.errant)
    named = {"source", "replica1"} - {finding.source}
    assert f"Its other sources do not have them either: {named.pop()}." in finding.explanation
    everywhere = found.plan({"E1": "inject_empty"})
    assert {step.server for step in everywhere.steps} == {"source", "replica1"}


# -- identity and settings ------------------------------------------------------------------------


def test_equal_server_ids_in_a_chain_are_c2(chain97: Topology) -> None:
    fault = faults_history.equal_server_ids(chain97)
    try:
        finding = only(audited(chain97))
        assert (finding.code, finding.source, finding.replica) == ("C2", "first", "last")
        assert finding.gtid_set == GtidSet.parse(fault.dropped)
    finally:
        fault.replica.execute(
            "STOP REPLICA", f"SET GLOBAL server_id = {fault.replica.server_id}", "START REPLICA"
        )


def test_neighbours_with_one_server_id_are_c2_and_no_other_error(pair97: Pair) -> None:
    b = pair97.b
    b.execute("STOP REPLICA", f"SET GLOBAL server_id = {pair97.a.value('@@GLOBAL.server_id')}")
    b.execute("START REPLICA")
    pair97.a.execute("STOP REPLICA", "START REPLICA")
    for server in (pair97.a, b):
        faults.await_status(server, lambda status: "server ids" in status["Last_IO_Error"])
    finding = only(audited(pair97))
    assert (finding.code, finding.severity) == ("C2", Severity.CRITICAL)


@pytest.mark.parametrize(
    "setting",
    ["replica_exec_mode = 'IDEMPOTENT'", "replica_type_conversions = 'ALL_LOSSY'"],
)
def test_a_setting_that_hides_errors_is_c15(pair97: Pair, setting: str) -> None:
    pair97.b.execute(f"SET GLOBAL {setting}")
    finding = only(audited(pair97))
    assert (finding.code, finding.replica) == ("C15", "b")


@pytest.mark.parametrize(
    "setting", ["slave_exec_mode = 'IDEMPOTENT'", "slave_type_conversions = 'ALL_LOSSY'"]
)
def test_a_setting_of_an_old_replica_that_hides_errors_is_c15(pair56: Pair, setting: str) -> None:
    pair56.b.execute("STOP SLAVE", f"SET GLOBAL {setting}", "START SLAVE")
    await_status(pair56.b, faults._both_threads_run)
    finding = only(audited(pair56))
    assert (finding.code, finding.replica) == ("C15", "b")
    assert setting.partition(" ")[2].strip("= '") in finding.explanation


def test_skipped_errors_of_an_old_replica_are_c15(installation56: Installation) -> None:
    with shapes.pair(installation56, extra=("--slave-skip-errors=1062,1032",)) as pair:
        audit = audited(pair)
    assert {(one.code, one.replica) for one in audit.findings} == {("C15", "a"), ("C15", "b")}
    assert all("1062" in one.explanation for one in audit.findings)


def test_skipped_errors_are_c15(installation97: Installation) -> None:
    with shapes.pair(installation97, extra=("--replica-skip-errors=all",)) as pair:
        audit = audited(pair)
    assert {(one.code, one.replica) for one in audit.findings} == {("C15", "a"), ("C15", "b")}
    assert audit.verdict is Verdict.WARNING


def test_an_old_coordinator_that_hides_its_workers_error_is_a_likely_a3(pair56: Pair) -> None:
    a, b = pair56.a, pair56.b
    b.execute("STOP SLAVE", "SET GLOBAL slave_parallel_workers = 2", "START SLAVE")
    view = "CREATE VIEW hidden.v AS SELECT * FROM hidden.t"
    a.execute("CREATE DATABASE hidden", "CREATE TABLE hidden.t (id INT PRIMARY KEY)", view)
    pair56.settle()
    b.execute("SET SESSION sql_log_bin = 0", "DROP VIEW hidden.v")
    faults.commit(a, view, expected_error=1050)
    faults.await_status(b, lambda status: status["Last_SQL_Errno"] == 1756)
    finding = only(audited(pair56))
    assert (finding.code, finding.grade) == ("A3", Grade.LIKELY)
    for said in ("1756", "error log", "A1", "slave_parallel_workers = 0"):
        assert said in finding.explanation
    # The way that it names shows the error.
    b.execute("STOP SLAVE", "SET GLOBAL slave_parallel_workers = 0", "START SLAVE")
    faults.await_status(b, lambda status: "different errors" in status["Last_SQL_Error"])
    assert only(audited(pair56)).code == "A1"


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_gtid_purged_of_another_uuid_is_among_the_causes_of_e2(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """A mistyped UUID: no server has it, and no client wrote anything."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    typed = "11111111-2222-3333-4444-555555555555:1-8"
    a.execute(a.dialect.stop_replica, f"{a.dialect.words.reset_replica} ALL")
    b.execute(
        b.dialect.stop_replica,
        b.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{typed}'",
        b.dialect.start_replica,
    )
    a.execute("CREATE DATABASE typed")
    shapes.wait_for(b, str(a.value("@@GLOBAL.gtid_executed")))
    found = {each.code: each for each in audited(pair).findings}
    assert (found["E2"].grade, found["E2"].gtid_set) == (Grade.LIKELY, GtidSet.parse(typed))
    assert "gtid_purged (with another UUID than was meant)" in found["E2"].explanation


def test_a_middle_server_that_was_detached_has_not_proved_that_its_source_diverged(
    chain97: Topology,
) -> None:
    """b and its replica are the larger part, and all that they have is on a."""
    first, middle = chain97["first"], chain97["middle"]
    first.execute("CREATE DATABASE detached", "CREATE TABLE detached.t (id INT PRIMARY KEY)")
    chain97.settle()
    middle.execute(middle.dialect.stop_replica, middle.dialect.reset_replica)
    first.execute("INSERT INTO detached.t VALUES (1)")
    found = only(audited(chain97))
    assert (found.code, found.replica, found.grade) == ("J3", "first", Grade.LIKELY)
    assert "middle can replicate from first" in found.explanation
