"""A backlog that a T finding reports, and what the sets show about it."""

from dataclasses import dataclass
from itertools import islice
from typing import Final

from gtid import GtidSet
from topology.facts.applier_facts import ApplierFacts
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.receivers import leaves_out
from topology.facts.reset_signs import has_earlier, logged_as_received
from topology.readings.snapshot import ServerSnapshot, ThreadState

_NOTHING: Final = GtidSet()
_RUNS_MAX: Final = 64  # of a source, that are checked: a backlog is in the last ones


@dataclass(frozen=True, slots=True)
class Backlog:
    """The backlog that a T finding reports."""

    code: str
    facts: ClusterFacts
    edge: EdgeFacts
    gtids: GtidSet

    @property
    def replica(self) -> ServerSnapshot:
        """Return the last reading of the replica."""
        return self.facts.last[self.edge.replica]

    @property
    def applier(self) -> ApplierFacts:
        """Return the facts of the channel's applier."""
        return self.facts.appliers[self.replica.name, self.edge.channel.name]

    @property
    def of_others(self) -> GtidSet:
        """Return what only another channel's relay log has; nothing that is in no relay log."""
        return _NOTHING if self.code == "T3" else of_other_channels(self.edge, self.gtids)


def of_other_channels(edge: EdgeFacts, queue: GtidSet) -> GtidSet:
    """Return the part that this channel has not received: the relay log of another one has it."""
    mine = edge.channel.gtid_retrieved | edge.channel.gtid_applying
    return queue - mine


def owned_unreceived(backlog: Backlog) -> GtidSet:
    """Return what a thread of the replica owns and no channel has received completely."""
    at_work = backlog.edge.applying_above | backlog.edge.applying_below
    return backlog.of_others & at_work - backlog.replica.gtid_retrieved


def may_be_below(edge: EdgeFacts, queue: GtidSet) -> GtidSet:
    """Return what a running applier may have skipped if RELAY_LOG_POS moved it.

    It needs a file position: with auto-position, everything below is in a worker's queue. If no
    worker is busy (between two transactions, or held back by SOURCE_DELAY), nothing shows the
    applier's position among the GTIDs. It may have skipped all of them. The same applies to the
    GTIDs of an origin of which no worker has a transaction.
    """
    channel = edge.channel
    if channel.auto_position or channel.applier is not ThreadState.RUNNING:
        return GtidSet()
    at_work = edge.applying_above | edge.applying_below  # 5.6 shows no worker: use what is owned
    shown = at_work | channel.gtid_applying
    of_others = GtidSet.from_intervals(
        (tsid, start, end) for tsid, start, end in queue.intervals() if tsid not in shown.tsids
    )
    return (((queue - at_work) & shown.filled()) | of_others) - at_work


def is_to_come(backlog: Backlog) -> bool:
    """Return whether a RESET of the replica is excluded, by its own logs or by the source's log.

    What lies after this channel's position in its source's log (`ahead`) shows nothing about
    transactions that another channel has received and may have applied before. If the replica has
    executed anything, it shows nothing at all: a receiver that reconnects after a RESET reads the
    log from its beginning. The same applies if the receiver moved between the readings and received
    nothing: its source omitted what the replica had when it connected. And if the source has begun
    another log file since, it may have crashed. What it lost then and received again is in its log
    after positions that had passed it. The same applies once the position is in the new file.
    """
    edge, replica, gtids = backlog.edge, backlog.replica, backlog.gtids
    if _has_earlier_of_the_run(backlog):
        return True
    channel = edge.channel
    # Received, and the applier is at the receiver's position: the position is in a former log.
    at_end = channel.applied_to == channel.received_to and bool(gtids & channel.gtid_retrieved)
    skips = at_end or leaves_out(backlog.facts.first[replica.name], channel)
    place, end = channel.applied_to, backlog.facts.last[edge.source].log_end
    is_same_file = place is not None and end is not None and place.file == end.file
    is_ahead = gtids <= edge.ahead - backlog.of_others and not skips and is_same_file
    return is_ahead and not replica.gtid_executed and not _may_be_sent_again(backlog)


def _may_be_sent_again(backlog: Backlog) -> bool:
    """Return whether the source may have lost these, and have received them again in a later log.

    It omits them then for a replica that has received them before, so the position of its channel
    goes on in front of them. What the source itself committed has a new content after such a loss
    (received_around_start), and a source that has only its first log has not been restarted.
    """
    channel, source = backlog.edge.channel, backlog.facts.last[backlog.edge.source]
    again = backlog.gtids & channel.gtid_retrieved
    if source.server_uuid is not None:
        again = again.without_uuid(source.server_uuid)
    first = next(iter(source.binary_logs or ()), None)
    place = channel.applied_to
    is_first = place is not None and first is not None and first.name == place.file
    return bool(again) and (not is_first or bool(source.gtid_purged))


def _has_earlier_of_the_run(backlog: Backlog) -> bool:
    """Return whether a replica has logged a transaction of lower GNO before each of these.

    GNOs show that only within a run of the source: a GTID that was set with gtid_next may be in its
    log before lower ones. And the GNOs that the replica assigns itself (a group may have its UUID)
    begin again with 1 after a reset.
    """
    edge, replica, gtids = backlog.edge.edge, backlog.replica, backlog.gtids
    if replica.server_uuid is None or gtids.from_uuid(replica.server_uuid):
        return False
    has, facts = logged_as_received(replica), backlog.facts
    if not has_earlier(has, gtids):
        return False
    # A transaction that a source is still committing has a GNO and is in its log.
    readings = (facts.first[edge.source], facts.last[edge.source])
    sets = ((each.gtid_executed, each.gtid_owned) for each in readings)
    committed = GtidSet.union_of(each for pair in sets for each in pair if each)
    lowest = {tsid: start for tsid, start, _ in reversed(list(gtids.intervals()))}
    above = (each for each in committed.intervals() if each[2] > lowest.get(each[0], each[2]))
    runs = [GtidSet.from_intervals([each]) for each in islice(above, _RUNS_MAX)]
    found = (run & gtids for run in runs if has_earlier(has & run, run & gtids))
    return GtidSet.union_of(found) == gtids
