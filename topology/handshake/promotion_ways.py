"""How a candidate, and a server that it refuses, get what they miss: from which server.

What is not known of a server is no reason to say that it sends nothing. If no other server is known
to send it, the way is open (`is_open`), and the verdict is UNKNOWN, not CRITICAL. A binary log that
is gone is known: what only that log may have is lost.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from gtid import GtidSet
from topology.facts.missing_logs import STAYS
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.group_answers import GroupState, group_of
from topology.handshake.matrix import HandshakeMatrix

_NOTHING_SENT: Final = frozenset({Outcome.REFUSED, Outcome.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One server that could not follow the candidate, or would hide something below it."""

    answer: SourceAnswer
    donor: str | None = None  # it serves the server until the candidate can
    beyond: GtidSet = field(default_factory=GtidSet)  # a rebuild of the server would lose it
    is_open: bool = False  # no donor is known, and the answer of another server is not known

    def is_cleared_by(self, fetched: GtidSet) -> bool:
        """Return whether a donor, or what the candidate fetches first, removes it."""
        answer = self.answer
        if answer.refusal is FailedCheck.PURGED:
            return self.donor is not None and self.beyond <= fetched
        if answer.refusal is FailedCheck.NOT_IN_GROUP:  # once the group has it, the server may join
            return answer.joins == answer.replica and answer.gtid_set <= fetched
        is_hidden_only = answer.outcome is Outcome.DIVERGED and not (
            answer.unlike or answer.dropped or answer.out_of_order
        )
        return is_hidden_only and answer.gtid_set <= fetched

    def is_late(self, joining: str) -> bool:
        """Return whether recovery would fill a hole of this server, after later ones."""
        return self.answer.joins == joining and bool(self.answer.late)

    def refuses(self, joining: str) -> bool:
        """Return whether the group refuses this server, and no donor makes it acceptable."""
        answer = self.answer
        return answer.joins == joining and answer.refusal is not None and self.donor is None


@dataclass(frozen=True, slots=True)
class Missing:
    """Transactions that the candidate does not have, and the server that would send them."""

    gtid_set: GtidSet
    donor: str | None  # None: no server can send them, or, if `is_open`, none is known to
    is_recovered: bool = False  # the candidate gets them by joining its group, not by a channel
    # Who fetches them by a channel: the candidate, or the primary of its group; "" if none does.
    receiver: str = ""
    holders: tuple[str, ...] = ()  # the servers that have some of them
    is_open: bool = False  # whether a holder can send them is not known
    # Under these, the holders differ (E4), or one of them and who would fetch: first a repair.
    apart: GtidSet = field(default_factory=GtidSet)
    # Who would fetch executes these after later ones (late_transactions.py): first a repair.
    late: GtidSet = field(default_factory=GtidSet)
    # Who fetches may execute these after later ones (late_extras.py): first compare the rows.
    extra: GtidSet = field(default_factory=GtidSet)


def bootstraps(group: GroupState | None) -> bool:
    """Return whether the candidate would bootstrap its group: no server is a member now."""
    return group is not None and not group.members


def fetched_first(missing: tuple[Missing, ...], group: GroupState | None) -> GtidSet:
    """Return what a donor sends first. A group that the candidate bootstraps sends nothing."""
    return GtidSet.union_of(
        each.gtid_set
        for each in missing
        if each.donor and not (each.is_recovered and bootstraps(group))
    )


def missing_of(matrix: HandshakeMatrix, candidate: str) -> Iterator[Missing]:
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

    contested = _contested(matrix, _holders(holding, wanted)) & wanted
    apart, late = contested, GtidSet()
    for part, donor, receiver in _ways(matrix, candidate):
        answer = matrix.answer(replica=receiver or candidate, source=donor)
        unlike = answer.unlike if receiver else GtidSet()
        if answer.late:  # this way would bring them, too
            late |= answer.late
        elif receiver and (unlike or part & contested):
            apart |= unlike
        elif taken := part & wanted:
            holders = _holders(holding, taken)
            yield Missing(taken, donor, not receiver, receiver, holders, extra=answer.extra)
            wanted -= taken
    if not wanted:
        return
    holders = _holders(holding, wanted)
    receivers = {candidate, _fetcher(matrix, candidate)}
    is_open = any(
        _is_open(each) and each.source in holders
        for receiver in receivers
        for each in matrix.of_replica(receiver)
    )
    is_open = is_open and not (apart or late)
    yield Missing(wanted, None, holders=holders, is_open=is_open, apart=apart, late=late)


