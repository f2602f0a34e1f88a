"""A replication group on real servers: its members, what is outside it, and what is never written."""

import itertools
import re
import shlex
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pymysql
import pytest

from compose import faults, faults_group
from compose.native import shapes
from compose.native.command import Settings
from compose.native.groups import PLUGIN, group_and_replica, start_group
from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from gtid import GtidSet
from repair import Plan
from repair.strategies.strategy_registry import PLANNERS
from tests.gtid_audit.build import run_cli
from tests.repair.live import Examination, examine, executed, wait_until
from tests.server_pool import is_connected
from tests.topology.test_faults_live import audited, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.catalogue.strategy_table import strategies_for
from topology.policy import Policy
from topology.readings.group_view import GROUP_RECOVERY

pytestmark = pytest.mark.slow  # a group takes some ten seconds to start, and as long to end


@pytest.fixture(
    scope="module",
    params=[False, True],
    ids=["a name of its own", "the name is the replica's server_uuid"],
)
def group97(installation97: Installation, request: pytest.FixtureRequest) -> Iterator[Topology]:
    members, named = ("m1", "m2", "m3"), request.param
    with group_and_replica(installation97, members=members, named_as_replica=named) as group:
        yield group


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


def name_of(group: Topology) -> str:
    return str(group["m1"].value("@@GLOBAL.group_replication_group_name"))


def codes(audit: ClusterAudit) -> set[tuple[str, str | None]]:
    return {(one.code, one.replica) for one in audit.findings if one.severity is not Severity.INFO}


def reads_from(replica: Server, source: Server) -> None:
    """Let the replica follow another member: until it is connected, it shows no server_uuid."""
    replica.execute("STOP REPLICA")
    follow(replica, source)
    assert is_connected(replica)


def test_a_healthy_group_is_ok_if_every_member_is_read(group97: Topology) -> None:
    group97.settle()
    audit = audited(group97)
    assert (codes(audit), audit.verdict) == (set(), Verdict.OK), audit
    audit = audited(part_of(group97, "m1", "m2"))
    assert (codes(audit), audit.verdict) == ({("J4", "m1")}, Verdict.UNKNOWN), audit
    assert f"127.0.0.1:{group97['m3'].port}" in str(audit.unknown)


def test_a_group_under_load_gives_nothing_above_info(group97: Topology) -> None:
    first = group97["m1"]
    first.execute(
        "CREATE DATABASE load_of_group", "CREATE TABLE load_of_group.t (id INT PRIMARY KEY)"
    )
    done = threading.Event()

    def write() -> None:
        with first.connect() as writer, writer.cursor() as cursor:
            for number in itertools.count():
                if done.is_set():
                    return
                cursor.execute("INSERT INTO load_of_group.t VALUES (%s)", [number])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(20):
                audit = audited(group97)
                assert (codes(audit), audit.verdict) == (set(), Verdict.OK), audit
        finally:
            done.set()
        writing.result()


def test_a_member_that_left_is_missing_what_the_group_commits(group97: Topology) -> None:
    first, second = group97["m1"], group97["m2"]
    second.execute("STOP GROUP_REPLICATION")
    first.execute("CREATE DATABASE while_m2_is_away")
    group97.settle()
    found = examine(group97)
    [left] = [one for one in found.audit.findings if one.severity is not Severity.INFO]
    assert (left.code, left.grade, left.replica) == ("A7", Grade.PROVED, "m2")
    assert left.gtid_set == GtidSet.parse(executed(first)) - GtidSet.parse(executed(second))
    plan = found.plan()
    assert not plan.steps
    # What the plan says to run by hand makes it a member again.
    for statement in re.findall(r"`([^`]*)`", plan.not_planned[-1].by_hand[0])[:1]:
        second.execute(statement)
    second.execute("START GROUP_REPLICATION USER = 'replication'")
    wait_for(second, executed(first))
    wait_until(lambda: not codes(audited(group97)))


