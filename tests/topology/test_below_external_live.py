"""Servers with an external source between them, on real servers: what stands, and what moves."""

from compose.faults import commit
from compose.native import load
from compose.native.installation import Clients
from compose.native.shapes import Topology, wait_for
from tests.topology.test_faults_live import targets_of
from tests.topology.test_history_live import part_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Severity, Verdict
from topology.policy import Policy


def audited(chain: Topology) -> ClusterAudit:
    """Audit the ends of a chain: what is between them is external, and not read."""
    external = Policy(external_sources=frozenset({f"127.0.0.1:{chain['middle'].port}"}))
    targets = targets_of(part_of(chain, "first", "last"))
    return audit_cluster(collect_cluster("live", targets, policy=external), external)


def warned(audit: ClusterAudit) -> list[tuple[str, str, str]]:
    return [
        (each.code, each.replica or "", str(each.gtid_set))
        for each in audit.findings
        if each.severity is not Severity.INFO
    ]


def test_what_an_external_source_does_not_pass_on_is_a_warning(
    chain97: Topology, mysql_clients: Clients
) -> None:
    first, middle, last = (chain97[name] for name in ("first", "middle", "last"))
    with load.write_load([first], clients=mysql_clients, connections=1):
        moving = [warned(audited(chain97)) for _ in range(4)]
    # A source that is busy for as long as an audit takes looks like one that stands.
    assert [] in moving, f"the benign twin: it moves: {moving}"
    chain97.settle()
    assert audited(chain97).verdict is Verdict.OK
    middle.execute("STOP REPLICA SQL_THREAD")
    waits = commit(first, "CREATE DATABASE on_its_way")
    audit = audited(chain97)
    assert warned(audit) == [("J4", "last", waits)]
    assert audit.verdict is Verdict.WARNING
    middle.execute("START REPLICA")
    wait_for(last, waits)
    assert audited(chain97).verdict is Verdict.OK
    written = commit(last, "CREATE DATABASE written_below")
    audit = audited(chain97)
    assert warned(audit) == [("J4", "last", written)]
    assert "receives from no server and has none of these" in audit.findings[0].explanation
