"""All pairs of a cluster: which server could replicate from which other one now.

1. A server that was not read, or that was restarted or reset between its readings, is UNKNOWN in
   its row and its column.
2. What is on its way to a source, and what differs under one GTID, comes from the audit. Whether a
   third server has one content or the other is often not known (unlike_contents.py).
3. Servers of one replication group are answered by the group (group_answers.py). A secondary has
   the answers of its primary to servers outside the group: it receives from them only through it.
4. The verdict answers whether a failover is possible: OK if each server could replicate from each
   other, WARNING if there is at least one source for all, CRITICAL if there is none.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gtid import GtidSet
from topology.catalogue.findings import ClusterAudit, Verdict
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.source_answer import (
    AnsweringSource,
    Offer,
    Outcome,
    SourceAnswer,
)
from topology.facts.unseen import address_of, undeclared_channels
from topology.handshake.group_answers import (
    GroupAnswers,
    GroupState,
    blocked_queues,
    doubts_of_states,
    group_states,
)
from topology.handshake.group_names import doubt_of_names
from topology.handshake.late_extras import extra_text, extras_of
from topology.handshake.left_out_above import left_out_above
from topology.handshake.partial_readings import PartialReading, partial_readings, settled, with_logs
from topology.handshake.server_ids import SharedServerId, logged_ids_of, shared_ids
from topology.handshake.unlike_contents import ContentsOfTwo, UnlikeContents
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ReadTwice
from topology.rules.answering_sources import (
    answer_to,
    answering_source,
    comparable,
    not_comparable,
)


@dataclass(frozen=True, slots=True)
class HandshakeMatrix:
    """The answers of every server to every other."""

    cluster: str
    servers: tuple[str, ...]
    answers: tuple[SourceAnswer, ...]  # by replica, then by source
    unread: tuple[tuple[str, str], ...]  # (server, why it could not be evaluated)
    # What a server has received and not applied: CHANGE REPLICATION SOURCE deletes it.
    unapplied: tuple[tuple[str, GtidSet], ...] = ()
    groups: tuple[GroupState, ...] = ()  # of which the members are known
    # What an ONLINE member has received from its group, and a blocked queue does not apply.
    queues: tuple[tuple[str, GtidSet], ...] = ()
    # (server, source that refuses it, what the server has and the source has not). Rebuilt, the
    # server would lose it.
    beyond: tuple[tuple[str, str, GtidSet], ...] = ()
    compared: tuple[tuple[str, str], ...] = ()  # servers whose contents the audit compared
    shared_ids: tuple[SharedServerId, ...] = ()
    partial: tuple[PartialReading, ...] = ()  # servers with sets, and without another fact

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

    def beyond_of(self, answer: SourceAnswer) -> GtidSet:
        """Return what a refused server has and the source has not; nothing if it is accepted."""
        cell = answer.replica, answer.source
        return GtidSet.union_of(
            extra for replica, source, extra in self.beyond if (replica, source) == cell
        )

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of rule 4."""
        is_open = any(each.outcome is Outcome.UNKNOWN for each in self.answers)
        if self.unread or self.partial or is_open:
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
    return HandshakeMatrix(
        snapshot.cluster,
        cluster.names,
        answers,
        (*not_comparable(cluster.facts), *cluster.not_listed(policy), *cluster.absent(policy)),
        tuple(cluster.unapplied()),
        group_states(cluster.facts),
        tuple(blocked_queues(cluster.facts, audit.findings)),
        tuple(cluster.beyond(answers)),
        snapshot.contents.pairs if snapshot.contents is not None else (),
        tuple(shared_ids(cluster.facts, answers)),
        cluster.partial,
    )


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The facts and findings of one cluster that decide an answer."""

    facts: ClusterFacts
    audit: ClusterAudit
    names: tuple[str, ...]
    readings: dict[str, ReadTwice]
    sources: dict[str, AnsweringSource]  # with what the audit knows to be on its way to them
    groups: GroupAnswers
    contents: UnlikeContents
    partial: tuple[PartialReading, ...]
    filters: dict[str, tuple[str, ...]]  # by source: what filters above it may have kept from it
    extras: GtidSet  # what only some servers should have

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, audit: ClusterAudit, policy: Policy) -> "_Cluster":
        facts = gather_facts(snapshot, policy)
        readings = comparable(facts)
        return cls(
            facts,
            audit,
            tuple(server.name for server in snapshot.last),
            readings,
            {
                name: answering_source(facts, audit.findings, each.last)
                for name, each in readings.items()
            },
            GroupAnswers(facts, audit.findings),
            UnlikeContents.of(
                audit.findings,
                snapshot.contents,
                {name: each.last.gtid_executed for name, each in readings.items()},
                {name: each.last.logged for name, each in readings.items()},
            ),
            partial_readings(facts),
            {name: tuple(left_out_above(name, facts.graph, facts.last)) for name in readings},
            extras_of(audit.findings, facts.last.values()),
        )

    def cell(self, *, replica: str, source: str) -> SourceAnswer:
        """Return what a source, or the group of both, would answer to a server."""
        found = settled(self._cell(replica=replica, source=source), self.partial, self.facts)
        if found.through and not found.group:
            return found  # its primary has them
        return found.with_doubts(self.filters.get(source, ()))

    def _cell(self, *, replica: str, source: str) -> SourceAnswer:
        for name in (replica, source):
            if name not in self.readings:
                unread = f"the sets of {name}"
                return SourceAnswer(source, replica, Outcome.UNKNOWN, unread=unread)
        contents = self.contents.between(replica, source)
        by_group = self.groups.between(replica=replica, source=source, unlike=contents.unlike)
        if by_group is not None:
            return _with_contents(by_group, contents)
        primary, unread = self.groups.stand_in(replica)
        if unread:
            return SourceAnswer(source, replica, Outcome.UNKNOWN, unread=unread)
        if primary is not None:
            return replace(
                self.cell(replica=primary, source=source), replica=replica, through=primary
            )
        first, last = self.readings[replica].first, self.readings[replica].last
        on_its_channel = GtidSet.union_of(
            edge.channel.gtid_retrieved
            for edge in self.facts.graph.edges
            if (edge.replica, edge.source) == (replica, source)
            # To change from a file position to auto-position deletes the relay log.
            and edge.channel.auto_position
        )
        offer = Offer(
            replica,
            first.gtid_executed,
            first.gtid_retrieved,
            last.gtid_executed | on_its_channel,
            last,
            self.facts.graph.group_uuids,
            logged_ids_of(self.facts, self.audit.findings, replica),
            last.gtid_retrieved - self._passed(replica),
        )
        answering = self.sources[source]
        answer = answer_to(self.facts, offer, answering, contents.unlike)
        answer = with_logs(answer, answering.last)
        doubts = [*doubts_of_states(last, answering.last)]
        if names := doubt_of_names(self.facts, replica=replica, source=source):
            doubts.append(names)
        if offer.executed:  # a server without any executes all in the order of the log
            answer = replace(answer, extra=answer.fetched & self.extras)
        doubts += extra_text(replica, answer.extra)
        return _with_contents(replace(answer, doubts=(*answer.doubts, *doubts)), contents)

    def _passed(self, replica: str) -> GtidSet:
        """Return what the appliers of a server have passed: it waits in no relay log any more."""
        return GtidSet.union_of(
            each.gtid_set
            for each in self.audit.findings
            if (each.code, each.replica) == ("H8", replica)
        )

    def not_listed(self, policy: Policy) -> Iterator[tuple[str, str]]:
        """Yield the sources that were not read: only they may have some transactions."""
        found: dict[str, list[str]] = {}
        for name, channel in undeclared_channels(self.facts.graph, policy, read=()):
            found.setdefault(address_of(channel), []).append(name)
        for address, replicas in sorted(found.items()):
            names = ", ".join(sorted(set(replicas)))
            yield address, f"it is the source of {names}, and is not one of these servers"

    def absent(self, policy: Policy) -> Iterator[tuple[str, str]]:
        """Yield the members that are not part of the audit: they may have more."""
        known = {server.server_uuid for server in self.facts.last.values()}
        for membership in self.facts.graph.memberships:
            for each in membership.absent:
                if each.server_uuid not in known and each.address not in policy.external_sources:
                    group = f"the group {membership.name}"
                    yield each.address, f"it is a member of {group}, and not one of these servers"

    def unapplied(self) -> Iterator[tuple[str, GtidSet]]:
        """Yield what servers have received and not executed, by server."""
        for name, reading in self.readings.items():
            left = reading.last.gtid_retrieved - reading.last.gtid_executed
            if left:
                yield name, left

    def beyond(self, answers: Iterable[SourceAnswer]) -> Iterator[tuple[str, str, GtidSet]]:
        """Yield what servers have that a source has not, if it refuses them."""
        for each in answers:
            if each.refusal is None or each.group:
                continue
            source = self.sources[each.source]
            extra = self.readings[each.replica].first.gtid_executed - source.has - source.arriving
            for uuid in self.facts.policy.allowed_uuids:
                extra = extra.without_uuid(uuid)
            if extra:
                yield each.replica, each.source, extra


def _with_contents(answer: SourceAnswer, contents: ContentsOfTwo) -> SourceAnswer:
    """Return an answer with what is not known of the contents of the two servers."""
    if contents.unread and answer.attaches:
        return SourceAnswer(
            answer.source,
            answer.replica,
            Outcome.UNKNOWN,
            unread=contents.unread,
            group=answer.group,
        )
    unread = (contents.unread,) if contents.unread else ()
    return replace(answer, doubts=(*answer.doubts, *contents.doubts, *unread))
