"""Replicas whose performance_schema shows no thread: a lock is A5 all the same, or not known."""

import time
from collections.abc import Iterator

import pytest

from compose import faults_applier as faults
from compose.faults import commit
from compose.native import load, shapes
from compose.native.installation import Clients, Installation
from compose.native.shapes import Pair
from gtid import GtidSet
from tests.repair.live import wait_until
from tests.topology.test_appliers_live import LONGER_SECONDS, SOON, above_info, audited
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Verdict
from topology.readings.target import ServerTarget

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unseen97(installation97: Installation) -> Iterator[Pair]:
    with shapes.pair(installation97, extra=("--performance-schema=OFF",)) as pair:
        yield pair


def assert_blocked(pair: Pair, lock: str) -> None:
    with faults.held_up(pair, lock) as fault:
        # On a busy machine the applier comes to the transaction between the first two readings.
        wait_until(lambda: waits_in(audited(pair)).grade is Grade.LIKELY)
        early = waits_in(audited(pair))
        time.sleep(LONGER_SECONDS)
        late = above_info(audited(pair, SOON))
    held = GtidSet.parse(fault.held)
    assert (early.grade, early.gtid_set) == (Grade.LIKELY, held)
    assert late.keys() == {"A5"}
    # The table has no times, so that the age is an estimate.
    assert (late["A5"].grade, late["A5"].gtid_set) == (Grade.LIKELY, held)


def waits_in(audit: ClusterAudit) -> Finding:
    """Return the backlog of an audit before the limit."""
    [waits] = [each for each in audit.findings if each.code == "T2"]
    return waits


@pytest.mark.parametrize("lock", ["LOCK TABLES", "row lock", "owned GTID"])
def test_a_lock_is_seen_without_performance_schema(unseen97: Pair, lock: str) -> None:
    assert_blocked(unseen97, lock)
    wait_clean(unseen97)


def wait_clean(pair: Pair) -> None:
    shapes.wait_for(pair.b, commit(pair.a, "DROP DATABASE applier"))
    assert audited(pair).verdict is Verdict.OK


@pytest.mark.parametrize("workers", [0, 1])
def test_a_lock_is_seen_with_one_worker_and_none(unseen97: Pair, workers: int) -> None:
    b = unseen97.b
    restart = (b.dialect.stop_applier, b.dialect.start_applier)
    b.execute(restart[0], f"SET GLOBAL replica_parallel_workers = {workers}", restart[1])
    assert_blocked(unseen97, "LOCK TABLES")
    wait_clean(unseen97)
    b.execute(restart[0], "SET GLOBAL replica_parallel_workers = DEFAULT", restart[1])


def test_a_healthy_pair_without_performance_schema_is_ok(
    unseen97: Pair, mysql_clients: Clients
) -> None:
    with load.write_load(list(unseen97.servers.values()), clients=mysql_clients):
        audits = [audited(unseen97) for _ in range(4)]
    unseen97.settle()
    for audit in (*audits, audited(unseen97)):
        assert (audit.verdict, above_info(audit)) == (Verdict.OK, {})


def test_without_the_privilege_process_nothing_is_known_of_the_workers(unseen97: Pair) -> None:
    unseen97.a.execute(
        "CREATE USER IF NOT EXISTS looks_on@'%'",
        "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO looks_on@'%'",
        "GRANT SELECT ON performance_schema.* TO looks_on@'%'",
    )
    unseen97.settle()
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user=user)
        for (name, server), user in zip(unseen97.servers.items(), ("root", "looks_on"), strict=True)
    ]
    audit = audit_cluster(collect_cluster("live", targets))
    assert {(each.server, each.fact) for each in audit.unknown} == {("b", "workers")}
    assert audit.verdict is Verdict.UNKNOWN


def test_a_lock_is_seen_where_threads_were_lost(installation97: Installation) -> None:
    """performance_schema_max_thread_instances is reached when the replica starts."""
    plan_extra = ("--performance-schema-max-thread-instances=20",)
    with shapes.pair(installation97, extra=plan_extra) as pair:
        lost = "Performance_schema_thread_instances_lost"
        assert int(pair.b.query(f"SHOW GLOBAL STATUS LIKE '{lost}'")[0][1]) > 0
        assert_blocked(pair, "LOCK TABLES")
