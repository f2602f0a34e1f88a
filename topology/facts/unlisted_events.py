"""What a relay log has that no GTID set lists, as the places of a channel show it.

How it works
------------
A transaction without a GTID (gtid_mode OFF_PERMISSIVE or ON_PERMISSIVE on its source, or a channel
with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS) is in no Retrieved_Gtid_Set. Only two places in the
source's log show it: the receiver has read further than the applier has applied.

    Read_Source_Log_Pos 1049      Exec_Source_Log_Pos 198      Retrieved_Gtid_Set: nothing more

After a crash of the source the relay log may be the last copy, and any CHANGE REPLICATION SOURCE or
RESET REPLICA ALL deletes it (tried on 9.7.4). Three harmless causes look the same: the source died
within a transaction; the receiver dropped events (its own server_id, IGNORE_SERVER_IDS); the file
ends with events that change nothing. Once its applier has read all, the places agree, except after
a part of a transaction. So only an applier that is held back counts: it is stopped, or waits for
SOURCE_DELAY. One that runs is about to apply what there is.
"""

from gtid import GtidSet
from topology.facts.applier_facts import is_delayed
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState


def unlisted_events(server: ServerSnapshot, channel: ChannelSnapshot) -> str:
    """Return from where to where a held back applier has more to apply, as text; "" if nothing.

    What a set lists as received and not executed is not repeated here.
    """
    if channel.gtid_retrieved - (server.gtid_executed or GtidSet()):
        return ""
    is_held = channel.applier is ThreadState.STOPPED or is_delayed(channel)
    applied, received = channel.applied_to, channel.received_to
    if not is_held or applied is None or received is None or not applied < received:
        return ""
    return f"{applied} to {received}"
