"""Converts the readings of clusters to rows, regardless of what a server answered.

A number that no column can hold, or a text that is not Unicode, must not prevent other clusters
from being stored. Such a server becomes unread, in both readings, with the reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, table_of_records
from topology.documents.records import snapshot_to_record
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason

# Exceptions of Arrow, and of writing a record, for a value that no column can hold.
_DOES_NOT_FIT: Final = (
    pa.ArrowException,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
_SHOWN_CHARS: Final = 200


def rows_of(snapshots: Sequence[ClusterSnapshot]) -> pa.Table:
    """Return the rows of some clusters: two for each server, none omitted."""
    try:
        return _table(_readings(snapshots))
    except _DOES_NOT_FIT:
        return _table(_readings([_storable(each) for each in snapshots]))


def storable(snapshots: Sequence[ClusterSnapshot]) -> tuple[ClusterSnapshot, ...]:
    """Return the clusters as they are read back once they are stored."""
    try:
        _table(_readings(snapshots))
    except _DOES_NOT_FIT:
        return tuple(_storable(each) for each in snapshots)
    return tuple(snapshots)


def _storable(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    reasons: dict[str, str] = {}
    for server in _readings([snapshot]):
        try:
            _table([server])
        except _DOES_NOT_FIT as error:
            shown = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
            reasons.setdefault(server.name, shown[:_SHOWN_CHARS])
    first, last = (
        tuple(_unread(one, reasons[one.name]) if one.name in reasons else one for one in servers)
        for servers in (snapshot.first, snapshot.last)
    )
    return replace(snapshot, first=first, last=last)


def _readings(snapshots: Sequence[ClusterSnapshot]) -> list[ServerSnapshot]:
    return [server for each in snapshots for server in (*each.first, *each.last)]


def _table(servers: Sequence[ServerSnapshot]) -> pa.Table:
    return table_of_records(map(snapshot_to_record, servers), SNAPSHOT_SCHEMA)


def _unread(server: ServerSnapshot, reason: str) -> ServerSnapshot:
    fact = UnreadFact(
        "reading", UnreadReason.UNPARSEABLE, f"the server's answer cannot be stored: {reason}"
    )
    return ServerSnapshot(
        cluster=server.cluster,
        name=server.name,
        host=server.host,
        port=server.port,
        phase=server.phase,
        read_started=server.read_started,
        read_ended=server.read_ended,
        unread=(fact,),
    )
