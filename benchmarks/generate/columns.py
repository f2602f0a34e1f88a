"""The columns of a stored snapshot that hold lists and structures, made whole at once.

Each function takes one number per row and gives one Arrow array. A texts-column of few different
values is taken from a small table of them.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.generate.draws import Bools, Int64s
from benchmarks.generate.kinds import FAILURES, RUNNING
from benchmarks.generate.numbers import EVENT_BYTES, THREAD_STATES, Numbers
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA
from topology.readings.dialect import SETTINGS

LOG_NAMES_MAX = 10_000
WORKERS = 4  # replica_parallel_workers by default since 8.0.27
_IDLE = "Replica has read all relay log; waiting for more updates"
_WAITING = "Waiting for source to send event"
_ERROR_AT = "260102 02:51:07"
_UNREAD = ("connection", "unreachable", "Can't connect to MySQL server on 'db' (timed out)")

# A server's settings by our name; what differs between servers is put in afterwards.
_SETTINGS = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "log_bin": "ON",
    "log_replica_updates": "ON",
    "replica_parallel_workers": str(WORKERS),
    "replica_preserve_commit_order": "ON",
    "relay_log_recovery": "ON",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "binlog_expire_logs_seconds": "2592000",
    "max_binlog_size": "1073741824",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "read_only": "",
    "super_read_only": "",
    "auto_increment_increment": "3",
    "auto_increment_offset": "",
    "hostname": "",
    "port": "3306",
    "datadir": "/var/lib/mysql/",
}
assert SETTINGS.keys() >= _SETTINGS.keys(), "a reader would not ask for these"


def taken(values: Sequence[str], which: Int64s) -> pa.StringArray:
    """Return values[which[row]] for each row."""
    return pa.array(values, pa.string()).take(pa.array(np.maximum(which, 0)))


def nulled(column: pa.Array, null: Bools) -> pa.Array:
    """Return the column with nulls where nothing was read."""
    if not null.any():
        return column
    return column.take(pa.array(np.arange(len(column)), mask=null))


def positions(file: Int64s, position: Int64s) -> pa.StructArray:
    """Return places in binary logs, by the number of the file."""
    kind = SNAPSHOT_SCHEMA.field("log_end").type
    return pa.StructArray.from_arrays(
        [taken(_LOG_NAMES, file), pa.array(position)], fields=list(kind.fields)
    )


def lists(kind: pa.ListType, counts: Int64s, items: pa.Array) -> pa.ListArray:
    """Cut items into lists of so many each."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    assert offsets[-1] == len(items)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind)


def structs(kind: pa.StructType, **columns: pa.Array) -> pa.StructArray:
    """Return structures of the columns named, all of the type's fields."""
    fields = list(kind.fields)
    assert {field.name for field in fields} == columns.keys()
    return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)


def channels_column(
    numbers: Numbers,
    *,
    cluster: Int64s,
    server: Int64s,
    phase: Int64s,
    source: Int64s,
    sources: pa.StringArray,
    uuids: pa.StringArray,
    retrieved: pa.StringArray,
    applying: pa.StringArray,
) -> pa.ListArray:
    """Return no channel or one for each row. The texts are given for every row."""
    kind = SNAPSHOT_SCHEMA.field("channels").type
    item = kind.value_type
    has = source >= 0
    which = np.flatnonzero(has)
    c, s, p, at = cluster[which], server[which], phase[which], source[which]
    keep = pa.array(which)
    error = numbers.error[c, s]
    read_to = numbers.log_end[c, at, p] - numbers.unread_to[c, s]
    count = len(which)
    zero = np.zeros(count, dtype=np.int64)
    receiver_errno, receiver_error = _said(error, by_applier=False)
    applier_errno, applier_error = _said(error, by_applier=True)
    channel = structs(
        item,
        name=taken([""], zero),
        source_host=sources.take(keep),
        source_port=pa.array(np.full(count, 3306, dtype=np.int32)),
        source_uuid=uuids.take(keep),
        auto_position=pa.array(numbers.auto_position[c, s]),
        gtid_retrieved=retrieved.take(keep),
        receiver=taken(THREAD_STATES, numbers.receiver[c, s]),
        receiver_errno=receiver_errno,
        receiver_error=receiver_error,
        receiver_error_at=_when(receiver_error),
        applier=taken(THREAD_STATES, numbers.applier[c, s]),
        applier_errno=applier_errno,
        applier_error=applier_error,
        applier_error_at=_when(applier_error),
        received_to=positions(numbers.log_file[c, at], read_to),
        applied_to=positions(
            numbers.log_file[c, at], read_to - numbers.lag_seconds[c, s] * EVENT_BYTES
        ),
        lag_seconds=pa.array(numbers.lag_seconds[c, s], mask=numbers.applier[c, s] != RUNNING),
        filters=lists(item.field("filters").type, zero, taken([""], zero[:0])),
        workers=_workers(
            item.field("workers").type, applying.take(keep), applier_errno, applier_error
        ),
        **_progress(item, count),
    )
    return lists(kind, has.astype(np.int64), channel)


