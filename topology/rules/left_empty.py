"""A replica whose GTID history is empty although its channel has applied transactions.

RESET BINARY LOGS AND GTIDS causes this, and the rows are present. A `reset_and_purge` script of a
repair also leaves this state for a moment, between its two statements. If the script stopped there,
the whole set is in the script and on no server. The sets of a new replica look the same, but its
channel has no position in a log yet.
"""

from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot

_LOG_BEGINS = 4  # after the magic number: the first position of a binary log


def emptied_text(replica: ServerSnapshot, channel: ChannelSnapshot) -> str:
    """Return what to do about an emptied replica, as a sentence to append; "" in other cases.

    A position does not prove that anything was applied. It may be in a former log of the source, an
    operator may have set it, or the source logged nothing before it.
    """
    place = channel.applied_to
    if replica.gtid_executed is None or replica.gtid_executed:
        return ""
    if place is None or place.position <= _LOG_BEGINS or place.is_before_all:
        return ""
    return (
        f" gtid_executed of {replica.name} is empty, and the position of its channel is {place}. If"
        " RESET BINARY LOGS AND GTIDS emptied it, its rows are there. If a `reset_and_purge` script"
        " of a repair stopped there, run that script again: it contains the whole set. Until then"
        " start no channel and let no client write."
    )
