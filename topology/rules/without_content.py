"""E4 where contents were not compared: what a server never logged, and what was made by hand.

* GTIDs that a server has executed and never logged. Their content cannot be compared, and the sets
  are equal. So this is E4 without a second version. It is a warning, `likely`, until an operator
  has compared the rows or accepts the plan that declared them.
* GTIDs that a server declared executed while they waited in its relay log (declared_waiting.py).
* GTIDs of other servers that a session of a replica committed, while the applier was held back
  (topology/facts/committed_by_hand.py). The logs show two commits. If their contents were compared
  as well, rules/content.py reports the result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.committed_by_hand import (
    BELOW_MAX,
    committed_by_hand,
    made_while_waiting,
    only_by_hand_above,
)
from topology.facts.declared import declared_early, unread_changes
from topology.facts.declared_later import declared_later
from topology.facts.declared_waiting import in_relay_log
from topology.facts.last_result import keep_last_result
from topology.facts.unlogged import candidates_in, logs_received, unlogged
from topology.readings.contents import Difference
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, finding, many

_NAME: Final = "executed without its content"
_IN_NO_LOG: Final = "in gtid_purged, and in no log that it purged"
_NOT_RECEIVED: Final = "in gtid_purged, and received by no channel"

WAITS_DECLARED: Final = "in gtid_purged, and after the applier's position"
"""Evidence of an E4 about what a server declared executed while it waited in a relay log."""


def executed_without_content(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E4: a server has only the GTIDs of transactions that others have, or never logged them.

    GTIDs that only this server has are reported as lost, H7 or errant, and not here.
    """
    candidates = _candidates(facts)
    for name in sorted(facts.fully_read.keys() & candidates.keys()):
        server = facts.last[name]
        found = unlogged(server, candidates[name]) & _held_with_content(facts, name, candidates)
        accepted = _accepted(facts, server, found)
        left = found - GtidSet.union_of(declared for _, declared in accepted)
        note = " ".join(
            f"{declared.shortened()} declared executed by plan {plan}, accepted."
            for plan, declared in accepted
        )
        if left:
            words = _explanation if logs_received(server) else _by_other_means
            text = f"{words(name, left)} {note}".rstrip()
            yield _about(facts, server, left, text, Severity.WARNING)
        elif found:
            yield _about(facts, server, found, note, Severity.INFO)


