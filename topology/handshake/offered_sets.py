"""What each server would answer to a set: of a consumer, a backup or a clone."""

from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import ClusterAudit
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.runway import deadline_of, retention_of, undecided_retention
from topology.facts.source_answer import Offer, Outcome, SourceAnswer
from topology.handshake.left_out_above import left_out_above
from topology.handshake.matrix import HandshakeMatrix
from topology.handshake.partial_readings import partial_readings, settled, with_logs
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.rules.answering_sources import answers_to, may_arrive_from, not_comparable

OFFERED: Final = "the offered set"


def answers_to_set(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    policy: Policy,
    offered: GtidSet,
    *,
    later: GtidSet | None = None,
) -> HandshakeMatrix:
    """Evaluate what every server would answer to a set: one row.

    `later` is the same consumer's set after the servers were read, if it was read again.
    """
    facts = gather_facts(snapshot, policy)
    offer = Offer(OFFERED, offered, GtidSet(), offered if later is None else later)
    partial = partial_readings(facts)
    answers = []
    for each in answers_to(facts, audit.findings, offer, likely_arrives=False):
        source = facts.last[each.source]
        found = with_logs(settled(_with_ways(facts, each), partial, facts), source)
        filters = left_out_above(each.source, facts.graph, facts.last)
        answers.append(_with_deadline(found.with_doubts(filters), source))
    return HandshakeMatrix(
        snapshot.cluster,
        tuple(server.name for server in snapshot.last),
        tuple(answers),
        tuple(not_comparable(facts)),
        partial=partial,
    )


def _with_ways(facts: ClusterFacts, answer: SourceAnswer) -> SourceAnswer:
    """Return an answer with the doubt that what is extra may still arrive."""
    if answer.outcome is not Outcome.DIVERGED:
        return answer
    origin = may_arrive_from(facts, answer.source, answer.gtid_set)
    doubt = f"they may still arrive on {answer.source} from {origin}"
    return replace(answer, doubts=(*answer.doubts, doubt)) if origin else answer


def _with_deadline(answer: SourceAnswer, source: ServerSnapshot) -> SourceAnswer:
    """Return an answer to a set; if the source serves it, with the time until which it does."""
    if answer.outcome not in (Outcome.SERVED, Outcome.DIVERGED):
        return answer
    deadline = deadline_of(source, answer.fetched)
    if answer.fetched and (undecided := undecided_retention(source)):
        doubt = f"until when {source.name} can send it is not known ({undecided})"
        return replace(answer, doubts=(*answer.doubts, doubt), is_deadline_unread=True)
    if deadline is None and retention_of(source) is not None:
        why = source.history_evidence.unread if source.history_evidence is not None else ""
        doubt = f"until when {source.name} can send it was not read" + (f" ({why})" if why else "")
        return replace(answer, doubts=(*answer.doubts, doubt), is_deadline_unread=True)
    return replace(answer, deadline=deadline)
