"""Parts of a transaction's summary: its class, its time, its row counts, its statements.

The class says whether the content may be left out without a decision. It follows from the structure
of the transaction's group in the log and from its tables. No server is queried. A transaction that
is not completely in the log is UNREAD.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from binlog.log_times import moment
from binlog.transactions import TableChange, Transaction, TransactionKind
from topology.readings.content_class import ContentClass
from topology.readings.hidden_passwords import without_secrets

STATEMENT_CHARACTERS_MAX: Final = 120

# Tables with these names are written repeatedly by monitoring tools, and only these tools read
# them.
_HEARTBEATS: Final = frozenset({("percona", "heartbeat"), ("meta", "heartbeat")})
# In schema `mysql`, a server, or the service that runs it, writes these without an operator. Any
# other table there may hold what an operator wrote: accounts, routines, time zones, other tables.
_SERVER_MAINTAINED: Final = frozenset(
    {
        "general_log",
        "gtid_executed",
        "ha_health_check",
        "heartbeat",
        "innodb_index_stats",
        "innodb_table_stats",
        "ndb_binlog_index",
        "slow_log",
    }
)
_SERVICE_PREFIX: Final = "rds_"
# Statements that change no row and no definition.
_UPKEEP: Final = re.compile(r"\s*(?:FLUSH|ANALYZE|OPTIMIZE|CHECKSUM)\b", re.IGNORECASE)


def class_of(transaction: Transaction) -> ContentClass:
    """Return the class of a transaction, from the structure of its group and its tables."""
    if not transaction.is_complete or transaction.is_cut:
        return ContentClass.UNREAD
    match transaction.kind:
        case TransactionKind.EMPTY:
            return ContentClass.EMPTY
        case TransactionKind.DDL:
            upkeep = all(_UPKEEP.match(each.sql) for each in transaction.statements)
            return ContentClass.HARMLESS if upkeep and transaction.statements else ContentClass.DDL
        case TransactionKind.DML if not transaction.statements and transaction.tables:
            harmless = all(map(_is_harmless, transaction.tables))
            return ContentClass.HARMLESS if harmless else ContentClass.DATA
        case TransactionKind.DML | TransactionKind.XA:
            return ContentClass.DATA
        case TransactionKind.INCIDENT | TransactionKind.OTHER:
            return ContentClass.UNREAD


def _is_harmless(table: TableChange) -> bool:
    if table.schema == "mysql":
        return table.table in _SERVER_MAINTAINED or table.table.startswith(_SERVICE_PREFIX)
    return (table.schema, table.table) in _HEARTBEATS


def committed_at(transaction: Transaction) -> datetime:
    """Return when a transaction was first committed."""
    committed = moment(transaction.original_commit_timestamp or 0)
    if committed is not None and transaction.original_commit_timestamp:
        return committed
    return datetime.fromtimestamp(transaction.timestamp_seconds, UTC)


def summed(old: TableChange | None, new: TableChange) -> TableChange:
    """Return the sum of two changes of one table."""
    if old is None:
        return new
    return replace(
        old,
        rows_written=old.rows_written + new.rows_written,
        rows_updated=old.rows_updated + new.rows_updated,
        rows_deleted=old.rows_deleted + new.rows_deleted,
    )


def short(sql: str) -> str:
    """Return a statement on one line, without secrets."""
    line = " ".join(without_secrets(sql).split())
    if len(line) <= STATEMENT_CHARACTERS_MAX:
        return line
    return line[: STATEMENT_CHARACTERS_MAX - 1] + "…"
