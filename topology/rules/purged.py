"""P1, P2: what a replica is missing, and its source has purged.

A source refuses a receiver with auto-position (1236). A receiver with a file position requests a
file. The source refuses it only if that file is purged as well, and does not send the transactions
before the position.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.unlogged import received_unlogged
from topology.facts.unseen import unseen_sources
from topology.readings.snapshot import LogPosition, ServerSnapshot, ThreadState
from topology.rules.build import Rules, evidence, many, on_edge

BY_POSITION: Final = "accepted, by the file position"  # the channel's next connection
_NAME: Final = "missing, and purged on the source"
_COPY: Final = " Compare the rows: a copy that was loaded without its gtid_purged has them."
_NEXT_CONNECTION: Final[Mapping[bool | None, str]] = {
    False: "its next connection is refused with error 1236.",
    None: "its next connection is refused with error 1236, if the file of its position is also"
    f" purged. Otherwise they do not arrive.{_COPY}",
    True: "they do not arrive. The channel runs by file position, so its next connection is"
    f" accepted. With auto-position it would be refused with error 1236.{_COPY}",
}
_OTHER_SOURCE: Final = " Another source of {name}, which was not read, may still have them."
_NOT_LOGGED: Final = "in no binary log"
_UNLOGGED: Final = (
    " log_replica_updates is OFF on {name}: it does not log what it receives, and counts that as"
    " purged ({what} of these). Set it to ON and restart {name} first. Otherwise the next"
    " transaction that {name} receives will also be missing."
)


def purged_on_source(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P1: the source can no longer send what is missing on the replica."""
    for edge in facts.edges:
        if not edge.purged:
            continue
        source, replica = facts.first[edge.source], facts.last[edge.replica]
        others = unseen_sources(edge.replica, graph=facts.graph, servers=facts.last)
        donors = [
            name
            for name in sorted(facts.fully_read.keys() - {edge.source, edge.replica})
            if edge.purged
            <= (facts.first[name].gtid_executed or GtidSet())
            - (facts.first[name].gtid_purged or GtidSet())
        ]
        unlogged = received_unlogged(source, edge.purged)
        is_accepted = not edge.channel.auto_position and _has_its_file(source, edge)
        ways = ("donor_refetch", "reclone") if donors else ("reclone",)
        made = on_edge(
            facts,
            edge,
            "P1",
            edge.purged,
            grade=Grade.LIKELY if is_accepted is None else Grade.PROVED,
            strategies=("configure", *ways) if unlogged else ways,
            proof=(
                *((evidence("log_replica_updates", "OFF", source),) if unlogged else ()),
                evidence("missing and purged on the source", edge.purged, source),
                evidence("neither executed nor retrieved", edge.purged, replica),
                evidence("receiver", edge.channel.receiver.value, replica),
                evidence("receiver error", edge.channel.receiver_error or "(none)", replica),
                *(
                    (evidence(BY_POSITION, edge.channel.received_to, replica),)
                    if is_accepted
                    else ()
                ),
                evidence("donors that still have all of it", ", ".join(donors) or "none", source),
            ),
            explanation=f"{edge.replica} needs {many(edge.purged)} that {edge.source} has"
            f" {_NOT_LOGGED if unlogged else 'purged'}: {_NEXT_CONNECTION[is_accepted]}"
            + (_UNLOGGED.format(name=edge.source, what=many(unlogged)) if unlogged else "")
            + (f" {donors[0]} can still send them." if donors else "")
            + (
                f" {', '.join(others)} may have them; gtid-audit did not read that."
                if others
                else ""
            ),
        )
        yield replace(made, name=_NAME) if is_accepted else made


def latent_1236(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield P2: only the relay log has what the source has purged.

    While the applier runs, a source that purges its logs early looks like that for a moment: info.
    """
    for edge in facts.edges:
        waiting = edge.queued_below | edge.queued_above | edge.applying_below | edge.applying_above
        saved = waiting & (facts.first[edge.source].gtid_purged or GtidSet())
        saved &= edge.channel.gtid_retrieved
        saved -= GtidSet.union_of(  # another channel has received these, or would deliver them
            facts.last[other.source].logged | other.channel.gtid_retrieved
            for other in facts.edges
            if other.replica == edge.replica and other.source != edge.source
        )
        if not saved:
            continue
        runs = edge.channel.applier is ThreadState.RUNNING
        replica = facts.last[edge.replica]
        others = len(replica.channels or ()) - sum(e.replica == edge.replica for e in facts.edges)
        yield on_edge(
            facts,
            edge,
            "P2",
            saved,
            strategies=(),  # the findings about its applier have them
            grade=Grade.LIKELY if others else Grade.PROVED,
            severity=Severity.INFO if runs else Severity.WARNING,
            proof=(
                evidence("gtid_purged", saved, facts.first[edge.source]),
                evidence("received, not executed", saved, replica),
                evidence("applier", edge.channel.applier.value, replica),
            ),
            explanation=f"{edge.source} has purged {many(saved)} that {edge.replica} has received"
            " and not executed: only its relay log still has them. Let it apply them before a"
            " restart with relay_log_recovery, RESET REPLICA or CHANGE REPLICATION SOURCE: these"
            " delete the relay log, and the next connection is refused with error 1236."
            + (_OTHER_SOURCE.format(name=edge.replica) if others else ""),
        )


def _has_its_file(source: ServerSnapshot, edge: EdgeFacts) -> bool | None:
    """Return whether a source still has the file that a channel reads; None if not known."""
    place = edge.channel.received_to
    kept = [LogPosition.of(file=log.name, position=0) for log in source.binary_logs or ()]
    if place is None or not kept or kept[0] is None:
        return None
    return kept[0].sequence <= place.sequence


RULES: Rules = (
    purged_on_source,  # P1
    latent_1236,  # P2
)
