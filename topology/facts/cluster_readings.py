"""The readings of one cluster, and which servers can be compared with each other.

1. A server can be compared if both readings have all facts (ReadServer), it was not reset or
   restarted between them, and no other server has its server_uuid.
2. The graph and what the appliers did between the readings are computed here once. Facts
   (edge_facts.py, cluster_facts.py) and rules take them from here.
3. This module compares no sets of different servers.
"""

from dataclasses import dataclass, replace
from functools import partial

from topology.facts.graph import Graph, build_graph
from topology.facts.islands import twins_of
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.facts.memberships import configured_together, memberships_of
from topology.facts.progress import Appliers, appliers_of
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ReadServer, ReadTwice, ServerSnapshot
from topology.readings.torn_readings import sign_of_tearing


@dataclass(frozen=True, slots=True)
class ClusterReadings:
    """The two readings of each server of a cluster, by name."""

    snapshot: ClusterSnapshot
    policy: Policy
    graph: Graph
    first: dict[str, ServerSnapshot]  # every server, in whatever part it was read
    last: dict[str, ServerSnapshot]
    fully_read: dict[str, ReadTwice]  # those that can be compared
    twins: tuple[tuple[str, ...], ...]  # servers that share a server_uuid
    torn: tuple[tuple[str, str], ...]  # (server, sign of a restart or reset between the readings)
    appliers: Appliers  # by replica and channel


def readings_of(
    snapshot: ClusterSnapshot, policy: Policy, kept: KeptResults = NOTHING_KEPT
) -> ClusterReadings:
    """Return the readings of a snapshot, without any comparison of two servers."""
    first = {server.name: server for server in snapshot.first}
    last = {server.name: server for server in snapshot.last}
    complete = read_twice(snapshot, kept)
    twins = twins_of(snapshot)
    torn = tuple(
        (name, sign) for name, each in complete.items() if (sign := _sign(each, kept)) is not None
    )
    set_aside = {name for group in twins for name in group} | {name for name, _ in torn}
    fully_read = {name: each for name, each in complete.items() if name not in set_aside}
    return ClusterReadings(
        snapshot=snapshot,
        policy=policy,
        graph=replace(
            build_graph(snapshot),
            memberships=memberships_of(first, last, read=fully_read),
            together=configured_together(last.values()),
        ),
        first=first,
        last=last,
        fully_read=fully_read,
        twins=twins,
        torn=torn,
        appliers=appliers_of(snapshot, fully_read=fully_read, kept=kept),
    )


def read_twice(snapshot: ClusterSnapshot, kept: KeptResults = NOTHING_KEPT) -> dict[str, ReadTwice]:
    """Return the servers of which both readings are complete, in order of name."""
    return {
        first.name: kept.get(
            ("read twice", first.name),
            (first, last),
            partial(ReadTwice, first, last),
        )
        for first, last in zip(snapshot.first, snapshot.last, strict=True)
        if isinstance(first, ReadServer) and isinstance(last, ReadServer)
    }


def _sign(server: ReadTwice, kept: KeptResults) -> str | None:
    return kept.get(
        ("torn", server.first.name),
        (server,),
        partial(sign_of_tearing, server.first, server.last),
    )
