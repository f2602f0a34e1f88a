"""What a server's binary logs show about its history, and about transactions missing elsewhere.

gtid-audit reads it on demand, only where the sets leave a question. It reads the start of the first
log, the commits of a few transactions, which transactions lie before the position of a replica's
channel, and which log would be purged first of those that another server needs.
topology/questions/log_questions.py asks the questions. topology/facts/lost.py, cluster_facts.py and
runway.py evaluate the answers; nothing is evaluated here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from gtid import GtidSet
from topology.readings.content_class import ContentClass

# The maximum number of intervals of a set that are looked up in the logs: a lost tail has one or
# two.
INTERVALS_MAX = 16
# The maximum number of GTIDs of a gap that are all looked up: the source sends each whole.
GAP_SEARCHED_MAX = 128
# The maximum number of tables of an extra transaction that are kept.
TABLES_MAX = 8


@dataclass(frozen=True, slots=True)
class LogStart:
    """The start of a binary log that a server still has."""

    file: str
    begun_at: datetime  # by the server's clock, truncated to the second
    previous_gtids: GtidSet


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One transaction as a server's binary log has it."""

    gtid: GtidSet  # exactly one GTID
    server_id: int  # of the server that executed it first: replicas preserve it
    # Of the first commit. Before 8.0.1 (`is_exact` is False), the time of its first event,
    # truncated to the second.
    committed_at: datetime
    is_exact: bool
    logged_at: datetime | None = None  # when this server committed it; None before 8.0.1


@dataclass(frozen=True, slots=True)
class LogSearch:
    """Which transactions are in this server's log before the position of a replica's channel.

    The position is the channel's in the first reading of the replica. What lies before it was
    received (or applied) before the last reading.
    """

    replica: str
    channel: str
    place: str  # file:position
    wanted: GtidSet  # all of it was searched for
    before: GtidSet  # the part of it that ends at the position or before


@dataclass(frozen=True, slots=True)
class LogReach:
    """The first binary log of this server that has any of `wanted`: the first to be purged."""

    wanted: GtidSet
    file: str
    # When the server last wrote to it, by its clock, truncated to the second; None: it still does.
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """How many rows of one table a transaction inserted, updated or deleted."""

    table: str  # with its schema
    count: int


@dataclass(frozen=True, slots=True)
class ExtraTransaction:
    """What a transaction that another server does not have would change, as a log has it.

    The finding shows it. It decides only whether a promotion needs the repair first: not of what
    has no rows (topology/handshake/late_extras.py).
    """

    gtid: GtidSet  # exactly one GTID
    content: ContentClass
    committed_at: datetime  # of the first commit, by the clock of its server
    rows: tuple[ChangedRows, ...]  # of the first TABLES_MAX tables


@dataclass(frozen=True, slots=True)
class PurgedChange:
    """One SET GLOBAL gtid_purged, as the server's error log reports it."""

    at: datetime  # by the server's clock
    added: GtidSet


@dataclass(frozen=True, slots=True)
class HistoryEvidence:
    """What was read from one server's binary logs and schemas."""

    first_log: LogStart | None  # None: it could not be read
    commits: tuple[CommitRecord, ...]  # in order of GTID
    unread: str = ""  # why something could not be read; empty if all was
    searches: tuple[LogSearch, ...] = ()
    # In order of time. None: the error log could not be read.
    purged_changes: tuple[PurgedChange, ...] | None = ()
    # Without MySQL's own schemas, and only if the executed set is unchanged. None: not queried, or
    # not known.
    schemas_count: int | None = None
    reaches: tuple[LogReach, ...] = ()
    # Executed and not purged, and in no binary log although it was searched for.
    absent: GtidSet = GtidSet()  # noqa: RUF009 - immutable
    extras: tuple[ExtraTransaction, ...] = ()  # in order of GTID
    extras_unread: str = ""  # why some were not read; empty if all were

    def commit_of(self, gtid: GtidSet) -> CommitRecord | None:
        """Return the record of one GTID, or None if it was not read."""
        return next((each for each in self.commits if each.gtid == gtid), None)


def samples_of_gap(gtid_set: GtidSet) -> GtidSet:
    """Return what is looked up of a gap: all of it; of a large one both ends of each interval."""
    if gtid_set.gtid_count <= GAP_SEARCHED_MAX:
        return gtid_set
    return GtidSet.union_of(ends_of(gtid_set))


def intervals_of(gtid_set: GtidSet) -> Iterator[GtidSet]:
    """Yield each interval as a set."""
    for interval in gtid_set.intervals():
        yield GtidSet.from_intervals([interval])


def ends_of(gtid_set: GtidSet) -> tuple[GtidSet, ...]:
    """Return both ends of each interval, of at most INTERVALS_MAX intervals."""
    every = list(gtid_set.intervals())
    half = INTERVALS_MAX // 2
    some = every if len(every) <= INTERVALS_MAX else [*every[:half], *every[-half:]]
    return tuple(
        GtidSet.from_intervals([(tsid, number, number + 1)])
        for tsid, start, end in some
        for number in dict.fromkeys((start, end - 1))
    )
