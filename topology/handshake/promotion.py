"""May this server become the source of all others: what breaks, and in which order to repair.

How it works
------------
A failover points every other server to the candidate. Two things decide it: what the candidate
answers to each of them (matrix.py), and which transactions it does not have itself.

* *arrives*: on its way to the candidate. Wait until it has applied them.
* *fetched*: the candidate misses them, and another server can send them. The candidate replicates
  from that server first.
* *lost*: the candidate misses them, and no server can send them to it.

CHANGE REPLICATION SOURCE deletes the relay log. After a crash of the source, a relay log may be the
only place of its last transactions. So nothing is pointed anywhere while a server has received
something that it has not applied (`unapplied`): the steps end with the wait.

After that: let the candidate fetch, clear what would be refused or hidden, then point each server
to it. A server that the candidate refuses because it has purged (1236) can first replicate from a
*donor*: a server that serves it and sends all that the candidate has purged, and nothing that the
candidate would not have. A server whose obstacle no statement clears (`blocked`) is not pointed.

In a replication group nothing is pointed: its members follow the primary that they elect. A member
that is ONLINE needs one statement to become the primary. A server that is not a member has to join
first, and if no server is one, it would bootstrap the group.

What no member has reaches a group by a channel of its primary (`Missing.receiver`): a secondary has
no receiver (13117), and the group refuses a server that has fetched it before it joins (3092). A
group commits under its name. If it is bootstrapped from a server that misses GTIDs of that name, it
uses them for other transactions, and the server that has them differs from then on (E4), although
its set looks complete. So these come first (`before_bootstrap`), and the group is bootstrapped only
after another reading.

The best candidate is one that its group does not refuse, with which the fewest transactions are
lost; then the one that refuses the fewest servers, then the one from which the most can replicate
without losing or hiding anything, then the one that misses the fewest transactions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Verdict
from topology.facts.memberships import uuid_of_group
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.group_answers import GroupState, group_of
from topology.handshake.matrix import HandshakeMatrix
from topology.handshake.server_ids import SharedServerId, to_renumber

_NOTHING_SENT: Final = frozenset({Outcome.REFUSED, Outcome.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One server that could not follow the candidate, or would hide something below it."""

    answer: SourceAnswer
    donor: str | None = None  # it serves the server until the candidate can
    beyond: GtidSet = field(default_factory=GtidSet)  # a rebuild of the server would lose it

    def is_cleared_by(self, fetched: GtidSet) -> bool:
        """Return whether a donor, or what the candidate fetches first, removes it."""
        answer = self.answer
        if answer.refusal is FailedCheck.PURGED:
            return self.donor is not None and self.beyond <= fetched
        if answer.refusal is FailedCheck.NOT_IN_GROUP:  # once the group has it, the server may join
            return answer.joins == answer.replica and answer.gtid_set <= fetched
        is_hidden_only = answer.outcome is Outcome.DIVERGED and not (
            answer.unlike or answer.dropped
        )
        return is_hidden_only and answer.gtid_set <= fetched

    def refuses(self, joining: str) -> bool:
        """Return whether the group refuses this server, and no donor makes it acceptable."""
        answer = self.answer
        return answer.joins == joining and answer.refusal is not None and self.donor is None


@dataclass(frozen=True, slots=True)
class Missing:
    """Transactions that the candidate does not have, and the server that would send them."""

    gtid_set: GtidSet
    donor: str | None  # None: no server can send them
    is_recovered: bool = False  # the candidate gets them by joining its group, not by a channel
    # Who fetches them by a channel: the candidate, or the primary of its group; "" if none does.
    receiver: str = ""
    holders: tuple[str, ...] = ()  # the servers that have some of them


