"""What keeps a backlog from being certain to arrive: another channel, a moved applier, a RESET.

1. Each function returns which transactions of a backlog are in doubt, or whether any are; the words
   are in backlog_words.py, and the findings in backlogs.py.
2. None of this is a sign of a fault: it is what the readings do not exclude.
"""

from typing import Final

from gtid import GtidSet
from topology.facts import ClusterFacts, EdgeFacts
from topology.reset_signs import has_earlier, logged
from topology.snapshot import ThreadState

_NOTHING: Final = GtidSet()


def of_other_channels(edge: EdgeFacts, queue: GtidSet) -> GtidSet:
    """Return what of it this channel has not received: the relay log of another one has it."""
    mine = edge.edge.channel.gtid_retrieved | edge.edge.channel.gtid_applying
    return queue - mine


def may_be_below(edge: EdgeFacts, queue: GtidSet) -> GtidSet:
    """Return what a running applier that was moved by RELAY_LOG_POS may have skipped.

    It needs a file position: with auto-position on, what lies below is in the queue of a worker.
    Where no worker is at a transaction (between two, or held back by SOURCE_DELAY), nothing shows
    the applier's place among the GTIDs, and it may have skipped all of them; so it is with those of
    an origin none of whose transactions a worker has.
    """
    channel = edge.edge.channel
    if channel.auto_position or channel.applier is not ThreadState.RUNNING:
        return GtidSet()
    at_work = edge.applying_above | edge.applying_below  # 5.6 shows no worker: what is owned
    shown = at_work | channel.gtid_applying
    of_others = GtidSet.from_intervals(
        (tsid, start, end) for tsid, start, end in queue.intervals() if tsid not in shown.tsids
    )
    return (((queue - at_work) & shown.filled()) | of_others) - at_work


def is_to_come(
    facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet, other: GtidSet = _NOTHING
) -> bool:
    """Return whether a RESET of the replica is excluded: by its logs, or by the source's log.

    What lies ahead of this channel in its source's log (`ahead`) says nothing of what another
    channel has received and may have applied before (`other`). Where the replica has executed
    anything, it says nothing at all: a receiver that connects again after a RESET reads the log
    from its beginning. Nor where the receiver moved between the readings and received nothing: its
    source left out what the replica had when it connected.
    """
    replica = facts.last[edge.edge.replica]
    if has_earlier(logged(replica), gtids):
        return True
    channel = edge.edge.channel
    # Received, and the applier is where the receiver is: the place is one of a former log.
    at_end = channel.applied_to == channel.received_to and bool(gtids & channel.gtid_retrieved)
    skips = any(
        each.name == channel.name
        and each.received_to != channel.received_to
        and each.gtid_retrieved == channel.gtid_retrieved
        for each in facts.first[edge.edge.replica].channels or ()
    )
    is_ahead = gtids <= edge.ahead - other and not (at_end or skips)
    return is_ahead and not replica.gtid_executed
