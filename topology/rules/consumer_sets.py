"""P4: a consumer or a backup whose set no server serves, or not after a failover, or not for long.

Not in RULES: like the rule on contents it needs the other findings, because what is on its way to a
server is not missing there (answering_sources.py). The answers are those of `handshake --offered`.

Benign and malign causes that look the same:

* **The set has what the server does not have.** Timing makes the same picture, so the set of before
  the servers' first reading is compared with their last one. What arrives by replication, or is
  being committed, does not count. If a server outside the audit may still deliver it, it is
  `likely`. What remains: the servers lost it, or the set is of another cluster.
* **The server has purged what the set does not have.** A consumer that read on between two readings
  makes the same picture, so the set of after the servers' last reading is compared. One that is
  connected has read on and stores its set later: while its set can change, it is `likely`.
* **A server that is no source of the consumer does not have what the set has.** It is behind, or
  the transactions are errant. The findings about replication report that, and not P4.
* **The first log expires soon.** A consumer that has just read to the end of a log makes the same
  picture where logs are kept for an hour. So half of the retention is enough, and it is `likely`:
  the consumer may read on in time.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.runway import LogDeadline, deadline_of, retention_of, undecided_retention
from topology.facts.source_answer import FailedCheck, Offer, Outcome, SourceAnswer
from topology.readings.consumers import ConsumerReading
from topology.rules.answering_sources import answers_to, may_arrive_from, not_comparable
from topology.rules.build import evidence, finding, lasting, many, moment_read
from topology.rules.promotable import can_be_source
from topology.rules.purge_deadlines import log_evidence, when_deleted

CONSUMER_SET: Final = "GTID set of the consumer"  # the fact of an `Unknown`
_BY_SETTINGS: Final = {
    FailedCheck.NO_BINARY_LOG: "has no binary log",
    FailedCheck.NO_SERVER_ID: "has server_id 0, and refuses every connection",
    FailedCheck.SOURCE_MODE: "has a gtid_mode other than ON, and refuses a GTID set",
}


@dataclass(frozen=True, slots=True)
class ServedConsumer:
    """One consumer whose set was read, and what each server would answer to it."""

    consumer: ConsumerReading
    offered: GtidSet  # its last reading
    answers: tuple[SourceAnswer, ...]  # in order of server

    @property
    def name(self) -> str:
        """Return the name of the consumer."""
        return self.consumer.name

    @property
    def own(self) -> SourceAnswer | None:
        """Return the answer of the server from which it reads; None if any may be that."""
        return next((each for each in self.answers if each.source == self.consumer.server), None)

    def of(self, *outcomes: Outcome) -> list[SourceAnswer]:
        """Return the answers with one of these outcomes."""
        return [each for each in self.answers if each.outcome in outcomes]

    @property
    def decisive(self) -> list[SourceAnswer]:
        """Return the answers that decide whether it is served now."""
        return [self.own] if self.own is not None else list(self.answers)


def consumer_findings(facts: ClusterFacts, others: Collection[Finding]) -> Iterator[Finding]:
    """Yield P4. `others` are the other findings of the audit."""
    for served in _served(facts, others):
        broken = _not_served(facts, served)
        if broken is not None:
            yield broken
        else:
            yield from _short(facts, served)
        if served.of(Outcome.SERVED, Outcome.UNKNOWN):
            yield from _after_failover(facts, served)


def undecided_consumers(facts: ClusterFacts, others: Collection[Finding]) -> Iterator[Unknown]:
    """Yield what is not known about consumers. `others` are the other findings of the audit."""
    cluster = facts.snapshot.cluster
    for consumer in facts.snapshot.consumers:
        if consumer.unread:
            yield Unknown(cluster, consumer.name, CONSUMER_SET, consumer.unread)
    reasons = dict(not_comparable(facts))
    for served in _served(facts, others):
        for answer in served.of(Outcome.UNKNOWN):
            fact = f"whether {answer.source} serves its set"
            reason = reasons.get(answer.source, f"not known: {answer.unread}")
            yield Unknown(cluster, served.name, fact, reason)
        serving = [each for each in served.decisive if each.outcome is Outcome.SERVED]
        if all(each.doubts for each in serving):
            for answer in serving:
                fact = f"whether {answer.source} serves its set"
                yield Unknown(cluster, served.name, fact, "; ".join(answer.doubts))
        for server, why in _ends(facts, served).unread:
            fact = f"until when {server} can send what its set does not have"
            yield Unknown(cluster, served.name, fact, why)


def _served(facts: ClusterFacts, others: Collection[Finding]) -> Iterator[ServedConsumer]:
    for consumer in facts.snapshot.consumers:
        if consumer.sets is not None:
            first, last = consumer.sets
            offer = Offer(consumer.name, first, GtidSet(), last)
            answers = answers_to(facts, others, offer, likely_arrives=True)
            yield ServedConsumer(consumer, last, answers)


# -- now ------------------------------------------------------------------------------------------


def _not_served(facts: ClusterFacts, served: ServedConsumer) -> Finding | None:
    """Return P4 if the consumer's server does not serve the set, or, of any, no server does."""
    decisive, own = served.decisive, served.own
    if any(each.outcome in (Outcome.SERVED, Outcome.UNKNOWN) for each in decisive):
        return None
    is_refused = all(each.outcome is Outcome.REFUSED for each in decisive)
    elsewhere = [each for each in served.of(Outcome.SERVED) if not each.doubts]
    others = [each for each in served.answers if each not in decisive]
    until = _longest(facts, elsewhere)
    moves = not served.consumer.is_fixed and any(_is_purged(each) for each in decisive)
    text = (
        f"{own.source}, from which {served.name} reads, does not serve its set."
        if own is not None
        else f"No server serves the set of {served.name}."
    )
    made = finding(
        facts,
        "P4",
        source=own.source if own is not None else None,
        replica=served.name,
        gtid_set=GtidSet.union_of(each.gtid_set for each in decisive),
        severity=Severity.CRITICAL if is_refused else Severity.WARNING,
        grade=_grade(facts, decisive, moves=moves),
        strategies=("move_consumer", "new_snapshot") if elsewhere else ("new_snapshot",),
        proof=_proof(facts, served, [*decisive, *others]),
        explanation=" ".join(
            [
                text,
                *(f"{_words(facts, each)}." for each in (*decisive, *others)),
                *_causes(facts, decisive),
                *([_MAY_MOVE] if moves else []),
            ]
        ),
    )
    return made if until is None else replace(made, deadline=until.until)


