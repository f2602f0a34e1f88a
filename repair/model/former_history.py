"""Why a channel may deliver transactions of a history that its source no longer has.

A source reuses GTIDs if it lost the end of its log, was reset, or was replaced. Its replica
executed, or has in its relay log, the former transactions under these GTIDs. Then rows may not
match, and the relay log may have the only copy of what was lost.

1. `signs_of` collects the evidence from the snapshot, channel by channel; initial_model.py adds it
   to the model.
2. `may_be_given_again` converts the signs to the reason why a start is not a default.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gtid import GtidSet
from repair.model.offered_strategies import offered
from repair.model.replication_model import ModelChannel, ModelServer
from repair.model.strategy_case import Case
from topology.catalogue.error_texts import row_of
from topology.facts.applier_workers import is_without_work
from topology.facts.committed_by_hand import (
    committed_by_hand,
    explains_other_versions,
    source_reused,
)
from topology.facts.graph import Edge, build_graph
from topology.facts.half_received import WHOLE_TRANSACTIONS
from topology.facts.other_versions import given_again, received_around_start
from topology.readings.snapshot import ChannelSnapshot, ClusterSnapshot, ReadServer, ThreadState

_NOTHING = GtidSet()


@dataclass(frozen=True, slots=True)
class FormerSigns:
    """Evidence that a channel's data belongs to a former history of its source."""

    is_given_again: bool = False  # a sign shows that the source lost or reused GTIDs
    is_loss_shown: bool = False  # it cannot be a session of the replica that set gtid_next
    by_hand: GtidSet = _NOTHING  # a session of the replica committed it (gtid_next)
    orphaned: GtidSet = _NOTHING  # received, and not on the source
    around_start: GtidSet = _NOTHING  # waits; the source restarted between its commits
    lost_place: str = ""  # why the source does not have the receiver's next position
    hides_waiting: bool = False  # the relay log has events that are in no set

    @property
    def may_be_former(self) -> bool:
        """Return whether there is a sign of a loss; a restart of the source is not one."""
        return self.is_given_again or bool(self.orphaned)


def signs_of(
    edge: Edge | None,
    snapshot: ClusterSnapshot,
    known: Mapping[str, ReadServer],
    refusing: frozenset[str],
) -> FormerSigns:
    """Return the signs; none for a channel whose source was not read."""
    if edge is None:
        return FormerSigns()
    are_known = edge.source in known and edge.replica in known
    return FormerSigns(
        is_given_again=_may_be_former(edge, known, refusing),
        is_loss_shown=_has_lost(known.get(edge.source), edge.channel)
        or (are_known and source_reused(edge, servers=known)),
        by_hand=committed_by_hand(edge, servers=known) if are_known else _NOTHING,
        orphaned=_orphaned(edge, snapshot, known),
        around_start=received_around_start(edge, servers=known) if are_known else _NOTHING,
        lost_place=_lost_place(edge, snapshot, known),
        hides_waiting=are_known and _hides_what_waits(known[edge.replica], edge.channel),
    )


