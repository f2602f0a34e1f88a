"""H8: transactions that the applier has passed, or that a started channel would fetch again.

1. What looks the same, and what separates it:

   * benign: a transaction in the hands of a worker or owned by a session (never counted as passed);
     one that was received after the first reading (only the first reading's set counts); the delay
     of SOURCE_DELAY (the applier's state is another);
   * malign: RESET BINARY LOGS AND GTIDS on the replica (the rows are there); RELAY_LOG_POS,
     sql_replica_skip_counter, a purged relay log (the rows are missing). The sets do not separate
     these, so the text names all of them; only earlier transactions of the same origin exclude a
     RESET. Before 8.0.17 also a crash that cut the binary log: GTIDs are in that log only, the rows
     and the applier's place are elsewhere (the rows are there; tried on 5.6.24). Only a replica
     that has been running since before the commits excludes it.
2. A channel that is stopped shows where its applier has come to in the source's log. What the log
   has before this place was behind the applier: to start the channel would do it a second time.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.facts import ClusterFacts, EdgeFacts
from topology.findings import Finding, Grade
from topology.notable_settings import notable_values
from topology.reset_signs import excludes_reset, has_earlier, keeps_gtids, logged, runs_since_before
from topology.rules.build import evidence, many, on_edge
from topology.rules.emptied import emptied_text
from topology.snapshot import ServerSnapshot, ThreadState


def passed_by_applier(facts: ClusterFacts) -> Iterator[Finding]:
    """H8: a hole that stays although auto-position is on or the transactions were received.

    Proved by the applier's place: topology/applier_facts.py has the argument.
    """
    for edge in facts.edges:
        channel = edge.edge.channel
        unsent = edge.bypassed if channel.auto_position else GtidSet()
        gone = edge.passed | unsent
        if not gone:
            continue
        replica, source = facts.last[edge.edge.replica], facts.first[edge.edge.source]
        before = facts.first[edge.edge.replica]
        proof = [
            evidence("missing on the replica", gone, replica),
            evidence("received before, behind the applier", edge.passed, before),
            evidence("in the source's log before the channel's place", edge.behind, source),
            evidence("applier has come to", channel.applied_to, replica),
            evidence("applier state", channel.applier_state or "unknown", replica),
            evidence("place in the relay log", channel.relay_applied_to, replica),
            evidence("receiver has read to", channel.received_to, replica),
            evidence("source's log ended at", source.log_end, source),
            evidence("auto_position", int(channel.auto_position), replica),
            evidence("gtid_executed", replica.gtid_executed, replica),
        ]
        is_proved = bool(edge.passed) and edge.passed_is_proved and not unsent
        is_proved = is_proved and not _forgets_in_crash(facts, edge)
        yield on_edge(
            facts,
            edge,
            "H8",
            gone,
            grade=Grade.PROVED if is_proved else Grade.LIKELY,
            proof=tuple(proof),
            explanation=_passed_text(facts, edge, unsent=unsent, is_proved=is_proved)
            + ("" if _logs_nothing_received(source) else emptied_text(replica, channel)),
            # What a receiver ignores does not come again.
            strategies=("configure", "inject_empty")
            if unsent and channel.ignored_server_ids
            else None,
        )


def _passed_text(facts: ClusterFacts, edge: EdgeFacts, *, unsent: GtidSet, is_proved: bool) -> str:
    """Name the causes that the evidence leaves, and what each means for the rows."""
    name, gone = edge.edge.replica, edge.passed | unsent
    replica = facts.last[name]
    reset = f"RESET BINARY LOGS AND GTIDS on {name} behind them (the rows are there)"
    skipped = (
        "RELAY_LOG_POS, sql_replica_skip_counter, a purged relay log, or a server_id that was then"
        " that of the server which committed them (the rows are missing)"
    )
    ghost = f"no event for them in the binary logs of {edge.edge.source} (the rows may be missing)"
    logs_nothing = _logs_nothing_received(facts.last[edge.edge.source])
    if logs_nothing:
        ghost = f"log_replica_updates = OFF on {edge.edge.source}: {ghost}"
    # Under its own UUID it commits itself, where a group has that UUID for a name.
    received = logged(replica).without_uuid(replica.server_uuid) if replica.server_uuid else None
    causes = [] if excludes_reset(replica, gone) and has_earlier(received, gone) else [reset]
    returns = bool(unsent) and edge.edge.channel.receiver is not ThreadState.RUNNING
    if edge.passed or returns:
        by_position = returns or not edge.edge.channel.auto_position
        causes.append(f"a file position that was set, {skipped}" if by_position else skipped)
    crash = f"a crash of {name} that lost the end of its binary log, or an older copy of its data"
    if _forgets_in_crash(facts, edge):
        causes.append(f"{crash} (the rows are probably there)")
    elif not is_proved and not runs_since_before(replica, gone, facts.last[edge.edge.source]):
        causes.append(f"{crash} (compare the rows)")
    channel = edge.edge.channel
    # A receiver that has connected since reads the new log, whose places may equal former ones.
    is_old_place = edge.passed and channel.applier is ThreadState.STOPPED
    if returns or is_old_place or (edge.behind and channel.receiver is not ThreadState.RUNNING):
        causes.append(
            f"RESET BINARY LOGS AND GTIDS on {edge.edge.source} since the channel stopped (then the"
            " place says nothing)"
        )
    if unsent and (logs_nothing or not returns):
        causes.append(ghost)
    if unsent and edge.edge.channel.ignored_server_ids:
        listed = ", ".join(map(str, edge.edge.channel.ignored_server_ids))
        causes.insert(0, f"IGNORE_SERVER_IDS ({listed}) of its channel (the rows are missing)")
    if unsent and not returns:
        causes.append(
            f"a server with the server_id of {name}, {replica.server_id}, committed them (the rows"
            " are missing)"
        )
    text = f"{name} does not have {many(gone)} of {edge.edge.source}"
    if returns:
        text += (
            ", and its applier has been behind them before. Its receiver does not run; once it is"
            " started, it fetches them again."
        )
    elif is_proved:
        text += (
            " and will not get them: it received them, and its applier has passed them without"
            " executing them."
        )
    elif edge.passed:
        text += (
            ", and its applier seems to have passed them without executing them. If other work of"
            " this channel still waits, audit again when it is applied: these may be among it."
        )
    else:
        text += ", and its receiver has read past them with auto-position on."
    return (
        f"{text} Possible causes: {'; '.join(causes)}. Compare the rows before any repair: a second"
        " execution fails or doubles data where the rows are there."
    )


def _logs_nothing_received(source: ServerSnapshot) -> bool:
    """Return whether a source's log has only what it commits itself: its place proves no more."""
    return "log_replica_updates" in notable_values(source.notable_settings)


def _forgets_in_crash(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    """Return whether a crash of the replica may have removed what it applied from its GTIDs."""
    replica = facts.last[edge.edge.replica]
    source = facts.last[edge.edge.source]
    return bool(edge.passed) and not (
        keeps_gtids(replica) or runs_since_before(replica, edge.passed, source)
    )
