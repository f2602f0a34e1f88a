"""H8: transactions that the applier has passed, or that a channel would fetch again when it starts.

1. Causes that look the same, and what distinguishes them:

   * harmless: a transaction that a worker has or a session owns (never counted as passed); one that
     was received after the first reading (only the first reading's set counts); the delay of
     SOURCE_DELAY (the applier's state differs);
   * harmful: RESET BINARY LOGS AND GTIDS on the replica (the rows are present); RELAY_LOG_POS,
     sql_replica_skip_counter, a purged relay log (the rows are missing). The sets do not
     distinguish these, so the text lists all causes that absent_causes.py leaves. Two causes need
     more evidence:
     - Before 8.0.17, a crash that lost the end of the binary log. Only that log has the GTIDs; the
       rows and the applier's position are elsewhere (the rows are present; tried on 5.6.24). Only a
       replica that has been running since before the commits excludes it.
     - A reset of the source. Retrieved_Gtid_Set then belongs to its former history, and the current
       transactions were never received (their rows are missing; tried on both versions).
2. A stopped channel shows its applier's position in the source's log. The applier has passed what
   the log has before this position, so starting the channel would execute it a second time.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.half_received import asks_for_last_again
from topology.facts.unlogged import without_event
from topology.readings.snapshot import ServerSnapshot
from topology.rules.absent_causes import (
    ANOTHER_SOURCE,
    CRASH,
    FORMER,
    causes_left,
    causes_text,
    logs_nothing_received,
)
from topology.rules.build import Rules, evidence, many, on_edge
from topology.rules.left_empty import emptied_text
from topology.rules.passed_by import PassedBy

# The fact that the applier's position is after transactions that its channel counts as received.
IS_BEHIND: Final = "its applier's position is after them"
# The fact that a copy of the source may be at the address of its channel.
OTHER_ADDRESS: Final = "the channel's address, where the source was not read"


def passed_by_applier(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H8: a gap that stays although auto-position is on or the transactions were received.

    The applier's position proves it: topology/facts/applier_facts.py explains why.
    """
    for edge in facts.edges:
        channel = edge.channel
        unsent = edge.bypassed if channel.auto_position else GtidSet()
        unsent -= without_event(unsent, facts.last[edge.source])
        gone = edge.passed | unsent
        if not gone:
            continue
        replica, source = facts.last[edge.replica], facts.first[edge.source]
        before = facts.first[edge.replica]
        proof = [
            evidence("missing on the replica", gone, replica),
            evidence("received before, and before the applier's position", edge.passed, before),
            evidence("in the source's log before the channel's position", edge.behind, source),
            evidence("applier has come to", channel.applied_to, replica),
            evidence("applier state", channel.applier_state or "unknown", replica),
            evidence("place in the relay log", channel.relay_applied_to, replica),
            evidence("receiver has read to", channel.received_to, replica),
            evidence("source's log ended at", source.log_end, source),
            *_first_log_of(facts.last[source.name]),
            evidence("auto_position", int(channel.auto_position), replica),
            evidence("gtid_executed", replica.gtid_executed, replica),
        ]
        absence = PassedBy(
            facts,
            edge,
            received=edge.passed,
            unsent=unsent,
            is_place_proved=edge.passed_is_proved,
        )
        left = causes_left(absence)
        is_placed = bool(edge.passed) and edge.passed_is_proved and not unsent
        is_placed = is_placed and CRASH not in left
        again = _may_read_again(absence, source)
        is_proved = is_placed and FORMER not in left and not again
        if is_placed:
            proof.append(evidence(IS_BEHIND, "yes", replica))
        if ANOTHER_SOURCE in left:
            address = f"{channel.source_host}:{channel.source_port}"
            proof.append(evidence(OTHER_ADDRESS, address, replica))
        emptied = emptied_text(replica, channel)
        yield on_edge(
            facts,
            edge,
            "H8",
            gone,
            grade=Grade.PROVED if is_proved else Grade.LIKELY,
            proof=tuple(proof),
            explanation=_passed_text(absence, is_placed=is_placed, is_proved=is_proved, again=again)
            + causes_text(absence)
            + ("" if logs_nothing_received(source) else emptied),
            # What a receiver ignores is not sent again.
            strategies=("configure", "inject_empty")
            if unsent and channel.ignored_server_ids
            else None,
        )


def _first_log_of(source: ServerSnapshot) -> tuple[Evidence, ...]:
    """Return where the source's history begins, as far as it was read: a RESET begins it again."""
    found = source.history_evidence
    if found is None or found.first_log is None:
        return ()
    log = found.first_log
    begun = f"{log.file}, begun at {log.begun_at:%Y-%m-%d %H:%M:%S}"
    return (
        evidence("source's first binary log", begun, source),
        evidence("GTIDs before it", log.previous_gtids, source),
    )


def _may_read_again(absence: PassedBy, source: ServerSnapshot) -> str:
    """Return that a receiver may reach the transactions again, as text; "" if not.

    With a file position: RELAY_LOG_POS moves only the applier; if it ends auto-position, the
    receiver continues at the applier's former position. With auto-position: before 5.7 the next
    connection requests the last one again. `source` is its first reading.
    """
    channel = absence.edge.channel
    if asks_for_last_again(absence.replica, channel):
        return (
            " Its receiver is not connected, and requests its last received transaction again when"
            " it connects (before 5.7), because it may have only a part of it. That one arrives"
            " again."
        )
    read_to, end = channel.received_to, source.log_end
    if channel.auto_position or read_to is None or end is None or not read_to < end:
        return ""
    if absence.gtids <= absence.edge.behind:
        return ""
    return (
        f" The channel runs by file position, and its receiver has read to {read_to} of a log that"
        f" ends at {end}: it fetches again those that are after its position."
    )


def _passed_text(absence: PassedBy, *, is_placed: bool, is_proved: bool, again: str) -> str:
    """Explain what the channel's positions show about the transactions."""
    name = absence.replica.name
    text = f"{name} does not have {many(absence.gtids)} of {absence.source.name}"
    if absence.returns:
        return (
            f"{text}, and its applier's position was after them before. Its receiver is not"
            " running; when it is started, it fetches them again."
        )
    others = len(absence.replica.channels or ()) > 1  # one of them may still deliver them
    way = f" by channel {absence.edge.channel.name or 'default'}" if others else ""
    if is_proved:
        return (
            f"{text} and will not get them{way}: it received them, and its applier has passed them"
            " without executing them."
        )
    if is_placed and again:
        return (
            f"{text}: its channel counts them as received, and its applier has nothing left to do."
            f"{again}"
        )
    if is_placed:
        return (
            f"{text} and will not get them{way}: its channel counts them as received, and its"
            " applier has nothing left to do."
        )
    if absence.received:
        return (
            f"{text}, and its applier seems to have passed them without executing them. If other"
            " work of this channel still waits, audit again when it is applied: these may be among"
            " it."
        )
    return f"{text}, and its receiver has read past them with auto-position on."


RULES: Rules = (
    passed_by_applier,  # H8
)