def may_be_given_again(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return why a server's GTIDs of its source may be other transactions than the source's."""
    source = case.model.servers.get(channel.source) if channel.source is not None else None
    if source is None:
        return None
    if channel.around_start:
        return (
            f"{source.name} was restarted after it committed what {replica.name} has executed of"
            f" it, and perhaps before it committed {channel.around_start.shortened()}. If"
            f" {source.name} crashed and lost transactions that {replica.name} had received, it has"
            f" reused their GTIDs: the relay log of {replica.name} has the former ones. Check in"
            f" the error log of {source.name} whether it was shut down in order. If it was, or if"
            f" the relay log has the same transactions (mysqlbinlog), choose with {offered(case)}"
        )
    if not channel.may_be_former:
        by_hand = made_by_hand(replica, channel)
        return None if by_hand is None else f"{by_hand}, then choose with {offered(case)}"
    if orphaned := channel.orphaned - replica.executed:
        return (
            f"the relay log of {replica.name} has {orphaned.shortened()}, which {source.name} does"
            f" not have: {source.name} lost them, or another server sent them and was replaced."
            f" {replica.name} would apply them, and {source.name} may never get them. Save the"
            f" relay log: it may be the last copy. Then choose with {offered(case)}"
        )
    common = replica.executed.from_uuid(source.server_uuid)
    if not common:
        return None
    return (
        f"{source.name} has lost, or reset, transactions that it had sent (a receiver had more"
        f" than it has, or their commits differ){or_by_hand(replica, channel)}. So"
        f" {common.shortened()} may be other transactions there, and what"
        f" follows may not fit. Compare the rows, then choose with {offered(case)}"
    )


def or_by_hand(replica: ModelServer, channel: ModelChannel) -> str:
    """Return the other cause of the same signs, as text; "" where the logs exclude it."""
    return "" if channel.is_loss_shown else f", or they were committed by hand on {replica.name}"


def made_by_hand(replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return what a session of a replica committed under GTIDs of other servers; None if nothing.

    Its channel's source has lost nothing then, and has another transaction under these GTIDs.
    """
    if not channel.by_hand:
        return None
    return (
        f"{channel.by_hand.shortened()} was committed by hand on {replica.name} (gtid_next; its"
        f" binary log shows its own server_id), and {channel.source} has another commit there. The"
        f" applier skips it: if that GTID was a mistake, its rows are missing on {replica.name}"
        " (E4), and what follows may not fit. Compare the rows"
    )


def _may_be_former(edge: Edge, known: Mapping[str, ReadServer], refusing: frozenset[str]) -> bool:
    """Return whether a source may have reused GTIDs that its replica has."""
    return (
        edge.source in refusing
        or _has_lost(known.get(edge.source), edge.channel)
        or _has_others(edge, known)
    )


def _orphaned(edge: Edge, snapshot: ClusterSnapshot, known: Mapping[str, ReadServer]) -> GtidSet:
    """Return what waits in a relay log, as read first, and is not on the source, as read last."""
    source, replica = known.get(edge.source), known.get(edge.replica)
    if source is None or replica is None:
        return GtidSet()
    there = (source.gtid_executed or GtidSet()) | (source.gtid_owned or GtidSet())
    left = edge.channel.gtid_retrieved - there - (replica.gtid_executed or GtidSet())
    if not left:
        return left
    received = GtidSet.union_of(
        channel.gtid_retrieved
        for server in snapshot.first
        if server.name == edge.replica
        for channel in server.channels or ()
        if channel.name == edge.channel.name
    )
    return received & left


def _hides_what_waits(replica: ReadServer, channel: ChannelSnapshot) -> bool:
    """Return whether an applier is behind its receiver, and no set shows at what.

    Before 5.7 a receiver that connects by auto-position requests the last transaction again, and
    forgets it until then: a source that lost it never sends it (seen on 5.6.24). The position of
    workers follows what they have applied, so they must be at work.
    """
    places = {channel.applied_to, channel.received_to}
    waits = channel.gtid_retrieved - replica.gtid_executed
    is_old = replica.version is not None and replica.version < WHOLE_TRANSACTIONS
    is_behind = None not in places and len(places) > 1 and not is_without_work(channel)
    return is_old and is_behind and not waits


def _lost_place(edge: Edge, snapshot: ClusterSnapshot, known: Mapping[str, ReadServer]) -> str:
    """Return why a source does not have the position that a receiver asks for next; "" if it has.

    sql/rpl_binlog_sender.cc, check_start_file: error 13114 (1236 before 8.0). The position is from
    the first reading. The source's log lengths were read later, and logs only grow.
    """
    source, channel = known.get(edge.source), edge.channel
    place, logs = channel.received_to, (source.binary_logs if source is not None else None) or ()
    is_asked = channel.receiver is not ThreadState.RUNNING and not channel.auto_position
    if not is_asked or not logs or place is None:
        return ""
    earlier = [
        other.received_to
        for server in snapshot.first
        if server.name == edge.replica
        for other in server.channels or ()
        if other.name == channel.name
    ]
    if earlier != [place]:
        return ""
    sizes = {log.name: log.size_bytes for log in logs}
    if place.position <= sizes.get(place.file, -1):
        return ""
    there = f"ends at {sizes[place.file]}" if place.file in sizes else "no longer exists"
    return (
        f"the receiver of {edge.replica} would continue at {place}, and {place.file} of"
        f" {edge.source} {there}: {edge.source} would refuse it (error 13114, before 8.0 1236)."
        " Compare the rows, then switch it to auto-position, see C3"
    )


def _has_lost(source: ReadServer | None, channel: ChannelSnapshot) -> bool:
    """Return whether a receiver has read more of a log than its source still has.

    A crash lost the end of that log, and the restart began another one. The newest log is ignored:
    it may have grown between the two queries.
    """
    place, logs = channel.received_to, (source.binary_logs if source is not None else None) or ()
    return place is not None and any(
        log.name == place.file and log.size_bytes < place.position for log in logs[:-1]
    )


def _has_others(edge: Edge, known: Mapping[str, ReadServer]) -> bool:
    """Return whether a source has other transactions under GTIDs that its replica executed."""
    if edge.source not in known:
        return False
    if explains_other_versions(edge, servers=known):
        return False  # sessions of the replica committed them
    return bool(given_again(edge, servers=known))


def refusing_servers(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the servers that refused a receiver because it had more GTIDs than they have.

    What their receivers hold may be of a history that these servers no longer have. Once they have
    reused these GTIDs, no set shows that they lost them, or were reset.
    """
    texts = (
        (edge.source, row_of(edge.channel.receiver_error)) for edge in build_graph(snapshot).edges
    )
    return frozenset(source for source, text in texts if text is not None and text.code == "E3")
