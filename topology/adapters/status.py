"""Converts rows of SHOW REPLICA STATUS and of performance_schema to channels.

The columns of every version come from dialect.py. This module opens no connections, so pasted
output takes the same path as a live answer.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from binlog.log_times import EPOCH
from gtid import Gtid, GtidSet, MalformedGtidSet
from topology.readings.dialect import (
    FILTER_COLUMNS,
    REWRITES,
    STATUS_COLUMNS,
    UNTIL_PLACES,
    UNTIL_REACHED,
)
from topology.readings.group_view import GROUP_APPLIER, GROUP_RECOVERY, GroupMember, GroupSnapshot
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import BinaryLog, ChannelSnapshot, LogPosition, ThreadState
from topology.readings.worker import IDLE_WORKER, ROW_LOCK_RETRY, ROW_LOCK_WAIT, WorkerSnapshot

Row = Mapping[str, Any]


_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_OWNER = re.compile(rf"(?P<thread>[0-9]+)(?:,?(?P<uuid>{_UUID.pattern}))?")
_PROCESSLIST_STATE_CHARS = 64
_WRAPPED = 2**63  # an Uptime from there on is a negative number
# States in which a replication thread accesses no row: it waits for events, for another thread, for
# its source, or for a lock that has a state of its own.
_NO_WORK = re.compile("^$|^Waiting |has read all relay log|onnecting |^Queueing ", re.IGNORECASE)


def channel_from_row(row: Row, workers: Mapping[str, Sequence[Row]]) -> ChannelSnapshot:
    """Build a channel from one row of SHOW REPLICA STATUS, in the terms of any version.

    `workers` has the rows of performance_schema by channel: one for each worker, or a single row
    without a worker. Each row has what the receiver queued last.

    Raises:
        ValueError: a column is missing or has an impossible value.
    """
    name = str(next((row[column] for column in STATUS_COLUMNS["channel"] if column in row), ""))
    uuid_text = str(_get(row, "source_uuid"))
    lag = _get(row, "lag_seconds")
    remaining = _get(row, "delay_remaining_seconds")
    threads = workers.get(name, ())
    queued = threads[0] if threads else {}
    ahead = min((int(each.get("event_seconds") or 0) for each in threads), default=0)
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
        receiver_error_at=str(_get(row, "receiver_error_at")),
        applier=ThreadState(_get(row, "applier_running")),
        applier_errno=int(_get(row, "applier_errno")),
        # The text quotes the statement, and a snapshot is stored and shown.
        applier_error=without_secrets(str(_get(row, "applier_error"))),
        applier_error_at=str(_get(row, "applier_error_at")),
        received_to=_position(row, "received"),
        applied_to=_position(row, "applied"),
        lag_seconds=ahead if ahead < 0 else None if lag is None else int(lag),
        filters=_filters(row),
        workers=_workers_of(threads),
        applier_state=str(_get(row, "applier_state") or ""),
        receiver_state=str(_get(row, "receiver_state") or ""),
        relay_applied_to=_position(row, "relay_applied"),
        delay_seconds=int(_get(row, "delay_seconds")),
        delay_remaining_seconds=None if remaining is None else int(remaining),
        source_server_id=int(_get(row, "source_server_id")) or None,
        ignored_server_ids=_server_ids(str(_get(row, "ignored_server_ids") or "")),
        until=_until(row),
        skip_counter=int(_get(row, "skip_counter")),
        last_queued=_gtid(queued.get("queued")),
        last_queued_committed_at=_time(queued.get("queued_committed_at")),
        last_applied=GtidSet.union_of(_gtid(each.get("applied")) for each in threads),
        last_applied_at=max(
            filter(None, (_time(each.get("applied_at")) for each in threads)), default=None
        ),
    )


def group_from_rows(
    name: str, own: Row, members: Sequence[Row], workers: Sequence[Row]
) -> GroupSnapshot:
    """Build a member's view of its group from the rows of performance_schema.

    `workers` are those of every channel of the server.

    Raises:
        ValueError: a column has an impossible value.
    """
    by_channel = workers_by_channel(workers)
    return GroupSnapshot(
        group_name=name,
        member_state=str(own["member_state"]),
        member_role=str(own["member_role"]),
        received=GtidSet.parse(str(own["received"] or "")),
        members=tuple(
            sorted(
                GroupMember(
                    UUID(str(row["server_uuid"])),
                    str(row["host"]),
                    int(row["port"]),
                    str(row["member_state"]),
                    str(row["member_role"]),
                )
                for row in members
            )
        ),
        workers=_workers_of(by_channel.get(GROUP_APPLIER, ())),
        recovery_workers=_workers_of(by_channel.get(GROUP_RECOVERY, ())),
        recovery_errno=int(own["recovery_errno"] or 0),
        recovery_error=str(own["recovery_error"] or ""),
        view_id=str(own["view_id"] or ""),
    )


def uptime_of(row: Row) -> int:
    """Return the uptime. It wraps if the clock was set back to before the start (seen).

    Raises LookupError and ValueError.
    """
    seconds = int(row["Value"])
    if seconds >= _WRAPPED:
        raise ValueError(f"Uptime is {seconds}: the clock was set back past the start")
    return seconds


def binary_log_from_row(row: Row) -> BinaryLog:
    """Build a log file from one row of SHOW BINARY LOGS. Raises LookupError and ValueError."""
    return BinaryLog(
        name=str(row["Log_name"]),
        size_bytes=int(str(row["File_size"])),
        encrypted=row["Encrypted"] == "Yes" if "Encrypted" in row else None,
    )


def _workers_of(threads: Sequence[Row]) -> tuple[WorkerSnapshot, ...]:
    return tuple(_worker(each) for each in threads if each["worker_id"] is not None)


def workers_by_channel(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group rows of workers by channel, in order of worker."""
    grouped: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["worker_id"] or 0)):
        grouped.setdefault(str(row["channel"]), []).append(row)
    return grouped


