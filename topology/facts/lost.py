"""Why a server does not have transactions of its own UUID that another server holds: pure.

How it works
------------
`facts.lost` contains transactions of the UUID of server *origin* that server *holder* has executed
or received. The origin neither lists nor owns them. Three causes look the same in the sets:

* **a crash** (E3): the origin stopped before its binary log reached the disk, or came back from an
  older copy of its data. The rows are missing on the origin.
* **a reset** (E6): RESET BINARY LOGS AND GTIDS. The rows are there; only the history is gone.
  Executing the transactions again would duplicate their rows, and undoing them would delete rows.
* **by hand** (H7): a session on another server set gtid_next to a GTID of this UUID and committed.
  The origin has never committed it. The origin will use the GTID later, and its replicas then skip
  the transaction.

Each interval of the lost set is evaluated alone, from the evidence of all servers that hold it. So
the cause does not depend on which holder is evaluated:

===================  ===================================================================
server_id            of the transaction in the holder's log. Replicas keep the server_id of
                     the server that executed first. That of another audited server means
                     "by hand", the origin's own excludes it. One of no server proves nothing.
gap                  GTIDs between the origin's highest and the lost one that no server
                     holds. A server assigns its GNOs in order, so a lost tail begins
                     where the origin ends.
received             a channel from the origin has it, so the origin committed it. Otherwise a copy
                     of the origin (equal server_uuid and server_id) may have: the server_id of its
                     transactions is the origin's.
restart              the origin's start time (its clock minus its uptime, within two seconds),
                     compared with the commits of the lost transactions. A start before them shows
                     nothing if its clock is behind the holder's: it may have been set back.
first log            a reset begins log number 1, with empty previous GTIDs, after them. A log
                     begun before them excludes a reset. Its number alone does not, and neither
                     does gtid_purged: FLUSH and PURGE, or SET GLOBAL gtid_purged, change both.
neighbour            the oldest own transaction that both logs hold. If its first commit has
                     the same time in both, and the origin logged it before the lost ones, its
                     history includes the time before them: no reset. If the times differ, the
                     origin began again with this GNO. If they are equal, and the origin logged it
                     again after the lost ones, binary logs were replayed (loss_history.py).
===================  ===================================================================

A restart since the commits, with evidence that excludes a reset, proves E3. If the origin has run
since before the commits, E6 is proved, because a crash needs a restart. After a replay of binary
logs nothing is proved: rows that the replay left out are gone, as after a crash. Everything else is
`likely`, and the finding lists the causes that remain. If the origin has run since before the
commits and its logs exclude a reset, another server, or a session elsewhere, used its UUID.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from gtid import GtidSet
from topology.catalogue.error_texts import ANOTHER_REPLICA, row_of
from topology.catalogue.findings import Grade
from topology.facts.cluster_facts import ClusterFacts, LostFacts
from topology.facts.graph import is_another
from topology.facts.loss_history import signs_of_reset
from topology.facts.restarts import Restart, restart_of
from topology.readings.history_evidence import CommitRecord, ends_of, intervals_of
from topology.readings.snapshot import ReadServer, ServerSnapshot

# The error that a receiver reports when the source refuses its set: 1236, since 8.0 also the
# server's 13114.
_REFUSED = frozenset({1236, 13114})


class Cause(Enum):
    """Why the origin does not have the transactions."""

    CRASH = "E3"
    RESET = "E6"
    BY_HAND = "H7"


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a lost set with one cause."""

    origin: str
    holder: str
    gtid_set: GtidSet
    cause: Cause
    grade: Grade
    restart: Restart
    history: str  # what the logs show about a reset, as text
    is_reset_excluded: bool  # by the logs
    is_replayed: bool  # the logs show that binary logs were replayed since
    is_declaration_excluded: bool  # the holder committed or applied them, instead of gtid_purged
    committed: tuple[datetime, datetime] | None  # first and last known commit
    executed_by: tuple[int, ...]  # server_ids in the holder's log
    commits_until_first: int
    commits_until_all: int


def losses_of(facts: ClusterFacts) -> Iterator[Loss]:
    """Yield the lost parts for every pair of servers, each with its cause."""
    for lost in facts.lost:
        if lost.lost:
            by_hand = GtidSet.union_of(
                _by_hand_in(facts, lost, part) for part in intervals_of(lost.lost)
            )
            if by_hand:
                yield _loss(facts, lost, by_hand, is_by_hand=True)
            if lost.lost - by_hand:
                yield _loss(facts, lost, lost.lost - by_hand, is_by_hand=False)


def samples_of(lost: LostFacts) -> GtidSet:
    """Return the lost GTIDs whose commits decide the cause: both ends of each interval."""
    return GtidSet.union_of(ends_of(lost.lost))


