"""Whether a server's logs show that its GTID history was reset behind what it has lost: pure.

How it works
------------
A transaction that the server still has in its logs, and has logged before the lost ones were
committed, excludes a reset: RESET BINARY LOGS AND GTIDS would have removed it. Two times are in
the log of 8.0.1 and later: of the first commit, on whatever server (`committed_at`), and of the
commit here (`logged_at`). They are equal where the server made the transaction itself.

`mysqlbinlog | mysql` (point-in-time recovery) replays transactions with their GTIDs, server_ids and
first commit times; only the commit here is new. So a first commit before the lost ones excludes no
reset. Its own transaction, logged here again behind the lost ones, shows that binary logs were
replayed into this server: its history began again, by a reset or from a backup, and what the replay
left out is probably gone from its rows. Before 8.0.1 only the beginning of the first log shows it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gtid import GtidSet
from topology.facts import ClusterFacts, LostFacts
from topology.history_evidence import CommitRecord, LogStart
from topology.reset_signs import logged
from topology.snapshot import ServerSnapshot

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ResetSigns:
    """What the logs show: a reset (True), that there was none (False), or neither (None)."""

    is_reset: bool | None
    history: str  # in words
    is_replayed: bool = False  # binary logs were replayed behind the lost transactions

    def __post_init__(self) -> None:
        assert self.is_reset or not self.is_replayed


def neighbours_of(facts: ClusterFacts, lost: LostFacts) -> GtidSet:
    """Return, for each TSID that lost transactions, the oldest one that both logs still hold."""
    held = logged(facts.last[lost.origin]) & logged(facts.first[lost.holder])
    parts = (held.from_tsid(tsid) for tsid in lost.lost.tsids)
    return GtidSet.union_of(part.first(1) for part in parts if part)


def signs_of_reset(
    facts: ClusterFacts,
    lost: LostFacts,
    committed: tuple[datetime, datetime] | None,
) -> ResetSigns:
    """Return whether the origin's logs show a reset since, and in which way they show it."""
    origin, neighbours = facts.last[lost.origin], neighbours_of(facts, lost)
    evidence = origin.history_evidence
    log = None if evidence is None else evidence.first_log
    is_same = False
    # What was read for another question may have been committed since a reset.
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
            # Otherwise one of them was made by hand.
            elif ours.is_exact and theirs.is_exact and ours.server_id == theirs.server_id:
                return ResetSigns(True, f"{ours.gtid} was committed at another time than on {name}")
    return _signs_of_first_log(origin, log, committed, is_replayed=is_same)


def _signs_of_same(
    ours: CommitRecord, name: str, origin: ServerSnapshot, lost: tuple[datetime, datetime] | None
) -> ResetSigns | None:
    """Return what a commit shows that two logs have as the same; None if nothing.

    What the origin committed behind the lost ones, or received from a session elsewhere, came after
    a reset as well.
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
        if log.begun_at + _SECOND <= committed[0]:
            return ResetSigns(
                False, f"{log.file} was begun before the lost transactions were committed"
            )
        is_first = log.file.rpartition(".")[2].lstrip("0") == "1"
        is_new = log.begun_at > committed[1] and not log.previous_gtids
        # Purged GTIDs without a log: SET GLOBAL gtid_purged after a reset, if it is number 1.
        if is_new and (is_first or not origin.gtid_purged):
            words = f"{log.file} was begun after them, without previous GTIDs"
            if is_replayed:
                words += ", and has transactions that are older than it"
            return ResetSigns(True, words, is_replayed)
    # A first log beyond number 1, or own GTIDs in gtid_purged, exclude nothing: FLUSH and PURGE, or
    # SET GLOBAL gtid_purged, make both after a reset (seen on 9.7.4).
    return ResetSigns(None, "unknown")


def _is_own(commit: CommitRecord, origin: ServerSnapshot) -> bool:
    return origin.server_id is None or commit.server_id == origin.server_id


def _is_logged_again(commit: CommitRecord) -> bool:
    """Return whether a server has logged its own transaction later than it made it."""
    return commit.logged_at is not None and commit.logged_at > commit.committed_at + _SECOND


def _is_older(commit: CommitRecord, origin: ServerSnapshot, log: LogStart | None) -> bool:
    """Return whether an origin made a transaction before its first log, which is a new one."""
    if log is None or log.previous_gtids or not _is_own(commit, origin):
        return False
    return commit.committed_at + _SECOND < log.begun_at


def _record(facts: ClusterFacts, name: str, gtid: GtidSet) -> CommitRecord | None:
    evidence = facts.last[name].history_evidence
    return None if evidence is None else evidence.commit_of(gtid)
