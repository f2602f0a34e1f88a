"""Whether a receiver that runs still receives: the age of what it should have brought.

How it works
------------
A receiver is "running" as long as its connection is not known to be dead. Three faults leave it so,
without an error, for hours:

* the network drops its packets (until replica_net_timeout is over);
* the source's history was reset while it was connected: the dump thread waits at a place in a log
  that is gone (former_logs.py recognises it as long as the new log is shorter);
* the dump thread of the source hangs.

A backlog that a healthy receiver is about to bring looks the same at one moment. Two facts separate
them: the receiver's place did not change between the readings, and the first transaction that it
has not received was logged on the source longer ago than the policy's stall_seconds_max. That time
is read from the source's binary log, on demand (adapters/lost_logs.py).

A receiver whose relay logs have reached relay_log_space_limit reads nothing either, and says so in
its state: it goes on when the applier has freed one. Where the applier does not, that is the fault.

The same question for a lead (T4): a source whose commits wait for the acknowledgement of a replica
does not show them to any client, and a replica has them. For a moment that is normal; for minutes
it is a source that does not commit any more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.facts import ClusterFacts, EdgeFacts, LostFacts
from topology.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState

# "Waiting for the … SQL thread to free enough relay log space" (5.6), "Waiting for the replica
# SQL thread to free relay log space" (9.7), and the forms between.
_RELAY_LOGS_FULL: Final = re.compile("SQL thread to free .*relay log space", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One transaction that is due, and how long ago it was logged."""

    gtid: GtidSet  # exactly one GTID
    seconds: int  # by the clock of the server whose log has it


def samples_in(facts: ClusterFacts) -> Iterator[tuple[str, GtidSet]]:
    """Yield the servers whose logs have a transaction that is due, with that one GTID."""
    for edge in facts.edges:
        if gtid := _first_expected(facts, edge):
            yield edge.edge.source, gtid
    for lost in facts.lost:
        if lost.leading:
            yield lost.holder, lost.leading.first(1)


def overdue(facts: ClusterFacts, edge: EdgeFacts) -> Waiting | None:
    """Return what a receiver that does not move has left on its source for too long."""
    return _too_long(facts, edge.edge.source, _first_expected(facts, edge))


def hanging(facts: ClusterFacts, lost: LostFacts) -> Waiting | None:
    """Return what a source has been committing for too long while a replica has it."""
    return _too_long(facts, lost.holder, lost.leading.first(1))


def is_dated(facts: ClusterFacts, lost: LostFacts) -> bool:
    """Return whether the replica's log shows since when it has what a source is committing."""
    return _age(facts.last[lost.holder], lost.leading.first(1)) is not None


def leaves_out(before: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether a receiver read on between the readings and received nothing.

    Its source left out what the replica had when it connected, or the receiver dropped what carries
    the replica's server_id.
    """
    return any(
        each.name == channel.name
        and each.received_to != channel.received_to
        and each.gtid_retrieved == channel.gtid_retrieved
        for each in before.channels or ()
    )


def _first_expected(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the first transaction that a receiver should bring, if it runs and does not move."""
    channel, source = edge.edge.channel, facts.last[edge.edge.source]
    if channel.receiver is not ThreadState.RUNNING or _RELAY_LOGS_FULL.search(
        channel.receiver_state
    ):
        return GtidSet()
    before = [
        (other.received_to, other.last_queued)
        for other in facts.first[edge.edge.replica].channels or ()
        if other.name == channel.name
    ]
    if before != [(channel.received_to, channel.last_queued)]:
        return GtidSet()
    return (edge.expected - (source.gtid_purged or GtidSet())).first(1)


def _too_long(facts: ClusterFacts, name: str, gtid: GtidSet) -> Waiting | None:
    server = facts.last[name]
    seconds = _age(server, gtid)
    if seconds is None or seconds <= facts.policy.stall_seconds_max:
        return None
    return Waiting(gtid, seconds)


def _age(server: ServerSnapshot, gtid: GtidSet) -> int | None:
    evidence, now = server.history_evidence, server.server_clock
    record = evidence.commit_of(gtid) if evidence is not None else None
    if record is None or now is None:
        return None
    assert server.server_uuid is not None, "only judgeable servers have edge facts"
    if record.logged_at is not None:
        return int((now - record.logged_at).total_seconds())
    # Before 8.0.1 the log has only the origin's time, and this server may have had it much later.
    is_own = bool(gtid.from_uuid(server.server_uuid))
    return int((now - record.committed_at).total_seconds()) if is_own else None