def test_a_member_whose_worker_fails_is_a2_and_not_only_outside(
    installation97: Installation,
) -> None:
    """The row is deleted past the binary log; the group's next change of it finds none."""
    with group_and_replica(installation97, members=("m1", "m2")) as group:
        first, second = group["m1"], group["m2"]
        first.execute("CREATE DATABASE c", "CREATE TABLE c.t (id INT PRIMARY KEY, n INT)")
        first.execute("INSERT INTO c.t VALUES (1, 1)")
        wait_for(second, executed(first))
        second.execute("SET GLOBAL super_read_only = OFF", "SET sql_log_bin = 0", "DELETE FROM c.t")
        first.execute("UPDATE c.t SET n = 2")
        wait_until(lambda: codes(audited(group)) == {("A2", "m2")})
        [failed] = [one for one in audited(group).findings if one.code == "A2"]
        assert failed.channel == "group_replication_applier"
        assert failed.gtid_set == GtidSet.parse(executed(first)) - GtidSet.parse(executed(second))
        assert not examine(group).plan().steps


def test_a_server_that_was_reset_is_not_told_to_join_as_it_is(
    installation97: Installation,
) -> None:
    with group_and_replica(installation97, members=("m1", "m2")) as group:
        first, second = group["m1"], group["m2"]
        first.execute("CREATE DATABASE c", "CREATE TABLE c.t (id INT PRIMARY KEY)")
        wait_for(second, executed(first))
        second.execute("STOP GROUP_REPLICATION", "SET GLOBAL super_read_only = OFF")
        [left] = [one for one in audited(group).findings if one.code == "A7"]
        assert left.grade is Grade.PROVED  # its logs exclude a RESET
        second.execute("RESET BINARY LOGS AND GTIDS")
        [left] = [one for one in audited(group).findings if one.code == "A7"]
        assert (left.grade, left.gtid_set) == (Grade.LIKELY, GtidSet.parse(executed(first)))
        assert "RESET BINARY LOGS AND GTIDS" in left.explanation
        # What it says: recovery stops at what the server has already.
        second.execute(
            "SET GLOBAL group_replication_recovery_retry_count = 1",
            "START GROUP_REPLICATION USER = 'replication'",
        )
        wait_until(lambda: codes(audited(group)) == {("A3", "m2")})
        [failed] = [one for one in audited(group).findings if one.code == "A3"]
        assert (failed.channel, "1007" in failed.explanation) == (GROUP_RECOVERY, True)


def test_a_worker_of_a_member_that_waits_for_a_lock_is_a5(group97: Topology) -> None:
    first, second = group97["m1"], group97["m2"]
    first.execute("CREATE DATABASE blocked", "CREATE TABLE blocked.t (id INT PRIMARY KEY)")
    wait_for(second, executed(first))
    impatient = Policy(lock_wait_seconds_max=0)
    with second.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES blocked.t READ")
        first.execute("INSERT INTO blocked.t VALUES (1)")

        def found() -> set[tuple[str, str | None]]:
            snapshot = collect_cluster("live", targets_of(group97), policy=impatient)
            return codes(audit_cluster(snapshot, impatient))

        wait_until(lambda: found() == {("A5", "m2")})
    wait_for(second, executed(first))


def test_a_member_that_does_not_reach_the_others_is_not_part_of_the_group(
    group97: Topology,
) -> None:
    first, second, third = (group97[name] for name in ("m1", "m2", "m3"))
    for member in (first, second):
        member.freeze()
    try:
        wait_until(lambda: "UNREACHABLE" in str(audited(part_of(group97, "m3")).findings))
        audit = audited(part_of(group97, "m3"))
        assert codes(audit) == {("A7", "m3"), ("J4", "m3")}, audit
    finally:
        for member in (first, second):
            member.thaw()
    wait_until(lambda: not codes(audited(group97)))
    assert third.value("@@GLOBAL.super_read_only")


