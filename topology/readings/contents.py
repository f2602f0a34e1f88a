"""Results of comparing the content of transactions: facts, read from binary logs.

1. Two servers may have equal GTID sets while the transactions under one GTID differ. Only their
   binary logs show it. The reader of the logs reports its results in these types.
2. Nothing is evaluated here. Content that could not be read is listed, with the reason.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from binlog.content.server_starts import ServerStart
from gtid import Gtid


class Difference(Enum):
    """How two transactions under one GTID differ; the most severe first."""

    CONTENT = "different content"
    DRIFT = "one commit, applied to other rows"
    SKIPPED = "one commit, not applied in full on one server"
    ADDED = "one commit, with more rows than the server that committed it logged"
    AGAIN = "committed again by a replica, with equal content"
    EMPTY = "empty on one server"
    UPKEEP = "empty on one server, and maintenance on the other"
    FILTERED = "one commit, left out on one server by its filters"
    COMMIT = "committed twice, with equal content"


@dataclass(frozen=True, slots=True)
class TransactionVersion:
    """A transaction as one server's binary log has it."""

    server: str
    place: str  # file and position
    committed_at: datetime | None  # first commit; None before 8.0.1
    logged_at: datetime  # by the first committing server's clock, to the second
    content: str  # a summary
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """One GTID under which two servers hold different transactions.

    `source` is the server whose UUID the GTID has, if it is one of the two.
    """

    gtid: Gtid
    difference: Difference
    is_proved: bool  # there were two commits, and the difference between them is known
    reason: str
    source: TransactionVersion
    replica: TransactionVersion
    lesser: str = ""  # the server whose log has fewer rows, or nothing; "" if neither has
    is_two_commits: bool = False  # there were two, whether or not their difference is proved
    is_remembered: bool = False  # proved by an earlier audit; not compared again now
    has_equal_rows: bool = False  # the affected rows were read from both servers and are equal


@dataclass(frozen=True, slots=True, order=True)
class UnreadContent:
    """Content of one server that could not be compared, and the reason."""

    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContentReading:
    """The result of one comparison of contents.

    `compared_count` counts the GTIDs with an answer. `undecided_count` counts those of which both
    versions were read and cannot be compared.
    """

    read_at: datetime
    compared_count: int
    starts: tuple[ServerStart, ...]
    differences: tuple[ContentDifference, ...]
    unread: tuple[UnreadContent, ...]  # each becomes UNKNOWN: a later audit may read it
    is_cut: bool = False  # there are more differences than were compared
    pairs: tuple[tuple[str, str], ...] = ()  # the servers that were compared with each other
    undecided_count: int = 0
    suspect_count: int = 0  # of those compared: GTIDs that an earlier audit had reported
    newest_count: int = 0  # of those compared: the newest GTIDs of each UUID
    remarks: tuple[UnreadContent, ...] = ()  # what can never be compared: reported as info only

    def is_whole(self, one: str, other: str) -> bool:
        """Return whether two servers were compared, and of neither something was left out."""
        unread = {each.server for each in self.unread}
        pair = {one, other}
        return (
            not self.is_cut
            and unread.isdisjoint(pair)
            and any(pair == {*each} for each in self.pairs)
        )
