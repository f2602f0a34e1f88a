"""Whether a running receiver still receives: the age of the first transaction that is due.

How it works
------------
A receiver is "running" until it detects that its connection has failed. Three faults leave it in
this state for hours, without an error:

* the network drops its packets (until replica_net_timeout is over);
* the source's history was reset while it was connected: the dump thread waits at a position in a
  log that no longer exists (former_logs.py recognizes it as long as the new log is shorter);
* the dump thread of the source hangs.

A backlog that a healthy receiver is about to fetch looks the same in one reading. Two facts
distinguish a fault. The receiver's position did not change between the readings. The source logged
the first transaction that is not received longer ago than the policy's stall_seconds_max.
gtid-audit reads that time from the source's binary log, on demand (adapters/log_answers.py).

A receiver whose relay logs have reached relay_log_space_limit reads nothing either, and reports
that in its state. It continues when the applier has freed a relay log. If the applier does not, the
applier is the fault.

The same question applies to a lead (T4). A source whose commits wait for the acknowledgement of a
replica does not show them to any client, while a replica has them. For a moment that is normal. For
minutes, it means that the source no longer commits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts, LostFacts
from topology.facts.edge_facts import EdgeFacts
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ServerSnapshot, ThreadState

# "Waiting for the … SQL thread to free enough relay log space" (5.6), "Waiting for the replica
# SQL thread to free relay log space" (9.7), and the forms between.
_RELAY_LOGS_FULL: Final = re.compile("SQL thread to free .*relay log space", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One transaction that is due, and the age of its log entry."""

    gtid: GtidSet  # exactly one GTID
    seconds: int  # by the clock of the server whose log has it


def samples_in(facts: ClusterFacts) -> Iterator[tuple[str, GtidSet]]:
    """Yield each server whose log has a transaction that is due, with that one GTID."""
    for edge in facts.edges:
        if gtid := _first_expected(facts, edge):
            yield edge.source, gtid
    for lost in facts.lost:
        if lost.leading:
            yield lost.holder, lost.leading.first(1)


def overdue(facts: ClusterFacts, edge: EdgeFacts) -> Waiting | None:
    """Return the transaction that a standing receiver has not fetched for too long."""
    return _too_long(facts, edge.source, _first_expected(facts, edge))


def hanging(facts: ClusterFacts, lost: LostFacts) -> Waiting | None:
    """Return what a source has been committing for too long while a replica has it."""
    return _too_long(facts, lost.holder, lost.leading.first(1))


def is_dated(facts: ClusterFacts, lost: LostFacts) -> bool:
    """Return whether the replica's log shows since when it has what the source is committing."""
    return _age(facts.fully_read[lost.holder].last, lost.leading.first(1)) is not None


def leaves_out(before: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether a receiver advanced between the readings and received nothing.

    Its source omitted what the replica had when it connected, or the receiver dropped what carries
    the replica's server_id.
    """
    return any(
        each.name == channel.name
        and each.received_to != channel.received_to
        and each.gtid_retrieved == channel.gtid_retrieved
        for each in before.channels or ()
    )


def _first_expected(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the first transaction due at a receiver that runs and does not move."""
    channel, source = edge.channel, facts.fully_read[edge.source].last
    if channel.receiver is not ThreadState.RUNNING or _RELAY_LOGS_FULL.search(
        channel.receiver_state
    ):
        return GtidSet()
    before = [
        (other.received_to, other.last_queued)
        for other in facts.first[edge.replica].channels or ()
        if other.name == channel.name
    ]
    if before != [(channel.received_to, channel.last_queued)]:
        return GtidSet()
    return (edge.expected - source.gtid_purged).first(1)


def _too_long(facts: ClusterFacts, name: str, gtid: GtidSet) -> Waiting | None:
    server = facts.fully_read[name].last
    seconds = _age(server, gtid)
    if seconds is None or seconds <= facts.policy.stall_seconds_max:
        return None
    return Waiting(gtid, seconds)


def _age(server: ReadServer, gtid: GtidSet) -> int | None:
    evidence, now = server.history_evidence, server.server_clock
    record = evidence.commit_of(gtid) if evidence is not None else None
    if record is None or now is None:
        return None
    if record.logged_at is not None:
        return int((now - record.logged_at).total_seconds())
    # Before 8.0.1 the log has only the origin's time, and this server may have logged it much
    # later.
    is_own = bool(gtid.from_uuid(server.server_uuid))
    return int((now - record.committed_at).total_seconds()) if is_own else None
