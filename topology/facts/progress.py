"""Which transactions the appliers of a cluster have passed, and which a replica drops.

applier_facts.py evaluates one channel; this module combines the channels of a replica. It contains
set algebra only.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias
from uuid import UUID

from gtid import GtidSet
from topology.facts.applier_facts import (
    ApplierFacts,
    ApplierWait,
    gather_applier_facts,
    permits_skips,
)
from topology.facts.applier_workers import SourceLog, commits_in_order, is_without_work
from topology.facts.former_ids import servers_by_id
from topology.facts.graph import Edge, Graph, build_graph
from topology.facts.group_appliers import group_applier_facts
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.policy import Policy
from topology.readings.group_view import GROUP_APPLIER
from topology.readings.same_ids import accepts_own_server_id
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    ReadTwice,
    ServerSnapshot,
    ThreadState,
)

Appliers: TypeAlias = dict[tuple[str, str], ApplierFacts]
"""By replica and channel."""


def appliers_of(
    snapshot: ClusterSnapshot,
    *,
    fully_read: Mapping[str, ReadTwice],
    kept: KeptResults = NOTHING_KEPT,
) -> Appliers:
    """Return what the two readings show about the appliers of these replicas.

    These are the appliers of channels, and those of the members of a replication group.
    """
    graph = build_graph(snapshot)
    links = [(edge.source, edge.replica, edge.channel) for edge in graph.edges]
    links += [("", replica, channel) for replica, channel in graph.outside]
    of_groups = {
        (name, GROUP_APPLIER): group_applier_facts(each.first, each.last)
        for name, each in fully_read.items()
        if each.first.group is not None and each.last.group is not None
    }
    return of_groups | {
        (replica, channel.name): kept.get(
            ("applier", replica, channel.name),
            (fully_read[replica], channel, fully_read.get(source)),
            partial(_applier_facts, fully_read[replica], fully_read.get(source), channel),
        )
        for source, replica, channel in links
        if replica in fully_read
    }


def _applier_facts(
    replica: ReadTwice, source: ReadTwice | None, channel: ChannelSnapshot
) -> ApplierFacts:
    log = SourceLog() if source is None else _log_of(source)
    return gather_applier_facts(replica.first, replica.last, channel, log)


def _log_of(source: ReadTwice) -> SourceLog:
    """Return what a server logged in ascending GNO order, and what perhaps in another order.

    In order are its own transactions, and those that its only applier commits in the order in which
    it receives them. The log already has what the server is committing now, so a replica may have
    it.
    """
    server = source.first
    made = server.gtid_executed | server.gtid_owned
    ascending: UUID | None = server.server_uuid
    since = (source.last.gtid_executed | source.last.gtid_owned).from_uuid(server.server_uuid)
    if server.group is not None:
        # Members take blocks of numbers, if the group has this UUID as its name.
        since, ascending = GtidSet(), None
    channels = server.channels or ()
    if len(channels) == 1 and server.group is None and commits_in_order(server, channels[0]):
        return SourceLog(made | since, purged=server.gtid_purged, ascending=ascending)
    own = made.from_uuid(server.server_uuid)
    return SourceLog(own | since, made - own, server.gtid_purged, ascending)


def behind_appliers(
    edge: Edge, *, graph: Graph, first: Mapping[str, ServerSnapshot], appliers: Appliers
) -> tuple[GtidSet, bool]:
    """Return what the replica will not get from its relay logs, and whether that is proved.

    Three conditions hold. The applier of this channel has passed it. No other channel holds it
    ahead of its applier. No channel with a running receiver has a source that has it in its logs
    and has not sent it yet. A source never sends what it has purged, or executed without a log
    (log_replica_updates = OFF).
    """
    mine = appliers[edge.replica, edge.channel.name]
    # A channel from a server that was not read may still deliver it.
    is_seen = all(replica != edge.replica for replica, _ in graph.outside)
    passed, is_proved = mine.passed, mine.passed_is_proved and is_seen
    for other in graph.into(edge.replica):
        if other.channel.name == edge.channel.name:
            continue
        applier = appliers[other.replica, other.channel.name]
        passed -= applier.backlog
        if other.channel.receiver is not ThreadState.STOPPED:
            to_come = _in_logs(first[other.source])
            is_proved = is_proved and to_come is not None
            passed -= (to_come or GtidSet()) - applier.passed
        is_proved = is_proved and (applier.passed_is_proved or not passed & applier.passed)
    return passed, is_proved


def _in_logs(server: ServerSnapshot) -> GtidSet | None:
    if server.gtid_executed is None or server.gtid_purged is None:
        return None
    return server.gtid_executed - server.gtid_purged


def same_server_id(replica: ServerSnapshot, last: Mapping[str, ServerSnapshot]) -> GtidSet:
    """Return what other servers with the replica's server_id committed.

    To the replica, their events look like its own events that came back. It counts them as
    received, and drops them (sql/rpl_replica.cc, queue_event; seen on 9.7.4 in a chain).
    """
    if replica.server_id is None:
        return GtidSet()
    twins = [
        other
        for other in servers_by_id(last).get(replica.server_id, ())
        if other.name != replica.name
        and other.server_uuid not in (None, replica.server_uuid)
        and not accepts_own_server_id(replica, other)
    ]
    return GtidSet.union_of(
        (server.gtid_executed or GtidSet()).from_uuid(twin.server_uuid)
        for twin in twins
        if twin.server_uuid is not None
        for server in last.values()
    )


def blocked_by_lock(applier: ApplierFacts, policy: Policy) -> ApplierWait | None:
    """Return the lock wait that is longer than the policy allows."""
    wait = applier.lock_wait
    if wait is None:
        return None
    if _is_longer(wait, applier, policy.lock_wait_seconds_max):
        return wait
    return wait if _may_be_longer(wait, applier, policy) else None


def stalled(applier: ApplierFacts, policy: Policy) -> ApplierWait | None:
    """Return what has occupied an applier for longer than the policy allows, without a lock."""
    wait = applier.longest
    if wait is None or applier.moved or not applier.is_same:
        return None
    if blocked_by_lock(applier, policy) is not None:
        return None
    return wait if _is_longer(wait, applier, policy.stall_seconds_max) else None


def _is_longer(wait: ApplierWait, applier: ApplierFacts, limit: int) -> bool:
    """Return whether a wait exceeds a limit; an estimated age counts only if nothing moved.

    SOURCE_DELAY holds the coordinator back and increases the lag. A worker that reports when it
    began its transaction has certainly begun it.
    """
    if not applier.backlog or (applier.is_delayed and not wait.is_exact):
        return False
    if wait.seconds is None or wait.seconds <= limit:
        return False
    return wait.is_exact or (applier.is_same and not applier.moved)


def _may_be_longer(wait: ApplierWait, applier: ApplierFacts, policy: Policy) -> bool:
    """Return whether a wait may have any age: its event is dated in the future.

    On 5.6, and without the threads of performance_schema, an age is that of the event. The clock of
    the source may be ahead by `clock_seconds_max`.
    """
    if not applier.backlog or applier.is_delayed or applier.is_once:
        return False
    stands = applier.is_same and not applier.moved
    return stands and wait.ahead_seconds > policy.clock_seconds_max


def perhaps_skipped(
    appliers: Appliers, last: Mapping[str, ServerSnapshot]
) -> Iterator[tuple[str, str, GtidSet]]:
    """Yield what an applier may have skipped (sql_replica_skip_counter), or applied just now.

    It has nothing left to do. What the server has executed was read before that.
    """
    for (replica, channel), applier in sorted(appliers.items(), key=lambda item: item[0]):
        ended = applier.backlog and is_without_work(applier.channel)
        if ended and permits_skips(last[replica], applier.channel):
            yield replica, channel, applier.backlog


def stalls_of(appliers: Appliers, policy: Policy) -> tuple[object, ...]:
    """Return the appliers that stand still for too long, so that they are read again."""
    return tuple(
        (*key, tuple((wait.state, str(wait.gtids)) for wait in applier.waits))
        for key, applier in sorted(appliers.items(), key=lambda item: item[0])
        if blocked_by_lock(applier, policy) or stalled(applier, policy)
    )
