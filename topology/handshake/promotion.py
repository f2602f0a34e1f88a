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

The best candidate is the one that refuses the fewest servers, then the one from which the most can
replicate without losing or hiding anything, then the one that misses the fewest transactions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gtid import GtidSet
from topology.catalogue.findings import Verdict
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
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
    doubts: tuple[str, ...] = ()  # what the candidate leaves out, and why it may be otherwise

    @property
    def waits(self) -> bool:
        """Return whether something must be applied before any server is pointed elsewhere."""
        return bool(self.arrives or self.unapplied)

    @property
    def blocked(self) -> frozenset[str]:
        """Return the servers that must not follow the candidate before a repair."""
        fetched = GtidSet.union_of(each.gtid_set for each in self.missing if each.donor)
        return frozenset(
            each.answer.replica for each in self.obstacles if not each.is_cleared_by(fetched)
        )


def promotion_of(matrix: HandshakeMatrix, candidate: str) -> Promotion:
    """Evaluate one candidate. Pure. Raises KeyError for an unknown server."""
    if candidate not in matrix.servers:
        raise KeyError(candidate)
    answers = matrix.of_source(candidate)
    unread = tuple(
        sorted(
            {name for name, _ in matrix.unread}
            | {each.replica for each in answers if each.outcome is Outcome.UNKNOWN}
        )
    )
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
    return Promotion(
        candidate,
        _verdict(obstacles, missing, unread, waits=bool(arrives or matrix.unapplied or doubts)),
        arrives,
        matrix.unapplied,
        missing,
        obstacles,
        None if is_best else ranked[0],
        unread,
        doubts,
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
        if each.outcome is Outcome.DIVERGED or each.refusal is FailedCheck.MORE_GTIDS
    )
    for answer in matrix.of_replica(candidate):
        if answer.outcome not in (Outcome.REFUSED, Outcome.UNKNOWN):
            part = answer.fetched & wanted
            if part:
                yield Missing(part, answer.source)
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


def _cost(matrix: HandshakeMatrix, name: str) -> tuple[int, int, int, int, str]:
    answers = matrix.of_source(name)
    missing = GtidSet.union_of(each.gtid_set | each.ahead for each in answers if not each.attaches)
    return (
        sum(each.outcome is Outcome.UNKNOWN for each in answers),
        sum(each.outcome is Outcome.REFUSED for each in answers),
        sum(not each.attaches for each in answers),
        missing.gtid_count,
        name,
    )
