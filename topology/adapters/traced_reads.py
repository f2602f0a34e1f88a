"""What a trace asks the binary logs of one server: where a GTID is, what transactions contain.

1. Each question is independent of the others. What cannot be read is noted in `unread`, with the
   reason, and the answer says that it is incomplete.
2. Every dump and statement has the time limit of the connection. A search of logs also has a limit
   in bytes and one in seconds for the whole search, because it may read gigabytes.
3. Servers are only read. A server that stops answering costs one time limit, and is then asked
   nothing more.

Privileges: REPLICATION CLIENT to list logs, and that of a replica to read them.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from binlog.adapters.heads_server import locate_on_server
from binlog.adapters.spooled import Spooled
from binlog.adapters.stream import ServerLogs
from binlog.scan import EventGroup
from binlog.schema.table_history import TableKey
from gtid import GtidSet
from topology.adapters.connection import Way, way_to
from topology.adapters.traced_transactions import traced_group, traced_of
from topology.adapters.unread_logs import FAILED, SearchTimeUp, fact_not_read
from topology.readings.snapshot import LogPosition, ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget
from topology.tracing.trace_values import ExtraTransactions, GtidOnServer, TracedTransaction

TRANSACTION_BYTES_MAX: Final = 64 << 20  # whose content is read
_SILENT: Final = (UnreadReason.UNREACHABLE, UnreadReason.TIMEOUT)
EXTRA_MAX: Final = 10_000  # transactions that only the replica has
TOUCHING_MAX: Final = 20


@dataclass(slots=True)
class TracedReads:
    """The questions to one server, which was read once, and what it did not answer."""

    target: ServerTarget
    reading: ServerSnapshot
    seconds_max: float
    unread: list[UnreadFact] = field(default_factory=list)
    is_lost: bool = False  # it stopped answering: it is asked nothing more

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.reading.name

    @property
    def is_read(self) -> bool:
        """Return whether the server answers, so that more can be asked."""
        has_answered = self.reading.server_uuid is not None and self.reading.version is not None
        return has_answered and not self.is_lost

    @property
    def way(self) -> Way:
        """Return the function that opens a connection."""
        return way_to(self.target, seconds_max=self.seconds_max)

    @property
    def logs(self) -> ServerLogs:
        """Return its binary logs."""
        return ServerLogs(self.way, timeout_seconds_max=self.seconds_max)

    def note(self, fact: str, error: Exception) -> str:
        """Note what was not read; return the reason as a text."""
        noted = fact_not_read(fact, error)
        if noted.reason in _SILENT and not isinstance(error, SearchTimeUp):
            self.is_lost = True
        if noted not in self.unread:
            self.unread.append(noted)
        return f"{noted.reason.value}: {noted.detail}"

    # -- one GTID ---------------------------------------------------------------------------------

    def gtid_state(self, gtid: GtidSet) -> GtidOnServer:
        """Return what the server has of a GTID, and where it is in its binary log."""
        reading = self.reading
        state = GtidOnServer(
            self.name,
            gtid,
            is_executed=_has(reading.gtid_executed, gtid),
            is_purged=_has(reading.gtid_purged, gtid),
            is_owned=_has(reading.gtid_owned, gtid),
            received_on=tuple(
                each.name for each in reading.channels or () if gtid <= each.gtid_retrieved
            ),
        )
        if not self.is_read or state.is_executed is not True or state.is_purged is not False:
            return state
        try:
            located = locate_on_server(self.way, gtid, timeout_seconds_max=self.seconds_max)
        except FAILED as error:
            return replace(state, why=self.note("the place of the GTID", error))
        for file in located.files:
            for place in file.places:
                return replace(state, place=f"{file.file}:{place.start}-{place.end}")
            return replace(state, place=file.file)
        if located.errors:
            return replace(state, why=self.note("the place of the GTID", located.errors[0]))
        return replace(state, why="; ".join(why.value for why, _ in located.absent))

    def transaction(self, gtid: GtidSet) -> TracedTransaction | None:
        """Return a transaction of its binary log; None if it is not there, or was not read."""
        held = (self.reading.gtid_executed or GtidSet()) - (self.reading.gtid_purged or GtidSet())
        if not self.is_read or not gtid <= held:
            return None
        try:
            for group in self._groups(gtid):
                return traced_group(self.name, group)
        except FAILED as error:
            self.note("the content of the transaction", error)
        return None

    def transactions_at(self, place: LogPosition, *, count: int) -> tuple[TracedTransaction, ...]:
        """Return the first transactions from a position of its binary log on."""
        if not self.is_read:
            return ()
        try:
            found = self.logs.transactions_from(
                file=place.file, position=place.position, transactions_max=count
            )
        except FAILED as error:
            self.note("the transaction at the position of the applier", error)
            return ()
        return tuple(traced_of(self.name, each) for each in found)

    # -- many transactions ------------------------------------------------------------------------

    def as_logged(self, gtids: GtidSet) -> tuple[TracedTransaction, ...]:
        """Return those of some transactions that its binary log has."""
        held = (self.reading.gtid_executed or GtidSet()) - (self.reading.gtid_purged or GtidSet())
        if not self.is_read or not gtids & held:
            return ()
        try:
            found = self.logs.transactions_of(gtids & held)
        except FAILED as error:
            self.note("transactions in its binary logs", error)
            return ()
        return tuple(traced_of(self.name, each) for each in found)

    def not_on_source(
        self, source: ServerSnapshot, tables: tuple[TableKey, ...], *, search_seconds_max: float
    ) -> ExtraTransactions:
        """Return what the server executed and its source did not, except the source's own."""
        executed = self.reading.gtid_executed or GtidSet()
        gtids = executed - (source.gtid_executed or GtidSet())
        if source.server_uuid is not None:
            gtids = gtids.without_uuid(source.server_uuid)
        purged = gtids & (self.reading.gtid_purged or GtidSet())
        found = ExtraTransactions(self.name, source.name, gtids, purged=purged)
        wanted = gtids - purged
        if not wanted or not self.is_read:
            return found
        if wanted.gtid_count > EXTRA_MAX:
            why = f"{wanted.gtid_count:,} transactions, more than the limit of {EXTRA_MAX:,}"
            return replace(found, why=why)
        touching: list[TracedTransaction] = []
        why = ""
        try:
            for each in self._groups_until(wanted, seconds_max=search_seconds_max):
                transaction = traced_of(self.name, each.transaction)
                if transaction.touches(tables) and len(touching) < TOUCHING_MAX:
                    touching.append(traced_group(self.name, each))
        except FAILED as error:
            why = self.note("transactions that its source has not executed", error)
        return replace(found, touching=tuple(touching), why=why)

    def _groups(self, wanted: GtidSet) -> Iterator[EventGroup]:
        return self.logs.events_of(wanted, bytes_max=TRANSACTION_BYTES_MAX, store=Spooled)

    def _groups_until(self, wanted: GtidSet, *, seconds_max: float) -> Iterator[EventGroup]:
        deadline = time.monotonic() + seconds_max
        for group in self._groups(wanted):
            yield group
            if time.monotonic() > deadline:
                raise SearchTimeUp(seconds_max=seconds_max)


def _has(gtids: GtidSet | None, wanted: GtidSet) -> bool | None:
    return None if gtids is None else wanted <= gtids