def test_members_that_reserve_blocks_leave_gaps(installation97: Installation) -> None:
    """T5: both members of a group with several primaries commit, each in its own block."""
    members = ("m1", "m2")
    with group_and_replica(installation97, members=members, multi_primary=True) as group:
        group["m1"].execute("CREATE DATABASE blocks", "CREATE TABLE blocks.t (id INT PRIMARY KEY)")
        wait_for(group["m2"], executed(group["m1"]))
        group["m2"].execute("INSERT INTO blocks.t VALUES (2)")
        wait_for(group["m1"], executed(group["m2"]))
        group.settle()
        audit = audited(group)
        [gap] = [one for one in audit.findings if one.code == "T5"]
        assert (audit.verdict, gap.severity) == (Verdict.OK, Severity.INFO)
        assert not gap.gtid_set & GtidSet.parse(executed(group["m1"]))
        assert ("block size", "1000000") in [(each.fact, each.value) for each in gap.evidence]


def test_a_server_that_its_group_refuses_is_outside_it(installation97: Installation) -> None:
    """The name of its group is its own server_uuid: no member, and configured for the group."""
    with shapes.single(installation97, settings=Settings(extra=(PLUGIN,))) as server:
        own = str(server.value("@@GLOBAL.server_uuid"))
        with pytest.raises(pymysql.err.OperationalError, match="3092"):
            start_group([server], own)
        assert "matches group_replication_group_name" in server.error_log_tail()
        audit = audited(Topology({"m": server}))
        assert codes(audit) == {("A7", "m")}
        assert "no server that was read is a member of the group" in audit.findings[0].explanation


def test_a_replica_of_a_member_that_lags_is_not_errant(group97: Topology) -> None:
    first, second, replica = group97["m1"], group97["m2"], group97["r"]
    first.execute("CREATE DATABASE lagging", "CREATE TABLE lagging.t (id INT PRIMARY KEY)")
    group97.settle()
    faults._await(lambda: bool(second.query("SHOW TABLES FROM lagging")), lambda: "no table there")
    with second.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES lagging.t READ")
        # More than there are workers, which own what they wait with.
        first.execute(*[f"INSERT INTO lagging.t VALUES ({number})" for number in range(20)])
        group97.settle()
        reads_from(replica, second)
        for names in (("m1", "m2", "r"), ("m2", "r")):
            snapshot = collect_cluster("live", targets_of(part_of(group97, *names)))
            audit = audit_cluster(snapshot)
            assert not {"E1", "E2", "E3", "A7"} & {one.code for one in audit.findings}, audit
            assert audit.verdict is Verdict.UNKNOWN  # m3 is not read
        # What the member has received, and nothing else, tells it from an errant transaction.
        last = tuple(replace(server, group=None) for server in snapshot.last)
        blind = audit_cluster(replace(snapshot, last=last))
        assert "E1" in {one.code for one in blind.findings}
    reads_from(replica, first)


def finding_of(found: Examination, code: str) -> Finding:
    [finding] = [one for one in found.audit.findings if one.code == code]
    return finding


def every_plan(found: Examination, code: str) -> list[Plan]:
    """Return the default plan, and one for each strategy that may be selected for a finding."""
    names = [name for name in strategies_for(code) if name in PLANNERS]
    return [found.plan(), *(found.plan({code: name}) for name in names)]