def _progress(item: pa.StructType, count: int) -> dict[str, pa.Array]:
    """Return what a channel that has applied everything shows of its progress."""
    zero = np.zeros(count, dtype=np.int64)
    made: dict[str, pa.Array] = {
        "applier_state": taken([_IDLE], zero),
        "receiver_state": taken([_WAITING], zero),
        "delay_seconds": pa.array(zero),
        "last_queued": taken([""], zero),
        "last_applied": taken([""], zero),
        "ignored_server_ids": lists(
            item.field("ignored_server_ids").type, zero, pa.array(zero[:0])
        ),
        "until": taken([""], zero),
        "skip_counter": pa.array(zero),
    }
    unknown = (
        *("relay_applied_to", "delay_remaining_seconds", "source_server_id"),
        *("last_queued_committed_at", "last_applied_at"),
    )
    return made | {name: pa.nulls(count, item.field(name).type) for name in unknown}


def _said(error: Int64s, *, by_applier: bool) -> tuple[pa.Int32Array, pa.StringArray]:
    """Return what one of a channel's threads says: number and text."""
    mine = [each if each.of_applier == by_applier else FAILURES[0] for each in FAILURES]
    numbers = pa.array([each.errno for each in mine], pa.int32())
    return numbers.take(pa.array(error)), taken([each.text for each in mine], error)


def _workers(
    kind: pa.ListType, applying: pa.StringArray, errno: pa.Int32Array, error: pa.StringArray
) -> pa.ListArray:
    """Return the workers of each channel; the first is the one that failed."""
    count = len(applying) * WORKERS
    channel, worker = np.divmod(np.arange(count), WORKERS)
    failed, of_channel = pa.array(worker == 0), pa.array(channel)
    return lists(
        kind,
        np.full(len(applying), WORKERS, dtype=np.int64),
        structs(
            kind.value_type,
            worker_id=pa.array(worker + 1),
            applying=pc.if_else(failed, applying.take(of_channel), ""),
            errno=pc.if_else(failed, errno.take(of_channel), pa.scalar(0, pa.int32())),
            error=pc.if_else(failed, error.take(of_channel), ""),
            state=taken([""], np.zeros(count, dtype=np.int64)),
            applying_seconds=pa.nulls(count, pa.int64()),
            last_applied=taken([""], np.zeros(count, dtype=np.int64)),
        ),
    )


def _when(error: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(error, ""), "", _ERROR_AT)


def binary_logs_column(file: Int64s, end: Int64s) -> pa.ListArray:
    """Return three to ten binary logs for each row, the current one last."""
    kind = SNAPSHOT_SCHEMA.field("binary_logs").type
    counts = 3 + file % 8
    row = np.repeat(np.arange(len(file)), counts)
    behind = (np.cumsum(counts))[row] - 1 - np.arange(len(row))
    size = np.where(behind == 0, end[row], 2**30 + file[row] * 37 % 400)
    return lists(
        kind,
        counts,
        structs(
            kind.value_type,
            name=taken(_LOG_NAMES, file[row] - behind),
            size_bytes=pa.array(size),
            encrypted=pa.array(np.zeros(len(row), dtype=np.bool_)),
        ),
    )


def settings_column(
    *, hosts: pa.StringArray, server: Int64s, read_only: Bools, in_any_order: Bools
) -> pa.ListArray:
    """Return the settings of each row, in order of name."""
    kind = SNAPSHOT_SCHEMA.field("settings").type
    names = sorted(_SETTINGS)
    few = [*(_SETTINGS[name] for name in names), "OFF", "ON", "1", "2", "3"]
    values = pa.concat_arrays([pa.array(few), hosts])
    which = np.tile(np.arange(len(names)), (len(hosts), 1))
    on_off = len(names) + read_only.astype(np.int64)
    which[:, names.index("read_only")] = which[:, names.index("super_read_only")] = on_off
    which[in_any_order, names.index("replica_preserve_commit_order")] = len(names)  # OFF
    which[:, names.index("auto_increment_offset")] = len(names) + 2 + server
    which[:, names.index("hostname")] = len(few) + np.arange(len(hosts))
    return lists(
        kind,
        np.full(len(hosts), len(names), dtype=np.int64),
        structs(
            kind.value_type,
            name=taken(names, np.tile(np.arange(len(names)), len(hosts))),
            value=values.take(pa.array(which.ravel())),
        ),
    )


def unread_column(unread: Bools) -> pa.ListArray:
    """Return what was not read: the connection, of a server that was not reached."""
    kind = SNAPSHOT_SCHEMA.field("unread").type
    zero = np.zeros(int(unread.sum()), dtype=np.int64)
    fact, reason, detail = _UNREAD
    return lists(
        kind,
        unread.astype(np.int64),
        structs(
            kind.value_type,
            fact=taken([fact], zero),
            reason=taken([reason], zero),
            detail=taken([detail], zero),
        ),
    )


_LOG_NAMES = [f"binlog.{number:06}" for number in range(LOG_NAMES_MAX)]
