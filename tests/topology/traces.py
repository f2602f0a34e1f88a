"""Traces in memory: an applier that failed, and what was read about it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from binlog.schema.table_history import TableKey
from gtid import GtidSet
from tests.snapshots import NOON, A, B, a_channel, a_server
from topology.readings.snapshot import ThreadState
from topology.readings.worker import WorkerSnapshot
from topology.tracing.stopped_threads import StoppedThread, stopped_threads
from topology.tracing.table_effects import effects_of
from topology.tracing.trace_values import (
    ChangeSearch,
    ExtraTransactions,
    TracedFailure,
    TracedTransaction,
)

TABLE = TableKey("shop", "t")
FAILED = GtidSet.parse(f"{A}:9")
MISSING_TABLE = "Error executing row event: 'Table 'shop.t' doesn't exist'"
TABLE_EXISTS = (
    "Error 'Table 't' already exists' on query. Default database: 'shop'."
    " Query: 'CREATE TABLE t (id INT)'"
)
DUPLICATE = (
    "Could not execute Write_rows event on table shop.t; Duplicate entry '2' for key 't.PRIMARY',"
    " Error_code: 1062"
)


def a_worker(number: int, errno: int, error: str, gtid: str = "") -> WorkerSnapshot:
    return WorkerSnapshot(number, GtidSet.parse(gtid), errno, error)


def a_failure(error: str, errno: int, **facts: Any) -> StoppedThread:
    """Return the failure of b's only worker on FAILED."""
    channel = a_channel(
        "a",
        A,
        **{
            "applier": ThreadState.STOPPED,
            "applier_errno": errno,
            "applier_error": "Coordinator stopped because there were error(s) in the worker(s).",
            "workers": (a_worker(1, errno, error, str(FAILED)),),
            **facts,
        },
    )
    [failure] = stopped_threads(a_server("b", B, f"{A}:1-8", channels=(channel,)))
    return failure


def a_transaction(
    server: str, gtid: str, sql: str = "", *, start: int = 200, **facts: Any
) -> TracedTransaction:
    """Return a transaction that one statement made a minute before noon; without one, rows."""
    at = NOON - timedelta(minutes=1)
    made = TracedTransaction(
        server=server,
        gtid=GtidSet.parse(gtid),
        file="binlog.000001",
        start=start,
        end=start + 100,
        committed_at=at,
        logged_at=at,
        server_id=1,
        kind="ddl" if sql else "dml",
        tables=(),
        statements=(sql,) if sql else (),
        rows=(),
        effects=effects_of(sql, schema="shop") if sql else (),
    )
    return replace(made, **facts)


def a_search(server: str, *changes: TracedTransaction, **facts: Any) -> ChangeSearch:
    """Return a search of everything that a server ever logged."""
    made = ChangeSearch(
        server,
        changes,
        first_file="binlog.000001",
        is_from_first_log=True,
        has_purged=False,
        count=len(changes),
    )
    return replace(made, **facts)


def own(*touching: TracedTransaction, **facts: Any) -> ExtraTransactions:
    """Return what only b executed."""
    gtids = GtidSet.union_of(each.gtid for each in touching)
    return replace(ExtraTransactions("b", "a", gtids, touching), **facts)


def a_trace(error: str = MISSING_TABLE, errno: int = 1146, **facts: Any) -> TracedFailure:
    """Return what was read about a failure of b at noon: two whole logs, and nothing in them."""
    made = TracedFailure(
        a_failure(error, errno),
        "a",
        failed_at=NOON,
        transactions=(a_transaction("a", str(FAILED), start=900),),
        tables=(TABLE,),
        searches=(a_search("a"), a_search("b")),
        extra=own(),
    )
    return replace(made, **facts)
