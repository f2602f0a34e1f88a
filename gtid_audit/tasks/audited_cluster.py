"""Reads and evaluates one live cluster: a pair, or one cluster of a fleet file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gtid import GtidSet
from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.operands.refuse_same_server import refuse_same_servers
from gtid_audit.tasks.cluster_definitions import look_at_definitions
from gtid_audit.tasks.compared_restarts import Memory
from gtid_audit.tasks.contents_of_servers import contents_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy
from topology.readings.contents import ContentReading
from topology.readings.definition_reading import DefinitionReading
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

if TYPE_CHECKING:
    from topology.definitions.definition_scope import DefinitionScope


@dataclass(frozen=True, slots=True)
class AuditedCluster:
    """One cluster that was just read and evaluated, and how to reach its servers again."""

    snapshot: ClusterSnapshot
    audit: ClusterAudit
    targets: tuple[ServerTarget, ...]
    policy: Policy = field(default_factory=Policy)
    contents: ContentReading | None = None  # None: the content of transactions was not compared
    definitions: DefinitionReading | None = None  # None: definitions were not compared
    scope: "DefinitionScope | None" = None  # the only objects that were compared; None: all

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of servers whose contents were compared, if all of them were read."""
        if self.contents is None or self.contents.unread:
            return ()
        return self.contents.pairs


def read_and_audit(
    cluster: ClusterToRead,
    *,
    content: bool | None,
    say: Callable[[str], None],
    definitions: bool = False,
    scope: "DefinitionScope | None" = None,
    offered: GtidSet | None = None,
    pairs: bool = False,
    memory: Memory | None = None,
) -> AuditedCluster:
    """Read every server of a cluster and evaluate it. Raises UsageProblem.

    `content`: compare the content of transactions, or not; None compares after a recent restart.
    `definitions`: compare the definitions of the servers (cluster_definitions.py), `scope` only
    those of one schema or table.
    `offered`: also read until when each server could serve this set.
    `pairs`: also read whether a server with a missing log could serve each other one.
    `memory`: what earlier audits of these servers remembered; this one adds to it.
    """
    policy = cluster.policy
    snapshot = collect_cluster(
        cluster.name,
        cluster.targets,
        limits=cluster.limits,
        policy=policy,
        progress=say,
        offered=offered,
        pairs=pairs,
        consumers=cluster.consumers,
    )
    refuse_same_servers([snapshot])
    contents = contents_of(cluster, snapshot, content, say=say, memory=memory)
    compared = None
    if definitions or scope is not None:
        compared = look_at_definitions(snapshot, cluster, say=say, scope=scope)
    whole = snapshot.with_contents(contents).with_definitions(compared)
    audit = audit_cluster(whole, policy)
    return AuditedCluster(snapshot, audit, cluster.targets, policy, contents, compared, scope)
