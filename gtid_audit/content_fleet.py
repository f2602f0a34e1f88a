"""Compares contents in the clusters of a fleet where that is due, and says whose starts are done.

1. What comparing takes is imported only where something is due.
2. A defect of ours in one cluster makes it UNKNOWN, and leaves the others alone.
3. It reads servers; what is remembered from one audit to the next is read and written elsewhere
   (content_memory.py).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from gtid_audit.content_due import Looked, looked_back
from topology.adapters.collect_fleet import Say
from topology.adapters.inventory.fleet import Fleet
from topology.audit import EVERY_SERVER
from topology.contents import ContentReading, UnreadContent
from topology.snapshot import ClusterSnapshot
from topology.target import ServerTarget

# Clusters whose contents are compared at the same time: it is waiting for servers.
CONTENTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class FleetContents:
    """What was compared in which clusters, and when the servers whose starts are done were read."""

    readings: dict[str, ContentReading]
    looks: dict[UUID, datetime]


def compare_contents(
    fleet: Fleet,
    snapshots: Sequence[ClusterSnapshot],
    chosen: bool | None,
    *,
    seen: Mapping[UUID, datetime],
    say: Say | None = None,
) -> FleetContents | None:
    """Compare contents where that is due; None if nobody is to look.

    Some clusters at once; a server is asked one thing at a time. `chosen` and `seen` are as in
    content_due.py.
    """
    if chosen is False:
        return None
    targets = {cluster.name: cluster.targets for cluster in fleet.clusters}

    def look(snapshot: ClusterSnapshot) -> Looked:
        return _look(snapshot, targets.get(snapshot.cluster, ()), chosen, seen, say)

    with ThreadPoolExecutor(CONTENTS_AT_ONCE) as pool:
        looks = list(zip(snapshots, pool.map(look, snapshots), strict=True))
    return FleetContents(
        {each.cluster: look.reading for each, look in looks if look.reading is not None},
        {uuid: at for each, look in looks for uuid, at in _done(each, look).items()},
    )


def _look(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    chosen: bool | None,
    seen: Mapping[UUID, datetime],
    say: Say | None,
) -> Looked:
    """Compare contents in one cluster where that is due. Never raises."""
    back = looked_back(snapshot, chosen, seen)
    if not back:
        return Looked(None)
    from gtid_audit.content import read_contents

    if say is not None:
        say(f"{snapshot.cluster}: comparing the content of transactions")
    try:
        looked = read_contents(snapshot, targets, back=back)
    except Exception as error:  # noqa: BLE001 - it is reported as the cluster's, not hidden
        reason = f"defect of the auditor: {type(error).__name__}: {error}"
        for target in targets:
            reason = target.password.hidden_in(reason)
        moment = max(server.read_ended for server in snapshot.last)
        unread = UnreadContent(EVERY_SERVER, reason)
        return Looked(ContentReading(moment, 0, (), (), (unread,)), frozenset(back))
    return Looked(looked.reading, looked.look_again)


def _done(snapshot: ClusterSnapshot, look: Looked) -> dict[UUID, datetime]:
    """Return which servers' starts need no further look, up to when they were read."""
    return {
        server.server_uuid: server.read_started
        for server in snapshot.last
        if server.is_judgeable
        and server.server_uuid is not None
        and server.uptime_seconds is not None
        and server.name not in look.look_again
    }
