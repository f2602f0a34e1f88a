"""Which transactions of one edge are looked up in a log, for their order or their server_id.

* Both ends of what upstream servers have under a UUID of no server (a server that was cloned or
  restored), or what a session of the replica may have committed under another server's UUID: the
  replica drops what carries its own server_id (former_ids.py).
* Both ends of extra GTIDs that a channel may have given (assigned_gtids.py).
* The end of each gap that may have been skipped, and what follows it (log_order.py).
* What the replica of a held back applier has logged above a gap, just below it, and last: a session
  may have committed it (committed_by_hand.py). Both servers are asked.
* A replica's own GTIDs that one of its sources has and another does not, the lowest and highest
  own GTID of a source that a replica with a stopped receiver also has, and the highest own GTIDs
  that an applier has, and has not, applied (other_versions.py).
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.facts.assigned_gtids import maybe_assigned
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.committed_by_hand import asked_of_logs
from topology.facts.edge_facts import EdgeFacts
from topology.facts.former_ids import of_no_server, to_look_up
from topology.facts.log_order import order_samples
from topology.facts.other_versions import (
    around_start_samples,
    own_at_other_sources,
    own_of_stopped_source,
)
from topology.readings.history_evidence import ends_of
from topology.readings.snapshot import ReadServer


def commits_to_look_up(facts: ClusterFacts, edge: EdgeFacts) -> Iterator[tuple[str, GtidSet]]:
    """Yield single GTIDs, by the server whose log has them; a set may be empty."""
    servers = facts.last
    shared = own_of_stopped_source(edge.edge, servers=servers)
    yield edge.source, shared
    yield edge.replica, shared
    maybe_by_hand = asked_of_logs(edge.edge, servers=servers)
    yield edge.source, maybe_by_hand
    yield edge.replica, maybe_by_hand
    yield from around_start_samples(edge.edge, servers=servers)
    yield edge.source, order_samples(facts, edge)
    yield edge.source, _ends(_maybe_by_hand(edge.expected, facts.fully_read[edge.source].first))
    yield edge.replica, maybe_assigned(edge, servers[edge.replica])
    for holder, gtids in to_look_up(edge.edge, graph=facts.graph, servers=servers):
        yield holder, _ends(gtids)
    elsewhere = own_at_other_sources(edge.edge, graph=facts.graph, servers=servers)
    for holder, gtids in elsewhere.items():
        yield holder, _ends(gtids)
        yield edge.replica, _ends(gtids)


def samples_of_no_server(facts: ClusterFacts, due: GtidSet) -> GtidSet:
    """Return what shows whether a server would drop part of what another one would send it.

    What it committed under a former server_uuid carries its server_id.
    """
    return _ends(of_no_server(due, facts.last))


def _maybe_by_hand(expected: GtidSet, source: ReadServer) -> GtidSet:
    """Return GTIDs of the source's UUID that a replica is to receive out of ascending GNO order.

    They have a gap, or the source received them. A session of the replica may have set gtid_next to
    one of them, and the replica has lost it since. Then the transaction carries the replica's
    server_id and is dropped. `source` is the first reading.
    """
    own = expected.from_uuid(source.server_uuid)
    executed = source.gtid_executed.from_uuid(source.server_uuid)
    if executed.filled() - executed - source.gtid_owned:
        return own
    return own & GtidSet.union_of(each.gtid_retrieved for each in source.channels or ())


def _ends(gtid_set: GtidSet) -> GtidSet:
    return GtidSet.union_of(ends_of(gtid_set))