@dataclass(frozen=True, slots=True)
class Promotion:
    """The answer to "may `candidate` be promoted"."""

    candidate: str
    verdict: Verdict
    arrives: GtidSet
    unapplied: tuple[tuple[str, GtidSet], ...]
    missing: tuple[Missing, ...]
    obstacles: tuple[Obstacle, ...]
    best: str | None  # another server that would do better; None: no other does
    unread: tuple[str, ...]
    open: tuple[tuple[str, str], ...]  # (server that was read, what of its answer is not known)
    doubts: tuple[str, ...] = ()  # what the candidate leaves out, and why it may be otherwise
    groups: tuple[GroupState, ...] = ()
    # The servers that need another server_id: what they drop would never arrive from the candidate.
    shared_ids: tuple[SharedServerId, ...] = ()
    # What the candidate would send to each server that gets anything.
    due: tuple[tuple[str, GtidSet], ...] = ()

    @property
    def group(self) -> GroupState | None:
        """Return the group that the candidate is a member of, or configured for."""
        return group_of(self.groups, self.candidate)

    @property
    def waits(self) -> bool:
        """Return whether something must be applied before any server is pointed elsewhere."""
        return bool(self.arrives or self.unapplied)

    @property
    def is_kept_out(self) -> bool:
        """Return whether the candidate must not join its group before a repair.

        The group refuses it, or has another content under a GTID: its recovery would stop there.
        """
        group = self.group
        is_online = group is None or self.candidate in group.online
        return not is_online and any(
            each.refuses(self.candidate) or bool(each.answer.group and each.answer.unlike)
            for each in self.obstacles
        )

    @property
    def bootstraps(self) -> bool:
        """Return whether the candidate would bootstrap its group."""
        return _bootstraps(self.group)

    @property
    def before_bootstrap(self) -> tuple[Missing, ...]:
        """Return what the candidate must have before its group is bootstrapped from it.

        What no server can send, and what no group commits, is lost either way.
        """
        if not _bootstraps(self.group):
            return ()
        assert self.group is not None, "it bootstraps its group"
        uuid = uuid_of_group(self.group.name)
        return tuple(
            each
            for each in self.missing
            if each.donor or (uuid is not None and each.gtid_set.from_uuid(uuid))
        )

    @property
    def blocked(self) -> frozenset[str]:
        """Return the servers that must not follow the candidate before a repair."""
        fetched = _fetched(self.missing, self.group)
        return frozenset(
            each.answer.replica for each in self.obstacles if not each.is_cleared_by(fetched)
        )


@dataclass(frozen=True, slots=True)
class PromotionStep:
    """One step: on which server, what, and the statements, if statements can do it."""

    server: str  # "" for all servers
    what: str
    statements: tuple[str, ...] = ()


def promotion_of(matrix: HandshakeMatrix, candidate: str) -> Promotion:
    """Evaluate one candidate. Pure. Raises KeyError for an unknown server."""
    if candidate not in matrix.servers:
        raise KeyError(candidate)
    answers = matrix.of_source(candidate)
    unread = dict(matrix.unread)
    open_ = {
        each.replica: each.unread
        for each in answers
        if each.outcome is Outcome.UNKNOWN and each.replica not in unread
    }
    # What a secondary gets depends on its primary, which is evaluated itself.
    answers = tuple(each for each in answers if each.group or not each.through)
    group = group_of(matrix.groups, candidate)
    missing = tuple(_missing(matrix, candidate))
    fetched = _fetched(missing, group)
    obstacles = tuple(
        Obstacle(each, _donor(matrix, each, fetched), matrix.beyond_of(each))
        for each in answers
        if not each.attaches and each.outcome is not Outcome.UNKNOWN
    )
    ranked = sorted(matrix.servers, key=lambda name: _cost(matrix, name))
    is_best = _cost(matrix, ranked[0])[:-1] == _cost(matrix, candidate)[:-1]
    arrives = GtidSet.union_of(each.ahead for each in answers)
    doubts = tuple(dict.fromkeys(doubt for each in answers for doubt in each.doubts))
    joins = group is not None and candidate not in group.online
    queued = tuple(each for each in matrix.queues if each[0] == candidate)
    unapplied = (*matrix.unapplied, *queued)
    renumbered = to_renumber(matrix.shared_ids, candidate)
    return Promotion(
        candidate,
        _verdict(
            obstacles,
            missing,
            (*unread, *open_),
            fetched=fetched,
            waits=bool(joins or arrives or unapplied or doubts or renumbered),
        ),
        arrives,
        unapplied,
        missing,
        obstacles,
        None if is_best else ranked[0],
        tuple(sorted(unread)),
        tuple(sorted(open_.items())),
        doubts,
        matrix.groups,
        renumbered,
        tuple((each.replica, each.fetched) for each in answers if each.fetched),
    )


def _verdict(
    obstacles: tuple[Obstacle, ...],
    missing: tuple[Missing, ...],
    unread: tuple[str, ...],
    *,
    fetched: GtidSet,
    waits: bool,
) -> Verdict:
    is_lost = any(each.donor is None for each in missing)
    is_stranded = any(
        each.answer.outcome is Outcome.REFUSED and not each.is_cleared_by(fetched)
        for each in obstacles
    )
    if is_lost or is_stranded:
        return Verdict.CRITICAL
    if unread:
        return Verdict.UNKNOWN
    return Verdict.WARNING if obstacles or missing or waits else Verdict.OK


def _bootstraps(group: GroupState | None) -> bool:
    """Return whether the candidate would bootstrap its group: no server is a member now."""
    return group is not None and not group.members


def _fetched(missing: tuple[Missing, ...], group: GroupState | None) -> GtidSet:
    """Return what a donor sends first. A group that the candidate bootstraps sends nothing."""
    return GtidSet.union_of(
        each.gtid_set
        for each in missing
        if each.donor and not (each.is_recovered and _bootstraps(group))
    )


