"""Whether an applier moved between two readings, and whether it applied anything.

The two differ. A receiver that reconnects with auto-position begins again at the start of a file,
and an idle applier's position in the source's log follows it, without a transaction. This lasts
until the next heartbeat, which takes both to the end of what was left out. On 5.6.24 and 9.7.4,
with 300 MB left out, a reading every millisecond did not meet it. A reading that does proves
nothing, so it only adds a doubt. What an applier waits for is in applier_facts.py.
"""

from gtid import GtidSet
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot


def has_moved(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    last: ServerSnapshot,
) -> bool:
    """Return whether an applier applied a transaction, or a thread or position of it advanced."""
    applied = (last.gtid_executed or GtidSet()) - (first.gtid_executed or GtidSet())
    if (before.applied_to, before.relay_applied_to) != (after.applied_to, after.relay_applied_to):
        return True
    # If the workers were read only once, no change between the readings is known.
    are_read_twice = bool(before.workers) is bool(after.workers)
    return bool(applied & after.gtid_retrieved) or (
        are_read_twice and at_work(before) != at_work(after)
    )


def applied_nothing(
    before: ChannelSnapshot,
    after: ChannelSnapshot,
    *,
    first: ServerSnapshot,
    last: ServerSnapshot,
) -> bool:
    """Return whether an applier stayed at its place in the relay log, and applied nothing.

    Its position in the source's log may have moved all the same: it follows a receiver that begins
    again at the start of a file, and whose source omits what the replica has received before.
    """
    applied = (last.gtid_executed or GtidSet()) - (first.gtid_executed or GtidSet())
    place = before.relay_applied_to
    return (
        place is not None and place == after.relay_applied_to and not applied & after.gtid_retrieved
    )


def at_work(channel: ChannelSnapshot) -> tuple[GtidSet, GtidSet]:
    """Return what the workers of a channel applied last, and what they apply now."""
    return channel.last_applied, channel.gtid_applying
