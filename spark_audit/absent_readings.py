"""Compares the fleet file with a stored run: what the file has and the run does not.

1. With a fleet file, every cluster, server and consumer in it is in the result. It is UNKNOWN if
   the run has no reading of it, or of a server a reading of another address.
2. Both engines use this module, so both report the same reasons.
3. It reads no files: the caller reads what the run has.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from spark_audit.expected_fleet import ExpectedCluster, ExpectedFleet
from spark_audit.run_context import Gaps
from topology.audit_cluster import EVERY_SERVER, not_evaluated
from topology.catalogue.findings import ClusterAudit, Unknown
from topology.rules.consumer_sets import CONSUMER_SET
from topology.rules.schema_differences import DEFINITIONS

READINGS: Final = "readings"
_NO_DEFINITIONS: Final = "the stored run has none, and the policy asks for them"
_NO_CONSUMER: Final = "the stored run has no reading of this consumer"
_NO_SERVER: Final = "the stored run has no reading of this server"

# Host and port of each server, by its name.
Addresses: TypeAlias = Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class RunReadings:
    """What a run has of the clusters of a fleet file, by the name of the cluster."""

    run: str  # its name
    addresses: Mapping[str, Addresses]
    consumers: Mapping[str, Collection[str]]
    defined: Collection[str]  # the clusters whose definitions were compared
    partial: Sequence[str] | None = None  # the clusters that were selected for the run


@dataclass(frozen=True, slots=True)
class NotInRun:
    """The servers of the fleet file that the run does not have."""

    clusters: tuple[ClusterAudit, ...] = ()
    # In clusters that are in the run.
    gaps: Gaps = field(default_factory=dict)


NOTHING_ABSENT: Final = NotInRun()


def not_in_run(read: RunReadings, fleet: ExpectedFleet) -> NotInRun:
    """Return the clusters that the run does not have, and what the others lack."""
    reason = f"{read.run} does not contain this cluster"
    if read.partial is not None:
        reason += f": it was taken with `--cluster {', '.join(read.partial)}`"
    absent: list[ClusterAudit] = []
    gaps: dict[str, tuple[Unknown, ...]] = {}
    for cluster in fleet.clusters:
        if cluster.name not in read.addresses:
            servers = [server.name for server in cluster.servers]
            audit = unknown_cluster(cluster.name, servers, READINGS, reason)
            absent.append(replace(audit, labels=cluster.labels))
        elif unknown := tuple(_gaps(cluster, read, definitions=fleet.policy.definitions)):
            gaps[cluster.name] = unknown
    return NotInRun(tuple(absent), gaps)


def unknown_cluster(cluster: str, servers: Sequence[str], fact: str, reason: str) -> ClusterAudit:
    """Return the audit of a cluster of which one fact is unknown, on these servers."""
    return not_evaluated(cluster, {Unknown(cluster, server, fact, reason) for server in servers})


def _gaps(cluster: ExpectedCluster, read: RunReadings, *, definitions: bool) -> Iterator[Unknown]:
    found = read.addresses[cluster.name]
    for server in cluster.servers:  # in order of name, as consumers are
        wanted = (server.host, server.port)
        if server.name not in found:
            yield Unknown(cluster.name, server.name, READINGS, _NO_SERVER)
        elif found[server.name] != wanted:
            other, named = (f"{host}:{port}" for host, port in (found[server.name], wanted))
            reason = f"the stored run has a reading of {other}, but the fleet file has {named}"
            yield Unknown(cluster.name, server.name, READINGS, reason)
    for consumer in cluster.consumers:
        if consumer not in read.consumers.get(cluster.name, ()):
            yield Unknown(cluster.name, consumer, CONSUMER_SET, _NO_CONSUMER)
    if definitions and cluster.name not in read.defined:
        yield Unknown(cluster.name, EVERY_SERVER, DEFINITIONS, _NO_DEFINITIONS)
