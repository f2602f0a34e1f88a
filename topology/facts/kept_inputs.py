"""Facts of a cluster that still hold for a later version of it, of which few servers differ.

How it works
------------
The planner audits the simulated servers after each step, and a step changes few of them. Every
object of a reading is frozen, and a server that a step does not reach is the same object as before.
So a fact is kept together with the objects from which it was made. It holds as long as each of them
is the same object (`is`): that is a sufficient condition, and it costs no comparison of sets.

    fact                        made from
    ApplierFacts of a channel   both readings of the replica and of the source
    LostFacts of two servers    the last reading of the origin, the first one of the holder
    EdgeFacts of an edge,       both readings of the replica, of every server whose transactions can
    findings of OF_CHANNELS     reach it over any channel, running or stopped, and of those to which
                                its channels were connected: `inputs_of`
    all of these                the frame: what no step changes, and all rules may use

The frame has server_uuids, server_ids, settings, groups, who receives from whom, the policy, and
the time of the readings. If a part of it differs, nothing that was kept holds.

Facts of an edge use other servers in two cases. Then all servers are inputs:

* another server has the replica's server_id: what it committed may be anywhere;
* transactions wait above the replica: any server may have logged them, and its log shows whether
  they carry the replica's server_id (former_ids.py).

Everything else is computed again from all servers. Tests compare the audit with the one that keeps
nothing, on each step of simulated plans: tests/simulation/test_kept_results.py.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from topology.facts.cluster_readings import ClusterReadings
from topology.facts.former_ids import may_need_all_logs
from topology.facts.kept_results import Inputs, KeptResults
from topology.readings.snapshot import ServerSnapshot


def frame_of(readings: ClusterReadings, kept: KeptResults) -> Inputs:
    """Return what no step of a plan changes, as one object for as long as it stays equal."""
    graph, snapshot = readings.graph, readings.snapshot
    value = (
        readings.policy,
        snapshot.read_ended,
        snapshot.definitions,
        tuple(_unchanging(each) for each in (*snapshot.first, *snapshot.last)),
        tuple((each.source, each.replica, each.channel.name) for each in graph.edges),
        tuple((name, channel.name) for name, channel in graph.outside),
        graph.memberships,
        graph.together,
        readings.torn,
        readings.twins,
    )
    return kept.one("frame", value)


def inputs_of(readings: ClusterReadings, kept: KeptResults) -> Mapping[str, Inputs]:
    """Return, by replica, the objects from which the facts of its channels are made.

    For one replica it is the same tuple as long as it has the same objects.
    """
    # A snapshot has one graph, and facts have that of their readings.
    return kept.get("inputs", (readings.graph,), partial(_inputs, readings, kept))


def _inputs(readings: ClusterReadings, kept: KeptResults) -> Mapping[str, Inputs]:
    frame = frame_of(readings, kept)
    everything: Inputs = (*readings.first.values(), *readings.last.values())
    found: dict[str, Inputs] = {}
    graph = readings.graph
    of_uuids: dict[UUID, list[str]] = {}
    for name, server in readings.last.items():
        if server.server_uuid is not None:
            of_uuids.setdefault(server.server_uuid, []).append(name)
    replicas = (*(edge.replica for edge in graph.edges), *(name for name, _ in graph.outside))
    for name in dict.fromkeys(replicas):
        names = kept.get(("reach", name), (frame,), partial(_reach, readings, name, of_uuids))
        inputs: Inputs = (frame, *map(readings.first.get, names), *map(readings.last.get, names))
        if _needs_all(readings, name):
            inputs = (*inputs, *everything)
        found[name] = kept.get(("inputs", name), inputs, partial(tuple, inputs))
    return found


def _reach(
    readings: ClusterReadings, replica: str, of_uuids: Mapping[UUID, Sequence[str]]
) -> tuple[str, ...]:
    """Return the servers whose state decides about the channels of a replica, and the replica."""
    names = {replica, *readings.graph.upstream_of(replica, stopped_too=True)}
    for channel in readings.last[replica].channels or ():
        if channel.source_uuid is not None:
            names.update(of_uuids.get(channel.source_uuid, ()))
    return tuple(sorted(names))


def _needs_all(readings: ClusterReadings, replica: str) -> bool:
    edges = readings.graph.into(replica)
    return any(
        may_need_all_logs(edge, graph=readings.graph, servers=readings.last) for edge in edges
    )


def _unchanging(server: ServerSnapshot) -> tuple[object, ...]:
    return (
        server.name,
        server.host,
        server.port,
        server.server_uuid,
        server.server_id,
        server.settings,
        server.group,
        server.channels is None,
        tuple(each.source_uuid for each in server.channels or ()),
        server.phase,
        server.read_ended,
    )
