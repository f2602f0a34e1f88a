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
something that it has not applied (`unapplied`): the steps end with the wait. The same holds while a
fact of a server was not read (`partial`): its relay log may have something, or its group, or a
source.

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

The best candidate is one that its group does not refuse, whose version does not refuse all others,
with which the fewest transactions are lost; then the one that refuses the fewest servers, then the
one from which the most can replicate without losing or hiding anything, then the one that misses
the fewest transactions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gtid import GtidSet
from topology.catalogue.findings import Verdict
from topology.facts.late_transactions import late_text
from topology.facts.memberships import uuid_of_group
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.handshake.group_answers import GroupState, group_of
from topology.handshake.late_extras import extra_text
from topology.handshake.matrix import HandshakeMatrix
from topology.handshake.partial_readings import PartialReading
from topology.handshake.promotion_ways import (
    Missing,
    Obstacle,
    bootstraps,
    fetched_first,
    fetching_answers,
    missing_of,
    obstacle_of,
)
from topology.handshake.server_ids import SharedServerId, to_renumber


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
    partial: tuple[PartialReading, ...] = ()  # servers of which a fact was not read: nothing moves

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

        The group refuses it, or has another content under a GTID: its recovery would stop there. Or
        recovery would fill a hole of it, after what it has executed since.
        """
        group = self.group
        is_online = group is None or self.candidate in group.online
        return not is_online and any(
            each.refuses(self.candidate)
            or each.is_late(self.candidate)
            or bool(each.answer.group and each.answer.unlike)
            for each in self.obstacles
        )

    @property
    def is_to_be_repaired(self) -> bool:
        """Return whether the candidate must be repaired before any server follows it.

        It misses what its channel would execute after later transactions, or what has two contents.
        """
        return any(each.late or each.apart for each in self.missing)

    @property
    def bootstraps(self) -> bool:
        """Return whether the candidate would bootstrap its group."""
        return bootstraps(self.group)

    @property
    def before_bootstrap(self) -> tuple[Missing, ...]:
        """Return what the candidate must have before its group is bootstrapped from it.

        What no server can send, and what no group commits, is lost either way.
        """
        if not bootstraps(self.group):
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
        fetched = fetched_first(self.missing, self.group)
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
    missing = tuple(missing_of(matrix, candidate))
    fetched = fetched_first(missing, group)
    obstacles = tuple(
        obstacle_of(matrix, each, fetched)
        for each in answers
        if not each.may_be_pointed and each.outcome is not Outcome.UNKNOWN
    )
    ranked = sorted(matrix.servers, key=lambda name: _cost(matrix, name))
    # What was not read of one of the two may make the other one the better candidate.
    is_undecided = not {ranked[0], candidate}.isdisjoint(each.server for each in matrix.partial)
    is_best = is_undecided or _cost(matrix, ranked[0])[:-1] == _cost(matrix, candidate)[:-1]
    # Which of two contents under one GTID (E4) is right is not for a count to decide.
    is_best |= any(each.unlike for each in matrix.of_source(ranked[0]))
    arrives = GtidSet.union_of(each.ahead for each in answers)
    fetching = fetching_answers(matrix, missing, obstacles)
    doubts = _doubts_of((*answers, *fetching))
    joins = group is not None and candidate not in group.online
    queued = tuple(each for each in matrix.queues if each[0] == candidate)
    unapplied = (*matrix.unapplied, *queued)
    renumbered = to_renumber(matrix.shared_ids, candidate)
    return Promotion(
        candidate,
        _verdict(
            obstacles,
            missing,
            (*unread, *open_, *(each.server for each in matrix.partial)),
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
        matrix.partial,
    )


def _doubts_of(answers: Iterable[SourceAnswer]) -> tuple[str, ...]:
    """Return the doubts of answers, each once. What is out of order has a step of its own."""
    return tuple(
        dict.fromkeys(
            doubt
            for each in answers
            for doubt in each.doubts
            if doubt not in (*late_text(each.joins or each.replica, each.late), *_extra(each))
        )
    )


def _extra(answer: SourceAnswer) -> Iterator[str]:
    return extra_text(answer.replica, answer.extra)


def _verdict(
    obstacles: tuple[Obstacle, ...],
    missing: tuple[Missing, ...],
    unread: tuple[str, ...],
    *,
    fetched: GtidSet,
    waits: bool,
) -> Verdict:
    is_lost = any(each.donor is None and not each.is_open for each in missing)
    is_stranded = any(
        each.answer.outcome is Outcome.REFUSED and not (each.is_cleared_by(fetched) or each.is_open)
        for each in obstacles
    )
    if is_lost or is_stranded:
        return Verdict.CRITICAL
    is_open = any(each.is_open for each in missing) or any(each.is_open for each in obstacles)
    if unread or is_open:
        return Verdict.UNKNOWN
    return Verdict.WARNING if obstacles or missing or waits else Verdict.OK


def _cost(matrix: HandshakeMatrix, name: str) -> tuple[bool, int, int, int, int, int, str]:
    answers = matrix.of_source(name)
    missing = GtidSet.union_of(each.gtid_set | each.ahead for each in answers if not each.attaches)
    lost = GtidSet.union_of(
        each.gtid_set for each in missing_of(matrix, name) if each.donor is None
    )
    return (
        any(each.joins == name and each.refusal is not None for each in answers)
        or (bool(answers) and all(each.refusal is FailedCheck.VERSIONS for each in answers)),
        sum(each.outcome is Outcome.UNKNOWN for each in answers),
        lost.gtid_count,
        sum(each.outcome is Outcome.REFUSED for each in answers),
        sum(not each.may_be_pointed for each in answers),
        missing.gtid_count,
        name,
    )
