"""The columns of a stored snapshot, and the conversion of records to columns and back.

1. SNAPSHOT_SCHEMA has the fields of a snapshot's record, typed. Times are UTC microseconds, GTID
   sets are MySQL's text.
2. Typing loses nothing: records_of_table(table_of_records(x)) is x, for any schema.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa

from topology.records import Plain, Record, time_from_text, time_to_text

Cell: TypeAlias = "bool | int | str | datetime | Decimal | list[Cell] | dict[str, Cell] | None"

# -- the columns ----------------------------------------------------------------------------------


def list_of(item: pa.DataType) -> pa.DataType:
    """Return the type of a list, with its item named as in Parquet and Spark."""
    return pa.list_(pa.field("element", item))


TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_POSITION = pa.struct({"file": pa.string(), "position": pa.int64()})
_WORKER = pa.struct(
    {
        "worker_id": pa.int64(),
        "applying": pa.string(),
        "errno": pa.int32(),
        "error": pa.string(),
        "state": pa.string(),
        "applying_seconds": pa.int64(),
        "last_applied": pa.string(),
    }
)
_CHANNEL = pa.struct(
    {
        "name": pa.string(),
        "source_host": pa.string(),
        "source_port": pa.int32(),
        "source_uuid": pa.string(),
        "auto_position": pa.bool_(),
        "gtid_retrieved": pa.string(),
        "receiver": pa.string(),
        "receiver_errno": pa.int32(),
        "receiver_error": pa.string(),
        "receiver_error_at": pa.string(),
        "applier": pa.string(),
        "applier_errno": pa.int32(),
        "applier_error": pa.string(),
        "applier_error_at": pa.string(),
        "received_to": _POSITION,
        "applied_to": _POSITION,
        "lag_seconds": pa.int64(),
        "filters": list_of(pa.string()),
        "workers": list_of(_WORKER),
        "applier_state": pa.string(),
        "receiver_state": pa.string(),
        "relay_applied_to": _POSITION,
        "delay_seconds": pa.int64(),
        "delay_remaining_seconds": pa.int64(),
        "source_server_id": pa.int64(),
        "ignored_server_ids": list_of(pa.int64()),
        "until": pa.string(),
        "skip_counter": pa.int64(),
        "last_queued": pa.string(),
        "last_queued_committed_at": TIMESTAMP,
        "last_applied": pa.string(),
        "last_applied_at": TIMESTAMP,
    }
)
_BINARY_LOG = pa.struct({"name": pa.string(), "size_bytes": pa.int64(), "encrypted": pa.bool_()})
_SETTING = pa.struct({"name": pa.string(), "value": pa.string()})
_GROUP = pa.struct(
    {
        "group_name": pa.string(),
        "member_state": pa.string(),
        "member_role": pa.string(),
        "received": pa.string(),
    }
)
_LOG_START = pa.struct({"file": pa.string(), "begun_at": TIMESTAMP, "previous_gtids": pa.string()})
_HISTORY_EVIDENCE = pa.struct(
    {
        "first_log": pa.struct(
            {"file": pa.string(), "begun_at": TIMESTAMP, "previous_gtids": pa.string()}
        ),
        "commits": list_of(
            pa.struct(
                {
                    "gtid": pa.string(),
                    "server_id": pa.int64(),
                    "committed_at": TIMESTAMP,
                    "is_exact": pa.bool_(),
                    "logged_at": TIMESTAMP,
                }
            )
        ),
        "unread": pa.string(),
        "searches": list_of(
            pa.struct(
                {
                    "replica": pa.string(),
                    "channel": pa.string(),
                    "place": pa.string(),
                    "wanted": pa.string(),
                    "before": pa.string(),
                }
            )
        ),
        "purged_changes": list_of(pa.struct({"at": TIMESTAMP, "added": pa.string()})),
        "schemas_count": pa.int64(),
    }
)
_UNREAD = pa.struct({"fact": pa.string(), "reason": pa.string(), "detail": pa.string()})

SNAPSHOT_SCHEMA: Final = pa.schema(
    {
        "cluster": pa.string(),
        "name": pa.string(),
        "host": pa.string(),
        "port": pa.int32(),
        "phase": pa.int32(),
        "read_started": TIMESTAMP,
        "read_ended": TIMESTAMP,
        "server_clock": TIMESTAMP,
        "server_uuid": pa.string(),
        "server_id": pa.int64(),
        "version": pa.string(),
        "version_text": pa.string(),
        "vendor": pa.string(),
        "uptime_seconds": pa.int64(),
        "gtid_executed": pa.string(),
        "gtid_purged": pa.string(),
        "gtid_owned": pa.string(),
        "log_end": _POSITION,
        "channels": list_of(_CHANNEL),
        "binary_logs": list_of(_BINARY_LOG),
        "settings": list_of(_SETTING),
        "group": _GROUP,
        "notable_settings": pa.string(),
        "history_evidence": _HISTORY_EVIDENCE,
        "unread": list_of(_UNREAD),
    }
)


# -- records and columns --------------------------------------------------------------------------


def table_of_records(records: Iterable[Record], schema: pa.Schema) -> pa.Table:
    """Return records as typed columns: times and exact counts are converted from text."""
    rows = list(records)
    columns = []
    for column in schema:
        write = _cell_writer(column.type)
        values: Iterable[object] = (row[column.name] for row in rows)
        cells = list(values if write is None else map(write, values))
        columns.append(pa.array(cells, type=column.type))
    return pa.Table.from_arrays(columns, schema=schema)


def records_of_table(table: pa.Table | pa.RecordBatch) -> list[Record]:
    """Return columns as records."""
    records: list[Record] = table.to_pylist()
    typed = {column.name: column.type for column in table.schema if _has_own_cells(column.type)}
    for record in records:
        for name, kind in typed.items():
            record[name] = _from_cell(cast("Cell", record[name]), kind)
    return records


def readings_of_table(table: pa.Table) -> list[Record]:
    """Return rows of SNAPSHOT_SCHEMA as `snapshot_from_record` reads them, with times unchanged."""
    readings: list[Record] = table.to_pylist()
    return readings


def _has_own_cells(kind: pa.DataType) -> bool:
    """Return whether cells of this type, or within it, differ from the values of a record."""
    if pa.types.is_list(kind):
        return _has_own_cells(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_has_own_cells(part.type) for part in kind.fields)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_decimal(kind))


@cache
def _cell_writer(kind: pa.DataType) -> Callable[[Any], Cell] | None:
    """Return the function that converts a record's value to a cell of this type, or None.

    None means that the cell is the value itself.
    """
    if pa.types.is_timestamp(kind):
        return _writing(str, time_from_text)
    if pa.types.is_decimal(kind):
        return _writing(int, Decimal)
    if pa.types.is_list(kind):
        item = _cell_writer(kind.value_type)
        return None if item is None else _writing(list, lambda values: list(map(item, values)))
    if pa.types.is_struct(kind):
        parts = [(part.name, _cell_writer(part.type)) for part in kind.fields]
        # Rebuilt even where nothing changes: a missing field must not become a null.
        return _writing(
            dict,
            lambda record: {
                name: record[name] if write is None else write(record[name])
                for name, write in parts
            },
        )
    return None


def _writing(expected: type, write: Callable[[Any], Cell]) -> Callable[[Any], Cell]:
    def write_cell(value: object) -> Cell:
        if value is None:
            return None
        assert isinstance(value, expected), "a record has the types of its columns"
        return write(value)

    return write_cell


def _from_cell(cell: Cell, kind: pa.DataType) -> Plain:
    if isinstance(cell, datetime):
        return time_to_text(cell)
    if isinstance(cell, Decimal):
        return int(cell)
    if isinstance(cell, list):
        return [_from_cell(item, kind.value_type) for item in cell]
    if isinstance(cell, dict):
        return {part.name: _from_cell(cell[part.name], part.type) for part in kind.fields}
    return cell


def leaves_of(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the column paths as Parquet names them, down to the values."""
    if pa.types.is_list(kind):
        yield from leaves_of(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind.fields:
            yield from leaves_of(f"{path}.{part.name}", part.type)
    else:
        yield path
