"""Whether a server's logs show that its GTID history was reset after the lost commits: pure.

How it works
------------
A reset is excluded by a transaction that the server logged before the lost ones were committed, and
still has in its logs. RESET BINARY LOGS AND GTIDS would have removed it. The log has two times in
8.0.1 and later: of the first commit, on any server (`committed_at`), and of the commit here
(`logged_at`). They are equal where the server itself executed the transaction first.

`mysqlbinlog | mysql` (point-in-time recovery) replays transactions with their GTIDs, server_ids and
first commit times; only the commit here is new. So a first commit before the lost ones does not
exclude a reset. Suppose the server logged its own transaction again after the lost ones. Then an
operator replayed binary logs into this server. Its history began again, by a reset or from a
backup, and its tables probably miss what the replay left out. Before 8.0.1 only the start of the
first log shows a reset.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts, LostFacts
from topology.readings.history_evidence import CommitRecord, LogStart
from topology.readings.snapshot import ServerSnapshot

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ResetSigns:
    """What the logs show: a reset (True), that there was none (False), or neither (None)."""

    is_reset: bool | None
    history: str  # as text
    is_replayed: bool = False  # binary logs were replayed after the lost transactions
    is_sure: bool = True  # False: a copy with the same identity leaves the same signs

    def __post_init__(self) -> None:
        assert self.is_reset or not self.is_replayed


def neighbours_of(facts: ClusterFacts, lost: LostFacts) -> GtidSet:
    """Return, for each TSID with lost transactions, the oldest one that both logs still hold."""
    held = facts.last[lost.origin].logged & facts.first[lost.holder].logged
    parts = (held.from_tsid(tsid) for tsid in lost.lost.tsids)
    return GtidSet.union_of(part.first(1) for part in parts if part)


def signs_of_reset(
    facts: ClusterFacts,
    lost: LostFacts,
    committed: tuple[datetime, datetime] | None,
) -> ResetSigns:
    """Return whether the origin's logs show a reset since the lost commits, and what shows it."""
    origin, neighbours = facts.last[lost.origin], neighbours_of(facts, lost)
    evidence = origin.history_evidence
    log = None if evidence is None else evidence.first_log
    is_same = False
    # A commit that was read for another question may be later than a reset.
    for ours in evidence.commits if evidence is not None else ():
        for name in sorted(facts.last) if ours.gtid <= neighbours else ():
            theirs = None if name == lost.origin else _record(facts, name, ours.gtid)
            if theirs is None:
                continue
            if ours.committed_at == theirs.committed_at:
                is_exact = ours.is_exact and theirs.is_exact
                signs = _signs_of_same(ours, name, origin, committed) if is_exact else None
                if signs is not None:
                    return signs
                is_same |= _is_older(ours, origin, log)
            # Otherwise a session set gtid_next for one of them.
            elif ours.is_exact and theirs.is_exact and ours.server_id == theirs.server_id:
                other = f"{ours.gtid} was committed at another time than on {name}"
                is_after = _is_begun_after(log, committed)
                if is_after is False and log is not None:
                    return ResetSigns(False, f"{_created_before(log)}, although {other}")
                return ResetSigns(True, other, is_sure=is_after is True)
    return _signs_of_first_log(origin, log, committed, is_replayed=is_same)


def _signs_of_same(
    ours: CommitRecord, name: str, origin: ServerSnapshot, lost: tuple[datetime, datetime] | None
) -> ResetSigns | None:
    """Return what a commit shows that two logs both have; None if it shows nothing.

    A transaction that the origin committed after the lost ones, or received from a session
    elsewhere, is later than a reset as well.
    """
    if not _is_own(ours, origin):
        return None
    same = f"{ours.gtid} is the same commit in the log of {name}"
    if lost is None:
        return None if _is_logged_again(ours) else ResetSigns(False, same)
    if not _is_logged_again(ours):
        return ResetSigns(False, same) if ours.committed_at <= lost[0] else None
    assert ours.logged_at is not None, "it is logged again"
    if ours.logged_at <= lost[0]:
        return ResetSigns(False, same)
    if ours.committed_at > lost[1] or ours.logged_at <= lost[1]:
        return None
    again = f"{ours.logged_at:%Y-%m-%d %H:%M:%S} UTC"
    return ResetSigns(
        True,
        f"{same}, and {origin.name} logged it again at {again}, after the lost transactions",
        is_replayed=True,
    )


def _signs_of_first_log(
    origin: ServerSnapshot,
    log: LogStart | None,
    committed: tuple[datetime, datetime] | None,
    *,
    is_replayed: bool,
) -> ResetSigns:
    if log is not None and committed is not None:
        if _is_begun_before(log, committed[0]):
            return ResetSigns(False, _created_before(log))
        is_first = log.file.rpartition(".")[2].lstrip("0") == "1"
        is_new = log.begun_at > committed[1] and not log.previous_gtids
        # Purged GTIDs without a log: if the first log has number 1, SET GLOBAL gtid_purged followed
        # a reset.
        if is_new and (is_first or not origin.gtid_purged):
            words = f"{log.file} was created after them, without previous GTIDs"
            if is_replayed:
                words += ", and has transactions that are older than it"
            return ResetSigns(True, words, is_replayed)
    # A first log with a number above 1, or own GTIDs in gtid_purged, exclude nothing. FLUSH and
    # PURGE, or SET GLOBAL gtid_purged, produce both after a reset (seen on 9.7.4).
    return ResetSigns(None, "unknown")


def _is_begun_after(
    log: LogStart | None, committed: tuple[datetime, datetime] | None
) -> bool | None:
    """Return whether a log was created after the lost commits; None if that is not known.

    A GTID that was used twice shows a reset, or a copy with the same identity. A reset begins the
    logs again.
    """
    if committed is None:
        return True
    if _is_begun_before(log, committed[0]):
        return False
    return True if log is not None and log.begun_at > committed[1] else None


def _created_before(log: LogStart) -> str:
    return f"{log.file} was created before the lost transactions were committed"


def _is_begun_before(log: LogStart | None, moment: datetime) -> bool:
    return log is not None and log.begun_at + _SECOND <= moment


def _is_own(commit: CommitRecord, origin: ServerSnapshot) -> bool:
    return origin.server_id is None or commit.server_id == origin.server_id


def _is_logged_again(commit: CommitRecord) -> bool:
    """Return whether a server logged its own transaction later than it first committed it."""
    return commit.logged_at is not None and commit.logged_at > commit.committed_at + _SECOND


def _is_older(commit: CommitRecord, origin: ServerSnapshot, log: LogStart | None) -> bool:
    """Return whether an origin committed a transaction before its first log was created."""
    if log is None or not _is_own(commit, origin):
        return False
    return commit.committed_at + _SECOND < log.begun_at


def _record(facts: ClusterFacts, name: str, gtid: GtidSet) -> CommitRecord | None:
    evidence = facts.last[name].history_evidence
    return None if evidence is None else evidence.commit_of(gtid)
