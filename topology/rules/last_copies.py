"""What may be nowhere but in the relay log of a replica whose source was not read."""

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.unlisted_events import unlisted_events
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.rules.build import many


def last_copy_text(
    facts: ClusterFacts, source: str | None, replica: ServerSnapshot, channel: ChannelSnapshot
) -> str:
    """Warn about what only a relay log may have: its source was not read, and may be lost."""
    left = channel.gtid_retrieved - (replica.gtid_executed or GtidSet())
    is_read = any(edge.source == source for edge in facts.edges_into(replica.name))
    unlisted = unlisted_events(replica, channel)
    if is_read or not (left or unlisted):
        return ""
    what = many(left) if left else f"what its source logged from {unlisted}, without GTIDs,"
    return (
        f" It has received {what} that it has not applied, and its source was not read: if that is"
        " lost, the relay log may be the last copy. It is deleted by any change of the source or to"
        " auto-position, and by a clone: let it be applied first."
    )