def _contested(matrix: HandshakeMatrix, holders: Iterable[str]) -> GtidSet:
    """Return the GTIDs under which two servers have other contents (E4).

    A channel from either of them would decide which content the candidate and those below it have.
    """
    return GtidSet.union_of(
        matrix.answer(replica=one, source=other).unlike for one, other in combinations(holders, 2)
    )


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
    if not bootstraps(group):
        yield from recovery
    receiver = _fetcher(matrix, candidate)
    by_receiver = {donor: part for part, donor, _ in _by_channel(matrix, receiver)}
    yield from ((part, donor, receiver) for donor, part in by_receiver.items())
    if group is not None and receiver != candidate and candidate not in group.online:
        # Before it joins, from a server that brings nothing that the group will not have then.
        for part, donor, name in _by_channel(matrix, candidate):
            extra = _extra(matrix, of=donor, on=receiver)
            if extra <= by_receiver.get(donor, GtidSet()):
                yield part - extra, donor, name
    if bootstraps(group):
        yield from recovery


def _fetcher(matrix: HandshakeMatrix, candidate: str) -> str:
    """Return who fetches for the candidate by a channel: itself, or the primary of its group."""
    group = group_of(matrix.groups, candidate)
    if group is not None and group.members and candidate not in group.primaries:
        return next(iter(group.primaries), candidate)
    return candidate


def _joins(group: GroupState | None, answer: SourceAnswer) -> bool:
    """Return whether the candidate would join these members, and not another part of its group.

    After a partition, a member of the largest part stays there: no recovery brings it anything.
    """
    if group is None or answer.replica in group.online:
        return False
    return bootstraps(group) or answer.source in group.members


def _by_channel(matrix: HandshakeMatrix, receiver: str) -> Iterator[tuple[GtidSet, str, str]]:
    """Yield what a server could fetch from each other one; members fetch nothing by a channel."""
    for each in matrix.of_replica(receiver):
        if not each.group and each.outcome not in _NOTHING_SENT:
            yield each.fetched, each.source, receiver


def obstacle_of(matrix: HandshakeMatrix, answer: SourceAnswer, fetched: GtidSet) -> Obstacle:
    """Return an obstacle with a server that sends a refused one all that the candidate has purged.

    By a channel, it sends all that it has: what the candidate, or the group, would not have is
    spread by that.
    """
    beyond = matrix.beyond_of(answer)
    if answer.refusal is not FailedCheck.PURGED:
        return Obstacle(answer, None, beyond)
    server = answer.joins or answer.replica
    target = answer.replica if server == answer.source else answer.source
    is_open = False
    for each in matrix.of_replica(server):
        if _is_open(each) and each.source != target:
            is_open = True
        if each.group or not each.attaches or not answer.gtid_set <= each.fetched:
            continue
        if not _is_extra_known(matrix, of=each.source, on=target):
            is_open = True
        elif _extra(matrix, of=each.source, on=target) <= fetched:
            return Obstacle(answer, each.source, beyond)
    return Obstacle(answer, None, beyond, is_open)


def _is_open(answer: SourceAnswer) -> bool:
    """Return whether another reading may show that a source sends; a log that is gone stays so."""
    return answer.outcome is Outcome.UNKNOWN and not answer.unread.endswith(STAYS)


def fetching_answers(
    matrix: HandshakeMatrix, missing: Iterable[Missing], obstacles: Iterable[Obstacle]
) -> Iterator[SourceAnswer]:
    """Yield the answers of the servers from which the steps let others fetch."""
    for way in missing:
        if way.donor is not None and way.receiver:
            yield matrix.answer(replica=way.receiver, source=way.donor)
    for each in obstacles:
        if each.donor is not None:
            server = each.answer.joins or each.answer.replica
            yield matrix.answer(replica=server, source=each.donor)


def _is_extra_known(matrix: HandshakeMatrix, *, of: str, on: str) -> bool:
    return of == on or matrix.answer(replica=of, source=on).outcome is not Outcome.UNKNOWN


def _extra(matrix: HandshakeMatrix, *, of: str, on: str) -> GtidSet:
    """Return what a server has and another one neither has nor is about to receive."""
    if of == on:
        return GtidSet()
    answer = matrix.answer(replica=of, source=on)
    hidden = answer.gtid_set if answer.outcome is Outcome.DIVERGED else GtidSet()
    return hidden | matrix.beyond_of(answer)