def _missing(matrix: HandshakeMatrix, candidate: str) -> Iterator[Missing]:
    """Yield what other servers have and the candidate neither has nor is about to receive."""
    holding = [
        each
        for each in matrix.of_source(candidate)
        if each.outcome is Outcome.DIVERGED
        or each.refusal is FailedCheck.MORE_GTIDS
        or (each.refusal is FailedCheck.NOT_IN_GROUP and each.joins == each.replica)
    ]
    wanted = GtidSet.union_of(each.gtid_set for each in holding)
    # A member has what its queue has received: it only waits.
    wanted -= GtidSet.union_of(left for name, left in matrix.queues if name == candidate)

    for part, donor, receiver in _ways(matrix, candidate):
        if taken := part & wanted:
            yield Missing(taken, donor, not receiver, receiver, _holders(holding, taken))
            wanted -= taken
    if wanted:
        yield Missing(wanted, None, holders=_holders(holding, wanted))


def _holders(holding: Iterable[SourceAnswer], gtids: GtidSet) -> tuple[str, ...]:
    return tuple(sorted(each.replica for each in holding if gtids & each.gtid_set))


def _ways(matrix: HandshakeMatrix, candidate: str) -> Iterator[tuple[GtidSet, str, str]]:
    """Yield (what it brings, from which server, who receives it) for each way to the candidate.

    "" receives what recovery brings. That comes first, unless the candidate bootstraps its group:
    then no recovery brings anything, and the server that has more would better bootstrap it.
    """
    group = group_of(matrix.groups, candidate)
    recovery = [
        (each.fetched, each.source, "")
        for each in matrix.of_replica(candidate)
        if each.joins == candidate and each.outcome not in _NOTHING_SENT and _joins(group, each)
    ]
    if not _bootstraps(group):
        yield from recovery
    receiver = candidate
    if group is not None and group.members and candidate not in group.primaries:
        receiver = next(iter(group.primaries), candidate)
    by_receiver = {donor: part for part, donor, _ in _by_channel(matrix, receiver)}
    yield from ((part, donor, receiver) for donor, part in by_receiver.items())
    if group is not None and receiver != candidate and candidate not in group.online:
        # Before it joins, from a server that brings nothing that the group will not have then.
        for part, donor, name in _by_channel(matrix, candidate):
            extra = _extra(matrix, of=donor, on=receiver)
            if extra <= by_receiver.get(donor, GtidSet()):
                yield part - extra, donor, name
    if _bootstraps(group):
        yield from recovery


def _joins(group: GroupState | None, answer: SourceAnswer) -> bool:
    """Return whether the candidate would join these members, and not another part of its group.

    After a partition, a member of the largest part stays there: no recovery brings it anything.
    """
    if group is None or answer.replica in group.online:
        return False
    return _bootstraps(group) or answer.source in group.members


def _by_channel(matrix: HandshakeMatrix, receiver: str) -> Iterator[tuple[GtidSet, str, str]]:
    """Yield what a server could fetch from each other one; members fetch nothing by a channel."""
    for each in matrix.of_replica(receiver):
        if not each.group and each.outcome not in _NOTHING_SENT:
            yield each.fetched, each.source, receiver


def _donor(matrix: HandshakeMatrix, refused: SourceAnswer, fetched: GtidSet) -> str | None:
    """Return a server that sends a refused one, by a channel, all that the candidate has purged.

    It sends all that it has: what the candidate, or the group, would not have is spread by that.
    """
    if refused.refusal is not FailedCheck.PURGED:
        return None
    server = refused.joins or refused.replica
    target = refused.replica if server == refused.source else refused.source
    donors = (
        answer.source
        for answer in matrix.of_replica(server)
        if answer.attaches
        and not answer.group
        and refused.gtid_set <= answer.fetched
        and _extra(matrix, of=answer.source, on=target) <= fetched
    )
    return next(donors, None)


def _extra(matrix: HandshakeMatrix, *, of: str, on: str) -> GtidSet:
    """Return what a server has and another one neither has nor is about to receive."""
    if of == on:
        return GtidSet()
    answer = matrix.answer(replica=of, source=on)
    hidden = answer.gtid_set if answer.outcome is Outcome.DIVERGED else GtidSet()
    return hidden | matrix.beyond_of(answer)


def _cost(matrix: HandshakeMatrix, name: str) -> tuple[bool, int, int, int, int, int, str]:
    answers = matrix.of_source(name)
    missing = GtidSet.union_of(each.gtid_set | each.ahead for each in answers if not each.attaches)
    lost = GtidSet.union_of(each.gtid_set for each in _missing(matrix, name) if each.donor is None)
    return (
        any(each.joins == name and each.refusal is not None for each in answers),
        sum(each.outcome is Outcome.UNKNOWN for each in answers),
        lost.gtid_count,
        sum(each.outcome is Outcome.REFUSED for each in answers),
        sum(not each.attaches for each in answers),
        missing.gtid_count,
        name,
    )
