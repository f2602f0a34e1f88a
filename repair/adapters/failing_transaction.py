"""Identifies the transaction that stopped an applier (A2, A3).

A worker's error text has its GTID. If several workers failed, the one that is first in the source's
log is repaired first: the others may depend on it, and fail again or not. An applier without
workers reports only a position: the source's binary log has the transaction there.
"""

import re
from typing import Final

from binlog.errors import BinlogError
from gtid import GtidSet, MalformedText
from repair.adapters.servers_to_read import ServersToRead
from topology.catalogue.findings import Finding
from topology.facts.failed_transactions import failed_workers
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot

# The transactions behind the applier's place among which the failed ones are: a coordinator hands
# out at most one to each of 1,024 workers.
_AHEAD_MAX: Final = 1024
# sql/rpl_rli_pdb.cc: "Worker 1 failed executing transaction '…' at source log …".
_WORKER_GTID: Final = re.compile(r"failed executing transaction '(?P<gtid>[^']+)'")


def failing_transaction(finding: Finding, servers: ServersToRead) -> GtidSet:
    """Return the transaction that stopped the applier; empty if it cannot be identified.

    What the replica has executed since is not what a start meets. If that is all that failed, it is
    returned: the applier continues after it.
    """
    replica = servers.readings.get(finding.replica or "")
    channel = channel_of(finding, replica) if replica is not None else None
    if replica is None or channel is None:
        return GtidSet()
    workers = failed_workers(channel)
    texts = [worker.error for worker in workers] or [channel.applier_error]
    named = {match["gtid"] for text in texts for match in _WORKER_GTID.finditer(text)}
    try:
        found = GtidSet.parse(",".join(named))
    except MalformedText:
        return GtidSet()
    if not named and not _is_parallel(replica):
        found = _at_position(finding.source or "", channel, servers)
    found = found - (replica.gtid_executed or GtidSet()) or found
    if found.gtid_count > 1 and not found <= (replica.gtid_executed or GtidSet()):
        return _first_in_log(found, finding.source or "", channel, servers)
    return found


def channel_of(finding: Finding, replica: ServerSnapshot) -> ChannelSnapshot | None:
    """Return the finding's channel, as its replica reported it."""
    channels = replica.channels or ()
    return next((each for each in channels if each.name == finding.channel), None)


def _first_in_log(
    failed: GtidSet, source: str, channel: ChannelSnapshot, servers: ServersToRead
) -> GtidSet:
    """Return the one of several failed transactions that is first in the source's log."""
    ahead = _from_place(source, channel, servers, transactions_max=_AHEAD_MAX)
    return next((each for each in ahead if each <= failed), GtidSet())


def _at_position(source: str, channel: ChannelSnapshot, servers: ServersToRead) -> GtidSet:
    """Return the transaction at which an applier without workers stopped."""
    return next(iter(_from_place(source, channel, servers, transactions_max=1)), GtidSet())


def _from_place(
    source: str, channel: ChannelSnapshot, servers: ServersToRead, *, transactions_max: int
) -> list[GtidSet]:
    """Return the transactions from an applier's place in its source's log; none if not read."""
    place = channel.applied_to
    if source not in servers.targets or place is None:
        return []
    try:
        found = servers.logs(source).transactions_from(
            file=place.file, position=place.position, transactions_max=transactions_max
        )
        return [GtidSet.of(each.gtid) for each in found if each.gtid is not None]
    except BinlogError:
        return []


def _is_parallel(server: ServerSnapshot) -> bool:
    """Return whether the applier's position may be only a low-water mark."""
    return (server.setting("replica_parallel_workers") or "2") not in ("0", "1")
