"""Which transactions a receiver drops because of IGNORE_SERVER_IDS: algebra only.

The option lists server_ids, and an event carries the server_id of the server that first committed
it. The receiver drops such an event and does not add its GTID to Retrieved_Gtid_Set (seen on
5.6.24; servers with gtid_mode = ON refuse the option from 8.0 on). Only events that were not yet
received are dropped: what is already in the relay log is applied.
"""

from collections.abc import Mapping

from gtid import GtidSet
from topology.facts.graph import Edge, Graph
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot


def ignored_servers(
    channel: ChannelSnapshot, *, replica: ServerSnapshot, last: Mapping[str, ServerSnapshot]
) -> tuple[str, ...]:
    """Return the audited servers whose events a channel ignores, without the replica."""
    if not channel.ignored_server_ids:
        return ()
    return tuple(
        name
        for name in sorted(last)
        if last[name].server_id in channel.ignored_server_ids
        and last[name].server_uuid not in (None, replica.server_uuid)
    )


def ignored_by(
    edge: Edge, absent: GtidSet, *, graph: Graph, last: Mapping[str, ServerSnapshot]
) -> tuple[GtidSet, GtidSet]:
    """Return what the channel of an edge drops of `absent`, and what other channels may deliver."""
    ignored = _of_ignored(absent, edge, last)
    elsewhere = GtidSet()
    for other in graph.into(edge.replica):
        if other.channel.name != edge.channel.name:
            held = ignored & (last[other.source].gtid_executed or GtidSet())
            elsewhere |= held - _of_ignored(held, other, last)
    return ignored - elsewhere, elsewhere


def _of_ignored(gtid_set: GtidSet, edge: Edge, last: Mapping[str, ServerSnapshot]) -> GtidSet:
    names = ignored_servers(edge.channel, replica=last[edge.replica], last=last)
    uuids = {last[name].server_uuid for name in names}
    return GtidSet.union_of(gtid_set.from_uuid(uuid) for uuid in uuids if uuid is not None)