def test_an_expelled_member_with_an_errant_write_has_diverged(group97: Topology) -> None:
    first, replica = group97["m1"], group97["r"]
    fault = faults_group.expelled_member(group97)
    out = fault.member
    for names, grade in ((("m1", "m3"), Grade.LIKELY), (("m1", "m2", "m3", "r"), Grade.PROVED)):
        found = examine(part_of(group97, *names))
        diverged = finding_of(found, "J3")
        assert (diverged.replica, diverged.grade) == ("m3", grade)
        assert diverged.gtid_set == GtidSet.parse(fault.errant)
        assert codes(found.audit) - {("J4", "m1")} == {("J3", "m3")}
        assert not found.plan().steps
    with pytest.raises(pymysql.err.OperationalError, match="3092"):
        out.execute("START GROUP_REPLICATION USER = 'replication'")
    assert "contains transactions not present in the group" in out.error_log_tail()
    # The replica reads from it for a while, and then from the group again.
    reads_from(replica, out)
    wait_for(replica, fault.errant)
    reads_from(replica, first)
    found = examine(part_of(group97, "m1", "r"))
    errant = finding_of(found, "E1")
    assert (errant.grade, errant.gtid_set) == (Grade.LIKELY, GtidSet.parse(fault.errant))
    assert "the other members of the group" in errant.explanation
    assert found.audit.verdict is Verdict.UNKNOWN
    for plan in every_plan(found, "E1"):
        assert not plan.steps, plan
    assert codes(audited(group97)) == {("J3", "m3"), ("E1", "r")}


def test_nothing_is_committed_by_hand_under_the_uuid_of_a_group(group97: Topology) -> None:
    """Where the audit sees one member, what that member waits for looks extra, or skipped."""
    first, second, replica = group97["m1"], group97["m2"], group97["r"]
    reads_from(replica, first)
    wait_for(replica, executed(first))
    second.execute("STOP GROUP_REPLICATION")
    first.execute("CREATE DATABASE without_m2")
    wait_for(replica, executed(first))
    reads_from(replica, second)
    found = examine(part_of(group97, "m2", "r"))
    errant = finding_of(found, "E1")
    assert name_of(group97) in str(errant.gtid_set)
    assert (errant.grade, errant.severity) == (Grade.LIKELY, Severity.WARNING)
    for plan in every_plan(found, "E1"):
        assert not plan.steps, plan
    second.execute("START GROUP_REPLICATION USER = 'replication'")
    wait_for(second, executed(first))
    reads_from(replica, first)
    fault = faults.position_bypass(group97, source="m1", replica="r")
    wait_for(second, executed(first))
    # Until the receiver has read to the end of the log, it may still come (T3).
    wait_until(lambda: "H1" in {one.code for one in audited(group97).findings})
    found = examine(group97)
    hole = finding_of(found, "H1")
    assert hole.gtid_set == GtidSet.parse(fault.skipped)
    for plan in every_plan(found, "H1"):
        added = {"InjectEmpty", "AppendPurged", "ResetAndPurge", "RedoTransactions"}
        assert not added & {step.action for step in plan.steps}, plan
        assert {step.server for step in plan.steps} <= {"r"}


def test_what_is_errant_on_a_replica_of_a_member_is_redone_as_the_plan_says(
    installation97: Installation,
) -> None:
    """No plan writes on a member. Its text is followed word by word, on the primary."""
    with group_and_replica(installation97, members=("m1", "m2")) as group:
        first, second = group["m1"], group["m2"]
        [replica] = [each for name, each in group.servers.items() if name not in ("m1", "m2")]
        reads_from(replica, second)
        first.execute("CREATE DATABASE e", "CREATE TABLE e.t (id INT PRIMARY KEY)")
        for each in (second, replica):
            wait_for(each, executed(first))
        replica.execute("INSERT INTO e.t VALUES (7)")
        plan = examine(group).plan({"E1": "redo_on_source"})
        refused = next(each for each in plan.not_planned if each.code == "E1")
        [command] = re.findall(r"`(gtid-audit binlog show .*?) > FILE`", refused.why)
        script = run_cli(*shlex.split(command.replace("SERVER", replica.dsn))[1:])
        assert script.returncode == 0, script.stderr
        done = first.client(script.stdout, "--binary-mode")
        assert done.returncode == 0, done.stderr
        for each in group.servers.values():
            wait_for(each, executed(replica))
            assert each.value("COUNT(*) FROM e.t WHERE id = 7") == 1
        assert (codes(audited(group)), audited(group).verdict) == (set(), Verdict.OK)
