"""What the binary logs of a server show about transactions that another server has lost.

It is read on demand, only where a loss is seen: the start of the first log, and the commits of a
few transactions. topology/lost.py says what follows from it; nothing is evaluated here.
"""

from dataclasses import dataclass
from datetime import datetime

from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class LogStart:
    """The start of the first binary log that a server still has."""

    file: str
    begun_at: datetime  # by the server's clock, cut to the second
    previous_gtids: GtidSet


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One transaction as a server's binary log has it."""

    gtid: GtidSet  # exactly one GTID
    server_id: int  # of the server that executed it first: replicas keep it
    # Of the first commit. Before 8.0.1 (`is_exact` False) the time of its first event, cut to the
    # second.
    committed_at: datetime
    is_exact: bool


@dataclass(frozen=True, slots=True)
class HistoryEvidence:
    """What was read of one server's binary logs."""

    first_log: LogStart | None  # None: it could not be read
    commits: tuple[CommitRecord, ...]  # in order of GTID
    unread: str = ""  # why something could not be read; empty if all was

    def commit_of(self, gtid: GtidSet) -> CommitRecord | None:
        """Return the record of one GTID, or None if it was not read."""
        return next((each for each in self.commits if each.gtid == gtid), None)
