"""Transactions from a live server, by the replication protocol, over a PyMySQL connection.

1. Each request uses its own connection and ends at the current end of the log.
2. The limits are time, bytes received and transactions. If a request returns one complete result,
   the timeout applies to the whole request, from the connect to the last byte. If it yields
   transactions one by one, the timeout applies to each silence of the server.
3. If the connection is lost while transactions are yielded, the reader connects again and continues
   after the last transaction. No transaction is repeated, and none is omitted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from binlog.adapters.compression import find_decompressor
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import (
    RECONNECTS_MAX,
    AllBut,
    Attempts,
    Connect,
    EndedEarly,
    FromPlace,
    Only,
    RequestLimits,
    can_name,
    cut_off,
)
from binlog.errors import BinlogError
from binlog.events import Event, GtidLog
from binlog.locating.places import TransactionPlace
from binlog.scan import (
    BYTES_MAX,
    TRANSACTIONS_MAX,
    EventGroup,
    MakeStore,
    first_groups,
    group_events,
    select_transactions,
)
from binlog.transactions import Transaction, TransactionFolder, fold_transactions
from gtid import GtidSet

__all__ = ["AllBut", "Connect", "FromPlace", "Only", "ServerLogs"]


@dataclass(frozen=True, slots=True)
class ServerLogs:
    """The transactions of one live server.

    All methods raise DumpRefused (the server's own error: 1236 for purged transactions, or for a
    file or position that does not exist), DumpTimedOut, DumpBroken, LimitExceeded, CorruptBinlog,
    UnsupportedBinlog.
    """

    connect: Connect
    timeout_seconds_max: float
    reconnects_max: int = RECONNECTS_MAX

    def transactions_from(
        self,
        *,
        file: str,
        position: int,
        transactions_max: int,
        bytes_max: int = BYTES_MAX,
    ) -> tuple[Transaction, ...]:
        """Return the first transactions from a position on; an event must start there.

        Where a file ends, the dump and the result continue in the next file. For a replica's
        failing event, `file` and `position` are its Relay_Source_Log_File and Exec_Source_Log_Pos
        (the current names): the start of the failing group on its source.
        """
        wish = FromPlace(file, position)
        bounds = self._bounds(bytes_max)
        attempts = Attempts(self.reconnects_max)
        given: list[Transaction] = []
        while (left := transactions_max - len(given)) > 0:
            with closing(dump_events(self.connect, wish, bounds)) as events:
                transactions = fold_transactions(events, decompress=find_decompressor())
                found = _whole(islice(transactions, left))
            given += found
            # The end of the log looks like a killed dump; only a second dump distinguishes them.
            if attempts.is_over(EndedEarly(), progress=bool(found)):
                break
            if given and not can_name(given[-1].end):
                break
            wish = FromPlace(given[-1].file, given[-1].end) if given else wish
        return tuple(given)

    def transactions_of(
        self,
        wanted: GtidSet,
        *,
        transactions_max: int = TRANSACTIONS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> tuple[Transaction, ...]:
        """Return the wanted transactions, in the order of the logs; the server sends only these.

        Those after the first `transactions_max` are omitted, and so are those that the server has
        not executed. It rejects a request for purged ones. All of them together may have at most
        `bytes_max` bytes.
        """
        bounds = self._bounds(bytes_max)
        attempts = Attempts(self.reconnects_max)
        given: list[Transaction] = []
        while (left := wanted - _gtids(given)) and len(given) < transactions_max:
            before = len(given)
            try:
                with closing(dump_events(self.connect, Only(left), bounds)) as events:
                    chosen = select_transactions(
                        fold_transactions(events, decompress=find_decompressor()),
                        left,
                        transactions_max=transactions_max - before,
                        bytes_max=bytes_max,
                    )
                    given.extend(chosen)  # keeps the transactions before an error
            except EndedEarly as error:
                if attempts.is_over(error, progress=len(given) > before):
                    break
            else:
                break
        return _whole(given)

    def places_of(self, wanted: GtidSet) -> Iterator[tuple[str, TransactionPlace]]:
        """Yield the files and places of the wanted transactions; the server sends only these.

        Since 8.0.2 a GTID event contains the length of its transaction. Then the reader does not
        wait for the rest of the last transaction.
        """
        bounds = self._bounds(sys.maxsize)
        attempts = Attempts(self.reconnects_max)
        given = GtidSet()
        while left := wanted - given:
            found = []
            try:
                with closing(dump_events(self.connect, Only(left), bounds)) as events:
                    for file, place in _places(events):
                        if place.gtid in left:
                            found.append(place.gtid)
                            yield file, place
                        if len(found) == left.gtid_count:
                            return
            except EndedEarly as error:
                if attempts.is_over(error, progress=bool(found)):
                    return
                given |= GtidSet.of(found)
            else:
                return

    def events_of(
        self,
        wanted: GtidSet,
        *,
        bytes_max: int = BYTES_MAX,
        store: MakeStore | None = None,
        counts_rows: bool = True,
    ) -> Iterator[EventGroup]:
        """Yield the wanted transactions with their events; the server sends only these.

        See `FileLogs.events_of` for `bytes_max`, `store` and `counts_rows`.
        """
        attempts = Attempts(self.reconnects_max)
        given = GtidSet()
        while left := wanted - given:
            gtids = []
            try:
                for group in self._groups(
                    left, bytes_max=bytes_max, store=store, counts_rows=counts_rows
                ):
                    [transaction] = _whole([group.transaction])
                    assert transaction.gtid is not None, "a wanted one has a GTID"
                    gtids.append(transaction.gtid)
                    yield group
            except BinlogError as error:
                if attempts.is_over(error, progress=bool(gtids)):
                    return
                attempts.wait_after(error, progress=bool(gtids))
                given |= GtidSet.of(gtids)
            else:
                return

    def _groups(
        self, wanted: GtidSet, *, bytes_max: int, store: MakeStore | None, counts_rows: bool
    ) -> Iterator[EventGroup]:
        bounds = self._bounds(sys.maxsize)
        with closing(dump_events(self.connect, Only(wanted), bounds, renews=True)) as events:
            groups = group_events(
                events,
                wanted,
                decompress=find_decompressor(),
                bytes_max=bytes_max,
                store=store,
                counts_rows=counts_rows,
            )
            yield from first_groups(groups, wanted)

    def _bounds(self, bytes_max: int) -> RequestLimits:
        return RequestLimits.start(
            timeout_seconds_max=self.timeout_seconds_max, bytes_max=bytes_max
        )


def _places(events: Iterable[Event]) -> Iterator[tuple[str, TransactionPlace]]:
    """Yield the file and place of each transaction with a GTID, as soon as they are known."""
    folder = TransactionFolder()
    for event in events:
        head = event.body
        if isinstance(head, GtidLog) and head.gtid and head.transaction_bytes:
            yield (
                event.file,
                TransactionPlace(head.gtid, event.start, event.start + head.transaction_bytes),
            )
            continue
        for each in _whole(folder.fold(event)):
            if each.gtid is not None:
                yield each.file, TransactionPlace(each.gtid, each.start, each.end)
    _whole(folder.finish())


def _gtids(transactions: Iterable[Transaction]) -> GtidSet:
    return GtidSet.of(each.gtid for each in transactions if each.gtid is not None)


def _whole(transactions: Iterable[Transaction]) -> tuple[Transaction, ...]:
    """Return the transactions if all are complete; a server's log never ends inside one."""
    found = tuple(transactions)
    if not all(each.is_complete for each in found):
        raise cut_off()
    return found
