"""T1, T2, T3: what a replica has not applied yet, and whether it clears by itself.

1. "Clears by itself" (T1, T2, T3) needs evidence of progress, not only of a position: the applier
   moved between the readings, a worker has the transaction, or SOURCE_DELAY holds it back. Without
   any, the grade is `likely`, and the text promises nothing.
2. What the applier has passed never clears by itself: passed.py (H8).
3. An applier that stands still for longer than the policy allows: stalled_appliers.py (A5, A8).
"""

from collections.abc import Iterator

from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.applier_facts import ApplierFacts
from topology.facts.applier_workers import is_without_work, states_are_seen
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.skipping import why_it_may_skip
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.rules.backlog_doubts import doubts_of
from topology.rules.backlog_facts import Backlog, owned_unreceived
from topology.rules.backlog_words import arrival, outlook
from topology.rules.build import Rules, evidence, many, on_edge
from topology.rules.stalled_appliers import movement, progress_evidence


def tail_gap(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T1: gaps that the applier is filling."""
    for edge in facts.edges:
        gap = edge.applying_below
        if edge.channel.applier is ThreadState.RUNNING:
            gap |= edge.queued_below
        if gap:
            replica, applier = facts.last[edge.replica], _applier(facts, edge)
            clears = applier.moved and not (edge.queued_below or applier.is_started)
            clears = clears and not why_it_may_skip(facts, edge.edge)
            doubts = doubts_of(Backlog("T1", facts, edge, gap))
            known = bool(edge.applying_below) and not (applier.is_started or doubts.text)
            if edge.channel.applier is ThreadState.RUNNING:
                known = known and (applier.moved or _is_at_work(applier))
            yield on_edge(
                facts,
                edge,
                "T1",
                gap,
                grade=Grade.PROVED if known else Grade.LIKELY,
                severity=Severity.WARNING if doubts.warns else None,
                strategies=() if doubts.warns else None,
                proof=(
                    evidence("owned or being applied", edge.applying_below, replica),
                    evidence("missing below the highest applied", gap, replica),
                    *progress_evidence(applier, replica),
                ),
                explanation=f"{edge.replica} applies {many(gap)} out of order. "
                + ("The gap closes by itself." if clears else outlook(applier))
                + doubts.text,
            )


def applier_backlog(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T2: received and not applied.

    Proved if two conditions hold. The applier makes progress, or the cause of its wait is known.
    And an earlier transaction of the same origin excludes a RESET, which would have removed that
    transaction as well.
    """
    for edge in facts.edges:
        channel = edge.channel
        queue = edge.applying_above | edge.queued_above
        if channel.applier is not ThreadState.RUNNING:
            queue |= edge.queued_below
        if queue:
            replica, applier = facts.last[edge.replica], _applier(facts, edge)
            lag, backlog = channel.lag_seconds, Backlog("T2", facts, edge, queue)
            works = bool((edge.applying_above - backlog.of_others) or channel.gtid_applying)
            moves = applier.moved or (works and _is_at_work(applier))
            is_delayed = applier.is_delayed and applier.lock_wait is None
            runs_on = (is_delayed or moves) and not channel.until
            runs_on = runs_on and not is_without_work(channel)
            doubts = doubts_of(backlog)
            known = channel.applier is not ThreadState.RUNNING or runs_on
            known = known and not (applier.is_started or doubts.text)
            yield on_edge(
                facts,
                edge,
                "T2",
                queue,
                grade=Grade.PROVED if known else Grade.LIKELY,
                severity=Severity.WARNING if doubts.warns else None,
                # A stopped applier, and one that will stop on its way, clear nothing without
                # intervention.
                strategies=() if doubts.warns or channel.until or not _runs(channel) else None,
                proof=(
                    evidence("missing; received or being applied", queue, replica),
                    evidence("seconds behind source", "unknown" if lag is None else lag, replica),
                    *progress_evidence(applier, replica),
                ),
                explanation=f"{_holds(backlog)} {outlook(applier)}{doubts.text}",
            )


def _holds(backlog: Backlog) -> str:
    name, owned = backlog.replica.name, owned_unreceived(backlog)
    rest = backlog.gtids - owned
    if not rest:
        return f"{name} owns {many(owned)} of its source that it has not executed yet."
    return f"{name} has received {many(rest)} that it has not applied yet."


def receiver_backlog(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T3: not received yet, by a receiver that runs.

    With auto-position the source sends what is missing, so a running receiver that moves is proof.
    A receiver that does not move although there is something to read may never move again: its
    connection may have failed. A file position may be after the transactions. Until the receiver
    has read up to there, that is not known.
    """
    for edge in facts.edges:
        channel = edge.channel
        if edge.expected and channel.receiver is not ThreadState.STOPPED:
            replica, source = facts.last[edge.replica], facts.first[edge.source]
            runs, before = channel.receiver is ThreadState.RUNNING, facts.first[edge.replica]
            moved = None if is_read_once(replica) else _receiver_moved(before, channel)
            doubts = doubts_of(Backlog("T3", facts, edge, edge.expected))
            comes = runs and moved is True and channel.auto_position and not doubts.text
            yield on_edge(
                facts,
                edge,
                "T3",
                edge.expected,
                grade=Grade.PROVED if comes else Grade.LIKELY,
                severity=Severity.WARNING if doubts.warns else None,
                strategies=() if doubts.warns else None,
                proof=(
                    evidence("missing and not retrieved", edge.expected, replica),
                    evidence("receiver", channel.receiver.value, replica),
                    evidence("receiver state", channel.receiver_state or "unknown", replica),
                    evidence("moved between the readings", movement(moved), replica),
                    evidence("receiver has read to", channel.received_to, replica),
                    evidence("source's log ended at", source.log_end, source),
                    evidence("auto_position", int(channel.auto_position), replica),
                ),
                explanation=f"{edge.replica} has not received {many(edge.expected)} of"
                f" {edge.source} yet. {arrival(channel, moved=moved)}{doubts.text}",
            )


# -- leaves ---------------------------------------------------------------------------------------


def _runs(channel: ChannelSnapshot) -> bool:
    return channel.applier is ThreadState.RUNNING


def _is_at_work(applier: ApplierFacts) -> bool:
    """Return whether the workers are shown, and none waits for a lock."""
    return states_are_seen(applier.channel) and applier.lock_wait is None


def _receiver_moved(before: ServerSnapshot, channel: ChannelSnapshot) -> bool:
    """Return whether the receiver read anything between the readings."""
    return not any(
        (other.name, other.received_to, other.gtid_retrieved)
        == (channel.name, channel.received_to, channel.gtid_retrieved)
        for other in before.channels or ()
    )


def _applier(facts: ClusterFacts, edge: EdgeFacts) -> ApplierFacts:
    return facts.appliers[edge.replica, edge.channel.name]


RULES: Rules = (
    tail_gap,  # T1
    applier_backlog,  # T2
    receiver_backlog,  # T3
)
