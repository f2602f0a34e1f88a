"""Promotions in a group that lost its members, or waits for a lock, carried out on real servers."""

import threading
from collections.abc import Iterator

import pytest

from compose.faults_group import _state
from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for
from gtid import GtidSet
from tests.repair.live import targets_of, wait_until
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.handshake.matrix import handshake_matrix
from topology.handshake.promotion import Promotion, promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy

pytestmark = pytest.mark.slow  # a group takes some ten seconds to start, and as long to end


@pytest.fixture
def pair_and_replica(installation97: Installation) -> Iterator[Topology]:
    with group_and_replica(installation97) as group:
        for name in ("m1", "m2"):
            group[name].execute(
                f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{REPLICATION_USER}'"
                " FOR CHANNEL 'group_replication_recovery'"
            )
        yield group


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def promoted(
    servers: Topology, candidate: str, policy: Policy | None = None
) -> tuple[Promotion, list[str]]:
    """Return a promotion, and the statements of its steps as `server: statement`."""
    policy = policy or Policy()
    snapshot = collect_cluster("live", [*targets_of(servers).values()], policy=policy)
    matrix = handshake_matrix(snapshot, audit_cluster(snapshot, policy), policy)
    promotion = promotion_of(matrix, candidate)
    return promotion, [
        f"{step.server}: {statement}"
        for step in promotion_steps(promotion, snapshot)
        for statement in step.statements
    ]


def run(servers: Topology, statements: list[str]) -> None:
    """Run statements literally, with the account of the test servers."""
    for each in statements:
        name, _, statement = each.partition(": ")
        with_account = statement.replace("(account)", REPLICATION_USER).replace("(password)", "")
        servers[name].execute(with_account)


def test_a_group_is_bootstrapped_only_with_what_a_replica_outside_has(
    pair_and_replica: Topology,
) -> None:
    """m1 has crashed. Of what it committed last, only the replica has received all."""
    first, second, replica = (pair_and_replica[name] for name in ("m1", "m2", "r"))
    first.execute("CREATE DATABASE outside", "CREATE TABLE outside.t (id INT PRIMARY KEY)")
    wait_for(second, first.value("@@GLOBAL.gtid_executed"))
    second.execute("STOP GROUP_REPLICATION")
    first.execute("INSERT INTO outside.t VALUES (1)")
    wait_for(replica, first.value("@@GLOBAL.gtid_executed"))
    first.kill()
    replica.execute("STOP REPLICA", "RESET REPLICA ALL")
    left = Topology({"m2": second, "r": replica}, ())
    only_there = executed(replica) - executed(second)

    promotion, statements = promoted(left, "m2")
    assert promotion.verdict is Verdict.WARNING
    [missing] = promotion.missing
    assert (missing.gtid_set, missing.donor, missing.holders) == (only_there, "r", ("r",))
    assert {each[:2] for each in statements} == {"m2"}
    assert not any("bootstrap" in each for each in statements)
    run(left, statements)
    assert executed(second) == executed(replica)
    assert not second.replica_status()

    promotion, statements = promoted(left, "m2")
    assert (promotion.verdict, promotion.missing) == (Verdict.WARNING, ())  # it joins its group
    run(left, statements)
    wait_until(lambda: _state(second) == "ONLINE")
    second.execute("INSERT INTO outside.t VALUES (2)")
    wait_for(replica, second.value("@@GLOBAL.gtid_executed"))
    assert replica.query("SELECT id FROM outside.t") == [(1,), (2,)]
    assert second.query("SELECT id FROM outside.t") == [(1,), (2,)]


def test_what_a_secondary_misses_is_fetched_by_the_primary(pair_and_replica: Topology) -> None:
    first, second, replica = (pair_and_replica[name] for name in ("m1", "m2", "r"))
    replica.execute("STOP REPLICA", "CREATE DATABASE only_outside")
    only_there = executed(replica) - executed(first)
    promotion, statements = promoted(pair_and_replica, "m2")
    [missing] = promotion.missing
    assert (missing.gtid_set, missing.donor, missing.receiver) == (only_there, "r", "m1")
    assert promotion.verdict is Verdict.WARNING
    run(pair_and_replica, statements)
    assert only_there <= executed(second)
    wait_until(lambda: promoted(pair_and_replica, "m2")[0].verdict is Verdict.OK)
    assert not first.replica_status()
    second.execute("CREATE DATABASE after_it")
    wait_for(replica, second.value("@@GLOBAL.gtid_executed"))


def test_a_blocked_queue_is_waited_for_and_nothing_is_lost(pair_and_replica: Topology) -> None:
    first, second, replica = (pair_and_replica[name] for name in ("m1", "m2", "r"))
    first.execute("CREATE DATABASE blocked", "CREATE TABLE blocked.t (id INT PRIMARY KEY)")
    wait_for(second, first.value("@@GLOBAL.gtid_executed"))
    impatient = Policy(lock_wait_seconds_max=0)
    with second.connect() as holder, holder.cursor() as cursor:
        cursor.execute("LOCK TABLES blocked.t READ")
        first.execute("INSERT INTO blocked.t VALUES (1)")
        wait_for(replica, first.value("@@GLOBAL.gtid_executed"))
        queued = executed(first) - executed(second)
        wait_until(lambda: bool(promoted(pair_and_replica, "m2", impatient)[0].unapplied))
        promotion, statements = promoted(pair_and_replica, "m2", impatient)
        assert promotion.verdict is Verdict.WARNING
        assert promotion.unapplied == (("m2", queued),)
        assert promotion.missing == ()
        [wait] = statements
        assert "WAIT_FOR_EXECUTED_GTID_SET" in wait
        # What the steps avoid: the change of the primary does not end before the lock does.
        change = threading.Thread(target=second.query, args=(_set_as_primary(second),))
        change.start()
        wait_until(lambda: "PRIMARY" in _roles(second))
        assert change.is_alive()
        assert second.value("@@GLOBAL.super_read_only")
    change.join()
    assert not second.value("@@GLOBAL.super_read_only")
    run(pair_and_replica, statements)
    assert queued <= executed(second)
    assert promoted(pair_and_replica, "m2", impatient)[0].verdict is Verdict.OK


def test_another_name_of_the_group_is_named(pair_and_replica: Topology) -> None:
    second = pair_and_replica["m2"]
    name = second.value("@@GLOBAL.group_replication_group_name")
    wrong = name.replace("6d1f", "6d1e")
    second.execute("STOP GROUP_REPLICATION", f"SET GLOBAL group_replication_group_name = '{wrong}'")
    promotion, _ = promoted(pair_and_replica, "m1")
    [doubt] = promotion.doubts
    assert f"group_replication_group_name is {wrong} on m2, and {name} on m1" in doubt
    second.execute(f"SET GLOBAL group_replication_group_name = '{name}'", "START GROUP_REPLICATION")
    wait_until(lambda: promoted(pair_and_replica, "m1")[0].verdict is Verdict.OK)


def _set_as_primary(server: Server) -> str:
    return f"SELECT group_replication_set_as_primary('{server.value('@@GLOBAL.server_uuid')}')"


def _roles(server: Server) -> str:
    rows = server.query(
        "SELECT MEMBER_ROLE FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ID = @@GLOBAL.server_uuid"
    )
    return str(rows)