def commits_until(gtid_set: GtidSet, origin: ServerSnapshot) -> tuple[int, int]:
    """Return after how many commits the origin reuses the first of these GTIDs, and all of them.

    A server assigns the smallest free GNO of a TSID to its next transaction (after a restart,
    counting from 1). So the number of commits is that of the free GNOs up to the lost one.
    """
    used = (origin.gtid_executed or GtidSet()) | (origin.gtid_owned or GtidSet())
    first: list[int] = []
    every: list[int] = []
    for tsid in gtid_set.tsids:
        part = gtid_set.from_tsid(tsid)
        for end, counts in ((_lowest(part), first), (_highest(part), every)):
            counts.append((end.filled() - used).gtid_count)
    return min(first), max(every)


# -- by hand --------------------------------------------------------------------------------------


def _by_hand_in(facts: ClusterFacts, lost: LostFacts, part: GtidSet) -> GtidSet:
    """Return the part of a lost interval that the origin never committed.

    A GTID that a session set with gtid_next may follow a lost tail without a gap. The tail was
    received from the origin; the rest carries another server_id.
    """
    if _is_by_hand(facts, lost, part):
        return part
    received = part & _received(facts, lost)
    rest = part - received
    ids = set(_server_ids(facts, lost, rest))
    return rest if ids and ids <= _other_ids(facts, lost.origin) else GtidSet()


def _is_by_hand(facts: ClusterFacts, lost: LostFacts, part: GtidSet) -> bool:
    """Return whether the origin never committed a lost interval."""
    ids = set(_server_ids(facts, lost, part))
    if ids and ids <= _other_ids(facts, lost.origin):
        return True
    if _own_id(facts, lost.origin) in ids:
        return False
    return not (part & _received(facts, lost)) and _is_isolated(facts, lost.origin, part)


def _other_ids(facts: ClusterFacts, origin: str) -> set[int]:
    """Return the server_ids of other servers; an id of no server may have been the origin's."""
    ids = {server.server_id for name, server in facts.last.items() if name != origin}
    return {each for each in ids if each} - {facts.last[origin].server_id}


def _has_a_copy(facts: ClusterFacts, origin: str) -> bool:
    """Return whether a channel reports another server with the origin's server_uuid.

    What that server committed under the UUID was not set with gtid_next. A receiver of the origin
    that ended because a replica with its identity connected shows such a server, too.
    """
    server = facts.last[origin]
    rows = (row_of(each.receiver_error) for each in server.channels or ())
    if any(row is not None and row.title == ANOTHER_REPLICA for row in rows):
        return True
    return any(
        channel.source_uuid == server.server_uuid and is_another(channel, server)
        for other in facts.last.values()
        for channel in other.channels or ()
    )


def _logged_by(facts: ClusterFacts, ids: tuple[int, ...]) -> GtidSet:
    """Return what servers of these ids have logged; a clone has not, and may have had the UUID."""
    return GtidSet.union_of(each.logged for each in facts.last.values() if each.server_id in ids)


def _own_id(facts: ClusterFacts, origin: str) -> int | None:
    """Return the origin's server_id, if no other server has it."""
    own = facts.last[origin].server_id
    others = (server.server_id for name, server in facts.last.items() if name != origin)
    return None if own in others else own


def _is_isolated(facts: ClusterFacts, origin: str, part: GtidSet) -> bool:
    """Return whether no server holds the GTIDs between the origin's highest and the part."""
    reading = facts.fully_read[origin].last
    own = _own(reading) | reading.gtid_owned
    below = _lowest(part).filled() - _lowest(part) - own.filled()
    held = GtidSet.union_of(
        gtid_set
        for server in (*facts.first.values(), *facts.last.values())
        for gtid_set in (server.gtid_executed, server.gtid_owned, server.gtid_retrieved)
        if gtid_set is not None
    )
    return bool(below) and not below & held


def _server_ids(facts: ClusterFacts, lost: LostFacts, part: GtidSet) -> tuple[int, ...]:
    records = _records(facts, lost.origin, part)
    return tuple(sorted({record.server_id for record in records}))


def _received(facts: ClusterFacts, lost: LostFacts, *, surely: bool = False) -> GtidSet:
    """Return what was received from this very server, not from another with its UUID.

    At another address there may be a copy with the same server_id. With `surely`, such a channel
    counts only if its source refuses it: then that server does not have the lost transactions
    either.
    """
    uuid = facts.last[lost.origin].server_uuid
    origin = facts.last[lost.origin]
    return GtidSet.union_of(
        channel.gtid_retrieved
        for server in (*facts.first.values(), *facts.last.values())
        for channel in server.channels or ()
        if channel.source_uuid == uuid
        and (
            (channel.source_host, channel.source_port) == (origin.host, origin.port)
            or (
                channel.source_server_id == origin.server_id is not None
                and (not surely or channel.receiver_errno in _REFUSED)
            )
        )
    )


# -- crash or reset -------------------------------------------------------------------------------


