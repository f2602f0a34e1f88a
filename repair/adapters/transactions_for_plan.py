"""Reads what a plan must know before it leaves out, fetches, redoes or undoes transactions.

For every finding with transactions:

1. A server that still has them sends exactly these (a complement fetch). Each transaction gets its
   class (repair/transaction_content.py), and its SQL, for redo and for a backup.
2. Rows are folded to their net change, and looked up by key on the finding's servers: the replica
   of a hole, the holders of extra transactions.
3. What cannot be read is UNREAD with the reason. Servers are only read, and within limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.server_errors import server_words
from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError
from binlog.rows.values import rows_of_group
from gtid import GtidSet, GtidSetTooLarge, MalformedText
from repair.adapters.collected_transactions import Collected
from repair.adapters.rows_in_place import RowReader
from repair.adapters.table_engines import without_rollback
from repair.adapters.tables_now import Definitions, LogBehind, LoggedDefinitions
from repair.adapters.tables_there import TablesThere
from repair.content_questions import (
    EXTRA,
    HOLES,
    STOPPED,
    ContentQuestion,
    arrivals,
    available,
    question_of,
)
from repair.doubted_content import doubted
from repair.own_work import disturbed
from repair.row_versions import RowsRead
from repair.transaction_content import NetRow, RowsOn, RowState, TransactionContent, nothing_read
from topology.adapters.mysql import connect
from topology.findings import ClusterAudit, Finding
from topology.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot
from topology.target import ServerTarget
from topology.transaction_class import ContentClass

# The limit per finding. By default no steps are planned for the transactions above it.
TRANSACTIONS_READ_MAX: Final = 10_000

# sql/rpl_rli_pdb.cc: "Worker 1 failed executing transaction '…' at source log …".
_WORKER_GTID: Final = re.compile(r"failed executing transaction '(?P<gtid>[^']+)'")


@dataclass(frozen=True, slots=True)
class TransactionsForPlan:
    """By finding id: the contents of the transactions, and the rows that conflict with them."""

    contents: Mapping[str, TransactionContent] = field(default_factory=dict)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)
    # What a start of a stopped channel would deliver, by server and channel.
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)


def read_transactions(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> TransactionsForPlan:
    """Read the transactions behind an audit's findings; `seconds_max` applies to each finding."""
    contents: dict[str, TransactionContent] = {}
    rows: dict[str, RowsRead] = {}
    brought: dict[tuple[str, str], TransactionContent] = {}
    servers = {server.name: server for server in snapshot.last}
    waiting = dict(arrivals(snapshot))
    for finding in audit.findings:
        reading = _Reading(finding, servers, targets, seconds_max)
        channel = (finding.replica or "", finding.channel or "")
        if finding.code == "A7":
            question = waiting.pop(channel, None)
        else:
            failing = reading.failing() if finding.code in STOPPED else None
            question = question_of(finding, snapshot, failing=failing)
        if question is None:
            continue
        content = contents[finding.id] = reading.content(question)
        if finding.code == "A7":
            brought[channel] = content
        if reading.conflicting.rows or reading.conflicting.unread:
            rows[finding.id] = reading.conflicting
    for channel, question in waiting.items():  # stopped channels that another finding explains
        brought[channel] = _Reading(None, servers, targets, seconds_max).content(question)
    return TransactionsForPlan(contents, rows, brought)


