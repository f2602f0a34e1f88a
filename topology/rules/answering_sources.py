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
from topology.facts.applier_facts import may_hide_received
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.cluster_readings import read_twice
from topology.facts.graph import Graph
from topology.facts.group_facts import is_read_in_part
from topology.facts.last_result import keep_last_result
from topology.facts.source_answer import (
    AnsweringSource,
    Offer,
    Outcome,
    SourceAnswer,
    source_answer,
)
from topology.facts.unseen import unevaluated_kind, unseen_sources
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ReadTwice, ThreadState
from topology.rules.bypassed_above import bypassed_on
from topology.rules.passed import IS_BEHIND

_ON_ITS_WAY: Final = frozenset({"T1", "T2", "T3"})
# A4, if it is likely: the receiver runs, and may only seem to receive nothing.
_MAY_ARRIVE: Final = _ON_ITS_WAY | {"A4"}
_NOTHING: Final = GtidSet()

# The end of a reason that another reading does not change.
NOT_EVALUATED: Final = "not evaluated"


@keep_last_result
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


def may_arrive_from(facts: ClusterFacts, name: str, gtids: GtidSet) -> str:
    """Return from where these may arrive on a server although no finding reports it; "" if nowhere.

    What was not read may have them. A relay log may have what its source, or every server, lost; it
    also lists what was applied before a RESET. T1 and T2 report what the source has, unless a relay
    log of MySQL before 5.7 hides it.
    """
    above = facts.graph.upstream_of(name, stopped_too=True) - {name}
    read = comparable(facts)
    unread = {
        *unseen_sources(name, graph=facts.graph, servers=facts.last),
        *(each for each in above if each not in read or facts.last[each].channels is None),
    }
    received = [
        each
        for each in sorted({name, *above} & read.keys())
        if _waits_unreported(facts, each, gtids)
        or (may_hide_received(facts.last[each]) and not gtids <= read[each].last.gtid_executed)
    ]
    parts = [
        *([f"{', '.join(sorted(unread))} (not read, or not evaluated)"] if unread else []),
        *(f"the relay log of {each}" for each in received),
    ]
    return " or ".join(parts)


def _waits_unreported(facts: ClusterFacts, name: str, gtids: GtidSet) -> bool:
    """Return whether a relay log lists some of these that its source, or every server, lost."""
    readings = comparable(facts)
    sources = {
        edge.channel.name: readings[edge.source].last.gtid_executed
        for edge in facts.graph.into(name)
        if edge.source in readings
    }
    executed = readings[name].last.gtid_executed
    return any(
        not waits <= executed | sources.get(channel.name, _executed_anywhere(facts))
        for channel in facts.last[name].channels or ()
        if (waits := gtids & channel.gtid_retrieved)
    )


@keep_last_result
def _executed_anywhere(facts: ClusterFacts) -> GtidSet:
    return GtidSet.union_of(each.last.gtid_executed for each in comparable(facts).values())


def answering_source(
    facts: ClusterFacts, findings: Collection[Finding], last: ReadServer
) -> AnsweringSource:
    """Return a server as a source, with what the audit knows to be on its way to it."""
    name, bypassed = last.name, bypassed_on(facts, findings, last.name)
    arriving = _arriving_on(facts, findings, name, Grade.PROVED)
    arriving |= _delivered_to(facts, findings, name)
    may_arrive = _likely_on(facts, findings, name) | _queued_in_groups(facts, findings, name)
    may_arrive |= _made_by_hand_above(facts, findings, name)
    committing = _committing_on(findings, name)
    return AnsweringSource(name, last, committing, arriving - bypassed, may_arrive - bypassed)


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
    counts as arriving: the finding about it says that it is not certain. What no finding reports
    leaves the answer open in either case.
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
            likely = _likely_on(facts, findings, server.name)
            likely -= bypassed_on(facts, findings, server.name)
            source = replace(source, arriving=source.arriving | likely)
        answers.append(answer_to(facts, offer, source))
    return tuple(answers)


