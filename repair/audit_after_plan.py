"""What an audit will report after a plan: the model as a snapshot, evaluated by the rules.

How it works
------------
The planner simulates a plan on sets (replication_model.py). Sets alone do not show whether the plan
has a good result: another server may now have extra transactions, or a channel may stay stopped. So
this module writes the simulated servers over the readings from which they were made.
`audit_cluster` then evaluates the result with the same rules and policy.

    server known to the plan     sets from the model, the first reading without what arrived between
                                 the readings; a channel that no step touched keeps its threads,
                                 errors and positions as they were read
    channel that a step changed  both threads run, no error, everything read and applied
    server not known             both readings as they were

Two audits of snapshots written this way are compared in worse_findings.py.

A snapshot does not contain contents of transactions (E4), so this audit does not repeat their
findings. The planner adds those that no step answers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gtid import GtidSet
from repair.model.former_places import (
    Places,
    has_grown,
    reached,
    searches,
    steering,
)
from repair.model.replication_model import Model, ModelServer
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.facts.graph import build_graph
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.facts.other_versions import own_at_other_sources
from topology.policy import Policy
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogSearch, ends_of
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ReadServer,
    ServerSnapshot,
    ThreadState,
)

_OF_A_STEP = 0  # a server_id of no server that sends or receives


def audit_after(
    snapshot: ClusterSnapshot,
    policy: Policy,
    *,
    started: Model,
    model: Model,
    kept: KeptResults = NOTHING_KEPT,
) -> ClusterAudit:
    """Return what the rules report for the simulated servers.

    `started` is the model at the start of the plan: a step changed any channel that differs from
    it. `kept` has what was computed for the models before this one.
    """
    places = reached(snapshot, started, model)
    ends = {
        server.name: _end(server, started, model, places)
        if server.name in places
        else kept.get(
            ("end", server.name),
            (server, model.servers.get(server.name)),
            partial(_end, server, started, model, places),
        )
        for server in snapshot.last
    }
    found = searches(places, started, model)
    last = tuple(
        kept.get(
            ("last", each.name),
            (
                each,
                model.servers.get(each.name),
                *_ends_for(each, model, ends),
                *found.get(each.name, ()),
            ),
            partial(_written, each, started, model, ends, found),
        )
        for each in snapshot.last
    )
    by_name = {server.name: server for server in last if isinstance(server, ReadServer)}
    read = snapshot.last_read
    first = tuple(
        kept.get(
            ("first", each.name),
            (each, by_name[each.name]),
            partial(_first_of, each, by_name[each.name], read[each.name]),
        )
        if isinstance(each, ReadServer) and each.name in model.servers
        else each
        for each in snapshot.first
    )
    then = replace(snapshot, first=first, last=last, contents=None)
    if made := _commits_of_steps(then, started=started, model=model):
        last = tuple(_with_commits(each, made.get(each.name, {})) for each in last)
        then = replace(then, last=last)
    if _is_as_read(snapshot.first, first) and _is_as_read(snapshot.last, last):
        # Nothing was on its way, and the facts are known.
        return audit_cluster(snapshot.with_contents(None), policy)
    return audit_cluster(then, policy, kept=kept)


def _ends_for(
    server: ServerSnapshot, model: Model, ends: Mapping[str, LogPosition | None]
) -> Iterator[LogPosition | None]:
    """Yield the ends of logs that a written server has: its own, and those of its sources."""
    yield ends[server.name]
    known = model.servers.get(server.name)
    for channel in known.channels if known is not None else ():
        yield ends.get(channel.source or "")


def _is_as_read(read: Sequence[ServerSnapshot], written: Sequence[ServerSnapshot]) -> bool:
    """Return whether nothing is written over readings; equal positions may have different files."""
    return read == written and _files_of(read) == _files_of(written)


def _files_of(servers: Iterable[ServerSnapshot]) -> list[str]:
    places = (
        place
        for server in servers
        for place in (
            server.log_end,
            *(
                each
                for channel in server.channels or ()
                for each in (channel.received_to, channel.applied_to, channel.relay_applied_to)
            ),
        )
    )
    return [place.file if place is not None else "" for place in places]


def _written(
    server: ServerSnapshot,
    started: Model,
    model: Model,
    ends: dict[str, LogPosition | None],
    searches: Mapping[str, Sequence[LogSearch]],
) -> ServerSnapshot:
    if server.name not in model.servers:
        return server
    now, then = model[server.name], started[server.name]
    return replace(
        server,
        history_evidence=_with(server.history_evidence, searches.get(server.name, ())),
        log_end=ends[server.name],
        gtid_executed=now.executed,
        gtid_purged=now.purged,
        gtid_owned=(server.gtid_owned or GtidSet()) - now.executed,  # committed soon (T4)
        channels=tuple(_channel(each, now, then, ends) for each in server.channels or ()),
    )


def _commits_of_steps(
    then: ClusterSnapshot, *, started: Model, model: Model
) -> dict[str, dict[GtidSet, int]]:
    """Return, by server, the server_ids with which its log then has a replica's own transactions.

    A step that delivers them to one source of the replica commits them again, not with the
    replica's server_id. So for its other sources they are still errant
    (topology/facts/other_versions.py).
    """
    servers = {each.name: each for each in then.last}
    graph = build_graph(then)
    found: dict[str, dict[GtidSet, int]] = {}
    for edge in graph.edges:
        own_id = servers[edge.replica].server_id
        if own_id is None or edge.replica not in model.servers:
            continue
        for name, held in own_at_other_sources(edge, graph=graph, servers=servers).items():
            if name in model.servers:
                new = ends_of(held & (model[name].executed - started[name].executed))
                found.setdefault(name, {}).update(dict.fromkeys(new, _OF_A_STEP))
                found.setdefault(edge.replica, {}).update(dict.fromkeys(new, own_id))
    return found


def _with_commits(server: ServerSnapshot, ids: Mapping[GtidSet, int]) -> ServerSnapshot:
    if not ids:
        return server
    found = server.history_evidence or HistoryEvidence(None, ())
    made = (
        CommitRecord(gtid, server_id, server.read_started, is_exact=False)
        for gtid, server_id in ids.items()
    )
    return replace(server, history_evidence=replace(found, commits=(*made, *found.commits)))


def _end(
    server: ServerSnapshot, started: Model, model: Model, reached: Places
) -> LogPosition | None:
    """Return the end of a server's log: steps append after the end that was read.

    A receiver with a file position that had read everything has not passed what steps append.
    """
    name, end = server.name, server.log_end
    if end is None or not has_grown(name, started, model):
        return end
    places = [place for _, place in reached.get(name, ())]
    return max((replace(end, position=end.position + 1), *places))


def _with(known: HistoryEvidence | None, searches: Sequence[LogSearch]) -> HistoryEvidence | None:
    """Return the evidence from a server's logs, with these searches added."""
    if not searches:
        return known
    known = known or HistoryEvidence(None, ())
    return replace(known, searches=(*known.searches, *searches))


