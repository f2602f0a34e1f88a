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
*donor*: a server that serves it and sends all that the candidate has purged. A server whose
obstacle no statement clears (`blocked`) is not pointed.

In a replication group nothing is pointed: its members follow the primary that they elect. A member
that is ONLINE needs one statement to become the primary. A server that is not a member has to join
first, and if no server is one, it would bootstrap the group.

The best candidate is one that its group does not refuse, with which the fewest transactions are
lost; then the one that refuses the fewest servers, then the one from which the most can replicate
without losing or hiding anything, then the one that misses the fewest transactions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.group_answers import GroupState, group_of
from topology.handshake.matrix import HandshakeMatrix


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One server that could not follow the candidate, or would hide something below it."""

    answer: SourceAnswer
    donor: str | None = None  # it serves the server until the candidate can

    def is_cleared_by(self, fetched: GtidSet) -> bool:
        """Return whether a donor, or what the candidate fetches first, removes it."""
        answer = self.answer
        if answer.refusal is FailedCheck.PURGED:
            return self.donor is not None
        is_hidden_only = answer.outcome is Outcome.DIVERGED and not (
            answer.unlike or answer.dropped
        )
        return is_hidden_only and answer.gtid_set <= fetched


@dataclass(frozen=True, slots=True)
class Missing:
    """Transactions that the candidate does not have, and the server that would send them."""

    gtid_set: GtidSet
    donor: str | None  # None: no server can send them
    is_recovered: bool = False  # the candidate gets them by joining its group, not by a channel


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
            (each.answer.joins == self.candidate and each.answer.refusal is not None)
            or bool(each.answer.group and each.answer.unlike)
            for each in self.obstacles
        )

    @property
    def blocked(self) -> frozenset[str]:
        """Return the servers that must not follow the candidate before a repair."""
        fetched = GtidSet.union_of(each.gtid_set for each in self.missing if each.donor)
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
    obstacles = tuple(
        Obstacle(each, _donor(matrix, each))
        for each in answers
        if not each.attaches and each.outcome is not Outcome.UNKNOWN
    )
    missing = tuple(_missing(matrix, candidate))
    ranked = sorted(matrix.servers, key=lambda name: _cost(matrix, name))
    is_best = _cost(matrix, ranked[0])[:-1] == _cost(matrix, candidate)[:-1]
    arrives = GtidSet.union_of(each.ahead for each in answers)
    doubts = tuple(dict.fromkeys(doubt for each in answers for doubt in each.doubts))
    group = group_of(matrix.groups, candidate)
    joins = group is not None and candidate not in group.online
    return Promotion(
        candidate,
        _verdict(
            obstacles,
            missing,
            (*unread, *open_),
            waits=bool(joins or arrives or matrix.unapplied or doubts),
        ),
        arrives,
        matrix.unapplied,
        missing,
        obstacles,
        None if is_best else ranked[0],
        tuple(sorted(unread)),
        tuple(sorted(open_.items())),
        doubts,
        matrix.groups,
    )


def _verdict(
    obstacles: tuple[Obstacle, ...],
    missing: tuple[Missing, ...],
    unread: tuple[str, ...],
    *,
    waits: bool,
) -> Verdict:
    is_lost = any(each.donor is None for each in missing)
    is_stranded = any(
        each.donor is None and each.answer.outcome is Outcome.REFUSED for each in obstacles
    )
    if is_lost or is_stranded:
        return Verdict.CRITICAL
    if unread:
        return Verdict.UNKNOWN
    return Verdict.WARNING if obstacles or missing or waits else Verdict.OK


def _missing(matrix: HandshakeMatrix, candidate: str) -> Iterator[Missing]:
    """Yield what other servers have and the candidate neither has nor is about to receive."""
    wanted = GtidSet.union_of(
        each.gtid_set
        for each in matrix.of_source(candidate)
        if each.outcome is Outcome.DIVERGED
        or each.refusal is FailedCheck.MORE_GTIDS
        or (each.refusal is FailedCheck.NOT_IN_GROUP and each.joins == each.replica)
    )
    answers = matrix.of_replica(candidate)
    for answer in sorted(answers, key=lambda each: not each.joins):  # recovery first
        if answer.outcome in (Outcome.REFUSED, Outcome.UNKNOWN):
            continue
        # A member fetches nothing from another one by a channel.
        part = answer.fetched & wanted if answer.joins or not answer.group else GtidSet()
        if part:
            yield Missing(part, answer.source, is_recovered=bool(answer.joins))
            wanted -= part
    if wanted:
        yield Missing(wanted, None)


def _donor(matrix: HandshakeMatrix, refused: SourceAnswer) -> str | None:
    """Return a server that sends a refused one all that the candidate has purged."""
    if refused.refusal is not FailedCheck.PURGED:
        return None
    donors = (
        answer.source
        for answer in matrix.of_replica(refused.replica)
        if answer.attaches and refused.gtid_set <= answer.fetched
    )
    return next(donors, None)


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
