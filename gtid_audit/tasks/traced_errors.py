"""Follows errors of replication to their causes: what to read, from which server, in which order.

1. Every given server is read once, all at the same time. Threads with an error are followed; the
   source of each is a given server with the source's server_uuid, or the server at the channel's
   address, contacted with the account and the options of the replica.
2. Then the failing transaction is identified, and read where it is logged: on its source, else on
   another server. The tables of the error and of the transaction decide what is searched for.
3. Logs are searched only for errors about definitions or rows. The source's log is searched up to
   the failing transaction: what follows it explains nothing. If that place is not known, the search
   is left out, with the reason.
4. `causes_of` (topology/tracing) decides what explains the error. This module decides nothing.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from binlog.schema.table_history import TableKey
from gtid import GtidSet
from topology.adapters.change_searches import SearchLimits, changes_on
from topology.adapters.discover import address_identity, target_at
from topology.adapters.mysql import MysqlReader
from topology.adapters.neighbours import ServerAddress
from topology.adapters.traced_facts import (
    clock_shift,
    error_log,
    failed_at,
    relayed_failure,
    table_now,
)
from topology.adapters.traced_reads import TracedReads
from topology.readings.snapshot import ChannelSnapshot, LogPosition
from topology.readings.target import ServerTarget
from topology.tracing.error_classes import ErrorClass, class_of
from topology.tracing.stopped_threads import (
    ReplicationThread,
    StoppedThread,
    channels_not_followed,
    idle_threads,
    stopped_threads,
)
from topology.tracing.table_effects import tables_in_text
from topology.tracing.trace_values import (
    ChangeSearch,
    ErrorLogExcerpt,
    GtidOnServer,
    Trace,
    TracedFailure,
    TracedServer,
    TracedTransaction,
)

FAILURES_MAX: Final = 3  # that are followed; the others are listed
GTIDS_MAX: Final = 3  # of one failure: a parallel applier may stop at several
CANDIDATES_MAX: Final = 5  # behind a low-water mark
TABLES_MAX: Final = 5
_CONNECTIONS_MAX: Final = 16
_OF_DEFINITIONS: Final = (ErrorClass.ABSENT, ErrorClass.PRESENT, ErrorClass.COLUMNS)
_PLACE_UNKNOWN: Final = "the place of the failing transaction is not known"


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What is asked for. `wanted` is empty if the trace begins at servers."""

    targets: tuple[ServerTarget, ...]
    wanted: GtidSet
    seconds_max: float
    window_seconds: int
    search: SearchLimits


@dataclass(slots=True)
class _Servers:
    """The servers of a trace; the sources of channels are added while it goes on."""

    request: TraceRequest
    by_name: dict[str, TracedReads] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)

    def read(self, targets: Iterable[ServerTarget]) -> None:
        wanted = tuple(targets)
        with ThreadPoolExecutor(min(len(wanted), _CONNECTIONS_MAX)) as pool:
            for reads in pool.map(self._read, wanted):
                self.by_name[reads.name] = reads

    def source_of(self, replica: TracedReads, channel: ChannelSnapshot) -> tuple[str, str]:
        """Return the name of a channel's source, and what is uncertain about it."""
        uuid = channel.source_uuid
        for name, each in self.by_name.items():
            if name != replica.name and uuid is not None and each.reading.server_uuid == uuid:
                return name, ""
        if not channel.source_host:
            return "", "the channel has no source address"
        address = ServerAddress(channel.source_host, channel.source_port)
        target = target_at(replica.target, address)
        known = {address_identity(each.target): name for name, each in self.by_name.items()}
        name = known.get(address_identity(target), "")
        if not name:
            self.read([target])
            name = target.name
            self.found.add(name)
        answered = self.by_name[name].reading.server_uuid
        if answered is not None and uuid is not None and answered != uuid:
            return "", (
                f"{name} has server_uuid {answered}, the channel received from {uuid}:"
                " give the DSN of the source"
            )
        return name, ""

    def _read(self, target: ServerTarget) -> TracedReads:
        seconds = self.request.seconds_max
        reader = MysqlReader(target, cluster="", timeout_seconds_max=seconds)
        try:
            reading = reader.read(phase=1)
        finally:
            reader.close()
        return TracedReads(target, reading, seconds)


