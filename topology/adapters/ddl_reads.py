"""Searches the binary logs of a live server for DDL: of given transactions, or the newest.

1. Given transactions are requested by GTID: the server sends only these. Purged ones are never
   requested: the server would refuse the whole request.
2. The newest DDL is searched from the newest log backwards, log by log, up to limits of bytes and
   time. If there is none in the logs that were read, it is older than the first of them.
3. What was not searched is never reported as free of DDL: `searched` has what was.
4. CREATE TABLE … SELECT is logged in one transaction with its rows (8.0.21 and later): the ledger
   lists it as a change of rows, or as one without tables (seen on 9.7.4). It is the first
   transaction that writes to its table. So that transaction is read in full, for each table that
   the caller asks for; and so is each change without tables.

Privileges: those of a replica, to read the logs.
"""

import re
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pymysql

from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_session import FromPlace, Only, Wish
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError
from binlog.log_times import EPOCH
from binlog.transactions import TransactionKind
from gtid import Gtid, GtidSet
from topology.adapters.connection import way_to
from topology.definitions.ddl_searches import DdlSearch, NewestDdl
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.replication_filters import Table
from topology.readings.snapshot import BinaryLog
from topology.readings.target import ServerTarget

if TYPE_CHECKING:
    import pyarrow as pa

_FAILED: Final = (BinlogError, pymysql.MySQLError, OSError)
_COLUMNS: Final = ["uuid", "tag", "gno", "tables"]
_DDL: Final = "ddl"
_MAY_HIDE_DDL: Final = ("dml", "incident", "other")
_IN_FULL_MAX: Final = 1_000
_UNREADABLE: Final = (TransactionKind.INCIDENT, TransactionKind.OTHER)
_CREATE: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)*CREATE\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class DdlSearchLimits:
    """The limits of one search: the silence of a server, the whole time, the bytes of logs."""

    answer_seconds_max: float = 30.0
    search_seconds_max: float = 20.0
    bytes_max: int = 1024**3


def ddl_of(
    target: ServerTarget,
    wanted: GtidSet,
    *,
    held: GtidSet,
    limits: DdlSearchLimits,
    tables: Container[Table] = frozenset(),
) -> DdlSearch:
    """Return the DDL among these transactions.

    Never raises for what the server does: `why_unread` has it.

    Args:
        target: the server whose logs are searched.
        wanted: the transactions.
        held: what the server's logs have of all GTIDs.
        limits: the limits of the search.
        tables: those that CREATE TABLE … SELECT may have created.
    """
    here = wanted & held
    why = "" if here == wanted else "the logs of these servers do not have all of them"
    if not here:
        return DdlSearch(target.name, GtidSet(), why_unread=why)
    found = _Found(tables)
    searched: list[GtidSet] = []
    until = time.monotonic() + limits.search_seconds_max
    try:
        for _, rows, gtids in _batches(target, Only(here), until, limits):
            found.add(rows)
            searched.append(gtids)
        if found.to_read.gtid_count <= _IN_FULL_MAX:
            found.ddl += _read_in_full(target, found.to_read, limits)
            found.to_read = GtidSet()
        else:
            why = f"{target.name}: too many transactions would be read in full"
    except _FAILED as error:
        why = f"{target.name}: {error}"
    done = GtidSet.union_of(searched) - found.to_read
    if not why and not here <= done:
        why = f"{target.name}: the limit of {limits.search_seconds_max:g} s was reached"
    return DdlSearch(target.name, done, tuple(found.ddl), why)