def set_before_committed(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E4: gtid_purged had GTIDs before their origin committed them (declared.py)."""
    other_signs = _candidates(facts)
    for each in declared_early(facts.snapshot):
        server, origin = facts.last[each.server], facts.last[each.origin]
        found = each.gtids
        if server.name in other_signs:
            found -= unlogged(server, other_signs[server.name])
        found -= GtidSet.union_of(gtids for _, gtids in _accepted(facts, server, found))
        if not found or not {server.name, origin.name} <= facts.fully_read.keys():
            continue
        made = finding(
            facts,
            "E4",
            source=origin.name,
            replica=server.name,
            gtid_set=found,
            grade=Grade.LIKELY,
            severity=Severity.WARNING,
            proof=(
                evidence("gtid_purged was set at", each.set_at, server),
                evidence("set then, and committed later", found, origin),
            ),
            explanation=f"SET GLOBAL gtid_purged declared {many(found)} executed on {server.name}"
            f" at {each.set_at:%Y-%m-%d %H:%M:%S}, and {origin.name} committed them later. Possible"
            f" causes: the set was too large; {origin.name} lost other transactions and reused"
            " their GTIDs; a clock was wrong at that time. The rows are probably missing on"
            f" {server.name}, and those of earlier transactions may be missing. Compare the data of"
            " the two servers.",
            strategies=(),
        )
        yield replace(made, name=_NAME)


def set_while_waiting(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E4: gtid_purged has what an applier has not reached yet (declared_waiting.py)."""
    shown = {(edge.replica, edge.channel.name): edge.ahead for edge in facts.edges}
    for edge, place, waits in in_relay_log(facts.snapshot):
        server = facts.last[edge.replica]
        found = waits & shown.get((edge.replica, edge.channel.name), GtidSet())
        found -= GtidSet.union_of(gtids for _, gtids in _accepted(facts, server, found))
        if not found:
            continue
        made = finding(
            facts,
            "E4",
            source=edge.source,
            replica=server.name,
            channel=edge.channel.name,
            gtid_set=found,
            grade=Grade.LIKELY,
            severity=Severity.WARNING,
            proof=(
                evidence(WAITS_DECLARED, found, server),
                evidence("applier has executed to", place, server),
                evidence("receiver has read to", edge.channel.received_to, server),
            ),
            explanation=f"{server.name} has received {many(found)} that its applier has not reached"
            " yet, and has them in gtid_purged: the applier will pass them and apply none."
            f" Possible causes: an operator declared them executed (RESET BINARY LOGS AND GTIDS,"
            f" then SET GLOBAL gtid_purged): their rows are missing on {server.name}, unless they"
            " were there before. Or a dump or a copy that has the rows was restored, and the"
            " channel was kept. Compare the data of the two servers now: once the applier has"
            " passed them, nothing shows it.",
            strategies=(),
        )
        yield replace(made, name=_NAME)


def session_made_another(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E4: a session of a replica committed GTIDs under which its source has another commit.

    The applier skips them, and the replica never gets what the source has under them. If contents
    were compared and agree, the order may differ: what waits below was committed before them.
    """
    contents = facts.snapshot.contents
    compared = GtidSet.of(
        each.gtid
        for each in (contents.differences if contents else ())
        if each.difference is not Difference.COMMIT
    )
    for edge in facts.edges:
        source, replica = facts.last[edge.source], facts.last[edge.replica]
        found = committed_by_hand(edge.edge, servers=facts.last) - compared
        found -= GtidSet.union_of(gtids for _, gtids in _accepted(facts, replica, found))
        is_whole = contents is not None and contents.is_whole(edge.source, edge.replica)
        if not (below := only_by_hand_above(edge.edge, edge.queued_below, servers=facts.last)):
            # Nothing that was skipped for it waits below it, or a worker applied more above (H2).
            waited = made_while_waiting(edge.edge, servers=facts.last) & edge.ahead
            found &= GtidSet() if edge.queued_below or is_whole else waited
        if not found:
            continue
        what = (
            f"Their contents are equal, and {many(below)} below them will be applied after them. If"
            " these change the same rows, the rows differ for good"
            if is_whole
            else f"Contents were not compared. The applier of {edge.replica} skips these GTIDs, so"
            f" it never applies what {edge.source} has under them"
        )
        yield finding(
            facts,
            "E4",
            source=edge.source,
            replica=edge.replica,
            channel=edge.channel.name,
            gtid_set=found,
            grade=Grade.LIKELY,
            severity=Severity.WARNING,
            proof=(
                evidence("logged with its own server_id", found, replica),
                evidence("logged with another server_id", found, source),
            ),
            explanation=f"A session committed {many(found)} on {edge.replica} under GTIDs that have"
            f" another commit on {edge.source} (gtid_next). {what}. Possible causes: an operator"
            " skipped what waited, or a transaction under a wrong GTID; a binary log was replayed"
            f" on {edge.replica} (then the rows are there). Of each origin only {BELOW_MAX} were"
            " looked up: earlier ones may be like them. Run the audit with --content, and compare"
            " the rows.",
            strategies=(),
        )


def _accepted(
    facts: ClusterFacts, server: ServerSnapshot, gtids: GtidSet
) -> list[tuple[str, GtidSet]]:
    """Return the accepted repairs that declared some of these executed, by plan."""
    return [
        (repair.shown, declared)
        for repair in facts.policy.accepted
        for uuid, emptied in repair.emptied
        if uuid == server.server_uuid and (declared := emptied & gtids)
    ]


def not_decided(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield the servers whose first log, or error log, could not be read."""
    candidates = _candidates(facts)
    for name in sorted(facts.fully_read.keys() & candidates.keys()):
        server = facts.last[name]
        evidence_of = server.history_evidence
        if evidence_of is None:
            continue
        if not logs_received(server):
            if evidence_of.purged_changes is None:
                fact = f"whether {candidates[name].shortened()} was set in gtid_purged"
                yield Unknown(facts.snapshot.cluster, name, fact, evidence_of.unread)
            continue
        if evidence_of.first_log is not None:
            continue
        if found := candidates[name] & _held_with_content(facts, name, candidates):
            fact = f"whether its logs ever held {found.shortened()}"
            reason = evidence_of.unread or "its first binary log has no Previous_gtids"
            yield Unknown(facts.snapshot.cluster, name, fact, reason)
    for edge, _, waits in in_relay_log(facts.snapshot):
        history = facts.last[edge.source].history_evidence
        if history is not None and history.unread and edge.replica in facts.fully_read:
            fact = f"whether its applier has reached {waits.shortened()}, which gtid_purged has"
            yield Unknown(facts.snapshot.cluster, edge.replica, fact, history.unread)
    for name, gtids in sorted(unread_changes(facts.snapshot).items()):
        fact = f"whether {gtids.shortened()} was set in gtid_purged before it was committed"
        log = facts.last[name].history_evidence
        yield Unknown(facts.snapshot.cluster, name, fact, log.unread if log else "")


@keep_last_result
def _candidates(facts: ClusterFacts) -> Mapping[str, GtidSet]:
    """Return the candidates; none if no binary logs of the cluster were read."""
    has_evidence = any(server.history_evidence is not None for server in facts.last.values())
    if not has_evidence:
        return {}
    found, later = candidates_in(facts.snapshot), declared_later(facts.snapshot)
    return {
        name: found.get(name, GtidSet()) | later.get(name, GtidSet())
        for name in found.keys() | later.keys()
    }


def _held_with_content(
    facts: ClusterFacts, name: str, candidates: Mapping[str, GtidSet]
) -> GtidSet:
    """Return what other servers have logged at any time, as far as sets show it."""
    return GtidSet.union_of(
        (server.gtid_executed or GtidSet()) - candidates.get(other, GtidSet())
        for other, server in facts.last.items()
        if other in facts.fully_read and other != name
    )


def _about(
    facts: ClusterFacts, server: ServerSnapshot, gtids: GtidSet, text: str, severity: Severity
) -> Finding:
    log = None if server.history_evidence is None else server.history_evidence.first_log
    is_logging = logs_received(server)
    shown: tuple[Evidence, ...] = (
        evidence("log_replica_updates", "OFF", server),
        evidence("added to gtid_purged, by its error log", gtids, server),
    )
    if is_logging:
        assert log is not None, "unlogged: the first log was read"
        shown = (
            evidence(f"Previous_gtids of {log.file}, its first log", log.previous_gtids, server),
        )
    made = finding(
        facts,
        "E4",
        replica=server.name,
        gtid_set=gtids,
        grade=Grade.LIKELY,
        severity=severity,
        proof=(
            evidence(_IN_NO_LOG if is_logging else _NOT_RECEIVED, gtids, server),
            *shown,
        ),
        explanation=text,
        strategies=(),
    )
    return replace(made, name=_NAME)  # no second version is known


def _by_other_means(name: str, gtids: GtidSet) -> str:
    return (
        f"SET GLOBAL gtid_purged declared {many(gtids)} executed on {name}, and none of its"
        " channels has received them. It does not log what it applies (log_replica_updates = OFF),"
        f" so their content cannot be compared. Their rows are missing on {name}, unless they were"
        " there before (RESET BINARY LOGS AND GTIDS; a backup; a channel that was removed since)."
        f" Compare the rows of these transactions on {name} with another server."
    )


def _explanation(name: str, gtids: GtidSet) -> str:
    return (
        f"{name} has executed {many(gtids)} that its binary logs do not show, so their content"
        " cannot be compared. Possible causes: an operator declared them executed (SET GLOBAL"
        f" gtid_purged): then their rows are missing on {name}, unless a backup contained them. Or"
        f" {name} applied them without logging them (log_replica_updates or log_bin was off,"
        " sql_log_bin=0, its log was closed after an error), or lost the end of a log in a crash,"
        " or a log was deleted by hand (binlog.index was edited) before it was restarted: then the"
        " rows are there, and its replicas cannot get them. Compare the rows of these transactions"
        f" on {name} with another server."
    )


RULES: Rules = (
    executed_without_content,  # E4
    set_before_committed,  # E4
    set_while_waiting,  # E4
    session_made_another,  # E4
)
