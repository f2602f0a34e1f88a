"""Reads what a plan must know before it leaves out, fetches, redoes or undoes transactions.

For every finding with transactions:

1. A server that still has them is asked for exactly these (a complement fetch); each transaction
   gets its class (repair/transaction_content.py), and its SQL, for redo and for saving.
2. Rows are folded to their net change and looked up by key on the servers that the finding
   concerns: the replica of a hole, the holders of extra transactions.
3. What cannot be read is UNREAD with the reason. Servers are only read, and within limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from binlog.adapters.row_decoder import RowDecoder
from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError
from binlog.rows.values import RowChanges, rows_of_group
from binlog.scan import EventGroup
from binlog.transactions import TableChange, Transaction
from gtid import GtidSet, GtidSetTooLarge, MalformedText
from gtid_audit.log_operands import server_words
from gtid_audit.rows_in_place import RowReader
from gtid_audit.tables_now import Definitions, LogBehind, LoggedDefinitions
from gtid_audit.transaction_parts import committed_at, short, summed
from repair.content_questions import (
    EXTRA,
    STOPPED,
    ContentQuestion,
    arrivals,
    available,
    question_of,
)
from repair.created_tables import Created, all_created
from repair.own_work import disturbed
from repair.replay import Replayed, redo
from repair.row_versions import RowsRead
from repair.transaction_content import (
    CannotFold,
    ContentClass,
    NetRow,
    OutOfOrder,
    RowsOn,
    RowState,
    TransactionContent,
    class_of,
    doubted,
    net_rows,
    nothing_read,
)
from topology.adapters.mysql import connect
from topology.findings import ClusterAudit, Finding
from topology.snapshot import ChannelSnapshot, ClusterSnapshot, ServerSnapshot
from topology.target import ServerTarget

# More of one finding are not read: nothing is planned for them by default.
TRANSACTIONS_READ_MAX: Final = 10_000
# More are not kept as SQL and rows.
TRANSACTIONS_REPLAYED_MAX: Final = 2_000
CHARACTERS_REPLAYED_MAX: Final = 16 * 1024**2
STATEMENTS_SHOWN_MAX: Final = 5

# sql/rpl_rli_pdb.cc: "Worker 1 failed executing transaction '…' at source log …".
_WORKER_GTID: Final = re.compile(r"failed executing transaction '(?P<gtid>[^']+)'")


@dataclass(frozen=True, slots=True)
class TransactionsForPlan:
    """By finding id: what the transactions did, and the rows that conflict with them."""

    contents: Mapping[str, TransactionContent] = field(default_factory=dict)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)
    # What a start of a stopped channel delivers, by server and channel.
    arrivals: Mapping[tuple[str, str], TransactionContent] = field(default_factory=dict)


def read_transactions(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> TransactionsForPlan:
    """Read the transactions behind an audit's findings; `seconds_max` is for each of them."""
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
    for channel, question in waiting.items():  # stopped, and another finding explains it
        brought[channel] = _Reading(None, servers, targets, seconds_max).content(question)
    return TransactionsForPlan(contents, rows, brought)


@dataclass(slots=True)
class _Reading:
    """The reading of one finding's transactions, or of what a stopped channel would bring."""

    finding: Finding | None
    servers: Mapping[str, ServerSnapshot]
    targets: Mapping[str, ServerTarget]
    seconds_max: float
    conflicting: RowsRead = field(default_factory=RowsRead)

    def content(self, question: ContentQuestion) -> TransactionContent:
        """Read the transactions from the best server, and how their rows stand."""
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
        """Yield what receiving servers have done themselves, as far as it is read."""
        for name, gtids in question.own:
            known = gtids & available(self.servers[name])
            if name in self.targets and gtids == known.first(TRANSACTIONS_READ_MAX):
                yield name, gtids, _read(self.targets[name], name, gtids, self.seconds_max)
            else:
                yield name, gtids, nothing_read(gtids, "purged, or too many to read")

    def _elsewhere(
        self, read: TransactionContent, question: ContentQuestion
    ) -> Iterator[tuple[str, GtidSet, TransactionContent]]:
        """Yield what the other servers have under the GTIDs that could be declared unneeded."""
        # What is purged is asked of its origin only: to others it came by replication.
        disposable = read.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        for name in question.holders:
            server = self.servers[name]
            gtids = disposable & available(server)
            if server.server_uuid is not None:
                own = disposable.from_uuid(server.server_uuid)
                gtids |= own & _set(server.gtid_executed)
            # A server that sends nothing by GTID received these from those that do.
            if server.setting("gtid_mode") not in (None, "ON"):
                gtids -= _received(server)
            if gtids and name in self.targets and name != read.read_from:
                yield name, gtids, _read(self.targets[name], name, gtids, self.seconds_max)

    def _with_rows(self, read: TransactionContent, question: ContentQuestion) -> TransactionContent:
        """Add how the rows stand on the servers that the question names."""
        rows = read.rows if read.rows is not None else read.rows_beside_created
        kinds = (
            (ContentClass.UNREAD,) if rows is not None else (ContentClass.DDL, ContentClass.UNREAD)
        )
        ddl = read.of_class(*kinds)
        names = [name for name in question.servers if name in self.targets]
        if rows is None or ddl:
            definitions = f"{ddl.shortened()} changes definitions, or was not read"
            why = definitions if ddl else read.rows_unread
            return replace(read, rows_on={name: RowsOn(RowState.UNREAD, why) for name in names})
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
        return replace(read, rows_on=states)

    def _source_of_missing(self, name: str) -> str | None:
        """Return the finding's source, if its transactions are missing on this server."""
        finding = self.finding
        if finding is None or finding.code in EXTRA or name != finding.replica:
            return None
        return finding.source if finding.source in self.targets else None

    def _connect(self, name: str) -> Connection[Any]:
        return connect(self.targets[name], timeout_seconds_max=self.seconds_max)

    def failing(self) -> GtidSet:
        """Return the transaction that stopped the applier; empty if it cannot be named."""
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
        """Return the transaction at the place where an applier without workers stands."""
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


