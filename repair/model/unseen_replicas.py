"""Replicas that are connected to a server of a plan and are not part of its audit.

How it works
------------
    a ──► m ──► c          the audit has a and m; m lists c in SHOW REPLICAS

No fact of c is known. It may have rows that a step overwrites, and may be without rows that a step
declares unneeded. So c is treated as a server that is named and could not be read, with one
difference: its source is known. Only what reaches m matters to it. A server of the audit is
recognised by its server_uuid; by its address if its server_uuid was not read.

A consumer (change data capture, an archive of binary logs) is connected in the same way. It has no
sets that an audit reads, so it is refused as well: the operator decides what it must receive.

What is not connected now is listed by no server: the plan warns of that in general.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from repair.model.actions import (
    Action,
    AppendPurged,
    InjectEmpty,
    MakeRowsAlike,
    RedoTransactions,
    ResetAndPurge,
    UndoRows,
)
from repair.model.replication_model import Model, below, upstream
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.snapshot import ClusterSnapshot

# Actions that write, or declare transactions executed. A start delivers what replication would
# deliver by itself, as it would to a server that could not be read.
_WRITING = (InjectEmpty, AppendPurged, ResetAndPurge, RedoTransactions, UndoRows, MakeRowsAlike)


@dataclass(frozen=True, slots=True, order=True)
class UnseenReplica:
    """A replica or a consumer that is not part of the audit, and the server it is connected to."""

    source: str
    replica: ConnectedReplica

    def __str__(self) -> str:
        return _connected_to(self.replica, self.source)


def unseen_replicas(
    snapshot: ClusterSnapshot, connected: Mapping[str, Iterable[ConnectedReplica]]
) -> tuple[UnseenReplica, ...]:
    """Return what is connected to the servers of a snapshot and is none of them, in order."""
    readings = (*snapshot.first, *snapshot.last)
    uuids = {str(each.server_uuid) for each in readings}
    known = {each.name for each in readings if each.server_uuid is not None}
    unknown = {f"{each.host}:{each.port}" for each in readings if each.name not in known}
    return tuple(
        sorted(
            UnseenReplica(source, each)
            for source, found in connected.items()
            for each in found
            if each.server_uuid not in uuids and not unknown & {*each.addresses}
        )
    )


def unseen_below(
    unseen: Iterable[UnseenReplica], model: Model, names: Iterable[str]
) -> tuple[UnseenReplica, ...]:
    """Return those that get what one of these servers logs, over running or stopped channels."""
    reached = {each for name in names for each in (name, *below(model, name))}
    return tuple(each for each in unseen if each.source in reached)


def linked_with(model: Model, names: Iterable[str]) -> set[str]:
    """Return servers, those above them, and those below all of these."""
    there = {name for name in names if name in model.servers}
    above = there.union(*(upstream(model, name) for name in there))
    return above.union(*(below(model, name) for name in above))


def written_on(actions: Iterable[Action]) -> Iterator[str]:
    """Yield the servers on which actions write, or declare transactions executed."""
    return (each.server for each in actions if isinstance(each, _WRITING))


def refused_for(unseen: Iterable[UnseenReplica]) -> str | None:
    """Return why a strategy is refused because of these, and what to do; None if there are none."""
    sources: dict[ConnectedReplica, list[str]] = {}
    for each in unseen:
        sources.setdefault(each.replica, []).append(each.source)
    if not sources:
        return None
    listed = (_connected_to(each, " and ".join(names)) for each, names in sources.items())
    return (
        f"{'; '.join(listed)}. The transactions may be there, or arrive there; the rows are not"
        " known. If it is a server, add it to the audit and plan again. If it is a consumer, decide"
        " what it must receive"
    )


def _connected_to(replica: ConnectedReplica, sources: str) -> str:
    return (
        f"a replica or a consumer ({replica}) is connected to {sources} and is not part of this"
        " audit"
    )
