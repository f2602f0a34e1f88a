"""The ledger made of every event decoded: slow, and what the kernels are held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from binlog.adapters.compression import find_decompressor
from binlog.decode import NEED_MORE_DATA, EventDecoder
from binlog.errors import BinlogError
from binlog.ledger.ledger_columns import FileLedger, rows_of_transactions
from binlog.scan import read_head
from binlog.transactions import Transaction, TransactionFolder


def ledger_of_bytes(data: bytes, *, file: str, details: bool = False) -> FileLedger:
    folder = TransactionFolder(decompress=find_decompressor())
    read: list[Transaction] = []
    decoder = EventDecoder(file=file)
    head, error = None, None
    try:
        decoder.receive(data)
        while (event := decoder.next_event()) is not NEED_MORE_DATA:
            read += folder.fold(event)
        decoder.finish()
    except BinlogError as stopped:
        error = stopped
    try:
        head = read_head([data], file=file)
    except BinlogError as stopped:
        error = error or stopped
    read += folder.finish()
    rows = rows_of_transactions(read, details=details)
    return FileLedger(file, head, rows, decoder.position, error)


def twin_of(path: Path, *, details: bool = False) -> FileLedger:
    return ledger_of_bytes(path.read_bytes(), file=path.name, details=details)


def rows_said(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python has them, moments as numbers: not every one of them has a date."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).cast(pa.int64()))
    said: list[dict[str, Any]] = rows.to_pylist()
    return said