def newest_ddl(
    target: ServerTarget, logs: Sequence[BinaryLog], *, within: GtidSet, limits: DdlSearchLimits
) -> NewestDdl:
    """Return the DDL of the newest log that has any of `within`, searching backwards."""
    until = time.monotonic() + limits.search_seconds_max
    left = limits.bytes_max
    oldest = ""
    for log in reversed(logs):
        left -= log.size_bytes
        if oldest and (left < 0 or time.monotonic() >= until):
            return NewestDdl(target.name, (), oldest)
        found: list[LoggedDdl] = []
        try:
            for file, rows, _ in _batches(
                target, FromPlace(log.name, FIRST_POSITION), until, limits
            ):
                if file != log.name:
                    break
                found += (each for each in _ddl_in(rows) if each.gtid in within)
        except _FAILED as error:
            return NewestDdl(target.name, tuple(found), oldest, failure=str(error))
        is_late = time.monotonic() >= until
        if any(each.defines for each in found) and not is_late:
            return NewestDdl(target.name, tuple(found), log.name)
        if is_late:  # the rest of this log may have newer DDL
            return NewestDdl(target.name, (), oldest)
        oldest = log.name
    return NewestDdl(target.name, (), oldest)


def _batches(
    target: ServerTarget, wish: Wish, until: float, limits: DdlSearchLimits
) -> "Iterator[tuple[str, pa.Table, GtidSet]]":
    """Yield the file, the rows and the complete GTIDs of each batch, until a time."""
    from binlog.adapters.stream_ledger import ledger_of_server  # it needs PyArrow and Numba
    from binlog.ledger.ledger_columns import LedgerRequest

    for batch in ledger_of_server(
        way_to(target, seconds_max=limits.answer_seconds_max),
        wish,
        LedgerRequest(details=True),
        timeout_seconds_max=limits.answer_seconds_max,
        stopped=lambda: time.monotonic() >= until,
    ):
        yield batch.file, batch.rows, batch.gtids


def _ddl_in(rows: "pa.Table") -> Iterator[LoggedDdl]:
    """Yield the transactions of one statement outside BEGIN."""
    for row in rows.filter(_is_kind(rows, _DDL)).to_pylist():
        if row["uuid"] is not None:
            committed_at = row["original_commit_at"] or row["logged_at"]
            yield LoggedDdl(_gtid(row), committed_at, row["ddl"] or "")


def _is_kind(rows: "pa.Table", *kinds: str) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(rows["kind"].cast(pa.string()), value_set=pa.array(kinds))


def _gtid(row: Mapping[str, Any]) -> Gtid:
    tagged = f":{row['tag']}" if row["tag"] else ""
    return Gtid.parse(f"{row['uuid']}{tagged}:{row['gno']}")


class _Found:
    """The DDL of the batches so far, and the transactions that must be read in full."""

    def __init__(self, tables: Container[Table]) -> None:
        self.ddl: list[LoggedDdl] = []
        self.to_read = GtidSet()
        self._tables = tables
        self._written: set[Table] = set()

    def add(self, rows: "pa.Table") -> None:
        self.ddl += _ddl_in(rows)
        changes = rows.filter(_is_kind(rows, *_MAY_HIDE_DDL)).select(_COLUMNS).to_pylist()
        self.to_read |= GtidSet.of(_gtid(row) for row in changes if self._may_create(row))

    def _may_create(self, row: Mapping[str, Any]) -> bool:
        if row["uuid"] is None:
            return False
        written = [(each["schema"], each["table"]) for each in row["tables"] or ()]
        if not written:
            return True
        new = [each for each in written if each in self._tables and each not in self._written]
        self._written.update(new)
        return bool(new)


def _read_in_full(target: ServerTarget, gtids: GtidSet, limits: DdlSearchLimits) -> list[LoggedDdl]:
    """Return what these transactions define: between BEGIN and COMMIT, only CREATE TABLE can."""
    if not gtids:
        return []
    seconds = limits.answer_seconds_max
    logs = ServerLogs(way_to(target, seconds_max=seconds), timeout_seconds_max=seconds)
    found = []
    for group in logs.events_of(gtids):
        transaction = group.transaction
        if transaction.gtid is None or transaction.gtid not in gtids:
            continue
        is_unread = transaction.kind in _UNREADABLE
        created = [each.sql for each in transaction.statements if _CREATE.match(each.sql)]
        if is_unread or created:
            moment = transaction.original_commit_timestamp
            at = EPOCH + timedelta(microseconds=moment) if moment else None
            text = "; ".join(created)
            found.append(LoggedDdl(transaction.gtid, at, text, is_unread=is_unread))
    return found
