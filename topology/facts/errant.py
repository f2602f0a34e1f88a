"""What a replica has in addition to its source, and whether any channel can still deliver it there.

A transaction that the source received and its applier passed (a RESET) does not arrive. It is as
absent as one that the source never received.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from gtid import GtidSet
from topology.facts.graph import Edge, Graph
from topology.facts.progress import Appliers
from topology.facts.since_reading import may_have_come
from topology.readings.snapshot import ServerSnapshot, ThreadState


def errant_of(
    extra: GtidSet,
    edge: Edge,
    graph: Graph,
    last: Mapping[str, ServerSnapshot],
    appliers: Appliers,
) -> tuple[GtidSet, bool]:
    """Return what of `extra` no channel delivers, and whether only a stopped one is the reason."""
    if not extra:
        return GtidSet(), False
    upstream = graph.upstream_of(edge.source, stopped_too=True)
    # If the channels of a server were not read, the transactions on their way to it are unknown.
    if any(last[name].channels is None for name in {edge.source, *upstream}):
        return GtidSet(), False
    extra -= may_have_come(extra, {edge.source, *upstream}, last)
    at_source = still_to_apply(last[edge.source], appliers) | being_applied(last[edge.source])
    at_source |= GtidSet.union_of(
        server.group.received
        for server in (last[name] for name in sorted({edge.source, *upstream}))
        if server.group is not None
    )
    errant = extra - at_source - held_by(graph.upstream_of(edge.source) - {edge.source}, last)
    # A stopped channel delivers its transactions once it starts (A7). Only the rest is errant. So
    # does Group Replication, but no group takes back a member with work of its own (J3).
    startable = graph.upstream_of(edge.source, stopped_too=True, only_extra=True)
    rest = errant - held_by(startable - {edge.source}, last)
    return rest or errant, bool(errant) and not rest


def held_by(upstream: AbstractSet[str], last: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what the upstream servers have executed, or hold in a relay log.

    It will arrive, or it is missing on an edge of its own. The replica itself may be upstream (a
    dual-primary pair). So may a server that it followed before it was pointed here: the replica is
    then ahead of its new source for a while.
    """
    return GtidSet.union_of(
        gtid_set
        for name in sorted(upstream)
        for gtid_set in (
            last[name].gtid_executed,
            last[name].gtid_owned,
            last[name].gtid_retrieved,
        )
        if gtid_set is not None
    )


def still_to_apply(server: ServerSnapshot, appliers: Appliers) -> GtidSet:
    """Return what a server has received, except what its appliers have passed."""
    passed = (
        appliers[server.name, each.name].passed
        for each in server.channels or ()
        if (server.name, each.name) in appliers
    )
    return server.gtid_retrieved - GtidSet.union_of(passed)


def being_applied(server: ServerSnapshot) -> GtidSet:
    """Return what workers execute; workers of a stopped applier show what they rolled back."""
    running = (each for each in server.channels or () if each.applier is ThreadState.RUNNING)
    return GtidSet.union_of(channel.gtid_applying for channel in running)