def parse_owned(text: str) -> GtidSet:
    """Parse @@GLOBAL.gtid_owned: a GTID set in which `#thread` follows every GNO.

    `UUID:5#12:6#13UUID2:1#9` means that threads 12, 13 and 9 own these GTIDs. There is no separator
    between a thread and the next UUID (sql/rpl_gtid_owned.cc, Owned_gtids::to_string; seen on
    5.6.24 and 9.7.4). Only the fixed length of a UUID shows where it begins.

    Raises:
        GtidError: the text is not of this form.
    """
    rebuilt: list[str] = []
    for part in text.split(":"):
        number, mark, rest = part.partition("#")
        owner = _OWNER.fullmatch(rest)
        if mark and owner is None:
            raise MalformedGtidSet(
                "a thread, and perhaps a UUID", text.index(part) + len(number) + 1, rest
            )
        rebuilt.append(f"{number},{owner['uuid']}" if owner and owner["uuid"] else number)
    return GtidSet.parse(":".join(rebuilt))


def parse_owners(text: str) -> tuple[tuple[str, int], ...]:
    """Return each GTID of @@GLOBAL.gtid_owned with the session that owns it.

    Raises:
        GtidError: the text is not of this form.
    """
    found = []
    uuid = ""
    # `UUID[:tag]:5#12:6#13UUID2:1#9`: a part without a mark is a UUID or a tag.
    for part in text.replace("\n", "").split(":"):
        number, mark, rest = part.partition("#")
        if not mark:
            uuid = number if _UUID.fullmatch(number) else f"{uuid}:{number}"
            continue
        owner = _OWNER.fullmatch(rest)
        if owner is None or not number.isdigit():
            raise MalformedGtidSet("a thread, and perhaps a UUID", text.index(part), rest)
        found.append((f"{uuid}:{number}", int(owner["thread"])))
        uuid = owner["uuid"] or uuid
    return tuple(found)


