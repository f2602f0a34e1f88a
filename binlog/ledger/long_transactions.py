"""Reads a transaction that is too long for memory, event by event, with the decoder.

1. Only the data of its row is kept: counts, and the state of a digest. Memory is that of one event,
   for a transaction of any length. A digest also needs the memory of a file that LOAD DATA logged.
2. The decoder reads all of it. So every checksum is verified, even without `verify`, and malformed
   bytes are damage.
"""

from __future__ import annotations

import pyarrow as pa

from binlog.content.content_digest import ContentFolder
from binlog.decode import Decompress
from binlog.events import Event, FormatDescription, GtidLog
from binlog.ledger.digests import with_payloads_opened
from binlog.ledger.events_in_memory import Bytes, events_of
from binlog.ledger.ledger_columns import (
    DIGEST_FIELD,
    LEDGER_SCHEMA,
    LedgerRequest,
    rows_of_transactions,
)
from binlog.transactions import Transaction, TransactionFolder


class LongTransaction:
    """One transaction of a file; `description` is valid there."""

    def __init__(
        self,
        request: LedgerRequest,
        *,
        file: str,
        description: FormatDescription,
        decompress: Decompress | None,
    ) -> None:
        self.is_over = False  # its end has been read
        self.is_closed = False  # its row has been made
        self.file = file
        self.description = description
        self._request = request
        self._decompress = decompress
        self._folder = TransactionFolder(description=description, decompress=decompress)
        self._content = ContentFolder()
        self._unreadable: str | None = None
        self._read: tuple[Transaction, ...] = ()

    def read(self, data: Bytes, position: int) -> int:
        """Read whole events until the transaction ends; return the number of bytes read.

        `data` begins at `position` of the file. Raises BinlogError; `rows` then returns what was
        read before.
        """
        for event in events_of(data, self.description, file=self.file, position=position):
            self._read = self._folder.fold(event)
            # A GTID event of the next transaction means that this one was cut off.
            is_next = bool(self._read) and isinstance(event.body, GtidLog)
            if self._request.digests:
                self._add_content(event)
            if self._read:
                self.is_over = True
                return (event.start if is_next else event.end) - position
        return len(data)

    def rows(self) -> pa.Table:
        """Return its row and close it; `is_complete` is False if its end was not read."""
        self.is_closed = True
        if not self.is_over:
            self._read = self._folder.finish()
        rows = rows_of_transactions(self._read, details=self._request.details)
        if not self._request.digests:
            return rows
        is_read = self._unreadable is None and all(each.is_complete for each in self._read)
        digest = self._content.close().digest if is_read else None
        digested = pa.array([digest] * len(rows), DIGEST_FIELD.type)
        return rows.add_column(len(LEDGER_SCHEMA), DIGEST_FIELD, digested)

    def _add_content(self, event: Event) -> None:
        for each in with_payloads_opened([event], self.description, self._decompress):
            if self._unreadable is None:
                self._unreadable = self._content.add(each)
