"""What `handshake` predicts of a group, held against real members: joins, receivers, promotions."""

from collections.abc import Iterator

import pymysql
import pytest

from compose.faults_group import _has_left_on_failure, _state
from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from gtid import GtidSet
from tests.repair.live import wait_until
from tests.server_pool import is_connected
from tests.topology.test_handshake_live import expected_of, matrix_of, outcome_of, point, read
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.matrix import HandshakeMatrix
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps

pytestmark = pytest.mark.slow  # a group takes some ten seconds to start, and as long to end

MEMBERS = ("m1", "m2", "m3")
START = "START GROUP_REPLICATION"
NO_RECEIVER = (13117, "Fatal error: Failed to run 'thread_start' hook")


@pytest.fixture(scope="module")
def group97(installation97: Installation) -> Iterator[Topology]:
    """Run a group that commits under the replica's server_uuid, the harder name to evaluate."""
    with group_and_replica(installation97, members=MEMBERS, named_as_replica=True) as group:
        for name in MEMBERS:  # as a group is set up that restarts by itself
            group[name].execute(
                f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{REPLICATION_USER}'"
                " FOR CHANNEL 'group_replication_recovery'",
                "SET GLOBAL group_replication_recovery_retry_count = 1",
            )
        yield group


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def quiet(group: Topology) -> HandshakeMatrix:
    """Return the answers once all members and the replica have the same transactions."""
    members = [group[name] for name in MEMBERS if _state(group[name]) == "ONLINE"]
    everything = GtidSet.union_of(map(executed, members))
    for server in (*members, group["r"]):
        wait_for(server, str(everything))
    return matrix_of(read(group))


def between(found: HandshakeMatrix, one: str, other: str) -> tuple[SourceAnswer, SourceAnswer]:
    return found.answer(replica=one, source=other), found.answer(replica=other, source=one)


def receives(replica: Server, source: Server) -> tuple[int, str]:
    """Point a server to another one, and return what its receiver reports; then undo it."""
    words = replica.dialect
    change = words.change_source_to(
        host=source.host, port=source.port, user=REPLICATION_USER, auto_position=1
    )
    try:
        replica.execute(f"{change} FOR CHANNEL ''", "START REPLICA IO_THREAD FOR CHANNEL ''")
        return outcome_of(replica)
    finally:
        replica.execute("STOP REPLICA FOR CHANNEL ''", "RESET REPLICA ALL FOR CHANNEL ''")


def carry_out(group: Topology, candidate: str) -> Verdict:
    """Run the steps of a promotion literally, and return its verdict."""
    snapshot = read(group)
    promotion = promotion_of(matrix_of(snapshot), candidate)
    for step in promotion_steps(promotion, snapshot):
        for statement in step.statements:
            group[step.server].execute(statement)
        if START in "".join(step.statements):
            joins_group(group[step.server])
    return promotion.verdict


def follows(replica: Server, source: Server) -> None:
    replica.execute("STOP REPLICA FOR CHANNEL ''")
    follow(replica, source)
    assert is_connected(replica)


def joins_group(server: Server) -> None:
    wait_until(lambda: _state(server) == "ONLINE")


def primary_of(group: Topology) -> str:
    rows = group["m1"].query(
        "SELECT MEMBER_PORT FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ROLE = 'PRIMARY'"
    )
    return next(name for name in MEMBERS if [(group[name].port,)] == list(rows))


def test_a_healthy_group_and_its_replica(group97: Topology) -> None:
    found = quiet(group97)
    assert found.verdict is Verdict.OK, found
    replica = group97["r"]
    for name in MEMBERS:
        point(replica, group97[name])
        assert outcome_of(replica) == expected_of(found.answer(replica="r", source=name)) == (0, "")
        by_replica = found.answer(replica=name, source="r")
        assert by_replica.through == ("" if name == "m1" else "m1")
        expected = (0, "") if name == "m1" else NO_RECEIVER
        assert receives(group97[name], replica) == expected
    assert {
        found.answer(replica=one, source=other).outcome
        for one in MEMBERS
        for other in MEMBERS
        if one != other
    } == {Outcome.GROUP}
    follows(replica, group97["m1"])


def test_what_a_server_outside_has_reaches_the_members_through_the_primary(
    group97: Topology,
) -> None:
    replica, first = group97["r"], group97["m1"]
    quiet(group97)
    replica.execute("STOP REPLICA", "CREATE DATABASE outside_the_group")
    found = matrix_of(read(group97))
    for name in MEMBERS:
        answer = found.answer(replica=name, source="r")
        assert (answer.outcome, answer.fetched) == (
            Outcome.SERVED,
            executed(replica) - executed(first),
        )
    wanted = replica.value("@@GLOBAL.gtid_executed")
    follows(first, replica)
    for name in MEMBERS:
        wait_for(group97[name], wanted)
    # The group changes its primary only while none of its channels runs.
    with pytest.raises(pymysql.err.OperationalError, match="3910"):
        group97["m2"].query(_set_as_primary(group97["m2"]))
    assert carry_out(group97, "m2") is Verdict.OK
    wait_until(lambda: primary_of(group97) == "m2")
    first.execute("RESET REPLICA ALL FOR CHANNEL ''")
    assert carry_out(group97, "m1") is Verdict.OK
    wait_until(lambda: primary_of(group97) == "m1")


