"""What was read of the consumers of a cluster: programs and backups that read its binary logs.

1. A consumer (Debezium, Flink CDC, Canal, Maxwell, DM, a backup, a clone) offers its GTID set to
   the server from which it reads. It is no server: only that set is known.
2. The set is read twice, around the readings of the servers: before the first reading of any
   server, and after the last one of every server. So what it had at first and a server does not
   have at last is not due to timing; neither is what a server had purged and it still does not
   have.
3. A set that could not be read is None, with the reason. None never means "empty".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class OfferedReading:
    """One reading of a consumer's set."""

    read_at: datetime  # when the first reading ended; when the second one began
    gtid_set: GtidSet | None
    unread: str = ""  # why the set is None

    def __post_init__(self) -> None:
        if (self.gtid_set is None) != bool(self.unread):
            raise ValueError("a set of a consumer is either read, or unread for a reason")


@dataclass(frozen=True, slots=True)
class ConsumerReading:
    """One consumer, and the two readings of its set."""

    name: str  # the operator's name for it; no server of the cluster has it
    server: str | None  # from which it reads; None: from any
    place: str  # where its set is stored, for people
    is_fixed: bool  # the set is written in the fleet file: it never changes
    first: OfferedReading
    last: OfferedReading

    def __post_init__(self) -> None:
        if self.last.read_at < self.first.read_at:
            raise ValueError(f"{self.name}: the second reading is before the first")

    @property
    def sets(self) -> tuple[GtidSet, GtidSet] | None:
        """Return the set at first and at last; None if it is not known."""
        first, last = self.first.gtid_set, self.last.gtid_set
        return None if first is None or last is None or not first <= last else (first, last)

    @property
    def unread(self) -> str:
        """Return why the set is not known; "" if it is."""
        if self.sets is not None:
            return ""
        return (
            self.first.unread
            or self.last.unread
            or "the set shrank between two readings: the consumer was reset, or moved back"
        )


def problem_of(
    consumers: Sequence[ConsumerReading],
    *,
    begun: Mapping[str, datetime],
    ended: Mapping[str, datetime],
) -> str:
    """Return what is wrong with the consumers of a cluster; "" if nothing is.

    `begun` is when the first reading of each server began, `ended` when its last one ended.
    """
    names = [each.name for each in consumers]
    if len(set(names)) != len(names) or not begun.keys().isdisjoint(names):
        return "a name of a consumer appears twice"
    if names != sorted(names):
        return "consumers are not in order of name"
    for each in consumers:
        if each.server is not None and each.server not in begun:
            return f"{each.name} reads from a server that the cluster does not have"
        is_early = all(each.first.read_at <= moment for moment in begun.values())
        if not is_early or any(each.last.read_at < moment for moment in ended.values()):
            return f"{each.name} was not read around the readings of the servers"
    return ""
