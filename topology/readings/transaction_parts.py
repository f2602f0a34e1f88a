"""Parts of a transaction's summary: its time, its row counts, its statements."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from binlog.log_times import moment
from binlog.transactions import TableChange, Transaction
from topology.readings.hidden_passwords import without_secrets

STATEMENT_CHARACTERS_MAX: Final = 120


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