@dataclass(slots=True)
class _Collected:
    """What was read of one server's log, while it is read."""

    classes: dict[ContentClass, list[Any]] = field(default_factory=dict)
    tables: dict[tuple[str, str], TableChange] = field(default_factory=dict)
    statements: dict[str, None] = field(default_factory=dict)
    moments: list[datetime] = field(default_factory=list)
    redo: list[Replayed] = field(default_factory=list)
    changes: list[RowChanges] = field(default_factory=list)
    server_ids: dict[int, list[Any]] = field(default_factory=dict)
    characters: int = 0
    cut: str = ""
    rows_unread: str = ""
    altered: str = ""  # which table has other columns since: no rows are of use then
    created: list[Created] = field(default_factory=list)
    creates_only: bool = True  # no other statement was logged

    def add(self, transaction: Transaction) -> ContentClass:
        kind = class_of(transaction)
        self.classes.setdefault(kind, []).append(transaction.gtid)
        self.server_ids.setdefault(transaction.server_id, []).append(transaction.gtid)
        self.moments.append(committed_at(transaction))
        if kind in (ContentClass.DATA, ContentClass.DDL, ContentClass.UNREAD):
            for table in transaction.tables:
                old = self.tables.get((table.schema, table.table))
                self.tables[table.schema, table.table] = summed(old, table)
            for statement in transaction.statements:
                if len(self.statements) < STATEMENTS_SHOWN_MAX:
                    self.statements[short(statement.sql)] = None
        return kind

    def keep(self, group: EventGroup, items: list[Any], logged: LoggedDefinitions) -> None:
        """Keep a transaction as SQL and rows, within the limits.

        Rows of a table whose columns were changed since are of no use: see tables_now.py.
        """
        if len(self.redo) >= TRANSACTIONS_REPLAYED_MAX or self.cut:
            self.cut = f"more than {TRANSACTIONS_REPLAYED_MAX:,} transactions"
            return
        # What cannot be written as SQL has no GTID there, and its reason must not be lost.
        replayed = replace(redo(group, items, keeps_gtid=True), gtid=group.transaction.gtid)
        tables = ((each.schema, each.table) for each in group.transaction.tables)
        changed = [logged.changed[name] for name in tables if name in logged.changed]
        if changed:
            replayed = replace(replayed, lines=(), tables=frozenset(), problem="; ".join(changed))
            self.altered = self.altered or "; ".join(changed)
        self.characters += sum(map(len, replayed.lines))
        if self.characters > CHARACTERS_REPLAYED_MAX:
            self.cut = f"more than {CHARACTERS_REPLAYED_MAX:,} characters of SQL"
            return
        self.redo.append(replayed)
        self.changes += [each for each in items if isinstance(each, RowChanges)]
        statements = group.transaction.statements
        if statements and not self.rows_unread:
            self.rows_unread = f"{group.transaction.gtid} is logged as a statement"
        created = all_created((each.schema, each.sql) for each in statements)
        self.created += created or ()
        self.creates_only = self.creates_only and created is not None

    def content(self, server: str, unread: str) -> TransactionContent:
        why = self.cut or self.altered or unread or ("" if self.creates_only else self.rows_unread)
        rows: tuple[NetRow, ...] | None = None
        is_out_of_order = False
        if not why:
            try:
                rows = net_rows(self.changes)
            except CannotFold as problem:
                why, is_out_of_order = str(problem), isinstance(problem, OutOfOrder)
        # What undoes rows must not overlook statements.
        beside = rows if self.rows_unread else None
        return TransactionContent(
            read_from=server,
            classes={each: GtidSet.of(gtids) for each, gtids in self.classes.items()},
            unread=unread,
            tables=tuple(self.tables[name] for name in sorted(self.tables)),
            statements=tuple(self.statements),
            committed_first=min(self.moments, default=None),
            committed_last=max(self.moments, default=None),
            rows=None if self.rows_unread else rows,
            rows_unread=why or self.rows_unread,
            is_out_of_order=is_out_of_order,
            created=tuple(dict.fromkeys(self.created)) if beside is not None else (),
            rows_beside_created=beside,
            redo=() if self.cut else tuple(self.redo),
            server_ids={each: GtidSet.of(gtids) for each, gtids in self.server_ids.items()},
        )


def _read(
    target: ServerTarget, name: str, wanted: GtidSet, seconds_max: float
) -> TransactionContent:
    """Read transactions from one server's binary logs."""
    collected, unread = _Collected(), ""
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
    """Return what a server did not have when it received it, as auto-position makes certain."""
    by_sets = (each for each in server.channels or () if each.auto_position)
    return GtidSet.union_of(each.gtid_retrieved for each in by_sets)


def _is_parallel(server: ServerSnapshot) -> bool:
    """Return whether the applier's place may be a low-water mark only."""
    return (server.setting("replica_parallel_workers") or "2") not in ("0", "1")


def _set(gtids: GtidSet | None) -> GtidSet:
    return gtids if gtids is not None else GtidSet()
