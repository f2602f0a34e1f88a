"""Turns rows of SHOW REPLICA STATUS and of the worker table into channels.

Knows the columns of every version by dialect.py; knows nothing of connections, so that pasted
output goes through the same door as a live answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from gtid import Gtid, GtidSet
from topology.dialect import FILTER_COLUMNS, STATUS_COLUMNS
from topology.snapshot import ChannelSnapshot, LogPosition, ThreadState, WorkerSnapshot

Row = Mapping[str, Any]


def channel_from_row(row: Row, workers: Mapping[str, Sequence[Row]]) -> ChannelSnapshot:
    """Build a channel from one row of SHOW REPLICA STATUS, in the words of any version.

    Raises:
        ValueError: a column is missing or holds what it cannot hold.
    """
    name = str(_get(row, "channel", default=""))
    uuid_text = str(_get(row, "source_uuid", default=""))
    lag = _get(row, "lag_seconds", default=None)
    return ChannelSnapshot(
        name=name,
        source_host=str(_get(row, "source_host")),
        source_port=int(_get(row, "source_port")),
        source_uuid=UUID(uuid_text) if uuid_text else None,
        auto_position=bool(int(_get(row, "auto_position"))),
        gtid_retrieved=GtidSet.parse(str(_get(row, "gtid_retrieved"))),
        receiver=ThreadState(_get(row, "receiver_running")),
        receiver_errno=int(_get(row, "receiver_errno")),
        receiver_error=str(_get(row, "receiver_error")),
        receiver_error_at=str(_get(row, "receiver_error_at", default="")),
        applier=ThreadState(_get(row, "applier_running")),
        applier_errno=int(_get(row, "applier_errno")),
        applier_error=str(_get(row, "applier_error")),
        applier_error_at=str(_get(row, "applier_error_at", default="")),
        received_to=_position(row, "received"),
        applied_to=_position(row, "applied"),
        lag_seconds=None if lag is None else int(lag),
        filters=tuple(f"{column}={row[column]}" for column in FILTER_COLUMNS if row.get(column)),
        workers=tuple(_worker(worker) for worker in workers.get(name, ())),
    )


def workers_by_channel(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group rows of replication_applier_status_by_worker by channel, in order of worker."""
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["worker_id"])):
        grouped.setdefault(str(row["channel"]), []).append(row)
    return grouped


def _worker(row: Row) -> WorkerSnapshot:
    text = str(row["applying"])
    # ANONYMOUS and the empty text name no GTID.
    applying = GtidSet.of(Gtid.parse(text)) if ":" in text else GtidSet()
    return WorkerSnapshot(
        worker_id=int(row["worker_id"]),
        applying=applying,
        errno=int(row["errno"]),
        error=str(row["error"]),
    )


def _position(row: Row, prefix: str) -> LogPosition | None:
    return LogPosition.of(
        file=str(_get(row, f"{prefix}_file")), position=int(_get(row, f"{prefix}_position"))
    )


_REQUIRED = object()


def _get(row: Row, ours: str, *, default: Any = _REQUIRED) -> Any:  # noqa: ANN401 - a column
    for name in STATUS_COLUMNS[ours]:
        if name in row:
            return row[name]
    if default is _REQUIRED:
        raise ValueError(f"SHOW REPLICA STATUS has none of {', '.join(STATUS_COLUMNS[ours])}")
    return default
