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
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
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
from gtid_audit.moments import moment
from gtid_audit.rows_in_place import RowReader
from gtid_audit.tables_now import Definitions, LogBehind, LoggedDefinitions
from repair.replay import Replayed, redo
from repair.row_versions import RowsRead
from repair.transaction_content import (
    CannotFold,
    ContentClass,
    RowsOn,
    RowState,
    TransactionContent,
    class_of,
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
STATEMENT_CHARACTERS_MAX: Final = 120

# What is extra on the replica; what is missing on it; where the applier stands.
_EXTRA: Final = ("E1", "E2", "E3", "E6", "J3")
_MISSING: Final = ("H1", "H3", "H4", "H5", "H8", "P1", "C3", "A7")
_STOPPED: Final = ("A2", "A3")
# sql/rpl_rli_pdb.cc: "Worker 1 failed executing transaction '…' at source log …".
_WORKER_GTID: Final = re.compile(r"failed executing transaction '(?P<gtid>[^']+)'")


@dataclass(frozen=True, slots=True)
class TransactionsForPlan:
    """By finding id: what the transactions did, and the rows that conflict with them."""

    contents: Mapping[str, TransactionContent] = field(default_factory=dict)
    rows: Mapping[str, RowsRead] = field(default_factory=dict)


def read_transactions(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> TransactionsForPlan:
    """Read the transactions behind an audit's findings; `seconds_max` is for each finding."""
    contents: dict[str, TransactionContent] = {}
    rows: dict[str, RowsRead] = {}
    servers = {server.name: server for server in snapshot.last}
    for finding in audit.findings:
        if finding.code not in (*_EXTRA, *_MISSING, *_STOPPED):
            continue
        reading = _Reading(finding, servers, targets, seconds_max)
        wanted = reading.wanted()
        if not wanted:
            continue
        contents[finding.id] = reading.content(wanted)
        if reading.conflicting.rows or reading.conflicting.unread:
            rows[finding.id] = reading.conflicting
    return TransactionsForPlan(contents, rows)


@dataclass(slots=True)
class _Reading:
    """The reading of one finding's transactions."""

    finding: Finding
    servers: Mapping[str, ServerSnapshot]
    targets: Mapping[str, ServerTarget]
    seconds_max: float
    conflicting: RowsRead = field(default_factory=RowsRead)

    def wanted(self) -> GtidSet:
        """Return which transactions the finding is about."""
        code = self.finding.code
        if code in _STOPPED:
            return self._failing()
        if code == "C3":  # auto-position brings all that is missing
            return self._missing()
        if code == "A7" and not self._is_written_to():
            return GtidSet()  # in the order of its source's log, whatever waits fits
        return self.finding.gtid_set

    def content(self, wanted: GtidSet) -> TransactionContent:
        """Read the transactions from the best server, and how their rows stand."""
        held = [(self._available(name) & wanted, name) for name in self._holders()]
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
        return self._with_rows(read)

    def _with_rows(self, read: TransactionContent) -> TransactionContent:
        """Add how the rows stand on the servers that the finding concerns."""
        ddl = read.of_class(ContentClass.DDL, ContentClass.UNREAD)
        names = [name for name in self._concerned() if name in self.targets]
        if read.rows is None or ddl:
            definitions = f"{ddl.shortened()} changes definitions, or was not read"
            why = definitions if ddl else read.rows_unread
            return replace(read, rows_on={name: RowsOn(RowState.UNREAD, why) for name in names})
        states: dict[str, RowsOn] = {}
        for name in names:
            with ExitStack() as held:
                try:
                    here = held.enter_context(closing(self._connect(name)))
                    reader = RowReader(here)
                    states[name], off = reader.state_of(read.rows)
                    is_missing = self.finding.code not in _EXTRA and name == self.finding.replica
                    if off and is_missing and self.finding.source in self.targets:
                        there = held.enter_context(closing(self._connect(self.finding.source)))
                        read = replace(read, expected=reader.expected(off))
                        self.conflicting = reader.both(off, RowReader(there))
                except pymysql.MySQLError as error:
                    states[name] = RowsOn(RowState.UNREAD, server_words(error))
                except OSError as error:
                    states[name] = RowsOn(RowState.UNREAD, str(error))
        return replace(read, rows_on=states)

    def _connect(self, name: str | None) -> Connection[Any]:
        return connect(self.targets[name or ""], timeout_seconds_max=self.seconds_max)

    def _is_written_to(self) -> bool:
        """Return whether the replica has transactions that another way than its channel brought."""
        server = self.servers.get(self.finding.replica or "")
        if server is None or server.server_uuid is None:
            return True
        own = _set(server.gtid_executed).from_uuid(server.server_uuid)
        return bool(own) or len(server.channels or ()) > 1

    def _concerned(self) -> list[str]:
        if self.finding.code not in _EXTRA:
            ends = (self.finding.replica, self.finding.source)
            return [name for name in ends if name is not None]
        return list(self.servers)

    def _holders(self) -> list[str]:
        """Return who may have the transactions: their origin, then the servers of the finding.

        Where a GTID was given by hand, its origin may have another transaction under it.
        """
        ends = (self.finding.replica, self.finding.source)
        first = ends if self.finding.code in _EXTRA else ends[::-1]
        origins = [
            name
            for name, server in self.servers.items()
            if server.server_uuid is not None
            and self.finding.gtid_set.from_uuid(server.server_uuid)
        ]
        named = [*origins, *(name for name in first if name is not None)]
        return [name for name in dict.fromkeys([*named, *self.servers]) if name in self.targets]

    def _available(self, name: str) -> GtidSet:
        server = self.servers.get(name)
        if server is None:
            return GtidSet()
        return _set(server.gtid_executed) - _set(server.gtid_purged)

    def _missing(self) -> GtidSet:
        replica = self.servers.get(self.finding.replica or "")
        if replica is None or replica.server_uuid is None:
            return GtidSet()
        missing = self._available(self.finding.source or "") - _set(replica.gtid_executed)
        return missing.without_uuid(replica.server_uuid)

    def _failing(self) -> GtidSet:
        """Return the transaction that stopped the applier; empty if it cannot be named."""
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
            found = self._at_position(channel)
        return found - _set(replica.gtid_executed) if found.gtid_count == 1 else GtidSet()

    def _at_position(self, channel: ChannelSnapshot) -> GtidSet:
        """Return the transaction at the place where an applier without workers stands."""
        target, place = self.targets.get(self.finding.source or ""), channel.applied_to
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
    characters: int = 0
    cut: str = ""
    rows_unread: str = ""

    def add(self, transaction: Transaction) -> ContentClass:
        kind = class_of(transaction)
        self.classes.setdefault(kind, []).append(transaction.gtid)
        self.moments.append(_committed_at(transaction))
        if kind in (ContentClass.DATA, ContentClass.DDL, ContentClass.UNREAD):
            for table in transaction.tables:
                old = self.tables.get((table.schema, table.table))
                self.tables[table.schema, table.table] = _summed(old, table)
            for statement in transaction.statements:
                if len(self.statements) < STATEMENTS_SHOWN_MAX:
                    self.statements[_short(statement.sql)] = None
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
            self.rows_unread = self.rows_unread or "; ".join(changed)
        self.characters += sum(map(len, replayed.lines))
        if self.characters > CHARACTERS_REPLAYED_MAX:
            self.cut = f"more than {CHARACTERS_REPLAYED_MAX:,} characters of SQL"
            return
        self.redo.append(replayed)
        self.changes += [each for each in items if isinstance(each, RowChanges)]
        if group.transaction.statements and not self.rows_unread:
            self.rows_unread = f"{group.transaction.gtid} is logged as a statement"

    def content(self, server: str, unread: str) -> TransactionContent:
        why = self.cut or self.rows_unread or unread
        rows = None
        if not why:
            try:
                rows = net_rows(self.changes)
            except CannotFold as problem:
                why = str(problem)
        return TransactionContent(
            read_from=server,
            classes={each: GtidSet.of(gtids) for each, gtids in self.classes.items()},
            unread=unread,
            tables=tuple(self.tables[name] for name in sorted(self.tables)),
            statements=tuple(self.statements),
            committed_first=min(self.moments, default=None),
            committed_last=max(self.moments, default=None),
            rows=rows,
            rows_unread=why,
            redo=() if self.cut else tuple(self.redo),
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


def _is_parallel(server: ServerSnapshot) -> bool:
    """Return whether the applier's place may be a low-water mark only."""
    return (server.setting("replica_parallel_workers") or "2") not in ("0", "1")


def _committed_at(transaction: Transaction) -> datetime:
    committed = moment(transaction.original_commit_timestamp or 0)
    if committed is not None and transaction.original_commit_timestamp:
        return committed
    return datetime.fromtimestamp(transaction.timestamp_seconds, UTC)


def _summed(old: TableChange | None, new: TableChange) -> TableChange:
    if old is None:
        return new
    return replace(
        old,
        rows_written=old.rows_written + new.rows_written,
        rows_updated=old.rows_updated + new.rows_updated,
        rows_deleted=old.rows_deleted + new.rows_deleted,
    )


def _short(sql: str) -> str:
    line = " ".join(sql.split())
    if len(line) <= STATEMENT_CHARACTERS_MAX:
        return line
    return line[: STATEMENT_CHARACTERS_MAX - 1] + "…"


def _set(gtids: GtidSet | None) -> GtidSet:
    return gtids if gtids is not None else GtidSet()