def trace(request: TraceRequest, *, say: Callable[[str], None]) -> Trace:
    """Follow the errors of the given servers, or those of one GTID."""
    servers = _Servers(request)
    say(f"reading {len(request.targets)} servers")
    servers.read(request.targets)
    stopped = [
        failure
        for target in request.targets
        for failure in stopped_threads(servers.by_name[target.name].reading)
    ]
    traced: list[TracedFailure] = []
    others: list[StoppedThread] = []
    for failure in stopped:
        identified = _identified(servers, failure)
        failed = identified.failure.gtids | identified.candidates
        is_wanted = not request.wanted or bool(failed & request.wanted)
        if is_wanted and len(traced) < FAILURES_MAX:
            say(f"following error {failure.errno} of {failure.replica}")
            traced.append(_followed(servers, identified))
        else:
            others.append(failure)
    places, transaction = _of_wanted(servers, traced)
    return Trace(
        request.wanted,
        tuple(
            _described(reads, is_found=name in servers.found)
            for name, reads in servers.by_name.items()
        ),
        tuple(traced),
        tuple(others),
        places,
        transaction,
    )


def _described(reads: TracedReads, *, is_found: bool) -> TracedServer:
    notes = [
        f"channel {channel.name!r}: the {thread.value} is stopped, without an error"
        for channel, thread in idle_threads(reads.reading)
    ]
    of_group = channels_not_followed(reads.reading)
    if reads.reading.channels == () and not is_found and not of_group:
        notes.append("it has no channel: it replicates from no server")
    return TracedServer(
        reads.name,
        reads.reading.version_text or "",
        reads.reading.gtid_executed,
        is_found,
        tuple(notes),
        (*reads.reading.unread, *reads.unread, *of_group),
    )


def _of_wanted(
    servers: _Servers, traced: list[TracedFailure]
) -> tuple[tuple[GtidOnServer, ...], TracedTransaction | None]:
    """Return where the wanted GTID is on every server, and its content."""
    wanted = servers.request.wanted
    if not wanted:
        return (), None
    places = _places(servers, wanted, [each.failure for each in traced])
    for each in traced:
        for transaction in each.transactions:
            if transaction.gtid == wanted:
                return places, transaction
    return places, _content(servers, wanted, first="")


def _identified(servers: _Servers, failure: StoppedThread) -> TracedFailure:
    """Find the source of a failure, and the failing transaction if only its place is known."""
    replica = servers.by_name[failure.replica]
    source, note = servers.source_of(replica, failure.channel)
    traced = TracedFailure(failure, source, note)
    if failure.place is None:
        return traced
    if failure.is_low_water:
        if not source:
            return traced
        found = servers.by_name[source].transactions_at(failure.place, count=CANDIDATES_MAX)
        executed = replica.reading.gtid_executed or GtidSet()
        # A statement that was logged with an error has failed although its GTID is executed (A1).
        possible = [each.gtid for each in found if each.error_code or not each.gtid <= executed]
        return replace(traced, candidates=GtidSet.union_of(possible))
    found = servers.by_name[source].transactions_at(failure.place, count=1) if source else ()
    if not found:
        relayed = relayed_failure(replica, failure)
        found = () if relayed is None else (relayed,)
    gtids = GtidSet.union_of(each.gtid for each in found)
    return replace(traced, failure=replace(failure, gtids=gtids), transactions=found)


def _followed(servers: _Servers, traced: TracedFailure) -> TracedFailure:
    failure = traced.failure
    replica = servers.by_name[failure.replica]
    traced = replace(traced, failed_at=failed_at(replica, failure))
    if failure.thread is ReplicationThread.APPLIER:
        gtids = (failure.gtids or traced.candidates).first(GTIDS_MAX)
        contents = [_content(servers, each, first=traced.source) for each in _each(gtids)]
        found = tuple(each for each in contents if each is not None) or traced.transactions
        if not found and failure.gtids and failure.gtids <= failure.channel.gtid_retrieved:
            relayed = relayed_failure(replica, failure)
            found = () if relayed is None else (relayed,)
        traced = replace(
            traced,
            transactions=found,
            places=tuple(
                place for each in _each(gtids) for place in _places(servers, each, [failure])
            ),
        )
        traced = replace(traced, tables=_tables(traced))
        traced = _searched(servers, traced)
    return replace(traced, error_logs=_error_logs(servers, traced))


def _each(gtids: GtidSet) -> list[GtidSet]:
    return [GtidSet.of(each) for each in gtids.gtids()]


