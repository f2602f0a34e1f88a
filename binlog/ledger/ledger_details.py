"""Finds which tables transactions in memory changed, and the text of DDL.

1. Bytes are read by address: the caller keeps them in memory, unchanged.
2. The kernel processes the transactions, including the content of compressed payloads. The decoder
   reads those that the kernel leaves. The results equal those of `rows_of_transactions`.
3. Malformed content ends the result, like any other damage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from binlog.errors import BinlogError
from binlog.event_types import EventType
from binlog.kernels.counting import (
    ASK,
    BEGIN,
    CHANGE_FIELDS,
    CHANGES_END,
    COUNTED,
    END,
    PAYLOAD,
    PLACE_FIELDS,
    count_changes,
)
from binlog.ledger.events_in_memory import Bytes, Offsets, TransactionBytes, events_of
from binlog.ledger.ledger_columns import DETAIL_FIELDS, ddl_of, tables_of
from binlog.ledger.payloads import opened
from binlog.transactions import TableChange, Transaction, TransactionFolder, statement_text

_TABLES, _DDL = DETAIL_FIELDS
_NAMES_AT: Final = 8  # in a TABLE_MAP's body, after its id and flags
# Above the number of tables of one transaction, so doubling always makes space for the next one.
_SPARE_CHANGES: Final = 1024

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DamagedContent:
    """Malformed content: the row of its transaction, and what the decoder has read of it."""

    row: int
    read: tuple[Transaction, ...]  # empty, or one transaction without its end
    error: BinlogError


@dataclass(frozen=True, slots=True)
class Details:
    """The columns of DETAIL_FIELDS for the transactions before the damage, if there is any."""

    tables: pa.Array
    ddl: pa.Array
    damage: DamagedContent | None


def details_of(part: TransactionBytes, are_ddl: NDArray[np.bool_]) -> Details:
    """Return the details of transactions; `are_ddl` states which of them are of kind ddl."""
    assert len(part) == len(are_ddl)
    counted = _Counted.by_kernel(part, are_ddl, part.description.checksum.trailer_bytes)
    others: dict[int, _ReadDetails] = {}
    for row in np.flatnonzero(counted.answers != COUNTED).tolist():
        details = None
        if counted.answers[row] == PAYLOAD and not are_ddl[row]:
            packed = part.data[slice(*counted.places[row, [BEGIN, END]].tolist())]
            details = _of_payload(part, packed)
        folder = TransactionFolder(description=part.description, decompress=part.decompress)
        try:
            details = details or _decoded(part, row, folder)
        except BinlogError as error:
            return counted.columns(row, others, DamagedContent(row, folder.finish(), error))
        others[row] = details
    return counted.columns(len(part), others, None)


@dataclass(frozen=True, slots=True)
class _ReadDetails:
    """The details of one transaction."""

    tables: tuple[TableChange, ...] | None
    ddl: str | None = None


def _decoded(part: TransactionBytes, row: int, folder: TransactionFolder) -> _ReadDetails:
    """Read a transaction with the decoder. Raises BinlogError."""
    position = part.position + int(part.starts[row])
    data = part.bytes_of(row)
    for event in events_of(data, part.description, file=part.file, position=position):
        if closed := folder.fold(event):
            return _ReadDetails(tables_of(closed[0]), ddl_of(closed[0]))
    [unfinished] = folder.finish()
    return _ReadDetails(tables_of(unfinished), ddl_of(unfinished))


def _of_payload(part: TransactionBytes, packed: Bytes) -> _ReadDetails | None:
    """Return the details of a compressed payload; None if the decoder must read it."""
    content = opened(packed, part.description, part.decompress)
    if content is None:
        return None
    found = _Counted.by_kernel(part.inside(content), np.zeros(1, np.bool_), 0)
    if found.answers[0] != COUNTED:
        return None
    changes = zip(found.numbers.tolist(), found.rows.tolist(), strict=True)
    return _ReadDetails(tuple(TableChange(*found.names[number], *rows) for number, rows in changes))


@dataclass(frozen=True, slots=True)
class _Counted:
    """The results of the kernel.

    A change has the number of its transaction (`owners`, in ascending order), the number of its
    table in `names`, and the counts of rows written, updated and deleted.
    """

    part: TransactionBytes
    are_ddl: NDArray[np.bool_]
    answers: Bytes
    places: Offsets
    owners: Offsets
    numbers: Offsets
    rows: Offsets
    names: tuple[Name, ...]

    @classmethod
    def by_kernel(
        cls, part: TransactionBytes, are_ddl: NDArray[np.bool_], trailer: int
    ) -> _Counted:
        """Run the kernel; a table name that is not UTF-8 is left to the decoder, too."""
        data, starts, ends = part.data, part.starts, part.ends
        kinds = (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY)
        posts = np.array([part.description.fixed_bytes(kind) for kind in kinds], np.int64)
        changes = np.empty((len(starts) + _SPARE_CHANGES, CHANGE_FIELDS), np.int64)
        places = np.empty((len(starts), PLACE_FIELDS), np.int64)
        answers = np.empty(len(starts), np.uint8)
        first, address = 0, data.ctypes.data
        while first < len(starts):
            if first:
                changes = np.concatenate((changes, np.empty_like(changes)))
            first = count_changes(
                address,
                starts,
                ends,
                are_ddl,
                trailer,
                posts,
                first,
                changes,
                places,
                answers,
            )
        owners = np.repeat(np.arange(len(starts)), np.diff(places[:, CHANGES_END], prepend=0))
        changes = changes[: len(owners)]
        encoded = pa.array(changes[:, 0]).dictionary_encode()
        numbers = encoded.indices.to_numpy()
        named = [_name_at(data, at) for at in encoded.dictionary.to_pylist()]
        if None in named:
            is_unnamed = np.array([name is None for name in named])
            answers[owners[is_unnamed[numbers]]] = ASK
            kept = answers[owners] == COUNTED
            owners, changes, numbers = owners[kept], changes[kept], numbers[kept]
        names = tuple(name or ("", "") for name in named)
        return cls(part, are_ddl, answers, places, owners, numbers, changes[:, 1:], names)

    def columns(
        self, count: int, others: Mapping[int, _ReadDetails], damage: DamagedContent | None
    ) -> Details:
        """Make the columns of the first `count` transactions; the decoder has read `others`."""
        return Details(self._tables(count, others), self._ddl(count, others), damage)

    def _tables(self, count: int, others: Mapping[int, _ReadDetails]) -> pa.Array:
        mine = np.searchsorted(self.owners, count)
        owners, numbers, rows = self.owners[:mine], self.numbers[:mine], self.rows[:mine]
        names = list(self.names)
        more = [(row, each) for row, details in others.items() for each in details.tables or ()]
        if more:
            numbers = np.concatenate((numbers, np.arange(len(more)) + len(names)))
            names += [(each.schema, each.table) for _, each in more]
            written = [(e.rows_written, e.rows_updated, e.rows_deleted) for _, e in more]
            rows = np.concatenate((rows, np.array(written, np.int64)))
            owners = np.concatenate((owners, np.array([row for row, _ in more], np.int64)))
            order = np.argsort(owners, kind="stable")
            owners, numbers, rows = owners[order], numbers[order], rows[order]
        words = (pa.array([name[part] for name in names], pa.string()) for part in range(2))
        values: list[Any] = [each.take(pa.array(numbers)) for each in words]
        values += [pa.array(rows[:, kind]) for kind in range(3)]
        changes = pa.StructArray.from_arrays(values, fields=list(_TABLES.type.value_type))
        ends = np.cumsum(np.bincount(owners, minlength=count), dtype=np.int32)
        offsets = pa.array(np.concatenate((np.zeros(1, np.int32), ends)))
        unknown = np.zeros(count, np.bool_)
        unknown[[row for row, details in others.items() if details.tables is None]] = True
        return pa.ListArray.from_arrays(offsets, changes, _TABLES.type, mask=pa.array(unknown))

    def _ddl(self, count: int, others: Mapping[int, _ReadDetails]) -> pa.Array:
        texts: list[str | None] = [None] * count
        is_mine = self.are_ddl[:count] & (self.answers[:count] == COUNTED)
        for row in np.flatnonzero(is_mine).tolist():
            begin, end = self.places[row, [BEGIN, END]].tolist()
            if begin >= 0:
                texts[row] = statement_text(self.part.data[begin:end].data)[0]
        for row, details in others.items():
            texts[row] = details.ddl
        return pa.array(texts, _DDL.type)


def _name_at(data: Bytes, at: int) -> Name | None:
    """Read the names in the body of a TABLE_MAP; None if they are not UTF-8."""
    schema = at + _NAMES_AT + 1
    table = schema + int(data[schema - 1]) + 2
    parts = (data[schema : table - 2], data[table : table + int(data[table - 1])])
    try:
        first, second = (part.tobytes().decode() for part in parts)
    except UnicodeDecodeError:
        return None
    return first, second
