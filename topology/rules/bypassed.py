"""H1: a gap before the position of a channel that uses a file position.

1. A file position requests nothing before it: this channel does not deliver what it has passed.
2. Proved only if the position is the one cause that is left (absent_causes.py). The text lists the
   causes that remain. Only for a proved gap does it state that the gap stays: otherwise another
   channel may fill it.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.unlogged import without_event
from topology.readings.snapshot import ServerSnapshot
from topology.rules.absent_causes import (
    ANOTHER_SOURCE,
    FILE_POSITION,
    causes_left,
    causes_text,
    received_elsewhere,
)
from topology.rules.build import Rules, evidence, many, on_edge
from topology.rules.passed_by import PassedBy


def bypassed_by_position(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H1: a gap that stays, because the channel has gone past it.

    Proved if all of the following hold. The receiver's position is after the point where the
    source's log ended when it already had the transactions. The replica still does not have them.
    Nothing else explains it: no RESET and no crash of the replica, no equal server_id, no log that
    never had them. The channel has received what follows each gap; otherwise the replica may have
    executed that before the position was set, and its applier may have skipped the gap.

    With auto-position the finding is H8. A position in a former log of a source that was reset
    proves nothing. A different address alone is no reason for doubt: servers have several.
    """
    for edge in facts.edges:
        channel = edge.channel
        bypassed = edge.bypassed - without_event(edge.bypassed, facts.last[edge.source])
        if bypassed and not channel.auto_position:
            replica, source = facts.last[edge.replica], facts.first[edge.source]
            absence = PassedBy(
                facts,
                edge,
                received=GtidSet(),
                unsent=bypassed,
                is_place_proved=edge.bypass_is_proved,
            )
            left = {*causes_left(absence)}
            if not received_elsewhere(absence):
                left.discard(ANOTHER_SOURCE)  # servers have several addresses
            is_proved = edge.bypass_is_proved and left == {FILE_POSITION}
            yield on_edge(
                facts,
                edge,
                "H1",
                bypassed,
                grade=Grade.PROVED if is_proved else Grade.LIKELY,
                proof=(
                    evidence("executed and not purged on the source", bypassed, source),
                    evidence("source's log ended at", source.log_end, source),
                    evidence("receiver has read to", channel.received_to, replica),
                    evidence("place in a former log", edge.other_log or "not seen", replica),
                    evidence("auto_position", int(channel.auto_position), replica),
                    evidence("neither executed, owned nor retrieved", bypassed, replica),
                    evidence("uptime in seconds", replica.uptime_seconds, replica),
                    evidence(
                        "runs since before their commit", _yes(absence.runs_since_before), replica
                    ),
                    evidence(
                        "received what follows each hole", _yes(absence.has_received_next), replica
                    ),
                ),
                explanation=_text(edge, bypassed, replica, is_proved=is_proved)
                + ("" if is_proved else causes_text(absence)),
            )


def _yes(value: object) -> str:
    return "yes" if value else "not shown"


def _text(edge: EdgeFacts, bypassed: GtidSet, replica: ServerSnapshot, *, is_proved: bool) -> str:
    """Explain what the receiver's position shows about the transactions, and what it does not."""
    source, place = edge.source, edge.channel.received_to
    text = f"{replica.name} does not have {many(bypassed)} of {source}"
    if is_proved:
        return (
            f"{text} and has read past them: they will not arrive by themselves. The channel runs"
            " by file position, so no check detected it. Compare the rows before any repair: a dump"
            " or a backup that was loaded with the position may contain them."
        )
    if not edge.other_log:
        others = len(replica.channels or ()) > 1
        return (
            f"{text} and has read past them. The channel runs by file position: it does not fetch"
            " them again, and no check detected it."
            + (f" Another channel of {replica.name} may still deliver them." if others else "")
        )
    return (
        f"{text}. The channel runs by file position, and its position {place} may belong to a"
        f" former log of {source}: {edge.other_log}."
    )


RULES: Rules = (
    bypassed_by_position,  # H1
)