_MAY_MOVE = (
    "The set is the one that the consumer stored last: if it is connected, it may have read on, and"
    " stores a newer one soon."
)


def _causes(facts: ClusterFacts, answers: Collection[SourceAnswer]) -> Iterator[str]:
    if any(each.gtid_set and not _is_purged(each) for each in answers):
        yield from (f"They may still arrive from {each}." for each in _ways(facts, answers))
        yield (
            "Either the servers lost transactions that the consumer had read, or the set is of"
            " another cluster. If it is right that only the set has them, list their UUID in"
            " policy.allowed_uuids."
        )


def _words(facts: ClusterFacts, answer: SourceAnswer) -> str:
    """Return one answer as a clause."""
    count = many(answer.gtid_set)
    if answer.outcome is Outcome.SERVED:
        if answer.doubts:
            return f"{answer.source} serves it, but {answer.doubts[0]}"
        until = _longest(facts, [answer])
        limit = f", until {until.until:%Y-%m-%d %H:%M:%S} UTC at least" if until else ""
        return f"{answer.source} serves it{limit}"
    if answer.outcome is Outcome.UNKNOWN:
        return f"{answer.source} was not evaluated: {answer.unread}"
    if answer.outcome is Outcome.DIVERGED:
        return f"{answer.source} accepts it, and does not have {count} of the set"
    if _is_purged(answer):
        return f"{answer.source} has purged {count} that the set does not have"
    if answer.refusal is FailedCheck.MORE_GTIDS:
        return f"{answer.source} does not have {count} of its own that the set has, and refuses it"
    assert answer.refusal is not None, "refused"
    return f"{answer.source} {_BY_SETTINGS[answer.refusal]}"


def _is_purged(answer: SourceAnswer) -> bool:
    return answer.refusal is FailedCheck.PURGED


def _grade(facts: ClusterFacts, answers: Collection[SourceAnswer], *, moves: bool) -> Grade:
    """Return `proved` unless the set may change, or something may still deliver what is missing.

    What a server purged stays purged, and what its settings refuse is refused.
    """
    return Grade.LIKELY if moves or any(_ways(facts, answers)) else Grade.PROVED


def _ways(facts: ClusterFacts, answers: Collection[SourceAnswer]) -> Iterator[str]:
    """Yield from where a server may still get what a set has and it does not have, once each."""
    found = (
        may_arrive_from(facts, each.source, each.gtid_set)
        for each in answers
        if each.outcome is Outcome.DIVERGED or each.refusal is FailedCheck.MORE_GTIDS
    )
    yield from dict.fromkeys(each for each in found if each)


