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

Two snapshots written this way are compared, from before and after the actions. What both show
existed before. A finding above info that only the second shows makes a server worse.

A snapshot does not contain contents of transactions (E4), so this audit does not repeat their
findings. The planner adds those that no step answers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gtid import GtidSet
from repair.model.actions import Action, AppendPurged, ResetAndPurge
from repair.model.former_places import (
    Places,
    at_former_places,
    has_grown,
    only_shows,
    reached,
    searches,
    steering,
)
from repair.model.replication_model import Model, ModelServer
from repair.plan_parts import in_short
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Severity
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
from topology.rules.threads import RECEIVER_ERROR

# For these families a larger set is worse; for a stopped channel it only means that more waits.
_GROWTH_IS_WORSE = frozenset("HEPJ")
# A repaired cause reveals these (topology/suppression.py). No action of a plan leaves them.
_UNCOVERED = frozenset({"A7", "C3"})
_OF_A_STEP = 0  # a server_id of no server that sends or receives
# Findings about a server that no channel links, the least severe first.
_JOINING = frozenset({"J1", "J2", "J3"})


@dataclass(frozen=True, slots=True)
class Change:
    """What a strategy does to the servers of a plan."""

    snapshot: ClusterSnapshot  # as it was read
    started: Model  # at the start of the plan
    model: Model  # after the strategy's actions
    actions: tuple[Action, ...]
    is_chosen: bool


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


def made_worse(
    before: ClusterAudit, after: ClusterAudit, *, purged: Mapping[str, GtidSet]
) -> Iterator[Finding]:
    """Yield findings above info that only the second audit has, and differences that have grown.

    `purged` is gtid_purged of each server at the start of the plan, plus what the evaluated steps
    add to it. GTIDs in it that were never logged (E4) become visible once the server logs lower
    ones. The added ones are announced by the strategy. No action makes a server worse by either.
    """
    known = {finding.id: finding for finding in before.findings}
    holes: dict[str | None, GtidSet] = {}
    for finding in before.findings:
        if finding.code == "H8":
            holes[finding.replica] = holes.get(finding.replica, GtidSet()) | finding.gtid_set
    for finding in after.findings:
        old = known.get(finding.id)
        has_grown = old is not None and (
            finding.code[0] in _GROWTH_IS_WORSE and bool(finding.gtid_set - old.gtid_set)
        )
        if old is not None and not has_grown:
            continue
        if finding.severity is Severity.INFO or finding.code.startswith("U"):
            continue
        if finding.code in _UNCOVERED or _joins_more_easily(finding, before):
            continue
        if _was_named_before(finding, before):
            continue
        if finding.code == "E4" and finding.gtid_set <= purged.get(str(finding.replica), GtidSet()):
            continue
        if finding.code == "A4" and any(fact.fact == RECEIVER_ERROR for fact in finding.evidence):
            continue  # an error that was read: no simulated receiver has one
        if finding.code == "H8" and finding.gtid_set <= holes.get(finding.replica, GtidSet()):
            continue  # another channel has passed them as well
        yield finding


def why_worse(before: ClusterAudit, after: ClusterAudit, change: Change) -> str:
    """Return what makes a server worse, one line each; "" if nothing does.

    A finding that only becomes visible (`only_shows`) does not refuse a strategy that the operator
    selected. The plan lists it among what the audit will report.
    """
    purged = {name: server.purged for name, server in change.started.servers.items()}
    for action in change.actions:
        if isinstance(action, AppendPurged | ResetAndPurge):
            purged[action.server] |= action.gtids  # an E4 about them is announced, not worse
    worse = [*made_worse(before, after, purged=purged)]
    former = {*at_former_places(change.snapshot)} if worse else set()
    found = []
    for finding in worse:
        text = in_short(finding)
        if (finding.replica, finding.channel) in former and only_shows(finding, change.started):
            if change.is_chosen:
                continue
            text += (
                f" ({finding.replica} does not have them now either. Its channel is at a position"
                f" in a former log of {finding.source}, and the current log may become as long."
                " Start that channel first, or select this strategy)"
            )
        found.append(text)
    return "; ".join(found)


def _was_named_before(finding: Finding, before: ClusterAudit) -> bool:
    """Return whether an errant set was reported for another source of its server.

    It is reported once, for the first source without it. A step that delivers it to that source
    leaves it to the next one.
    """
    return finding.code in ("E1", "E2") and any(
        (each.code, each.replica) == (finding.code, finding.replica)
        and finding.gtid_set <= each.gtid_set
        for each in before.findings
    )


def _joins_more_easily(finding: Finding, before: ClusterAudit) -> bool:
    """Return whether a server was further from joining before: J3 and J2 hide lesser findings.

    A server that diverged (J3), and no longer does, needs transactions that are purged (J2) or can
    join (J1). Each unlinked server has one finding of the family.
    """
    return any(
        each.code > finding.code
        for each in before.findings
        if {each.code, finding.code} <= _JOINING and each.replica == finding.replica
    )


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
