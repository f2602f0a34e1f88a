"""The contents of transactions as a JSON document.

Values are as exact as JSON allows: integers and floating-point numbers as numbers; decimals, dates
and texts as strings; other bytes as {"hex": …}; a JSON column as the text that MySQL prints. A
column that was not logged is left out. A column without a name is "@" and its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from binlog.events import Event, Query, RowsQuery
from binlog.log_times import moment
from binlog.rows.images import BIT, ENUM, SET
from binlog.rows.json_values import JsonDiffs, json_text
from binlog.rows.tables import RowColumn, RowTable
from binlog.rows.value_text import members_of, text_of, value_text
from binlog.rows.values import ABSENT, Image, RowChanges, Value
from binlog.scan import EventGroup
from gtid import GtidSet
from gtid_audit.output import StreamedList
from topology.documents.document_version import versioned
from topology.readings.hidden_passwords import without_secrets

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def show_document(
    wanted: GtidSet,
    contents: Iterator[tuple[EventGroup, Iterator[RowChanges | Event]]],
    missing: Callable[[], GtidSet],
    misfits: Callable[[], list[dict[str, Any]]],
) -> dict[str, Any]:
    """Describe transactions, in a document whose lists are read while it is written.

    Missing GTIDs, and definitions that do not fit, are known only after the last transaction.
    """
    document = versioned({"wanted": str(wanted), "transactions": None})
    document |= {"missing": None, "misfits": None}

    def transactions() -> Iterator[dict[str, Any]]:
        for each in contents:
            yield transaction_document(*each)
        document["missing"] = str(missing())
        document["misfits"] = misfits()

    document["transactions"] = StreamedList(transactions())
    return document


def transaction_document(group: EventGroup, items: Iterator[RowChanges | Event]) -> dict[str, Any]:
    """Describe one transaction. Raises CorruptBinlog while `items` are read."""
    transaction = group.transaction
    return {
        "gtid": str(transaction.gtid) if transaction.gtid else None,
        "file": transaction.file,
        "start": transaction.start,
        "end": transaction.end,
        "kind": transaction.kind.value,
        "server_id": transaction.server_id,
        "is_complete": transaction.is_complete,
        "logged_at": _seconds(transaction.timestamp_seconds),
        "original_commit_at": _microseconds(transaction.original_commit_timestamp),
        "immediate_commit_at": _microseconds(transaction.immediate_commit_timestamp),
        "content": StreamedList(each for item in items if (each := _item(item)) is not None),
    }


def _item(item: RowChanges | Event) -> dict[str, Any] | None:
    if isinstance(item, RowChanges):
        return _rows(item)
    match item.body:
        case Query() as query:
            return {
                "statement": without_secrets(query.sql.decode("utf-8", errors="backslashreplace")),
                "schema": query.schema,
                "error_code": query.error_code,
            }
        case RowsQuery(sql=sql):
            return {"comment": without_secrets(sql.decode("utf-8", errors="backslashreplace"))}
    return None


def _rows(changes: RowChanges) -> dict[str, Any]:
    table = changes.table
    return {
        "schema": table.schema,
        "table": table.table,
        "change": changes.kind.value,
        "position": changes.position,
        "names_from": table.origin.value,
        "mismatch": table.mismatch,
        "key": None if table.key is None else [label_of(table, at) for at in table.key],
        "rows": [
            {
                name: _image(table, image)
                for name, image in (("before", row.before), ("after", row.after))
                if image is not None
            }
            for row in changes.rows
        ],
    }


def label_of(table: RowTable, at: int) -> str:
    """Return the name of a column, or `@` and its number, from 1."""
    return table.columns[at].name or f"@{at + 1}"


def _image(table: RowTable, image: Image) -> dict[str, Any]:
    return {
        label_of(table, at): json_value(table.columns[at], value)
        for at, value in enumerate(image)
        if value is not ABSENT
    }


def json_value(column: RowColumn, value: Value) -> Any:  # noqa: ANN401 - any JSON value
    """Describe one value."""
    match value:
        case bytes():
            text = text_of(column, value)
            return {"hex": value.hex(), "charset": column.charset} if text is None else text
        case int() if column.type_code == ENUM:
            members = members_of(column, value)
            return value if members is None else "".join(members)
        case int() if column.type_code == SET:
            members = members_of(column, value)
            return value if members is None else list(members)
        case int() if column.type_code == BIT:
            return value
        case int() if column.is_unsigned is None and value < 0:
            return {"signed_or_unsigned": value_text(column, value)}
        case None | int() | float():
            return value
        case JsonDiffs(steps):
            return {
                "json_differences": [
                    {
                        "operation": step.kind.name.lower(),
                        "path": step.path,
                        "value": None if step.value is None else json_text(step.value.root),
                    }
                    for step in steps
                ]
            }
        case _:
            return value_text(column, value)


def _seconds(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def _microseconds(microseconds: int | None) -> str | None:
    at = None if microseconds is None else moment(microseconds)
    return None if at is None else at.isoformat()
