"""Which names of a cluster are the same server: pure.

Two servers with one server_uuid are a copied data directory (C1); One server listed under two names
is a configuration error, and the advice for C1 would destroy a healthy server. Two names are the
same server if three conditions hold. Every fact that identifies a process is equal in both
readings. The start times are equal. Each set that was read later, under either name, contains the
sets read earlier.
"""

from itertools import chain, combinations
from typing import Final
from uuid import UUID

from topology.readings.snapshot import START_SLACK, ClusterSnapshot, ServerSnapshot

_SETTINGS: Final = ("hostname", "port", "datadir", "pid_file")


def same_servers(snapshot: ClusterSnapshot) -> tuple[tuple[str, str], ...]:
    """Return each pair of names in the cluster that are one server."""
    first = {server.name: server for server in snapshot.first}
    last = {server.name: server for server in snapshot.last}
    by_uuid: dict[UUID | None, list[str]] = {}
    for name in sorted(first):
        by_uuid.setdefault(first[name].server_uuid, []).append(name)
    pairs = chain.from_iterable(
        combinations(names, 2) for uuid, names in by_uuid.items() if uuid is not None
    )
    return tuple(
        (left, right)
        for left, right in sorted(pairs)
        if are_one(first[left], first[right])
        and are_one(last[left], last[right])
        and _grows(first[left], last[right])
        and _grows(first[right], last[left])
    )


def are_one(left: ServerSnapshot, right: ServerSnapshot) -> bool:
    """Return whether two readings name one process: by its identity, not by its sets."""
    if left.server_uuid is None or left.server_uuid != right.server_uuid:
        return False
    if left.server_id != right.server_id:
        return False
    values = [(left.setting(name), right.setting(name)) for name in _SETTINGS]
    started = [server.started_at for server in (left, right)]
    return (
        all(ours is not None and ours == theirs for ours, theirs in values)
        and started[0] is not None
        and started[1] is not None
        and abs(started[0] - started[1]) <= START_SLACK
    )


def _grows(earlier: ServerSnapshot, later: ServerSnapshot) -> bool:
    if earlier.gtid_executed is None or later.gtid_executed is None:
        return False
    return earlier.gtid_executed <= later.gtid_executed
