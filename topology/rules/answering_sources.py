"""What each server would answer to an offer, with what the findings of the audit add.

Sets alone do not decide it: what is on its way to a server is not missing there. Only the rules of
T1 to T4 separate that from a hole, which never arrives. `handshake` and P4 both take the answers
from here, so they agree.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.cluster_readings import read_twice
from topology.facts.group_facts import is_read_in_part
from topology.facts.source_answer import (
    AnsweringSource,
    Offer,
    Outcome,
    SourceAnswer,
    source_answer,
)
from topology.facts.unseen import unevaluated_kind
from topology.readings.snapshot import ReadServer, ReadTwice

_ON_ITS_WAY: Final = frozenset({"T1", "T2", "T3"})
_NOTHING: Final = GtidSet()

# The end of a reason that another reading does not change.
NOT_EVALUATED: Final = "not evaluated"


def comparable(facts: ClusterFacts) -> dict[str, ReadTwice]:
    """Return the servers that were read twice, and neither restarted nor reset in between.

    Unlike `fully_read`, with servers of one server_uuid: they refuse each other. Without members of
    a group whose members are not known: what is on its way to them is not known either.
    """
    aside = {name for name, _ in facts.torn} | dict(_unsettled(facts)).keys()
    complete = read_twice(facts.snapshot)
    return {
        name: each
        for name, each in complete.items()
        if name not in aside and unevaluated_kind(each.last) is None
    }


def not_comparable(facts: ClusterFacts) -> Iterator[tuple[str, str]]:
    """Yield the servers that are not `comparable`, with the reason."""
    aside, found = {**dict(_unsettled(facts)), **dict(facts.torn)}, comparable(facts)
    for server in facts.snapshot.last:
        if server.name in found:
            continue
        if kind := unevaluated_kind(server):
            yield server.name, f"it is {kind}: {NOT_EVALUATED}"
            continue
        reasons = "; ".join(f"{each.fact}: {each.detail}" for each in server.unread)
        yield server.name, aside.get(server.name) or reasons or "it was not read twice"


def _unsettled(facts: ClusterFacts) -> Iterator[tuple[str, str]]:
    """Yield the servers of groups of which gtid-audit cannot say what is on its way to whom."""
    for each in facts.graph.memberships:
        if each.doubt:
            reason = f"the members of its group are not known: {each.doubt}"
        elif is_read_in_part(each, facts):
            reason = "a server of its group was read once: what is on its way is not known"
        else:
            continue
        yield from ((name, reason) for name in each.configured)


def answering_source(
    facts: ClusterFacts, findings: Collection[Finding], last: ReadServer
) -> AnsweringSource:
    """Return a server as a source, with what the audit knows to be on its way to it."""
    arriving = _arriving_on(facts, findings, last.name, Grade.PROVED)
    return AnsweringSource(
        last.name,
        last,
        committing=_committing_on(findings, last.name),
        arriving=arriving | _delivered_to(facts, findings, last.name),
        may_arrive=_arriving_on(facts, findings, last.name, Grade.LIKELY),
    )


def answer_to(
    facts: ClusterFacts, offer: Offer, answering: AnsweringSource, unlike: GtidSet = _NOTHING
) -> SourceAnswer:
    """Return what a source would answer to an offer; `unlike` as in `source_answer`."""
    held = offer.executed | offer.received
    allowed = GtidSet.union_of(held.from_uuid(uuid) for uuid in facts.policy.allowed_uuids)
    return source_answer(offer, answering, allowed=allowed, unlike=unlike)


def answers_to(
    facts: ClusterFacts, findings: Collection[Finding], offer: Offer, *, likely_arrives: bool
) -> tuple[SourceAnswer, ...]:
    """Return what each server would answer to a set, in order of name.

    `likely_arrives`: what is only likely to arrive on a server leaves its answer open, or, if True,
    counts as arriving: the finding about it says that it is not certain.
    """
    readings = comparable(facts)
    answers = []
    for server in facts.snapshot.last:
        if server.name not in readings:
            what = f"the sets of {server.name}"
            answers.append(SourceAnswer(server.name, offer.name, Outcome.UNKNOWN, unread=what))
            continue
        source = answering_source(facts, findings, readings[server.name].last)
        if likely_arrives:
            source = replace(source, arriving=source.arriving | source.may_arrive)
        answers.append(answer_to(facts, offer, source))
    return tuple(answers)


def _arriving_on(
    facts: ClusterFacts, findings: Collection[Finding], name: str, grade: Grade
) -> GtidSet:
    """Return what is on its way to a server, over any number of hops, with this grade.

    The rules of T1 to T3 propose to wait, unless a stopped thread or UNTIL keeps it.
    """
    upstream = {name, *facts.graph.upstream_of(name)}
    return GtidSet.union_of(
        finding.gtid_set
        for finding in findings
        if finding.code in _ON_ITS_WAY
        and finding.grade is grade
        and any(each.name == "wait" for each in finding.strategies)
        and finding.replica in upstream
    )


def _delivered_to(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what a member's group delivers to it: what others have, unless a finding doubts it.

    A replica of another member may have newer transactions than the findings compare. T2 and T3
    that are only likely are in `may_arrive`.
    """
    others = {
        other
        for each in facts.graph.memberships
        for part in each.parts
        if name in part
        for other in part
        if other != name
    }
    has = GtidSet.union_of(facts.fully_read[other].last.gtid_executed for other in others)
    doubted = (each.gtid_set for each in findings if name in (each.replica, each.source))
    return has - GtidSet.union_of(doubted)


def _committing_on(findings: Collection[Finding], name: str) -> GtidSet:
    """Return what a server is about to list, and a replica has already (T4)."""
    return GtidSet.union_of(
        finding.gtid_set for finding in findings if finding.code == "T4" and finding.source == name
    )
