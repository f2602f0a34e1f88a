"""Healthy servers under full load give no alarm, whatever their shape: whole, and seen in part.

One topology holds the shapes that look like faults from the outside: a dual-primary pair with
semi-synchronous commits, a chain below it whose end logs nothing that it applies, a replica of two
primaries that know nothing of each other, and a replica that applies on purpose seconds late.
"""

from collections.abc import Iterator

import pytest

from compose.native import load, shapes
from compose.native.command import Settings
from compose.native.installation import Clients, Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Link, Plan, Topology
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit import audit_cluster
from topology.findings import ClusterAudit, Severity, Verdict
from topology.policy import Policy

_SEMISYNC = (
    "--plugin-load-add=semisync_source.so",
    "--plugin-load-add=semisync_replica.so",
    "--rpl-semi-sync-source-enabled=ON",
    "--rpl-semi-sync-replica-enabled=ON",
)
_SHAPES = Plan(
    names=("a", "b", "other", "middle", "end", "both", "late"),
    links=(
        Link(source="a", replica="b"),
        Link(source="b", replica="a"),
        Link(source="a", replica="middle"),
        Link(source="middle", replica="end"),
        Link(source="a", replica="late"),
    ),
    settings={
        "a": Settings(extra=_SEMISYNC),
        "b": Settings(extra=_SEMISYNC),
        "end": Settings(extra=("--log-replica-updates=OFF",)),
    },
)
PRIMARIES = ("a", "b", "other")
SEEN = {
    "the pair": ("a", "b"),
    "the chain": ("a", "b", "middle", "end"),
    "all": _SHAPES.names,
}


@pytest.fixture(scope="module")
def healthy(installation97: Installation) -> Iterator[Topology]:
    with shapes.running(installation97, _SHAPES) as topology:
        for source in ("a", "other"):
            _follow_by_name(topology["both"], topology[source])
        topology["late"].execute(
            "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 2", "START REPLICA"
        )
        yield topology


def _follow_by_name(replica: Server, source: Server) -> None:
    channel = f"from_{source.name}"
    change = replica.dialect.change_source_to(
        host=source.host,
        port=source.port,
        user=REPLICATION_USER,
        auto_position=1,
        connect_retry=1,
        retry_count=86_400,
    )
    replica.execute(f"{change} FOR CHANNEL '{channel}'", f"START REPLICA FOR CHANNEL '{channel}'")


def _audit(topology: Topology, seen: tuple[str, ...]) -> ClusterAudit:
    part = Topology({name: topology[name] for name in seen}, ())
    return audit_cluster(collect_cluster("live", targets_of(part)), Policy())


def _assert_silent(audit: ClusterAudit) -> None:
    assert audit.verdict is Verdict.OK, audit
    assert {finding.severity for finding in audit.findings} <= {Severity.INFO}, audit
    assert audit.unknown == (), audit


def _audit_under_load(topology: Topology, clients: Clients, rounds: int) -> list[ClusterAudit]:
    """Audit every part that many times while all primaries are written to; return the last."""
    primaries = [topology[name] for name in PRIMARIES]
    with load.write_load(primaries, clients=clients, connections=1):
        audits = [_audit(topology, seen) for _ in range(rounds) for seen in SEEN.values()]
    for audit in audits:
        _assert_silent(audit)
    return audits[-len(SEEN) :]


def test_healthy_shapes_under_load_are_silent(healthy: Topology, mysql_clients: Clients) -> None:
    semisync = healthy["a"].query("SHOW STATUS LIKE 'Rpl_semi_sync_source_status'")
    assert semisync == [("Rpl_semi_sync_source_status", "ON")]
    *_, whole = _audit_under_load(healthy, mysql_clients, rounds=3)
    [late] = [one for one in whole.findings if (one.code, one.replica) == ("T2", "late")]
    assert "SOURCE_DELAY" in late.explanation


@pytest.mark.slow
@pytest.mark.timeout(1800)  # 270 audits beside three writers: 4 minutes on two quiet cores
def test_many_audits_of_healthy_shapes_are_silent(
    healthy: Topology, mysql_clients: Clients
) -> None:
    _audit_under_load(healthy, mysql_clients, rounds=90)