def _proof(
    facts: ClusterFacts, served: ServedConsumer, answers: Collection[SourceAnswer]
) -> tuple[Evidence, ...]:
    """Return the set, and of each server what decides its answer."""
    last, place = served.consumer.last, served.consumer.place
    shown = served.offered.shortened() or "(empty)"
    found = [Evidence(f"GTID set, from {place}", shown, served.name, last.read_at)]
    for answer in answers:
        server = facts.last[answer.source]
        if _is_purged(answer):
            found.append(evidence("gtid_purged", server.gtid_purged, server))
            found.append(evidence("purged, and not in the set", answer.gtid_set, server))
        elif answer.gtid_set:
            found.append(evidence("gtid_executed", server.gtid_executed, server))
            found.append(evidence("in the set, not executed", answer.gtid_set, server))
        if answer.text is not None:
            shown = f"{answer.text.errno}: {answer.text.text}"
            found.append(evidence("a replica with this set would report", shown, server))
    return tuple(found)


# -- after a failover -----------------------------------------------------------------------------


def _after_failover(facts: ClusterFacts, served: ServedConsumer) -> Iterator[Finding]:
    """Yield P4 for each other server that has purged what the set does not have."""
    for answer in served.answers:
        server = facts.last[answer.source]
        if answer is served.own or not _is_purged(answer) or not can_be_source(server):
            continue
        moves = not served.consumer.is_fixed
        first = (
            "Before that, let it read on until its set has them."
            if moves
            else f"Replace {served.name} by a newer one before that."
        )
        yield finding(
            facts,
            "P4",
            source=answer.source,
            replica=served.name,
            gtid_set=answer.gtid_set,
            severity=Severity.WARNING,
            grade=_grade(facts, [answer], moves=moves),
            strategies=("new_snapshot",),
            proof=_proof(facts, served, [answer]),
            explanation=f"{_words(facts, answer)}. If {served.name} has to read from"
            f" {answer.source}, for example after a failover, {answer.source} refuses it with error"
            f" 1236. {first}" + (f" {_MAY_MOVE}" if moves else ""),
        )


# -- until when -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ends:
    """Until when the servers that serve a consumer can do so."""

    soon: tuple[tuple[str, GtidSet, LogDeadline], ...] = ()  # server, what it would send, when
    unread: tuple[tuple[str, str], ...] = ()  # (server, why it is not known)


def _ends(facts: ClusterFacts, served: ServedConsumer) -> _Ends:
    """Return the deadlines if each of them is short or unread; nothing if one is long enough.

    A consumer that is not bound to a server needs only one server for long enough.
    """
    soon: list[tuple[str, GtidSet, LogDeadline]] = []
    unread: list[tuple[str, str]] = []
    for answer in served.decisive:
        if answer.outcome is not Outcome.SERVED:
            continue
        server = facts.last[answer.source]
        if answer.fetched and (undecided := undecided_retention(server)):
            unread.append((server.name, undecided))
            continue
        if not answer.fetched or retention_of(server) is None:
            return _Ends()
        deadline = deadline_of(server, answer.fetched)
        if deadline is not None:
            if not _is_short(facts, deadline):
                return _Ends()
            soon.append((server.name, answer.fetched, deadline))
        elif server.history_evidence is not None and server.history_evidence.unread:
            unread.append((server.name, server.history_evidence.unread))
    return _Ends(tuple(soon), tuple(unread))


def _is_short(facts: ClusterFacts, deadline: LogDeadline) -> bool:
    limit = timedelta(seconds=facts.policy.runway_seconds_min)
    return deadline.until - moment_read(facts) < min(limit, deadline.retention.period / 2)


def _longest(facts: ClusterFacts, answers: Collection[SourceAnswer]) -> LogDeadline | None:
    """Return the latest of the servers' deadlines; None if one has none, or it is not known."""
    found = [deadline_of(facts.last[each.source], each.fetched) for each in answers]
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: each.until) if len(known) == len(found) and known else None


def _short(facts: ClusterFacts, served: ServedConsumer) -> Iterator[Finding]:
    """Yield P4 if every server that serves the set can soon delete a log that it would send."""
    ends = _ends(facts, served)
    if ends.unread or not ends.soon:
        return
    name, needed, deadline = max(ends.soon, key=lambda each: each[2].until)
    server, retention = facts.last[name], deadline.retention
    made = finding(
        facts,
        "P4",
        source=name,
        replica=served.name,
        gtid_set=needed,
        severity=Severity.WARNING,
        grade=Grade.LIKELY,
        strategies=("raise_retention", "new_snapshot"),
        proof=(*_proof(facts, served, ()), *log_evidence(server, needed, deadline)),
        explanation=f"{served.name} needs {many(needed)} from the binary logs of {name}, from"
        f" {deadline.reach.file} on. {name} keeps logs for"
        f" {lasting(int(retention.period.total_seconds()))} ({retention.setting}):"
        f" {when_deleted(deadline, moment_read(facts))} A consumer that still reads it delays that;"
        " PURGE BINARY LOGS, or a service that deletes logs by its own rule, does not wait for it.",
    )
    yield replace(made, deadline=deadline.until)
