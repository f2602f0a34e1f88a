"""The ledger: an Arrow table with one row per transaction of a log.

1. This file defines the columns and the ledger of a file, and makes rows of decoded transactions.
   ledger_window.py makes the same rows faster; it uses this file for what its kernels do not
   handle.
2. Positions count bytes of the file; `end` is exclusive, and `bytes` is `end - start`.
3. A value that the log does not contain is null. These are: the GTID of an anonymous transaction;
   the logical clock before 5.7.6; commit times before 8.0.1 or from an older origin (0 in the
   event); the version before 8.0.14 or if it was unknown (UNKNOWN_SERVER_VERSION, 999999: the
   reference manual on original_server_version).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from binlog.errors import BinlogError
from binlog.log_times import MICROSECONDS
from binlog.scan import LogHead
from binlog.transactions import TableChange, Transaction, TransactionKind

KINDS: Final = tuple(kind.value for kind in TransactionKind)
UNKNOWN_SERVER_VERSION: Final = 999_999

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
_MOMENT: Final = pa.timestamp("us", tz="UTC")

LEDGER_SCHEMA: Final = pa.schema(
    [
        pa.field("file", _WORD, nullable=False),
        pa.field("uuid", _WORD),
        pa.field("tag", _WORD),  # null if there is none
        pa.field("gno", pa.int64()),
        pa.field("kind", _WORD, nullable=False),  # a value of TransactionKind
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        # The server that committed the transaction first: replicas log the origin's server_id.
        pa.field("server_id", pa.int64(), nullable=False),
        # The time of the first event, by the origin's clock, in whole seconds.
        pa.field("logged_at", _MOMENT, nullable=False),
        pa.field("original_commit_at", _MOMENT),
        pa.field("immediate_commit_at", _MOMENT),
        pa.field("original_server_version", pa.int32()),  # 80036 is 8.0.36
        pa.field("last_committed", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        # The first error of a statement on the source; 0 if there was none.
        pa.field("error_code", pa.int32(), nullable=False),
        # False: its end is not written yet, or was lost.
        pa.field("is_complete", pa.bool_(), nullable=False),
    ]
)

# Optional. The digest of a transaction's content (binlog/content); null if unreadable.
DIGEST_FIELD: Final = pa.field("digest", pa.uint64())

_TABLE: Final = pa.struct(
    [
        pa.field("schema", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("rows_written", pa.int64(), nullable=False),
        pa.field("rows_updated", pa.int64(), nullable=False),
        pa.field("rows_deleted", pa.int64(), nullable=False),
    ]
)
# Optional. `tables` is null if the content could not be read, and empty if no rows were changed.
# `ddl` is the statement of a transaction of kind ddl, truncated at STATEMENT_CHARACTERS_MAX.
DETAIL_FIELDS: Final = (pa.field("tables", pa.list_(_TABLE)), pa.field("ddl", pa.string()))


@dataclass(frozen=True, slots=True)
class FileLedger:
    """The ledger of one file. It includes all valid rows before an error.

    `head` is None only if the file's header could not be read. `end` is the first byte that was not
    read: the file's size, or the start of an incomplete or malformed event.
    """

    file: str
    head: LogHead | None
    rows: pa.Table
    end: int
    error: BinlogError | None = None


@dataclass(frozen=True, slots=True)
class LedgerRequest:
    """What a ledger contains, and whether checksums are verified.

    `verify` checks every checksum, and in a source's binary log every end_log_pos. `digests` adds
    DIGEST_FIELD, `details` adds DETAIL_FIELDS: both read the content of every transaction. With
    `details`, the ledger ends at malformed content.
    """

    verify: bool = False
    digests: bool = False
    details: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Return the columns."""
        schema = LEDGER_SCHEMA
        fields = ((DIGEST_FIELD,) if self.digests else ()) + (DETAIL_FIELDS if self.details else ())
        for field in fields:
            schema = schema.append(field)
        return schema


ROWS_ONLY: Final = LedgerRequest()


def rows_of_transactions(transactions: Iterable[Transaction], *, details: bool = False) -> pa.Table:
    """Make the rows of decoded transactions."""
    schema = LedgerRequest(details=details).schema
    read = tuple(transactions)
    columns = {field.name: _READERS[field.name] for field in schema}
    arrays = [
        pa.array([reader(each) for each in read], schema.field(name).type)
        for name, reader in columns.items()
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """The numbers of a GTID event in the form of a row: machine words, None if unknown."""

    original_commit: int | None
    immediate_commit: int | None
    last_committed: int | None
    sequence_number: int | None
    version: int | None


def row_numbers(each: Transaction) -> RowNumbers:
    """Return the numbers of a transaction's GTID event. A number wraps if damage made it large."""
    version = each.original_server_version
    return RowNumbers(
        original_commit=_wrapped(each.original_commit_timestamp or None, bits=64),
        immediate_commit=_wrapped(each.immediate_commit_timestamp or None, bits=64),
        last_committed=_wrapped(each.logical_last_committed, bits=64),
        sequence_number=_wrapped(each.logical_sequence_number, bits=64),
        version=None if version == UNKNOWN_SERVER_VERSION else _wrapped(version, bits=32),
    )


def _wrapped(value: int | None, *, bits: int) -> int | None:
    if value is None:
        return None
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def tables_of(each: Transaction) -> tuple[TableChange, ...] | None:
    """Return the tables that a transaction changed; None if its content could not be read."""
    return None if each.kind is TransactionKind.OTHER else each.tables


def ddl_of(each: Transaction) -> str | None:
    """Return the statement of a DDL transaction; None for other kinds."""
    is_ddl = each.kind is TransactionKind.DDL and each.statements
    return each.statements[0].sql if is_ddl else None


def _table_rows(each: Transaction) -> list[dict[str, Any]] | None:
    found = tables_of(each)
    if found is None:
        return None
    return [
        {
            "schema": table.schema,
            "table": table.table,
            "rows_written": table.rows_written,
            "rows_updated": table.rows_updated,
            "rows_deleted": table.rows_deleted,
        }
        for table in found
    ]


_READERS: Final[Mapping[str, Callable[[Transaction], Any]]] = {
    "file": lambda each: each.file,
    "uuid": lambda each: str(each.gtid.tsid.uuid) if each.gtid else None,
    "tag": lambda each: (each.gtid.tsid.tag or None) if each.gtid else None,
    "gno": lambda each: each.gtid.gno if each.gtid else None,
    "kind": lambda each: each.kind.value,
    "start": lambda each: each.start,
    "end": lambda each: each.end,
    "bytes": lambda each: each.end - each.start,
    "server_id": lambda each: each.server_id,
    "logged_at": lambda each: each.timestamp_seconds * MICROSECONDS,
    "original_commit_at": lambda each: row_numbers(each).original_commit,
    "immediate_commit_at": lambda each: row_numbers(each).immediate_commit,
    "original_server_version": lambda each: row_numbers(each).version,
    "last_committed": lambda each: row_numbers(each).last_committed,
    "sequence_number": lambda each: row_numbers(each).sequence_number,
    "error_code": lambda each: each.error_code,
    "is_complete": lambda each: each.is_complete,
    "tables": _table_rows,
    "ddl": ddl_of,
}
