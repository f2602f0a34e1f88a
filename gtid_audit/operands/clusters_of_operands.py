"""Makes clusters of the operands of a command: DSNs, or a fleet file."""

from collections.abc import Sequence
from pathlib import Path

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_of_dsns import policy_of, servers_to_read
from gtid_audit.operands.cluster_to_read import ClusterToRead


def clusters_of_operands(
    dsns: Sequence[str],
    *,
    fleet: Path | None,
    cluster: str | None,
    ask: bool,
    seconds_max: float | None,
) -> list[ClusterToRead]:
    """Return one cluster of DSNs, or the clusters of a fleet file.

    Raises UsageProblem, InventoryProblem.
    """
    if bool(dsns) == (fleet is not None):
        raise UsageProblem("give either DSNs or --fleet FILE")
    if fleet is None:
        if cluster is not None:
            raise UsageProblem("--cluster selects a cluster of a fleet file: give --fleet FILE")
        return [servers_to_read(dsns, ask=ask, seconds_max=seconds_max, policy=policy_of((), ()))]
    if ask:
        raise UsageProblem("--ask-password is for DSNs: a fleet file has its own accounts")
    from gtid_audit.operands.load_fleet import load

    loaded = load(fleet, cluster)
    return [
        ClusterToRead(each.name, each.targets, loaded.limits, loaded.policy)
        for each in loaded.clusters
    ]
