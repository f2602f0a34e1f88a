"""A replication group on real servers: not evaluated, and never called unlinked or errant."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from compose import faults
from compose.native.groups import GROUP_NAME, group_and_replica
from compose.native.installation import Installation
from compose.native.shapes import Topology, follow
from tests.topology.test_faults_live import audited, targets_of
from topology.adapters.collect import collect_cluster
from topology.audit import audit_cluster
from topology.findings import ClusterAudit, Severity, Verdict

pytestmark = pytest.mark.slow  # a group takes some ten seconds to start, and as long to end


@pytest.fixture(scope="module")
def group97(installation97: Installation) -> Iterator[Topology]:
    with group_and_replica(installation97) as group:
        yield group


def part_of(topology: Topology, *names: str) -> Topology:
    return Topology({name: topology[name] for name in names}, ())


def codes(audit: ClusterAudit) -> set[tuple[str, str | None]]:
    return {(one.code, one.replica) for one in audit.findings if one.severity is not Severity.INFO}


def test_a_healthy_group_is_not_evaluated_and_not_unlinked(group97: Topology) -> None:
    for names in (("m1", "m2"), ("m1", "m2", "r")):
        audit = audited(part_of(group97, *names))
        assert codes(audit) == {("U4", "m1"), ("U4", "m2")}, audit
        assert audit.verdict is Verdict.UNKNOWN
        assert GROUP_NAME in str(audit.unknown)


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
        replica.execute("STOP REPLICA")
        follow(replica, second)
        for names in (("m1", "m2", "r"), ("m2", "r")):
            snapshot = collect_cluster("live", targets_of(part_of(group97, *names)))
            audit = audit_cluster(snapshot)
            assert not {"E1", "E2", "E3", "A7"} & {one.code for one in audit.findings}, audit
            assert audit.verdict is Verdict.UNKNOWN
        # What the member has received, and nothing else, tells it from an errant transaction.
        last = tuple(replace(server, group=None) for server in snapshot.last)
        blind = audit_cluster(replace(snapshot, last=last))
        assert "E1" in {one.code for one in blind.findings}
    replica.execute("STOP REPLICA")
    follow(replica, first)