def _loss(facts: ClusterFacts, lost: LostFacts, part: GtidSet, *, is_by_hand: bool) -> Loss:
    origin = facts.last[lost.origin]
    committed = _committed(facts, lost, part)
    restart = restart_of(origin, facts.last[lost.holder], committed)
    signs = signs_of_reset(facts, lost, committed)
    executed_by = _server_ids(facts, lost, part)
    if is_by_hand:
        seen = bool(executed_by) and set(executed_by) <= _other_ids(facts, lost.origin)
        # Without a gap below them, a server that had this UUID at that time may have committed
        # them.
        seen = (
            seen and _is_isolated(facts, lost.origin, part) and not _has_a_copy(facts, lost.origin)
        )
        seen = seen and part <= _logged_by(facts, executed_by)
        cause, grade = Cause.BY_HAND, Grade.PROVED if seen else Grade.LIKELY
    else:
        # An id that no server has may belong to a server that was not read.
        is_own_id = {*executed_by} == {_own_id(facts, lost.origin)}
        is_received = part <= _received(facts, lost, surely=True)
        cause, grade = _crash_or_reset(
            restart,
            reset=signs.is_reset,
            is_its_own=is_own_id or (not executed_by and is_received),
            is_received=is_received,
        )
        is_sure = signs.is_sure or is_received
        if signs.is_replayed or not is_sure or _has_a_copy(facts, lost.origin):
            grade = Grade.LIKELY
    first, every = commits_until(part, origin)
    return Loss(
        origin=lost.origin,
        holder=lost.holder,
        gtid_set=part,
        cause=cause,
        grade=grade,
        restart=restart,
        history=signs.history,
        is_reset_excluded=signs.is_reset is False,
        is_replayed=signs.is_replayed,
        is_declaration_excluded=_is_logged_or_received(facts, lost, part),
        committed=committed,
        executed_by=executed_by,
        commits_until_first=first,
        commits_until_all=every,
    )


def _is_logged_or_received(facts: ClusterFacts, lost: LostFacts, part: GtidSet) -> bool:
    """Return whether the holder logged or received any of a part; gtid_purged alone shows none."""
    is_logged = not part <= facts.fully_read[lost.holder].first.gtid_purged
    return is_logged or bool(part & _received(facts, lost, surely=True))


def _crash_or_reset(
    restart: Restart, *, reset: bool | None, is_its_own: bool, is_received: bool
) -> tuple[Cause, Grade]:
    """Return the cause. `reset`: the logs show one (True), exclude one (False), or neither (None).

    The origin's server_id in the log excludes a commit with gtid_next elsewhere. A copy of the
    server has the same server_id and server_uuid. Only a channel that received the transactions
    from the origin, or logs that show a reset, exclude a copy.
    """
    if restart is Restart.NOT_SINCE:
        # A crash is excluded. Without the origin's server_id in the log, H7 is possible.
        sure = is_its_own and reset is not False and bool(is_received or reset)
        return Cause.RESET, Grade.PROVED if sure else Grade.LIKELY
    if reset:
        return Cause.RESET, Grade.LIKELY
    sure = is_its_own and is_received and reset is False and restart is Restart.SINCE
    return Cause.CRASH, Grade.PROVED if sure else Grade.LIKELY


def _committed(
    facts: ClusterFacts, lost: LostFacts, part: GtidSet
) -> tuple[datetime, datetime] | None:
    """Return when the first and last known transactions were committed, by the origin's clock."""
    moments = [record.committed_at for record in _records(facts, lost.origin, part)]
    for server in (*facts.first.values(), *facts.last.values()):
        for channel in server.channels or ():
            at = channel.last_queued_committed_at
            if channel.last_queued and channel.last_queued <= part and at is not None:
                moments.append(at)
    return (min(moments), max(moments)) if moments else None


# -- leaves ---------------------------------------------------------------------------------------


def _records(facts: ClusterFacts, origin: str, part: GtidSet) -> list[CommitRecord]:
    """Return what the logs of all other servers show about a part."""
    return [
        record
        for name in _others(facts, origin)
        if (evidence := facts.last[name].history_evidence) is not None
        for record in evidence.commits
        if record.gtid <= part
    ]


def _others(facts: ClusterFacts, origin: str) -> list[str]:
    return [name for name in sorted(facts.last) if name != origin]


def _own(server: ReadServer) -> GtidSet:
    return server.gtid_executed.from_uuid(server.server_uuid)


def _lowest(interval: GtidSet) -> GtidSet:
    return interval.first(1)


def _highest(gtid_set: GtidSet) -> GtidSet:
    """Return the highest GTID of a set of one TSID."""
    [tsid] = gtid_set.tsids
    highest = gtid_set.highest(tsid)
    assert highest is not None, "the set is not empty"
    return GtidSet.from_intervals([(tsid, highest, highest + 1)])
