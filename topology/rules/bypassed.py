"""H1: a hole behind the place of a channel that runs by file position.

1. A file position asks for nothing below it: what the channel has gone past does not come by it.
2. Proved only where no RESET and no crash of the replica, no skip before the position was set, and
   no former log of the source explains it. The text names those that remain, and says only of a
   proved hole that it stays: another channel may bring it.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.facts import ClusterFacts, EdgeFacts
from topology.findings import Finding, Grade
from topology.reset_signs import excludes_reset, runs_since_before
from topology.rules.build import evidence, many, on_edge
from topology.snapshot import ServerSnapshot
from topology.unlogged import received_unlogged


def bypassed_by_position(facts: ClusterFacts) -> Iterator[Finding]:
    """H1: a hole that stays, because the channel has gone past it.

    Proved when the receiver's position in the source's log is beyond the place where the source's
    log ended after the transactions were in it, the replica still does not have them, and no RESET
    of the replica explains it: it would have removed earlier transactions as well. Nor may a crash
    explain it: the replica has been running since before their commit. And the channel has received
    what follows each hole: otherwise the replica may have executed that before the position was
    set, and its applier may have skipped the hole (sql_replica_skip_counter). With auto-position on
    it is H8. A place in a former log of a source that was reset proves nothing.
    """
    for edge in facts.edges:
        channel = edge.edge.channel
        if edge.bypassed and not channel.auto_position:
            replica, source = facts.last[edge.edge.replica], facts.first[edge.edge.source]
            no_reset = excludes_reset(replica, edge.bypassed)
            no_crash = runs_since_before(replica, edge.bypassed, facts.last[source.name])
            has_next = _behind(edge.bypassed) <= channel.gtid_retrieved
            is_proved = edge.bypass_is_proved and no_reset and no_crash and has_next
            yield on_edge(
                facts,
                edge,
                "H1",
                edge.bypassed,
                grade=Grade.PROVED if is_proved else Grade.LIKELY,
                proof=(
                    evidence("executed and not purged on the source", edge.bypassed, source),
                    evidence("source's log ended at", source.log_end, source),
                    evidence("receiver has read to", channel.received_to, replica),
                    evidence("place in a former log", edge.other_log or "not seen", replica),
                    evidence("auto_position", int(channel.auto_position), replica),
                    evidence("neither executed, owned nor retrieved", edge.bypassed, replica),
                    evidence("uptime in seconds", replica.uptime_seconds, replica),
                    evidence("runs since before their commit", _yes(no_crash), replica),
                    evidence("received what follows each hole", _yes(has_next), replica),
                ),
                explanation=_text(edge, replica, is_proved=is_proved)
                + (
                    ""
                    if no_crash
                    else f" If {edge.edge.replica} crashed since, it may have lost them: a file"
                    " position does not ask for them again. It may also have received them and"
                    " passed them in its relay log (RELAY_LOG_POS, sql_replica_skip_counter): a"
                    " restart with relay_log_recovery forgets that."
                )
                + (
                    ""
                    if no_reset
                    else f" RESET BINARY LOGS AND GTIDS on {edge.edge.replica} looks the same; then"
                    " the rows are there."
                )
                + (
                    ""
                    if has_next
                    else f" Or {edge.edge.replica} skipped them before the file position was set"
                    " (sql_replica_skip_counter, RELAY_LOG_POS)."
                )
                + (
                    f" Or {source.name} has no event for them: log_replica_updates is OFF."
                    if received_unlogged(source, edge.bypassed)
                    else ""
                )
                + (
                    f" Others of the same UUID carry the server_id of {replica.name} (see C2): its"
                    " receiver may have dropped these as well."
                    if {each.uuid for each in edge.own_id.tsids}
                    & {each.uuid for each in edge.bypassed.tsids}
                    else ""
                ),
            )


def _behind(gtid_set: GtidSet) -> GtidSet:
    """Return the GTID that follows each interval of a set."""
    return GtidSet.from_intervals((tsid, end, end + 1) for tsid, _, end in gtid_set.intervals())


def _yes(value: object) -> str:
    return "yes" if value else "not shown"


def _text(edge: EdgeFacts, replica: ServerSnapshot, *, is_proved: bool) -> str:
    """Explain what the receiver's place says of the transactions, and what it does not."""
    source, place = edge.edge.source, edge.edge.channel.received_to
    text = f"{replica.name} does not have {many(edge.bypassed)} of {source}"
    if is_proved:
        return (
            f"{text} and has read past them: they will not come by themselves. The channel runs by"
            " file position, so no check noticed."
        )
    if not edge.other_log:
        others = len(replica.channels or ()) > 1
        return (
            f"{text} and has read past them. The channel runs by file position: it does not fetch"
            " them again, and no check noticed."
            + (f" Another channel of {replica.name} may still bring them." if others else "")
        )
    return (
        f"{text}. The channel runs by file position, and its position {place} may belong to a"
        f" former log of {source}: {edge.other_log}. Possible causes: RESET BINARY LOGS AND GTIDS"
        f" on {source}, which restarts the log numbers (then no position was passed, and the rows"
        f" may be there); a wrong file position (then they were skipped)."
    )
