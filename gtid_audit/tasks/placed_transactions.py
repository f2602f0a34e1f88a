"""Reads where the requested transactions are, and their row events without the values.

1. A transaction of a large file that has rows only is a place in its RowLog. Every other one comes
   with its events: of a small file, of a server, and what a RowLog leaves to the decoder.
2. Nothing here decodes a row.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path

from binlog.adapters.log_files import FileLogs, read_file_head
from binlog.adapters.one_history import OneHistory
from binlog.adapters.row_transactions import (
    OtherRange,
    RowLog,
    RowTransaction,
    groups_between,
    is_large,
)
from binlog.adapters.spooled import Spooled
from binlog.events import Event, TableMap
from binlog.rows.tables import RowTable, TableDescriptions
from binlog.rows.values import LoggedRows, logged_rows_of
from binlog.scan import EventGroup
from gtid_audit.operands.logs_from_operands import LogServer
from gtid_audit.tasks.requested_transactions import RequestedTransactions
from gtid_audit.tasks.source_events import events_of_source


class PlacedTransactions:
    """The transactions of a run, and the large files that they are read from again."""

    def __init__(self, run: RequestedTransactions) -> None:
        self.run = run
        self.row_logs: list[RowLog] = []
        self._describe = TableDescriptions()
        self._open = 0

    def all(self) -> Iterator[tuple[int, EventGroup | RowTransaction]]:
        """Yield each transaction: with its events, or its place in one of `row_logs` (a number).

        Raises ReusedGtid: no script is written of two transactions under one GTID.
        """
        with closing(self._all()) as every:
            for log, found in every:
                gtid = found.transaction.gtid if isinstance(found, EventGroup) else found.gtid
                self.run.note_found(gtid)
                yield log, found

    def _all(self) -> Generator[tuple[int, EventGroup | RowTransaction], None, None]:
        source, wanted = self.run.source, self.run.wanted
        if isinstance(source, LogServer):
            groups = events_of_source(source, wanted, self.run.seconds, counts_rows=False)
            yield from ((0, group) for group in groups)
            return
        FileLogs(source)  # rejects two files of one name
        history = OneHistory(source, wanted, store=Spooled)
        for large, numbers in groupby(range(len(source)), key=lambda at: is_large(source[at])):
            if not large:  # relay logs are read together: a transaction may go on in the next one
                logs = FileLogs(source[at] for at in numbers)
                for group in logs.events_of(wanted, store=Spooled, counts_rows=False):
                    if _is_new(history, group):
                        yield 0, group
                continue
            for path in (source[at] for at in numbers if history.may_have(at)):
                yield from self._of_large(path, history)

    def _of_large(
        self, path: Path, history: OneHistory
    ) -> Iterator[tuple[int, EventGroup | RowTransaction]]:
        log = RowLog(path, read_file_head(path), partial(self._described, path.name))
        self.row_logs.append(log)
        wanted, was_complete = self.run.wanted, history.is_complete
        with closing(log):
            for found in log.transactions(wanted):
                if isinstance(found, OtherRange):
                    for group in groups_between(path, found, wanted, store=Spooled):
                        if _is_new(history, group):
                            yield 0, group
                elif history.is_new(found.gtid, path.name):
                    yield len(self.row_logs) - 1, found
                if history.is_complete and not was_complete:
                    return

    def rows_of(self, log: int, first: int, end: int) -> Iterator[LoggedRows]:
        """Yield the row events of a transaction that was yielded with its place.

        One file at a time is open: there may be more files than a process may open.
        """
        if log != self._open:
            self.row_logs[self._open].close()
            self._open = log
        yield from self.row_logs[log].rows_of(first, end)

    def close(self) -> None:
        """Close the file that is open."""
        for log in self.row_logs:
            log.close()

    def logged(self, group: EventGroup) -> Iterator[LoggedRows | Event]:
        """Yield the content of a transaction that was yielded with its events."""
        definition_of = self.run.definitions.at(group.transaction.file, group.rows_begin)
        items = logged_rows_of(group.events, definition_of=definition_of, describe=self._describe)
        for item in items:
            if isinstance(item, LoggedRows):
                self.run.note_misfit(item)
            yield item

    def _described(self, file: str, table_map: TableMap, position: int) -> RowTable:
        definition = self.run.definitions.at(file, position)(table_map.schema, table_map.table)
        return self._describe(table_map, definition)


def _is_new(history: OneHistory, group: EventGroup) -> bool:
    """Return whether a transaction was not found before; of one without an end, whether at all."""
    found = group.transaction
    assert found.gtid is not None, "only groups with a wanted GTID are yielded"
    if not found.is_complete:
        return not history.has(found.gtid)
    return history.is_new(found.gtid, found.file)
