"""What was found when the content of transactions was compared: facts, read from binary logs.

1. The sets of two servers may be equal while the transactions under one GTID are not. Only their
   binary logs show it; the reader of the logs reports what it found in these types.
2. Nothing is evaluated here. What could not be read is listed, with the reason.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from gtid import Gtid


class Difference(Enum):
    """In what way two transactions under one GTID are not the same; the most severe first."""

    CONTENT = "different content"
    DRIFT = "one commit, applied to other rows"
    SKIPPED = "one commit, not applied in full on one server"
    EMPTY = "empty on one server"
    UPKEEP = "empty on one server, and maintenance on the other"
    FILTERED = "one commit, left out on one server by its filters"
    COMMIT = "committed twice, with equal content"


@dataclass(frozen=True, slots=True)
class TransactionVersion:
    """A transaction as one server's binary log has it."""

    server: str
    place: str  # file and position
    committed_at: datetime | None  # where it was first committed; None before 8.0.1
    logged_at: datetime  # by the first committing server's clock, to the second
    content: str  # in short
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """One GTID under which two servers hold different transactions.

    `source` is the server whose UUID the GTID has, if it is one of the two.
    """

    gtid: Gtid
    difference: Difference
    is_proved: bool  # there were two commits, and how they differ
    reason: str
    source: TransactionVersion
    replica: TransactionVersion
    lesser: str = ""  # the server whose log has fewer rows, or nothing; "" where neither has
    is_two_commits: bool = False  # there were two, whether or not it is proved how they differ
    is_remembered: bool = False  # an earlier audit proved it; this one could not compare it again
    has_equal_rows: bool = False  # the rows that it touched were read from both, and are equal


@dataclass(frozen=True, slots=True, order=True)
class UnreadContent:
    """Content of one server that could not be compared, and why."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartLookedAt:
    """A restart of a server, around which its own transactions were compared."""

    server: str
    started_at: datetime
    file: str


@dataclass(frozen=True, slots=True)
class ContentReading:
    """What one comparison of contents found.

    `compared_count` counts the GTIDs with an answer, `undecided_count` those of which both versions
    were read and are not comparable.
    """

    read_at: datetime
    compared_count: int
    starts: tuple[StartLookedAt, ...]
    differences: tuple[ContentDifference, ...]
    unread: tuple[UnreadContent, ...]  # UNKNOWN follows: it may be read another time
    is_cut: bool = False  # there are more differences than were compared
    pairs: tuple[tuple[str, str], ...] = ()  # the servers that were compared with each other
    undecided_count: int = 0
    suspect_count: int = 0  # of those compared: GTIDs that an earlier audit had reported
    newest_count: int = 0  # of those compared: the newest GTIDs of each UUID
    remarks: tuple[UnreadContent, ...] = ()  # what can never be compared: information only