def _likely_on(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what is likely to arrive on a server, by a finding or by the order of the readings."""
    return (
        _arriving_on(facts, findings, name, Grade.LIKELY)
        | _new_above(facts, name)
        | _until_next_connection(facts, findings, name)
        | _perhaps_waiting(facts, findings, name)
        | _of_former_sources(facts, name)
    )


def _of_former_sources(facts: ClusterFacts, name: str) -> GtidSet:
    """Return what relay logs have of sources that were replaced: no channel compares it (J4).

    The server that replaced one of them may have its server_id, as a clone does: then it drops what
    that one committed. What an applier is proved to have passed does not wait.
    """
    connected, found = _connected(facts, name), GtidSet()
    for edge in facts.graph.edges:
        runs = edge.channel.applier is ThreadState.RUNNING
        if not edge.is_moved or not runs or edge.replica not in connected:
            continue
        waits = edge.channel.gtid_retrieved - (facts.last[edge.replica].gtid_executed or _NOTHING)
        applier = facts.appliers.get((edge.replica, edge.channel.name))
        if applier is not None and applier.passed_is_proved:
            waits -= applier.passed
        former = edge.channel.source_uuid
        if edge.source == name and former is not None:
            waits = waits.without_uuid(former)
        found |= waits
    return found


def _perhaps_waiting(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what appliers only seem to have passed (H8), unless their place is after it.

    What was committed later may come first in a log, if a session gave it its GTID. If other work
    of theirs still waits, their place does not show it either.
    """
    upstream = _connected(facts, name)
    found = []
    for finding in findings:
        if (finding.code, finding.grade) != ("H8", Grade.LIKELY) or finding.replica not in upstream:
            continue
        executed = facts.last[finding.replica].gtid_executed or _NOTHING
        for channel in _channels_of(facts, finding):
            passed = finding.gtid_set & channel.gtid_retrieved
            waits = bool(channel.gtid_retrieved - executed - passed)
            is_placed = any(each.fact == IS_BEHIND for each in finding.evidence)
            if _is_applied(facts, finding) and (waits or not is_placed):
                found.append(passed)
    return GtidSet.union_of(found)


def _until_next_connection(
    facts: ClusterFacts, findings: Collection[Finding], name: str
) -> GtidSet:
    """Return what receivers that are still connected may fetch, although P1 is about the next time.

    P1 explains everything that the replica does not have of its source, so T3 is not reported.
    """
    upstream = _connected(facts, name)
    refused = [each for each in findings if each.code == "P1" and each.replica in upstream]
    return GtidSet.union_of(
        edge.expected - finding.gtid_set
        for edge in facts.edges
        for finding in refused
        if (edge.source, edge.replica) == (finding.source, finding.replica)
        and edge.channel.receiver is ThreadState.RUNNING
        and edge.channel.applier is ThreadState.RUNNING
    )


def _arriving_on(
    facts: ClusterFacts, findings: Collection[Finding], name: str, grade: Grade
) -> GtidSet:
    """Return what is on its way to a server, over any number of hops, with this grade.

    The rules of T1 to T3 propose to wait, unless a stopped thread or UNTIL keeps it, or doubts are
    a warning. With doubts it is likely at most. T3 is about the receiver: what a stopped applier
    will receive does not arrive. Nor does what the server committed itself, and lost: a receiver
    drops it. What a session gave its UUID elsewhere does (H7).
    """
    upstream = _connected(facts, name)
    own, groups = facts.last[name].server_uuid, facts.graph.group_uuids
    return GtidSet.union_of(
        finding.gtid_set
        if own is None or own in groups or finding.replica == name
        else finding.gtid_set.without_uuid(own)
        for finding in findings
        if finding.code in (_ON_ITS_WAY if grade is Grade.PROVED else _MAY_ARRIVE)
        and finding.grade is grade
        and finding.replica in upstream
        and not _is_stopped(facts, finding)
        and (
            any(each.name == "wait" for each in finding.strategies)
            or (grade is Grade.LIKELY and _is_applied(facts, finding))
        )
    )


def _is_applied(facts: ClusterFacts, finding: Finding) -> bool:
    """Return whether the applier of a finding's channel runs, and not only UNTIL a place."""
    return any(
        each.applier is ThreadState.RUNNING and not each.until
        for each in _channels_of(facts, finding)
    )


def _is_stopped(facts: ClusterFacts, finding: Finding) -> bool:
    """Return whether the applier of a finding's channel is stopped; a group has no such channel."""
    return any(each.applier is ThreadState.STOPPED for each in _channels_of(facts, finding))


def _channels_of(facts: ClusterFacts, finding: Finding) -> Iterator[ChannelSnapshot]:
    assert finding.replica is not None, "the caller has checked"
    for each in facts.last[finding.replica].channels or ():
        if each.name == finding.channel:
            yield each


def _connected(facts: ClusterFacts, name: str) -> frozenset[str]:
    """Return a server, and those above it over channels of which no thread is stopped.

    What is on its way to a server above a thread that failed does not arrive by itself.
    """
    return _running(facts).upstream_of(name) | {name}


@keep_last_result
def _running(facts: ClusterFacts) -> Graph:
    edges = (
        edge
        for edge in facts.graph.edges
        if ThreadState.STOPPED not in (edge.channel.receiver, edge.channel.applier)
    )
    return replace(facts.graph, edges=tuple(edges))


def _new_above(facts: ClusterFacts, name: str) -> GtidSet:
    """Return what may arrive on a server, although T1 to T3 do not report it.

    They are about what a source had executed at first. What it was committing then, a consumer or
    another replica may have already: a source sends a transaction before it executes it. With
    semi-synchronous replication it waits for an acknowledgement in between. A receiver that is
    stopped brings nothing new; its relay log may have some of it, which a running applier executes.
    """
    above = facts.graph.upstream_of(name) - {name}
    connected = _connected(facts, name)
    received = GtidSet.union_of(
        channel.gtid_retrieved
        for each in connected
        for channel in facts.last[each].channels or ()
        if channel.applier is not ThreadState.STOPPED
    )
    new = {
        each: (reading.last.gtid_executed | reading.last.gtid_owned) - reading.first.gtid_executed
        for each, reading in facts.fully_read.items()
        if each in above
    }
    return GtidSet.union_of(
        gtids if each in connected else gtids & received for each, gtids in new.items()
    )


def _queued_in_groups(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what waits in members of a group, above a server or beside it, without a finding.

    A member that has left may have executed what each of the others still has in its queue. T2
    compares members with each other, so it does not report that.
    """
    above = {name, *facts.graph.upstream_of(name)}
    parts = [each for found in facts.graph.memberships for each in found.parts]
    members = {member for part in parts if not above.isdisjoint(part) for member in part}
    queues = [
        group.received - facts.fully_read[member].last.gtid_executed
        for member in sorted(members & facts.fully_read.keys())
        if (group := facts.last[member].group) is not None
    ]
    reported = (each.gtid_set for each in findings if each.replica in members)
    return GtidSet.union_of(queues) - GtidSet.union_of(reported)


def _made_by_hand_above(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what sessions above a server gave the GTIDs of another one (H7).

    H7 is about the owner of the UUID. The transaction may be on its way to it, like any other.
    """
    above = _connected(facts, name) - {name}
    return GtidSet.union_of(
        finding.gtid_set
        for finding in findings
        if finding.code == "H7" and finding.replica in above
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