def _places(
    servers: _Servers, gtid: GtidSet, failures: Iterable[StoppedThread]
) -> tuple[GtidOnServer, ...]:
    failed = [each for each in failures if gtid <= each.gtids]
    return tuple(
        replace(
            each.gtid_state(gtid),
            failed_on=tuple(one.channel.name for one in failed if one.replica == each.name),
        )
        for each in servers.by_name.values()
    )


def _content(servers: _Servers, gtid: GtidSet, *, first: str) -> TracedTransaction | None:
    """Return a transaction from the log of one server, else from another one."""
    names = sorted(servers.by_name, key=lambda name: name != first)
    for name in names:
        found = servers.by_name[name].transaction(gtid)
        if found is not None:
            return found
    return None


def _tables(traced: TracedFailure) -> tuple[TableKey, ...]:
    """Return the tables that the error is about; without any, those of the transaction."""
    named = tables_in_text(traced.failure.cause_text)
    changed = [
        table
        for each in traced.transactions
        for table in (
            *(effect.table for effect in each.effects),
            *(TableKey(rows.schema, rows.table) for rows in each.tables),
        )
    ]
    return tuple(dict.fromkeys(named or changed))[:TABLES_MAX]


def _searched(servers: _Servers, traced: TracedFailure) -> TracedFailure:
    """Add the definitions now, changes of definitions, and what only the replica executed."""
    error, tables = class_of(traced.failure), traced.tables
    if error is ErrorClass.OTHER or not tables:
        return traced
    replica = servers.by_name[traced.failure.replica]
    source = servers.by_name.get(traced.source)
    limits = servers.request.search
    if error in _OF_DEFINITIONS:
        asked = (source, replica) if source is not None else (replica,)
        traced = replace(
            traced,
            tables_now=tuple(table_now(each, table) for table in tables for each in asked),
            searches=_searches(traced, source, replica, limits),
        )
        traced = replace(traced, replaced=replica.as_logged(_changes_of(traced)))
    if source is not None and source.is_read:
        extra = replica.not_on_source(source.reading, tables, search_seconds_max=limits.seconds_max)
        traced = replace(traced, extra=extra)
    return traced


def _searches(
    traced: TracedFailure,
    source: TracedReads | None,
    replica: TracedReads,
    limits: SearchLimits,
) -> tuple[ChangeSearch, ...]:
    """Search both logs at the same time."""
    until = _begins_at(traced)
    with ThreadPoolExecutor(2) as pool:
        of_replica = pool.submit(changes_on, replica, traced.tables, limits)
        if source is None:
            return (of_replica.result(),)
        if until is None:
            of_source = ChangeSearch(source.name, why=_PLACE_UNKNOWN)
        else:
            of_source = changes_on(source, traced.tables, limits, until=until)
        return of_source, of_replica.result()


def _begins_at(traced: TracedFailure) -> LogPosition | None:
    """Return where the failing transaction begins in its source's log, or a later one of them."""
    for each in traced.transactions:
        if each.server == traced.source:
            return LogPosition.of(file=each.file, position=each.start)
    for place in traced.places:
        if place.server == traced.source and place.place:
            file, _, span = place.place.rpartition(":")
            start = span.partition("-")[0]
            return LogPosition.of(file=file, position=int(start)) if start.isdigit() else None
    return None


def _changes_of(traced: TracedFailure) -> GtidSet:
    return GtidSet.union_of(
        change.gtid
        for search in traced.searches
        if search.server == traced.source
        for change in search.changes
    )


def _error_logs(servers: _Servers, traced: TracedFailure) -> tuple[ErrorLogExcerpt, ...]:
    """Read the lines around the failure, and on the source those around the commit too."""
    window = servers.request.window_seconds
    replica = servers.by_name[traced.failure.replica]
    at = traced.failed_at
    found = [error_log(replica, _moments(at), window_seconds=window)]
    source = servers.by_name.get(traced.source)
    if source is None:
        return tuple(found)
    moments = _moments(None if at is None else at + clock_shift(replica.reading, source.reading))
    for each in traced.transactions[:1]:
        logged_at = each.happened_at
        is_far = logged_at is not None and all(
            abs(logged_at - known) > timedelta(seconds=window) for known in moments
        )
        if each.server == source.name and logged_at is not None and is_far:
            moments.insert(0, logged_at)
    return (*found, error_log(source, moments, window_seconds=window))


def _moments(at: datetime | None) -> list[datetime]:
    return [] if at is None else [at]
