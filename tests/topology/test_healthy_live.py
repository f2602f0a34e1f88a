"""Healthy servers under load give no alarm, whatever their shape: whole, and seen in part.

The load is as high as two processors carry in the nightly suite; with every change, it leaves time
to other tests. Without any pause, the backlogs of seven servers grow, their appliers take all
processor time, and a server may not answer within its five seconds: that audit is UNKNOWN.

One topology holds the shapes that look like faults from the outside: a dual-primary pair with
semi-synchronous commits, a chain below it whose end logs nothing that it applies, a replica of two
primaries that know nothing of each other, and a replica without binary logs that applies on purpose
seconds late. The contents of the last two are not comparable, which is a remark.
"""

import json
import time
from collections.abc import Iterator

import pytest

from compose.native import load, shapes
from compose.native.command import Settings
from compose.native.installation import Clients, Installation
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan, follow_by_name
from gtid_audit.cli import run
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Severity, Verdict
from topology.policy import Policy

_SEMISYNC = (
    "--plugin-load-add=semisync_source.so",
    "--plugin-load-add=semisync_replica.so",
    "--rpl-semi-sync-source-enabled=ON",
    "--rpl-semi-sync-replica-enabled=ON",
)
_SHAPES = TopologyPlan(
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
        "late": Settings(extra=("--skip-log-bin",)),
    },
)
PRIMARIES = ("a", "b", "other")
LATE_SECONDS = 3600  # longer than any test: it ends with the load
RECEIVED_SECONDS_MAX = 60
SEEN = {
    "the pair": ("a", "b"),
    "the chain": ("a", "b", "middle", "end"),
    "all": _SHAPES.names,
}


@pytest.fixture(scope="module")
def healthy(installation97: Installation) -> Iterator[Topology]:
    with shapes.running(installation97, _SHAPES) as topology:
        for source in ("a", "other"):
            follow_by_name(topology["both"], topology[source])
        yield topology


def _apply_late_by(replica: Server, *, seconds: int) -> None:
    replica.execute(
        "STOP REPLICA SQL_THREAD",
        f"CHANGE REPLICATION SOURCE TO SOURCE_DELAY = {seconds}",
        "START REPLICA SQL_THREAD",
    )


def _await_received(replica: Server) -> None:
    """Wait until a replica has received a transaction of the load that it has not applied."""
    deadline = time.monotonic() + RECEIVED_SECONDS_MAX
    while replica.value(
        "(SELECT GTID_SUBSET(received_transaction_set, @@GLOBAL.gtid_executed)"
        " FROM performance_schema.replication_connection_status)"
    ):
        assert time.monotonic() < deadline, replica.replica_status()
        time.sleep(0.02)


def _audit(topology: Topology, seen: tuple[str, ...]) -> ClusterAudit:
    part = Topology({name: topology[name] for name in seen}, ())
    return audit_cluster(collect_cluster("live", targets_of(part)), Policy())


def _assert_silent(audit: ClusterAudit) -> None:
    assert audit.verdict is Verdict.OK, audit
    assert {finding.severity for finding in audit.findings} <= {Severity.INFO}, audit
    assert audit.unknown == (), audit


def _audit_under_load(
    topology: Topology, clients: Clients, *, rounds: int, pause_seconds: float = 0.0
) -> list[ClusterAudit]:
    """Audit every part that many times while all primaries are written to; return the last.

    The late replica applies nothing for as long as the audits take, so that each of them meets
    transactions that wait there.
    """
    primaries = [topology[name] for name in PRIMARIES]
    late = topology["late"]
    _apply_late_by(late, seconds=LATE_SECONDS)
    with load.write_load(primaries, clients=clients, connections=1, pause_seconds=pause_seconds):
        _await_received(late)
        audits = [_audit(topology, seen) for _ in range(rounds) for seen in SEEN.values()]
    _apply_late_by(late, seconds=0)
    for audit in audits:
        _assert_silent(audit)
    return audits[-len(SEEN) :]


def test_healthy_shapes_under_load_are_silent(
    healthy: Topology, mysql_clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    semisync = healthy["a"].query("SHOW STATUS LIKE 'Rpl_semi_sync_source_status'")
    assert semisync == [("Rpl_semi_sync_source_status", "ON")]
    *_, whole = _audit_under_load(healthy, mysql_clients, rounds=1, pause_seconds=0.002)
    [late] = [one for one in whole.findings if (one.code, one.replica) == ("T2", "late")]
    assert "SOURCE_DELAY" in late.explanation
    assert healthy["late"].value("@@GLOBAL.log_bin") == 0
    healthy.settle()
    capsys.readouterr()
    assert run(["pair", healthy["a"].dsn, healthy["late"].dsn, "--content", "--json"]) == 3  # J4
    found = json.loads(capsys.readouterr().out)
    assert {each["code"] for each in found["findings"]} <= {"J4", "T2", "T3"}
    [contents] = found["contents"]
    reasons = [each["reason"] for each in contents["remarks"]]
    assert reasons == ["it has no binary logs (log_bin is off)"]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # 270 audits beside three writers: 2 minutes on two quiet cores
def test_many_audits_of_healthy_shapes_are_silent(
    healthy: Topology, mysql_clients: Clients
) -> None:
    _audit_under_load(healthy, mysql_clients, rounds=90, pause_seconds=0.0005)