def _set_as_primary(server: Server) -> str:
    return f"SELECT group_replication_set_as_primary('{server.value('@@GLOBAL.server_uuid')}')"


def test_a_member_that_left_is_missing_the_rest_and_joins_again(group97: Topology) -> None:
    first, second, replica = group97["m1"], group97["m2"], group97["r"]
    second.execute("STOP GROUP_REPLICATION")
    first.execute("CREATE DATABASE while_it_is_away")
    found = quiet(group97)
    here, back = between(found, "m2", "m1")
    assert (here.outcome, here.joins, back.outcome) == (Outcome.SERVED, "m2", Outcome.SERVED)
    assert here.fetched == executed(first) - executed(second)
    # It is no member: a channel works in both directions.
    assert found.answer(replica="m2", source="r").outcome is Outcome.SERVED
    assert receives(second, replica) == (0, "")
    behind = found.answer(replica="r", source="m2")
    assert (behind.outcome, behind.gtid_set) == (Outcome.DIVERGED, here.fetched)
    assert carry_out(group97, "m2") is Verdict.WARNING
    wait_until(lambda: primary_of(group97) == "m2")
    assert here.fetched <= executed(second)
    assert carry_out(group97, "m1") is Verdict.OK


def test_what_each_member_has_purged_needs_a_clone(group97: Topology) -> None:
    third = group97["m3"]
    third.execute("STOP GROUP_REPLICATION")
    group97["m1"].execute("CREATE DATABASE purged_everywhere")
    quiet(group97)
    for name in ("m1", "m2"):
        group97[name].execute("FLUSH BINARY LOGS")
        last = group97[name].query("SHOW BINARY LOGS")[-1][0]
        group97[name].execute(f"PURGE BINARY LOGS TO '{last}'")
    found = matrix_of(read(group97))
    answer = found.answer(replica="m3", source="m1")
    assert answer.refusal is FailedCheck.PURGED
    assert answer.gtid_set == executed(group97["m1"]) - executed(third)
    assert answer.text is not None
    third.execute(START)
    wait_until(lambda: _has_left_on_failure(third))
    assert answer.text.text in third.error_log_tail()
    # In state ERROR: neither a receiver, nor an account without CONNECTION_ADMIN.
    found = matrix_of(read(group97))
    [doubt] = found.answer(replica="m3", source="r").doubts
    assert "13117" in doubt
    assert receives(third, group97["r"]) == NO_RECEIVER
    [doubt] = found.answer(replica="r", source="m3").doubts
    assert "6400" in doubt
    point(group97["r"], third)
    assert outcome_of(group97["r"])[0] == 6400
    # A server outside the group still has what the members have purged.
    follows(group97["r"], group97["m1"])
    snapshot = read(group97)
    promotion = promotion_of(matrix_of(snapshot), "m1")
    assert promotion.verdict is Verdict.WARNING
    assert [(each.answer.replica, each.donor) for each in promotion.obstacles] == [("m3", "r")]
    third.execute("STOP GROUP_REPLICATION", "SET GLOBAL offline_mode = OFF")
    follows(third, group97["r"])
    wait_for(third, group97["m1"].value("@@GLOBAL.gtid_executed"))
    third.execute("STOP REPLICA FOR CHANNEL ''", "RESET REPLICA ALL FOR CHANNEL ''", START)
    wait_until(lambda: _state(third) == "ONLINE")


def test_without_members_the_server_with_the_most_bootstraps_the_group(group97: Topology) -> None:
    first, second, third = (group97[name] for name in MEMBERS)
    third.execute("STOP GROUP_REPLICATION")
    first.execute("CREATE DATABASE only_two_have_it")
    quiet(group97)
    second.execute("STOP GROUP_REPLICATION")
    first.execute("STOP GROUP_REPLICATION")
    found = matrix_of(read(group97))
    here, back = between(found, "m3", "m1")
    assert (here.outcome, back.refusal) == (Outcome.SERVED, FailedCheck.NOT_IN_GROUP)
    assert here.fetched == back.gtid_set == executed(first) - executed(third)
    assert promotion_of(found, "m3").best in ("m1", "m2")
    assert carry_out(Topology({name: group97[name] for name in MEMBERS}, ()), "m2") is (
        Verdict.WARNING
    )
    assert primary_of(group97) == "m2"
    assert {_state(group97[name]) for name in MEMBERS} == {"ONLINE"}
    assert carry_out(group97, "m1") is Verdict.OK


def test_a_member_with_an_errant_transaction_is_refused(group97: Topology) -> None:
    """The last test of the module: the member does not join any more."""
    third = group97["m3"]
    quiet(group97)
    third.execute("STOP GROUP_REPLICATION", "SET GLOBAL super_read_only = OFF")
    before = executed(third)
    third.execute("CREATE DATABASE errant")
    found = quiet(group97)
    answer = found.answer(replica="m3", source="m1")
    assert (answer.refusal, answer.gtid_set) == (
        FailedCheck.NOT_IN_GROUP,
        executed(third) - before,
    )
    with pytest.raises(pymysql.err.OperationalError) as refused:
        third.execute(START)
    assert refused.value.args == expected_of(answer)
    hidden = found.answer(replica="m3", source="r")
    assert (hidden.outcome, hidden.gtid_set) == (Outcome.DIVERGED, answer.gtid_set)
    assert receives(third, group97["r"]) == (0, "")
    assert found.verdict is Verdict.CRITICAL