@dataclass(slots=True)
class _Reading:
    """The reading for one finding, or of what a stopped channel would deliver."""

    finding: Finding | None
    servers: Mapping[str, ServerSnapshot]
    targets: Mapping[str, ServerTarget]
    seconds_max: float
    conflicting: RowsRead = field(default_factory=RowsRead)

    def content(self, question: ContentQuestion) -> TransactionContent:
        """Read the transactions from the best server, and the state of their rows."""
        wanted = question.wanted
        held = [
            (available(self.servers[name]) & wanted, name)
            for name in question.holders
            if name in self.targets
        ]
        best = max((gtids.gtid_count for gtids, _ in held), default=0)
        if not best:
            return nothing_read(wanted, "no server that could be read still has them")
        found, name = next(each for each in held if each[0].gtid_count == best)
        looked_at = found.first(TRANSACTIONS_READ_MAX)
        read = _read(self.targets[name], name, looked_at, self.seconds_max)
        reasons = [read.unread] if read.unread else []
        if wanted - found:
            reasons.append(f"{(wanted - found).shortened()} is in no binary log of {name}")
        if found - looked_at:
            reasons.append(f"only the first {TRANSACTIONS_READ_MAX:,} were read")
        left = wanted - GtidSet.union_of(read.classes.values())
        read = replace(
            read,
            classes={
                **read.classes,
                ContentClass.UNREAD: read.of_class(ContentClass.UNREAD) | left,
            },
            unread="; ".join(reasons),
        )
        read = self._with_rows(doubted(read, self._elsewhere(read, question)), question)
        return disturbed(read, self._own_work(question))

    def _own_work(
        self, question: ContentQuestion
    ) -> Iterator[tuple[str, GtidSet, TransactionContent]]:
        """Yield the receiving servers' own transactions, as far as they can be read."""
        for name, gtids in question.own:
            known = gtids & available(self.servers[name])
            if name in self.targets and gtids == known.first(TRANSACTIONS_READ_MAX):
                yield name, gtids, _read(self.targets[name], name, gtids, self.seconds_max)
            else:
                yield name, gtids, nothing_read(gtids, "purged, or too many to read")

    def _elsewhere(
        self, read: TransactionContent, question: ContentQuestion
    ) -> Iterator[tuple[str, GtidSet, TransactionContent]]:
        """Yield the other servers' transactions under the GTIDs that could be declared unneeded."""
        # For purged GTIDs only the origin is read: other servers got them by replication.
        disposable = read.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        for name in question.holders:
            server = self.servers[name]
            gtids = disposable & available(server)
            if server.server_uuid is not None:
                own = disposable.from_uuid(server.server_uuid)
                gtids |= own & _set(server.gtid_executed)
            # A server that sends nothing by GTID received these from servers that do.
            if server.setting("gtid_mode") not in (None, "ON"):
                gtids -= _received(server)
            if gtids and name in self.targets and name != read.read_from:
                yield name, gtids, _read(self.targets[name], name, gtids, self.seconds_max)

    def _with_rows(self, read: TransactionContent, question: ContentQuestion) -> TransactionContent:
        """Add the state of the rows on the servers of the question."""
        rows = read.rows if read.rows is not None else read.rows_beside_created
        kinds = (
            (ContentClass.UNREAD,) if rows is not None else (ContentClass.DDL, ContentClass.UNREAD)
        )
        ddl = read.of_class(*kinds)
        names = [name for name in question.servers if name in self.targets]
        unlike_on, wider_on = self._unlike(read, names)
        read = replace(
            read,
            unlike_on=unlike_on,
            wider_on=wider_on,
            no_rollback_on=self._no_rollback(read, names),
        )
        if rows is None or ddl:
            definitions = f"{ddl.shortened()} changes table definitions, or was not read"
            why = definitions if ddl else read.rows_unread
            unread = {name: RowsOn(RowState.UNREAD, why) for name in names}
            return replace(read, rows_on=unread, misfits_in_part=self._in_part(read, names))
        states: dict[str, RowsOn] = {}
        for name in names:
            with ExitStack() as held:
                try:
                    here = held.enter_context(closing(self._connect(name)))
                    reader = RowReader(here)
                    states[name], off = reader.state_beside(rows, read.created)
                    source = self._source_of_missing(name)
                    if off and source is not None:
                        there = held.enter_context(closing(self._connect(source)))
                        read = replace(read, expected=reader.expected(off))
                        self.conflicting = reader.both(off, RowReader(there))
                except pymysql.MySQLError as error:
                    states[name] = RowsOn(RowState.UNREAD, server_words(error))
                except OSError as error:
                    states[name] = RowsOn(RowState.UNREAD, str(error))
        alike = self._like_source(rows, states, read)
        return replace(read, rows_on={**states, **alike})

    def _like_source(
        self, rows: tuple[NetRow, ...], states: Mapping[str, RowsOn], read: TransactionContent
    ) -> dict[str, RowsOn]:
        """Return the servers on which rows, changed by later transactions, equal the source's now.

        Only for the source's own log: another server, even the origin, may have another
        transaction under the GTID.
        """
        finding = self.finding
        source = (finding.source or "") if finding and finding.code in HOLES else ""
        changed = (RowState.CONFLICT, RowState.AS_BEFORE)
        if source not in states or states[source].state not in changed or source != read.read_from:
            return {}
        found: dict[str, RowsOn] = {}
        for name, on in states.items():
            if name == source or on.state not in changed:
                continue
            try:
                with closing(self._connect(name)) as here, closing(self._connect(source)) as there:
                    if RowReader(here).is_like(rows, RowReader(there), but=read.wanted):
                        found[name] = replace(on, is_like_source=True)
            except (pymysql.MySQLError, OSError):  # the first reading has the state of the rows
                continue
        return found

    def _unlike(
        self, read: TransactionContent, names: list[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the servers on which changed tables are defined differently or missing, or wider.

        A server that cannot be read is left out: `rows_on` shows that nothing was compared there.
        """
        found: dict[str, str] = {}
        wider: dict[str, str] = {}
        if read.read_from is None or not (read.row_tables or read.ddl):
            return found, wider
        for name in names:
            arriving = read.wanted - _set(self.servers[name].gtid_executed)
            if not arriving:
                continue
            try:
                with (
                    closing(self._connect(name)) as here,
                    closing(self._connect(read.read_from)) as there,
                ):
                    tables = TablesThere(here)
                    why = tables.unlike(read, arriving, TablesThere(there))
                    more = tables.wider(read)
            except (pymysql.MySQLError, OSError):
                continue
            if why is not None:
                found[name] = why
            if more is not None:
                wider[name] = more
        return found, wider

    def _no_rollback(
        self, read: TransactionContent, names: list[str]
    ) -> dict[str, tuple[tuple[str, str, str], ...]]:
        """Return the tables without transactions, by server. The scripts check them again."""
        found: dict[str, tuple[tuple[str, str, str], ...]] = {}
        tables = {(table.schema, table.table) for table in read.row_tables}
        for name in names if tables else ():
            try:
                with closing(self._connect(name)) as here:
                    engines = without_rollback(here, tables)
            except (pymysql.MySQLError, OSError):  # `rows_on` shows that nothing was compared
                continue
            if engines:
                found[name] = engines
        return found

    def _in_part(self, read: TransactionContent, names: list[str]) -> dict[str, str]:
        """Return the servers on which the comparable rows are not as before, with the reason.

        A server whose rows cannot be read at all is left out: nothing is known about it.
        """
        misfits: dict[str, str] = {}
        for name in names if read.rows_in_part else ():
            try:
                with closing(self._connect(name)) as here:
                    state, _ = RowReader(here).state_of(read.rows_in_part)
            except (pymysql.MySQLError, OSError):  # `rows_on` shows that they were not compared
                continue
            if state.state in (RowState.CONFLICT, RowState.AS_AFTER):
                misfits[name] = state.why or "the server has these rows already"
        return misfits

    def _source_of_missing(self, name: str) -> str | None:
        """Return the finding's source, if its transactions are missing on this server."""
        finding = self.finding
        if finding is None or finding.code in EXTRA or name != finding.replica:
            return None
        return finding.source if finding.source in self.targets else None

    def _connect(self, name: str) -> Connection[Any]:
        return connect(self.targets[name], timeout_seconds_max=self.seconds_max)

    def failing(self) -> GtidSet:
        """Return the transaction that stopped the applier; empty if it cannot be identified."""
        assert self.finding is not None, "a stopped applier has a finding"
        replica = self.servers.get(self.finding.replica or "")
        channel = _channel(replica, self.finding)
        if replica is None or channel is None:
            return GtidSet()
        texts = [channel.applier_error, *(worker.error for worker in channel.workers)]
        named = {match["gtid"] for text in texts for match in _WORKER_GTID.finditer(text)}
        try:
            found = GtidSet.parse(",".join(named))
        except MalformedText:
            return GtidSet()
        if not named and not _is_parallel(replica):
            found = self._at_position(self.finding.source, channel)
        return found - _set(replica.gtid_executed) if found.gtid_count == 1 else GtidSet()

    def _at_position(self, source: str | None, channel: ChannelSnapshot) -> GtidSet:
        """Return the transaction at which an applier without workers stopped."""
        target, place = self.targets.get(source or ""), channel.applied_to
        if target is None or place is None:
            return GtidSet()
        try:
            found = _logs(target, self.seconds_max).transactions_from(
                file=place.file, position=place.position, transactions_max=1
            )
        except BinlogError:
            return GtidSet()
        return GtidSet.of(each.gtid for each in found if each.gtid is not None)


def _read(
    target: ServerTarget, name: str, wanted: GtidSet, seconds_max: float
) -> TransactionContent:
    """Read transactions from one server's binary logs."""
    collected, unread = Collected(), ""
    decode = RowDecoder()
    try:
        with closing(connect(target, timeout_seconds_max=seconds_max)) as connection:
            notes: list[str] = []
            behind = LogBehind(
                lambda: connect(target, timeout_seconds_max=seconds_max), seconds_max
            )
            logged = LoggedDefinitions(Definitions(connection, notes.append), behind, notes.append)
            for group in _logs(target, seconds_max).events_of(wanted):
                kind = collected.add(group.transaction)
                if kind in (ContentClass.DATA, ContentClass.DDL):
                    at = logged.at(group.transaction.file, group.transaction.start)
                    items = list(rows_of_group(group, decode, definition_of=at))
                    collected.keep(group, items, logged)
    except pymysql.MySQLError as error:
        unread = f"{name}: {server_words(error)}"
    except (BinlogError, GtidSetTooLarge, OSError) as error:
        unread = f"{name}: {error}"
    return collected.content(name, unread)


def _logs(target: ServerTarget, seconds_max: float) -> ServerLogs:
    return ServerLogs(
        lambda: connect(target, timeout_seconds_max=seconds_max), timeout_seconds_max=seconds_max
    )


def _channel(server: ServerSnapshot | None, finding: Finding) -> ChannelSnapshot | None:
    channels: Iterable[ChannelSnapshot] = (server.channels or ()) if server is not None else ()
    return next((each for each in channels if each.name == finding.channel), None)


def _received(server: ServerSnapshot) -> GtidSet:
    """Return what a server did not have when it received it, as auto-position guarantees.

    Without its own GTIDs: a skip counter skips what was received, and it may commit them later.
    """
    by_sets = (each for each in server.channels or () if each.auto_position)
    received = GtidSet.union_of(each.gtid_retrieved for each in by_sets)
    return received.without_uuid(server.server_uuid) if server.server_uuid else received


def _is_parallel(server: ServerSnapshot) -> bool:
    """Return whether the applier's position may be only a low-water mark."""
    return (server.setting("replica_parallel_workers") or "2") not in ("0", "1")


def _set(gtids: GtidSet | None) -> GtidSet:
    return gtids if gtids is not None else GtidSet()
