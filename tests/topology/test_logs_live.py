"""Binary logs of real servers that are closed or gone: what no channel shows."""

import pytest

from compose import faults_logs as faults
from compose.faults import await_status
from compose.native.shapes import Pair, Topology, TopologyPlan, running, wait_for
from gtid import GtidSet
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.readings.target import ServerTarget


def audited(topology: Topology) -> ClusterAudit:
    targets = [
        ServerTarget(name=name, host=server.host, port=server.port, user="root")
        for name, server in topology.servers.items()
    ]
    return audit_cluster(collect_cluster("live", targets))


def above_info(audit: ClusterAudit) -> dict[str, Finding]:
    assert audit.unknown == ()
    found = [each for each in audit.findings if each.severity is not Severity.INFO]
    assert len({each.code for each in found}) == len(found), audit
    return {each.code: each for each in found}


def test_a_source_that_closed_its_log_is_not_ok(pair97: Pair) -> None:
    """Both threads run and the sets are equal, and nothing that it commits arrives any more."""
    fault = faults.log_closed(pair97)
    assert pair97.a.value("@@GLOBAL.log_bin") == 1
    rows = [
        server.query(f"SELECT COUNT(*) FROM {fault.table}")[0][0]
        for server in pair97.servers.values()
    ]
    assert rows == [fault.rows_count, 0]
    assert len({each.value("@@GLOBAL.gtid_executed") for each in pair97.servers.values()}) == 1
    audit = audited(pair97)
    assert audit.verdict is Verdict.CRITICAL
    found = above_info(audit)
    assert found.keys() == {"A9"}
    assert (found["A9"].replica, found["A9"].grade) == ("a", Grade.PROVED)
    assert "reaches no other server, not even b" in found["A9"].explanation
    # Started again, its receiver reports the same cause: it is found once.
    pair97.b.execute("STOP REPLICA", "START REPLICA")
    await_status(pair97.b, lambda status: "not open" in status["Last_IO_Error"])
    assert above_info(audited(pair97)).keys() == {"A9"}


def test_a_server_between_that_closed_its_log(chain97: Topology) -> None:
    """What it receives is applied and not logged: it does not come, whatever T3 looks like."""
    first, middle, last = chain97.servers
    faults.log_closed(chain97, server=middle, replica=last, rows_count=0)
    chain97[first].execute("CREATE DATABASE behind")
    wait_for(chain97[middle], chain97[first].value("@@GLOBAL.gtid_executed"))
    audit = audited(chain97)
    found = above_info(audit)
    assert found.keys() == {"A9"}
    assert found["A9"].replica == middle
    assert "It applies what it receives, but does not log it" in found["A9"].explanation
    assert "T3" not in {each.code for each in audit.findings}


def test_a_replica_without_replicas_that_closed_its_log(pair97: Pair) -> None:
    faults.log_closed(pair97, server="b", replica="a")
    found = above_info(audited(pair97))
    assert found.keys() == {"A9"}
    assert found["A9"].replica == "b"


@pytest.mark.parametrize("statement", ["FLUSH BINARY LOGS", "RESET BINARY LOGS AND GTIDS"])
def test_a_log_that_is_rotated_or_reset_is_not_closed(pair97: Pair, statement: str) -> None:
    for _ in range(5):
        pair97.a.execute(statement)
        assert "A9" not in {each.code for each in audited(pair97).findings}


# -- files that are gone --------------------------------------------------------------------------


def test_a_source_whose_log_was_deleted_by_hand(pair97: Pair) -> None:
    """gtid_purged does not have what was in it: only the size 0 in its list shows it."""
    fault = faults.log_deleted(pair97)
    found = above_info(audited(pair97))
    assert found.keys() == {"A7"}
    assert f"a cannot open {fault.file} of its binary logs" in found["A7"].explanation
    assert GtidSet.parse(fault.waiting) <= found["A7"].gtid_set
    # As it says.
    pair97.b.execute("START REPLICA")
    await_status(pair97.b, lambda status: bool(status["Last_IO_Errno"]))
    assert "A4" in above_info(audited(pair97))


@pytest.mark.mysql
@pytest.mark.parametrize("version", ["97", "56"])
def test_a_server_cannot_join_a_source_whose_log_was_deleted(
    version: str, request: pytest.FixtureRequest
) -> None:
    plan = TopologyPlan(names=("a", "b"), links=())
    with running(request.getfixturevalue(f"installation{version}"), plan) as two:
        a = two["a"]
        a.execute("CREATE DATABASE gone", "FLUSH BINARY LOGS", "CREATE DATABASE kept")
        faults.delete_first_log(a)
        found = above_info(audited(two))["J1"]
        assert found.grade is Grade.LIKELY
        assert "prints 0 bytes" in found.explanation
