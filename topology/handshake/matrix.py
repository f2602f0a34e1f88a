"""All pairs of a cluster: which server could replicate from which other one now.

1. A server that was not read, or that was restarted or reset between its readings, is UNKNOWN in
   its row and its column.
2. What is on its way to a source, and what differs under one GTID, comes from the audit.
3. The verdict answers whether a failover is possible: OK if each server could replicate from each
   other, WARNING if there is at least one source for all, CRITICAL if there is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import ClusterAudit, Grade, Severity, Verdict
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.cluster_readings import read_twice
from topology.handshake.source_answer import (
    AnsweringSource,
    Offer,
    Outcome,
    SourceAnswer,
    source_answer,
)
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ReadTwice

OFFERED: Final = "the offered set"
_ON_ITS_WAY: Final = frozenset({"T1", "T2", "T3"})


@dataclass(frozen=True, slots=True)
class HandshakeMatrix:
    """The answers of every server to every other."""

    cluster: str
    servers: tuple[str, ...]
    answers: tuple[SourceAnswer, ...]  # by replica, then by source
    unread: tuple[tuple[str, str], ...]  # (server, why it could not be evaluated)

    def answer(self, *, replica: str, source: str) -> SourceAnswer:
        """Return one cell. Raises KeyError."""
        for each in self.answers:
            if (each.replica, each.source) == (replica, source):
                return each
        raise KeyError((replica, source))

    def of_source(self, source: str) -> tuple[SourceAnswer, ...]:
        """Return the answers of one source to all the others."""
        return tuple(each for each in self.answers if each.source == source)

    def of_replica(self, replica: str) -> tuple[SourceAnswer, ...]:
        """Return the answers of all the others to one server."""
        return tuple(each for each in self.answers if each.replica == replica)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of rule 3."""
        if self.unread or any(each.outcome is Outcome.UNKNOWN for each in self.answers):
            return Verdict.UNKNOWN
        if all(each.attaches for each in self.answers):
            return Verdict.OK
        serving = [
            name for name in self.servers if all(each.attaches for each in self.of_source(name))
        ]
        return Verdict.WARNING if serving else Verdict.CRITICAL


def handshake_matrix(
    snapshot: ClusterSnapshot, audit: ClusterAudit, policy: Policy
) -> HandshakeMatrix:
    """Evaluate all pairs of servers. `audit` is that of the same snapshot and policy."""
    cluster = _Cluster.of(snapshot, audit, policy)
    answers = tuple(
        cluster.cell(replica=replica, source=source)
        for replica in cluster.names
        for source in cluster.names
        if replica != source
    )
    return HandshakeMatrix(snapshot.cluster, cluster.names, answers, tuple(cluster.unread()))


def answers_to_set(
    snapshot: ClusterSnapshot, audit: ClusterAudit, policy: Policy, offered: GtidSet
) -> HandshakeMatrix:
    """Evaluate what every server would answer to a set: one row."""
    cluster = _Cluster.of(snapshot, audit, policy)
    offer = Offer(OFFERED, offered, offered)
    answers = tuple(cluster.answer(offer, source) for source in cluster.names)
    return HandshakeMatrix(snapshot.cluster, cluster.names, answers, tuple(cluster.unread()))


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The facts and findings of one cluster that decide an answer."""

    facts: ClusterFacts
    audit: ClusterAudit
    names: tuple[str, ...]
    readings: dict[str, ReadTwice]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, audit: ClusterAudit, policy: Policy) -> "_Cluster":
        facts = gather_facts(snapshot, policy)
        names = tuple(server.name for server in snapshot.last)
        return cls(facts, audit, names, _comparable(facts))

    def cell(self, *, replica: str, source: str) -> SourceAnswer:
        """Return what a source would answer to a server."""
        if replica not in self.readings:
            return SourceAnswer(source, replica, Outcome.UNKNOWN, unread=f"the sets of {replica}")
        reading = self.readings[replica]
        received = GtidSet.union_of(
            edge.channel.gtid_retrieved
            for edge in self.facts.graph.edges
            if (edge.replica, edge.source) == (replica, source)
        )
        first, last = reading.first, reading.last
        offer = Offer(replica, first.gtid_executed, last.gtid_executed | received, last)
        return self.answer(offer, source)

    def answer(self, offer: Offer, source: str) -> SourceAnswer:
        """Return what a source would answer to an offer."""
        if source not in self.readings:
            return SourceAnswer(source, offer.name, Outcome.UNKNOWN, unread=f"the sets of {source}")
        allowed = GtidSet.union_of(
            offer.executed.from_uuid(uuid) for uuid in self.facts.policy.allowed_uuids
        )
        answering = AnsweringSource(
            source,
            self.readings[source].last,
            committing=self._committing_on(source),
            arriving=self._arriving_on(source, Grade.PROVED),
            may_arrive=self._arriving_on(source, Grade.LIKELY),
        )
        return source_answer(
            offer, answering, allowed=allowed, unlike=self._unlike(offer.name, source)
        )

    def _arriving_on(self, name: str, grade: Grade) -> GtidSet:
        """Return what is on its way to a server, over any number of hops, with this grade.

        Only the rules of T1 to T3 separate it from a hole, which never arrives. They propose to
        wait, unless a stopped thread or UNTIL keeps it.
        """
        upstream = {name, *self.facts.graph.upstream_of(name)}
        return GtidSet.union_of(
            finding.gtid_set
            for finding in self.audit.findings
            if finding.code in _ON_ITS_WAY
            and finding.grade is grade
            and any(each.name == "wait" for each in finding.strategies)
            and finding.replica in upstream
        )

    def _committing_on(self, name: str) -> GtidSet:
        """Return what a server is about to list, and a replica has already (T4)."""
        return GtidSet.union_of(
            finding.gtid_set
            for finding in self.audit.findings
            if finding.code == "T4" and finding.source == name
        )

    def _unlike(self, replica: str, source: str) -> GtidSet:
        """Return the GTIDs under which the logs of two servers have different transactions (E4)."""
        return GtidSet.union_of(
            finding.gtid_set
            for finding in self.audit.findings
            if finding.code == "E4"
            and finding.severity is not Severity.INFO
            and {finding.source, finding.replica} == {source, replica}
        )

    def unread(self) -> Iterator[tuple[str, str]]:
        """Yield the servers that were not evaluated, with the reason."""
        torn = dict(self.facts.torn)
        for server in self.facts.snapshot.last:
            if server.name in self.readings:
                continue
            reasons = "; ".join(f"{each.fact}: {each.detail}" for each in server.unread)
            yield server.name, torn.get(server.name) or reasons or "it was not read twice"


def _comparable(facts: ClusterFacts) -> dict[str, ReadTwice]:
    """Return the servers that were read twice, and neither restarted nor reset in between.

    Unlike `fully_read`, with servers of one server_uuid: they refuse each other.
    """
    torn = {name for name, _ in facts.torn}
    complete = read_twice(facts.snapshot)
    return {name: each for name, each in complete.items() if name not in torn}
