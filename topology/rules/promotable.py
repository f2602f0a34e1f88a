"""P5: a replica that would refuse its siblings, if it became their source now.

The benign cause looks the same for a moment: the sibling is behind, and the candidate has purged a
log that the sibling has not applied yet. So only what does not arrive by itself counts: what the
sibling's channel has passed, and what waits for a thread that does not run. P1 has what the present
source has purged as well, E2 what only the candidate had. `handshake --promote` evaluates all
pairs, and the order of the repairs.
"""

from collections.abc import Iterator
from itertools import product

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.notable_settings import notable_values
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState
from topology.rules.build import Rules, evidence, finding, many


def candidate_purged(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P5: a sibling has purged transactions that a replica is missing."""
    candidates = [
        name
        for name in sorted(facts.fully_read)
        if facts.fully_read[name].first.gtid_purged and can_be_source(facts.last[name])
    ]
    if not candidates:
        return
    sources = {name: _sources(facts, name) for name in facts.fully_read}
    away = {name: _stays_away(facts, name) for name in sorted(facts.fully_read)}
    pairs = product(candidates, [name for name, gtids in away.items() if gtids])
    for candidate, replica in pairs:
        common = sources[candidate] & sources[replica]
        if candidate == replica or not common or candidate in sources[replica]:
            continue
        ours, theirs = facts.fully_read[candidate], facts.fully_read[replica]
        missing = ours.first.gtid_purged & away[replica]
        if missing:
            is_known = facts.last[candidate].notable_settings is not None
            yield finding(
                facts,
                "P5",
                source=candidate,
                replica=replica,
                gtid_set=missing,
                grade=Grade.PROVED if is_known else Grade.LIKELY,
                strategies=(),
                proof=(
                    evidence("gtid_purged", ours.first.gtid_purged, ours.first),
                    evidence("not executed, purged by the other", missing, theirs.last),
                ),
                explanation=f"If {candidate} becomes the source of {replica} now, it refuses the"
                f" connection with error 1236: it has purged {many(missing)} that {replica} has"
                f" not executed. Repair {replica} before a failover to {candidate}; gtid-audit"
                f" handshake --promote {candidate} shows the order."
                + (
                    ""
                    if is_known
                    else f" The settings of {candidate} were not read: it may log"
                    " nothing that it receives, and then cannot be a source at all."
                ),
            )


def _sources(facts: ClusterFacts, name: str) -> frozenset[str]:
    return frozenset(edge.source for edge in facts.graph.into(name))


def can_be_source(server: ServerSnapshot) -> bool:
    """Return whether a server could be a source: it logs, and logs what it receives."""
    return (
        not {"log_bin", "binary_log", "log_replica_updates"}
        & notable_values(server.notable_settings).keys()
    )


def _stays_away(facts: ClusterFacts, replica: str) -> GtidSet:
    """Return what a replica is missing, and what none of its channels is about to deliver."""
    found, arriving = GtidSet(), GtidSet()
    for edge in facts.edges_into(replica):
        channel = edge.channel
        applies = channel.applier is ThreadState.RUNNING
        receives = applies and _receives(channel, facts.last[replica])
        received = edge.applying_below | edge.applying_above | edge.queued_below | edge.queued_above
        found |= edge.passed | edge.bypassed | received | edge.expected
        arriving |= (received if applies else GtidSet()) | (
            edge.expected if receives else GtidSet()
        )
    return found - arriving


def _receives(channel: ChannelSnapshot, replica: ServerSnapshot) -> bool:
    """Return whether a receiver is connected, or may be again since the only reading of it."""
    is_connecting = channel.receiver is ThreadState.CONNECTING
    return channel.receiver is ThreadState.RUNNING or (is_connecting and is_read_once(replica))


RULES: Rules = (
    candidate_purged,  # P5
)
