"""The ledger of binlog and relay-log files on this machine.

A file may still be written while it is read: what is there when it is opened is what is given.
"""

from __future__ import annotations

from pathlib import Path

from binlog.adapters.compression import find_decompressor
from binlog.adapters.files import CHUNK_BYTES, read_file_head
from binlog.decode import NEED_MORE_DATA, EventDecoder
from binlog.errors import BinlogError
from binlog.ledger import FileLedger, rows_of_transactions
from binlog.transactions import Transaction, TransactionFolder


def ledger_of_file(
    path: Path,
    *,
    verify: bool = False,  # noqa: ARG001 - the decoder always does
    digests: bool = False,  # noqa: ARG001 - they come with the kernel
    details: bool = False,
) -> FileLedger:
    """Give one row per transaction of one file; an error of the format is in the answer.

    Raises OSError.
    """
    return read_ledger(path, details=details)


def read_ledger(path: Path, *, details: bool = False) -> FileLedger:
    """Make the ledger of every event decoded: slow, and what the fast way is held to."""
    folder = TransactionFolder(decompress=find_decompressor())
    read: list[Transaction] = []
    decoder = EventDecoder(file=path.name)
    head, error = None, None
    try:
        head = read_file_head(path)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                decoder.receive(chunk)
                while (event := decoder.next_event()) is not NEED_MORE_DATA:
                    read += folder.fold(event)
        decoder.finish()
    except BinlogError as stopped:
        error = stopped
    read += folder.finish()
    rows = rows_of_transactions(read, details=details)
    return FileLedger(path.name, head, rows, decoder.position, error)
