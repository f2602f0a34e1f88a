"""Refuses a configuration that lists one server under two names."""

from collections.abc import Sequence

from gtid_audit.exits import UsageProblem
from topology.readings.one_server import same_servers
from topology.readings.snapshot import ClusterSnapshot


def refuse_same_servers(snapshots: Sequence[ClusterSnapshot]) -> None:
    """Raise UsageProblem if the only cluster that was read has one server under two names.

    With several clusters, the others deserve their report; there the cluster is UNKNOWN.
    """
    if len(snapshots) != 1:
        return
    [snapshot] = snapshots
    for left, right in same_servers(snapshot):
        server = next(each for each in snapshot.last if each.name == left)
        raise UsageProblem(
            f"{left} and {right} are the same server: both answer with server_uuid"
            f" {server.server_uuid}, hostname {server.setting('hostname')}, port"
            f" {server.setting('port')} and datadir {server.setting('datadir')}. List it once."
        )
