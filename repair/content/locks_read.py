"""The locks of one server as they were read for a plan, and what they show about one channel.

Locks change from one moment to the next: every text that uses one states when it was read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from topology.locks.lock_waits import LockReading, LockSession, LockWait, WaitEnd, end_of, waits_of

_TRANSACTIONS = "transactions"  # the fact that lock_reads.py names if it cannot read them


@dataclass(frozen=True, slots=True)
class LocksRead:
    """The locks of one server: when they were read, and what could not be read, by fact."""

    read_at: datetime
    reading: LockReading
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def are_transactions_known(self) -> bool:
        """Return whether a session without a transaction is known to have none."""
        return _TRANSACTIONS not in dict(self.unread)

    def waits_on(self, channel: str) -> Iterator[tuple[LockWait, WaitEnd]]:
        """Yield the waits of the applier of a channel, each with the ends of its chains."""
        waits = waits_of(self.reading)
        for wait in waits:
            if wait.session.channel == channel:
                yield wait, end_of(wait, waits)

    def owners(self) -> tuple[LockSession, ...]:
        """Return the sessions that own a GTID, by their ids."""
        numbers = {number for _, number in self.reading.owners}
        sessions = self.reading.sessions
        return tuple(sessions[number] for number in sorted(numbers & sessions.keys()))