def workers_of_processlist(rows: Sequence[Row], statuses: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the workers of 5.6, which only the process list shows.

    Every replication thread is a "system user". The threads in the states that SHOW REPLICA STATUS
    prints are the receiver and the applier itself; the others are workers. An applier without
    workers that waits for a row lock is also listed as a worker, because it is busy. The list
    truncates states after 64 characters. Without the PROCESS privilege there are no rows.

    The time of a thread that applies an event is the event's age, and negative if it is dated in
    the future. SHOW REPLICA STATUS then shows a lag of 0, so a row without a worker has the time.
    """
    known = {
        str(_get(status, state))[:_PROCESSLIST_STATE_CHARS]
        for status in statuses
        for state in ("applier_state", "receiver_state")
    }
    workers = [
        {
            "channel": "",
            "worker_id": row["thread"],
            "errno": 0,
            "error": "",
            "state": row["state"],
            "waits_for_row": row.get("waits_for_row"),
            "applying_seconds": None if IDLE_WORKER.match(str(row["state"])) else row["seconds"],
        }
        for row in rows
        if row["thread"] is not None
        and (str(row["state"] or "") not in known or row.get("waits_for_row"))
    ]
    ahead = min((int(row["seconds"]) for row in rows if row["thread"] is not None), default=0)
    if ahead < 0:
        workers.append({"channel": "", "worker_id": None, "event_seconds": ahead})
    return workers_by_channel(workers)


def may_wait_for_row(row: Row) -> bool:
    """Return whether a thread of 5.6 has been busy for a second or more.

    Only then is InnoDB queried for row locks. That query is expensive, and needs the PROCESS
    privilege, without which there are no threads either.
    """
    state = str(row["state"] or "")
    return row["thread"] is not None and int(row["seconds"]) >= 1 and not _NO_WORK.search(state)


def waiting_for_rows(rows: Sequence[Row], waits: Sequence[Row]) -> list[Row]:
    """Mark the threads of 5.6 that wait for a row lock."""
    waiting = {int(each["thread"]) for each in waits}
    return [{**row, "waits_for_row": row["thread"] in waiting} for row in rows]


def hides_workers(rows: Sequence[Row], statuses: Sequence[Row]) -> bool:
    """Return whether an applier of 5.6 runs with workers that this account cannot see."""
    is_running = any(_get(status, "applier_running") == "Yes" for status in statuses)
    return (
        is_running
        and any(int(row["workers"]) > 0 for row in rows)
        and all(row["thread"] is None for row in rows)
    )


def _filters(row: Row) -> tuple[str, ...]:
    """Return the filters as `column=list`.

    A column that is missing would hide a filter, so the row cannot be read. Only 5.6 has no column
    for rewritten databases; it has none for channels either.

    Raises:
        ValueError: a column is missing.
    """
    has_rewrites = any(name in row for name in STATUS_COLUMNS["channel"])
    due = [column for column in FILTER_COLUMNS if has_rewrites or column != REWRITES]
    missing = [column for column in due if column not in row]
    if missing:
        raise ValueError(f"SHOW REPLICA STATUS has no column {', '.join(missing)}")
    return tuple(f"{column}={row[column]}" for column in due if row[column])


def _server_ids(text: str) -> tuple[int, ...]:
    """Parse Replicate_Ignore_Server_Ids: server_ids separated by commas."""
    return tuple(sorted(int(number) for number in text.split(",") if number.strip()))


def _until(row: Row) -> str:
    """Return the condition of START REPLICA UNTIL; "" if the applier was started without one.

    The position counts only for a condition that has one: other conditions keep the position of an
    earlier statement (seen on 5.6.24).
    """
    kind = str(_get(row, "until_condition"))
    if kind in UNTIL_PLACES:
        file, position = _get(row, "until_file"), _get(row, "until_position")
        return f"{UNTIL_PLACES[kind]} {file}:{position}"
    return "" if kind == "None" else UNTIL_REACHED.get(kind, kind)


def _worker(row: Row) -> WorkerSnapshot:
    state = str(row.get("state") or "")
    if row.get("waits_for_row"):
        state = f"{state} ({ROW_LOCK_WAIT})"
    elif row.get("retries_for_row"):
        state = f"{state} ({ROW_LOCK_RETRY})"
    seconds = row.get("applying_seconds")
    return WorkerSnapshot(
        worker_id=int(row["worker_id"]),
        applying=_gtid(row.get("applying")),
        errno=int(row["errno"]),
        error=without_secrets(str(row["error"])),
        state=state,
        applying_seconds=None if seconds is None else int(seconds),
        last_applied=_gtid(row.get("applied")),
    )


def _gtid(text: object) -> GtidSet:
    """Parse a column with one GTID; ANONYMOUS, an empty text and NULL are no GTID."""
    return GtidSet.of(Gtid.parse(text)) if isinstance(text, str) and ":" in text else GtidSet()


def _time(seconds: object) -> datetime | None:
    """Convert UNIX_TIMESTAMP of a column; 0 means "never"."""
    microseconds = int(Decimal(str(seconds)) * 1_000_000) if seconds is not None else 0
    return EPOCH + timedelta(microseconds=microseconds) if microseconds else None


def _position(row: Row, prefix: str) -> LogPosition | None:
    return LogPosition.of(
        file=str(_get(row, f"{prefix}_file")), position=int(_get(row, f"{prefix}_position"))
    )


def _get(row: Row, ours: str) -> Any:  # noqa: ANN401 - a column
    """Return a column that all versions have: a default would hide one that was renamed."""
    for name in STATUS_COLUMNS[ours]:
        if name in row:
            return row[name]
    raise ValueError(f"SHOW REPLICA STATUS has none of {', '.join(STATUS_COLUMNS[ours])}")
