"""Adds the optional columns to the rows of a ledger: digests, changed tables, DDL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlog.decode import Decompress
from binlog.errors import BinlogError
from binlog.events import FormatDescription
from binlog.ledger.digests import digests_of
from binlog.ledger.events_in_memory import Bytes, TransactionBytes
from binlog.ledger.ledger_columns import DETAIL_FIELDS, DIGEST_FIELD, KINDS, rows_of_transactions
from binlog.ledger.ledger_details import details_of
from binlog.transactions import TransactionKind

_DDL: Final = KINDS.index(TransactionKind.DDL.value)


@dataclass(frozen=True, slots=True)
class Contents:
    """The bytes that rows were made of; `position` is that of the first byte in the file.

    `eras` are the descriptions and the offsets from which they are valid, in ascending order.
    """

    data: Bytes
    file: str
    position: int
    eras: tuple[tuple[int, FormatDescription], ...]
    decompress: Decompress | None

    def parts(self, rows: pa.Table) -> Iterator[tuple[pa.Table, TransactionBytes]]:
        """Yield the rows of each description, and the bytes of their transactions."""
        starts = rows["start"].to_numpy() - self.position
        ends = rows["end"].to_numpy() - self.position
        edges = [*np.searchsorted(starts, [at for at, _ in self.eras]).tolist(), len(starts)]
        for (_, description), first, end in zip(self.eras, edges, edges[1:], strict=False):
            part = TransactionBytes(
                data=self.data,
                starts=starts[first:end],
                ends=ends[first:end],
                description=description,
                decompress=self.decompress,
                file=self.file,
                position=self.position,
            )
            yield rows.slice(first, end - first), part


def with_digests(rows: pa.Table, contents: Contents) -> pa.Table:
    """Add the digests of whole transactions."""
    columns: list[pa.Array] = []
    for chunk, part in contents.parts(rows):
        whole = np.flatnonzero(chunk["is_complete"].to_numpy())
        found = digests_of(part.at(whole))
        values = np.zeros(len(part), np.uint64)
        absent = np.ones(len(part), np.bool_)
        values[whole], absent[whole] = found.values, ~found.known
        columns.append(pa.array(values, mask=absent))
    return rows.append_column(DIGEST_FIELD, pa.chunked_array(columns, DIGEST_FIELD.type))


@dataclass(frozen=True, slots=True)
class Detailed:
    """Rows with their details, up to malformed content."""

    rows: pa.Table
    # The offset of the first byte that was not read, and the error.
    damage: tuple[int, BinlogError] | None = None


def with_details(rows: pa.Table, contents: Contents) -> Detailed:
    """Add the tables that transactions changed, and the text of DDL.

    Malformed content ends the rows, like a wrong checksum: the last row is the transaction as far
    as it could be read.
    """
    tables: list[pa.Array] = []
    ddl: list[pa.Array] = []
    damage, read = None, 0
    for chunk, part in contents.parts(rows):
        found = details_of(part, _are_ddl(chunk))
        tables.append(found.tables)
        ddl.append(found.ddl)
        damage, read = found.damage, read + len(found.tables)
        if damage is not None:
            break
    made = rows.slice(0, read)
    for each, chunks in zip(DETAIL_FIELDS, (tables, ddl), strict=True):
        made = made.append_column(each, pa.chunked_array(chunks, each.type))
    if damage is None:
        return Detailed(made)
    cut = rows_of_transactions(damage.read, details=True)
    end = cut["end"][0].as_py() if len(cut) else rows["start"][read].as_py()
    return Detailed(_put_behind(made, cut), (end - contents.position, damage.error))


def _put_behind(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Append rows; a column that is missing in them is filled with null."""
    return pa.concat_tables([rows, more], promote_options="default").select(rows.schema.names)


def _are_ddl(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    kinds = rows["kind"]
    indices = pa.chunked_array([chunk.indices for chunk in kinds.chunks], pa.int32())
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.equal(indices, _DDL).to_numpy()
    return found
