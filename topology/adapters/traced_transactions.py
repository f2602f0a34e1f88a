"""Turns transactions of a log into the values of a trace, with bounded texts without passwords."""

from dataclasses import replace
from typing import Final

from binlog.errors import BinlogError
from binlog.log_times import MICROSECONDS, moment
from binlog.scan import EventGroup
from binlog.transactions import Transaction
from gtid import GtidSet
from topology.adapters.transaction_summary import first_rows, shortened_statement
from topology.tracing.table_effects import TableEffect, effects_of
from topology.tracing.trace_values import TracedTransaction

ROWS_MAX: Final = 5  # of a transaction
STATEMENTS_MAX: Final = 5


def traced_group(server: str, group: EventGroup) -> TracedTransaction:
    """Return a transaction with its first rows."""
    traced = traced_of(server, group.transaction)
    try:
        rows = first_rows(group, rows_max=ROWS_MAX)
    except BinlogError as error:
        return replace(traced, why=f"rows not read: {error}")
    return replace(traced, rows=rows)


def traced_of(server: str, transaction: Transaction) -> TracedTransaction:
    """Return a transaction as a server logged it, with bounded texts."""
    committed, logged = (
        transaction.original_commit_timestamp,
        transaction.immediate_commit_timestamp,
    )
    return TracedTransaction(
        server=server,
        gtid=GtidSet() if transaction.gtid is None else GtidSet.of(transaction.gtid),
        file=transaction.file,
        start=transaction.start,
        end=transaction.end,
        committed_at=moment(committed or transaction.timestamp_seconds * MICROSECONDS),
        logged_at=moment(logged) if logged else None,
        server_id=transaction.server_id,
        kind=transaction.kind.value,
        tables=transaction.tables,
        statements=tuple(
            shortened_statement(each.sql) for each in transaction.statements[:STATEMENTS_MAX]
        ),
        rows=(),
        effects=effects_in(transaction),
        error_code=transaction.error_code,
        why="" if transaction.is_complete else "its end is missing",
    )


def effects_in(transaction: Transaction) -> tuple[TableEffect, ...]:
    """Return what the statements of a transaction do to tables."""
    return tuple(
        effect
        for each in transaction.statements
        for effect in effects_of(each.sql, schema=each.schema)
    )