def _channel(
    channel: ChannelSnapshot,
    now: ModelServer,
    then: ModelServer,
    ends: dict[str, LogPosition | None],
) -> ChannelSnapshot:
    known, old = now.channel(channel.name), then.channel(channel.name)
    assert known is not None, "the model has every channel of a known server"
    assert old is not None, "no action creates a channel"
    if steering(known) == steering(old):
        return channel
    if not known.running:
        return replace(channel, receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED)
    end = ends.get(known.source or "") or channel.received_to
    return replace(
        channel,
        auto_position=known.auto_position,
        gtid_retrieved=known.retrieved & (now.executed | known.passed),
        receiver=ThreadState.RUNNING,
        receiver_errno=0,
        receiver_error="",
        applier=ThreadState.RUNNING,
        applier_errno=0,
        applier_error="",
        received_to=end,
        applied_to=end,
        lag_seconds=0,
        workers=(),
    )


def _arrived(first: ReadServer, last: ReadServer) -> GtidSet:
    """Return what arrived from other servers between the readings.

    Its source may have been read before it committed this: that is no loss
    (topology/facts/cluster_facts.py).
    """
    now = _held(last) - _held(first)
    return now.without_uuid(last.server_uuid)


def _held(server: ReadServer) -> GtidSet:
    return server.gtid_executed | server.gtid_retrieved


def _first_of(first: ReadServer, last: ReadServer, read: ReadServer) -> ReadServer:
    return _same_state(first, last, _arrived(first, read))


def _same_state(first: ReadServer, last: ReadServer, arrived: GtidSet) -> ReadServer:
    places = {each.name: each.received_to for each in first.channels or ()}
    return replace(
        first,
        log_end=last.log_end,
        gtid_executed=last.gtid_executed - arrived,
        gtid_purged=last.gtid_purged - arrived,
        gtid_owned=last.gtid_owned,
        channels=tuple(
            replace(
                each,
                gtid_retrieved=each.gtid_retrieved - arrived,
                received_to=places.get(each.name, each.received_to),
            )
            for each in last.channels or ()
        ),
        server_uuid=last.server_uuid,
    )
