"""What a channel has gone past without bringing it, and the facts that exclude causes of that.

The causes are in absent_causes.py.
"""

from dataclasses import dataclass

from gtid import GtidSet
from topology.facts import reset_signs
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.readings import dialect
from topology.readings.history_evidence import CommitRecord, ends_of
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ThreadState


@dataclass(frozen=True, slots=True)
class PassedBy:
    """Transactions that a channel has gone past, and the facts that show its position."""

    facts: ClusterFacts
    edge: EdgeFacts
    received: GtidSet  # the relay log had them, and the applier has passed them
    unsent: GtidSet  # the receiver, or its next connection, is after them
    is_place_proved: bool  # of the receiver for `unsent`, of the applier for `received`

    @property
    def gtids(self) -> GtidSet:
        """Return all of them."""
        return self.received | self.unsent

    @property
    def channel(self) -> ChannelSnapshot:
        """Return the channel of the last reading."""
        return self.edge.channel

    @property
    def replica(self) -> ReadServer:
        """Return the last reading of the replica."""
        return self.facts.fully_read[self.edge.replica].last

    @property
    def source(self) -> ReadServer:
        """Return the last reading of the source."""
        return self.facts.fully_read[self.edge.source].last

    @property
    def returns(self) -> bool:
        """Return whether its next connection requests them again."""
        is_connected = self.channel.receiver is ThreadState.RUNNING
        return bool(self.unsent) and self.channel.auto_position and not is_connected

    @property
    def records(self) -> list[CommitRecord | None]:
        """Return the commits at both ends of each interval that was not received."""
        found, ends = self.source.history_evidence, ends_of(self.unsent)
        return [None if found is None else found.commit_of(end) for end in ends]

    @property
    def has_received_next(self) -> bool:
        """Return whether the channel has received what follows each gap."""
        following = ((tsid, end, end + 1) for tsid, _, end in self.unsent.intervals())
        return GtidSet.from_intervals(following) <= self.channel.gtid_retrieved

    @property
    def keeps_server_id(self) -> bool:
        """Return whether the replica has had its current server_id since before them."""
        return self.keeps(dialect.SERVER_ID_SOURCE)

    def keeps(self, source_of_variable: str) -> bool:
        """Return whether the replica has had a variable's value since before they were committed.

        `source_of_variable` is our name for the source of the value, as the server reports it.
        """
        source = self.replica.setting(source_of_variable)
        return source not in (None, dialect.CHANGED_SINCE_START) and self.runs_since_before

    @property
    def runs_since_before(self) -> bool:
        """Return whether the replica has been running since before they were committed."""
        return reset_signs.runs_since_before(self.replica, self.gtids, self.source)
