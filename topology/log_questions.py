"""Which open questions binary logs can answer; few servers are asked, and rarely.

How it works
------------
A transaction of its source is missing on a replica. The sets do not show whether the applier has
already passed it, or whether the receiver drops it. The applier passes it after RESET BINARY LOGS
AND GTIDS with a gtid_purged that is too small, SOURCE_LOG_POS, or a crash of the replica. The
source's log shows both: it has the position of the transaction, and the channel reports its own
position in the same log.

* **A search** asks the source for the missing transactions, in the order of its log, up to the
  position of the channel. The channel has passed what ends at that position or before. The server
  sends the first missing transaction, and nothing else if that lies after the position. So a
  replica that is merely stopped costs one transaction. The position is the applier's for what is in
  the relay log and for what a stopped receiver will request again. It is the receiver's for the
  rest. Both are from the first reading: what lies before them was applied, or received, before the
  last reading. gtid-audit searches if the channel is stopped, or uses a file position. It searches
  if sql_replica_skip_counter may skip (gtid_mode is not ON) or may have skipped (the applier did
  not move). It searches if a crash may have left the applier's position after what the crash lost
  (before 8.0.17, relay_log_recovery off). And it searches if the replica's binary logs have no
  earlier transaction of the same origin (a RESET, or a replica that has just been provisioned).
* **Commits** of a few transactions. These are read:

  - of losses, both ends of each interval (topology/lost.py)
  - both ends of each interval that a channel has gone past, and an earlier transaction that its
    replica has, for their order (reset_signs.py) and their server_id (rules/absent_causes.py)
  - both ends of what upstream servers have under a UUID of no server (a server that was cloned or
    restored), or what a session of the replica may have committed under another server's UUID,
    because the replica drops what carries its own server_id
  - both ends of extra GTIDs that a channel may have given (assigned_gtids.py)
  - the end of each gap that may have been skipped, and what follows it (topology/log_order.py)
  - the first transaction due at a receiver that does not move (topology/receivers.py)
  - a replica's own GTIDs that one of its sources has and another does not, the lowest and highest
    own GTID of a source that a replica with a stopped receiver also has, and the highest own GTIDs
    that a stopped applier has, and has not, applied (other_versions.py)

* **The first log** of servers that lost transactions, of replicas whose channel has gone past some,
  and of the sources from which these were received (reset_signs.py). Also of servers that may not
  have logged what they have purged (topology/unlogged.py).
* **Changes of gtid_purged** in the error log of servers that have never purged a log. Also the time
  when the origin committed the newest GTIDs that were set (topology/declared.py).
* **The order of two origins** in the log of a server whose GTIDs another server has in gtid_purged.
  Also the first log of that other server (topology/declared_later.py).
* **The schemas** of a server that has executed nothing, and that no channel links or that has not
  received what its source has. It is new only if it has no schemas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gtid import GtidSet
from topology.assigned_gtids import maybe_assigned
from topology.declared import newest_set
from topology.declared_later import unordered
from topology.edge_facts import EdgeFacts
from topology.facts import ClusterFacts
from topology.former_ids import to_look_up
from topology.history_evidence import ends_of
from topology.joining import evaluate_parts
from topology.log_order import order_samples, received_by
from topology.loss_history import neighbours_of
from topology.lost import samples_of
from topology.other_versions import (
    around_start_samples,
    own_at_other_sources,
    own_of_stopped_source,
)
from topology.receivers import samples_in
from topology.reset_signs import earlier_samples, has_earlier
from topology.skipping import can_have_skipped, crash_may_leave_place, may_skip
from topology.snapshot import ChannelSnapshot, LogPosition, ReadServer, ServerSnapshot, ThreadState
from topology.unlogged import candidates_in, purged_above_a_gap


@dataclass(frozen=True, slots=True)
class Search:
    """Which of `wanted` are in a server's log before a position of a replica's channel."""

    replica: str
    channel: str
    place: LogPosition
    wanted: GtidSet


@dataclass(frozen=True, slots=True)
class LogQuestions:
    """The questions for one server."""

    first_log: bool = False
    commits: tuple[GtidSet, ...] = ()
    searches: tuple[Search, ...] = ()
    purged_changes: bool = False
    schemas: bool = False


def questions_of(facts: ClusterFacts) -> Mapping[str, LogQuestions]:
    """Return the questions for each server; empty if the sets leave none."""
    asked: dict[str, LogQuestions] = {}

    def ask(name: str, question: LogQuestions) -> None:
        before = asked.get(name, LogQuestions())
        asked[name] = LogQuestions(
            first_log=before.first_log or question.first_log,
            commits=(*before.commits, *(each for each in question.commits if each)),
            searches=(*before.searches, *question.searches),
            purged_changes=before.purged_changes or question.purged_changes,
            schemas=before.schemas or question.schemas,
        )

    for lost in facts.lost:
        if lost.lost:
            neighbours = neighbours_of(facts, lost)
            ask(lost.origin, LogQuestions(first_log=True, commits=(neighbours,)))
            ask(lost.holder, LogQuestions(commits=(neighbours, samples_of(lost))))
    servers = facts.last
    for name in (*candidates_in(facts.snapshot), *purged_above_a_gap(facts.snapshot)):
        ask(name, LogQuestions(first_log=True))
    for (name, origin), newest in newest_set(facts.snapshot).items():
        if {name, origin} <= facts.fully_read.keys():
            ask(name, LogQuestions(purged_changes=True))
            ask(origin, LogQuestions(commits=(newest,)))
    for each in unordered(facts.snapshot):
        if {each.server, each.holder} <= facts.fully_read.keys():
            ask(each.server, LogQuestions(first_log=True, commits=(each.earlier,)))
            ask(each.holder, LogQuestions(commits=(each.earlier, *each.samples)))
    for name, due in samples_in(facts):
        ask(name, LogQuestions(commits=(due,)))
    for edge in facts.edges:
        if shared := own_of_stopped_source(edge.edge, servers=servers):
            for name in (edge.source, edge.replica):
                ask(name, LogQuestions(commits=(shared,)))
        if around := around_start_samples(edge.edge, servers=servers):
            ask(edge.source, LogQuestions(commits=(around,)))
        if samples := order_samples(facts, edge):
            ask(edge.source, LogQuestions(commits=(samples,)))
        if edge.expected and not servers[edge.replica].gtid_executed:
            ask(edge.replica, LogQuestions(schemas=True))
        for search in _searches(facts, edge):
            ask(edge.source, LogQuestions(searches=(search,)))
        if gone := edge.passed | edge.bypassed:
            source, replica = servers[edge.source], servers[edge.replica]
            ask(source.name, LogQuestions(first_log=bool(edge.passed)))
            received = received_by(edge, replica)
            earlier = earlier_samples(replica, gone, source=source, received=received)
            ask(replica.name, LogQuestions(first_log=True, commits=(earlier,)))
            ask(source.name, LogQuestions(commits=(_ends(gone), earlier)))
        if by_hand := _maybe_by_hand(edge.expected, facts.fully_read[edge.source].first):
            ask(edge.source, LogQuestions(commits=(_ends(by_hand),)))
        ask(edge.replica, LogQuestions(commits=(maybe_assigned(edge, servers[edge.replica]),)))
        for holder, gtids in to_look_up(edge.edge, graph=facts.graph, servers=servers):
            ask(holder, LogQuestions(commits=(_ends(gtids),)))
        elsewhere = own_at_other_sources(edge.edge, graph=facts.graph, servers=servers)
        for holder, gtids in elsewhere.items():
            ask(holder, LogQuestions(commits=(_ends(gtids),)))
            ask(edge.replica, LogQuestions(commits=(_ends(gtids),)))
    for joining in evaluate_parts(facts).joinings:
        if not facts.last[joining.server].logged:
            ask(joining.server, LogQuestions(schemas=True))
    return {name: each for name, each in sorted(asked.items()) if each != LogQuestions()}


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


def _searches(facts: ClusterFacts, edge: EdgeFacts) -> Iterator[Search]:
    replica, channel = facts.last[edge.replica], edge.channel
    before = _channel_of(facts.first[edge.replica], channel)
    if before is None:
        return
    received = edge.queued_below | edge.queued_above
    # A gap in both readings may have been skipped under another gtid_mode than the current one.
    stays = bool(edge.queued_below & before.gtid_retrieved)
    absent = edge.expected if channel.auto_position else edge.expected | edge.bypassed
    is_stopped = ThreadState.STOPPED in (channel.receiver, channel.applier)
    if channel.applier is ThreadState.STOPPED:
        received |= edge.passed  # equal positions prove little: the receiver may have reconnected
    # For an applier that stands still, or that SOURCE_DELAY holds back, nothing else shows its
    # position. It may have skipped while gtid_mode permitted it. Before 5.7.6, changing gtid_mode
    # needs a restart.
    stays = stays or _stands(facts, edge) or crash_may_leave_place(replica)
    # A receiver that is not connected will request everything after the applier's position again.
    asks_again = channel.auto_position and channel.receiver is not ThreadState.RUNNING
    for gtids, place, is_asked in (
        (received, before.applied_to, is_stopped or stays or may_skip(facts, edge.edge)),
        (
            absent,
            before.applied_to if asks_again else _read_to(before, channel),
            is_stopped or not channel.auto_position,
        ),
    ):
        if gtids and place is not None and (is_asked or not has_earlier(replica.logged, gtids)):
            yield Search(replica.name, channel.name, place, gtids)


def _stands(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    replica, channel = facts.last[edge.replica], edge.channel
    return can_have_skipped(replica) and not facts.appliers[replica.name, channel.name].moved


def _read_to(before: ChannelSnapshot, channel: ChannelSnapshot) -> LogPosition | None:
    """Return the position up to which the receiver had read, if it is still the same connection."""
    is_the_same = before.receiver is channel.receiver and (
        before.received_to is not None
        and channel.received_to is not None
        and before.received_to <= channel.received_to
    )
    return before.received_to if is_the_same else None


def _ends(gtid_set: GtidSet) -> GtidSet:
    return GtidSet.union_of(ends_of(gtid_set))


def _channel_of(server: ServerSnapshot, channel: ChannelSnapshot) -> ChannelSnapshot | None:
    """Return the channel from another reading, if it has the same source."""
    for other in server.channels or ():
        same = (other.name, other.source_host, other.source_port, other.source_uuid)
        if same == (channel.name, channel.source_host, channel.source_port, channel.source_uuid):
            return other
    return None
