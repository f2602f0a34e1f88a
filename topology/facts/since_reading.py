"""What servers may have got since the only reading of them: no difference can be made of it.

How it works
------------
A server that was read once (topology/readings/read_once.py) has gone on since. Three sets may only
be younger than its reading, and no losses, errant transactions or purged ones:

* its own transactions that another server has: it may have committed them since;
* the transactions of a group of which it is a member: any member may have committed them;
* what its running receiver had still to fetch: it may have fetched them before they were purged
  (channel_places.py). Not what lies in a gap: it fetches in the order of the source's log.

The first two also travel: a server that is upstream of a source may have committed them and passed
them on, past a server that was read before. What has none of these origins cannot have come to a
server that no channel leads to, however long ago it was read: that stays errant.
"""

from collections.abc import Iterable, Mapping

from gtid import GtidSet
from topology.facts.memberships import group_uuids
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ReadServer, ServerSnapshot


def undecided(origin: ReadServer, beyond: GtidSet) -> GtidSet:
    """Return what of a server's own transactions that only others have may be younger."""
    return beyond if is_read_once(origin) else GtidSet()


def may_have_come(
    extra: GtidSet, names: Iterable[str], last: Mapping[str, ServerSnapshot]
) -> GtidSet:
    """Return what of an extra set may have come to a source since it was read.

    `names`: the source, and all servers upstream of it.
    """
    found = GtidSet()
    for name in sorted(names):
        if is_read_once(last[name]):
            found |= _may_have_committed(extra, last[name], last)
    return found


def _may_have_committed(
    extra: GtidSet, server: ServerSnapshot, last: Mapping[str, ServerSnapshot]
) -> GtidSet:
    held, found = server.gtid_executed or GtidSet(), GtidSet()
    if server.server_uuid is not None:
        found = extra.from_uuid(server.server_uuid) - held
    if server.group is not None:
        for uuid in sorted(group_uuids(last.values())):
            found |= extra.from_uuid(uuid) - held
    return found
