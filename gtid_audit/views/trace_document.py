"""The JSON document of `trace`: every part of the page, complete. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gtid_audit.output import without_credentials
from gtid_audit.views.trace_words import (
    bounded,
    cause_words,
    causes_in,
    difference_words,
    next_commands,
    verdict_of_trace,
)
from topology.documents.document_version import versioned
from topology.readings.worker import WorkerSnapshot
from topology.tracing.causes import TraceCause, differences_now, remaining_causes
from topology.tracing.error_classes import class_of, meaning_of
from topology.tracing.stopped_threads import StoppedThread
from topology.tracing.trace_values import (
    ErrorLogExcerpt,
    GtidOnServer,
    Trace,
    TracedFailure,
    TracedTransaction,
)


def trace_document(trace: Trace, dsns: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON document."""
    return versioned(
        {
            "verdict": verdict_of_trace(trace).value,
            "gtid": str(trace.wanted) or None,
            "servers": [
                {
                    "server": each.name,
                    "version": each.version or None,
                    "found_as_source": each.is_found,
                    "notes": list(each.notes),
                }
                for each in trace.servers
            ],
            "places": [_place(each) for each in trace.places],
            "transaction": _transaction(trace.transaction),
            "errors": [_failure(each, trace) for each in trace.failures],
            "other_errors": [_thread(each) for each in trace.others],
            "next": list(next_commands(trace, dsns)),
            "unknown": [
                {
                    "server": each.name,
                    "fact": fact.fact,
                    "reason": without_credentials(f"{fact.reason.value}: {fact.detail}"),
                }
                for each in trace.servers
                for fact in each.unread
            ],
        }
    )


def _failure(traced: TracedFailure, trace: Trace) -> dict[str, Any]:
    meaning = meaning_of(traced.failure)
    causes = causes_in(traced, trace)
    return {
        **_thread(traced.failure),
        "source": traced.source or None,
        "source_note": traced.source_note or None,
        "failed_at": _time(traced.failed_at),
        "workers": [_worker(each) for each in traced.failure.workers],
        "class": class_of(traced.failure).name.lower(),
        "title": meaning.title if meaning is not None else None,
        "code": meaning.code if meaning is not None else None,
        "meaning": meaning.meaning if meaning is not None else None,
        "advice": list(meaning.advice) if meaning is not None else [],
        "gtid_set": str(traced.failure.gtids),
        "gtid_set_may_be": str(traced.candidates),
        "transactions": [_transaction(each) for each in traced.transactions],
        "places": [_place(each) for each in traced.places],
        "tables": [str(each) for each in traced.tables],
        "causes": [_cause(each, traced) for each in causes],
        "remaining_causes": list(remaining_causes(traced, causes)),
        "definitions_now": [
            {
                "server": each.server,
                "table": str(each.table),
                "columns": [[name, kind] for name, kind in each.columns],
                "not_read": each.why or None,
            }
            for each in traced.tables_now
        ],
        "differences_now": [difference_words(*each) for each in differences_now(traced)],
        "changes": [
            {
                "server": search.server,
                "first_file": search.first_file or None,
                "is_complete": search.is_complete,
                "count": search.count,
                "transactions": [_transaction(each) for each in search.changes],
                "not_read": search.why or None,
            }
            for search in traced.searches
        ],
        "error_logs": [_error_log(each) for each in traced.error_logs],
    }


def _thread(failure: StoppedThread) -> dict[str, Any]:
    return {
        "replica": failure.replica,
        "channel": failure.channel.name,
        "thread": failure.thread.value,
        "state": failure.state.value,
        "errno": failure.errno,
        "text": without_credentials(bounded(failure.text)),
    }


def _worker(worker: WorkerSnapshot) -> dict[str, Any]:
    return {
        "worker": worker.worker_id,
        "errno": worker.errno,
        "text": bounded(worker.error),
        "gtid": str(worker.applying) or None,
    }


def _place(place: GtidOnServer) -> dict[str, Any]:
    return {
        "server": place.server,
        "gtid": str(place.gtid),
        "is_executed": place.is_executed,
        "is_purged": place.is_purged,
        "is_owned": place.is_owned,
        "received_on": list(place.received_on),
        "failed_on": list(place.failed_on),
        "place": place.place or None,
        "note": place.why or None,
    }


def _transaction(transaction: TracedTransaction | None) -> dict[str, Any] | None:
    if transaction is None:
        return None
    return {
        "gtid": str(transaction.gtid) or None,
        "server": transaction.server,
        "is_relay_log": transaction.is_relayed,
        "file": transaction.file,
        "start": transaction.start,
        "end": transaction.end,
        "committed_at": _time(transaction.committed_at),
        "logged_at": _time(transaction.logged_at),
        "server_id": transaction.server_id,
        "kind": transaction.kind,
        "error_code": transaction.error_code,
        "tables": [
            {
                "table": f"{each.schema}.{each.table}",
                "rows_written": each.rows_written,
                "rows_updated": each.rows_updated,
                "rows_deleted": each.rows_deleted,
            }
            for each in transaction.tables
        ],
        "statements": list(transaction.statements),
        "rows": list(transaction.rows),
        "not_read": transaction.why or None,
    }


def _cause(cause: TraceCause, traced: TracedFailure) -> dict[str, Any]:
    return {
        "cause": cause.kind.name.lower(),
        "grade": cause.grade.value,
        "text": cause_words(cause, traced),
        "transaction": _transaction(cause.transaction),
    }


def _error_log(excerpt: ErrorLogExcerpt) -> dict[str, Any]:
    return {
        "server": excerpt.server,
        "file": excerpt.file or None,
        "window_seconds": excerpt.window_seconds,
        "around": [_time(each) for each in excerpt.moments],
        "count": excerpt.count,
        "begins_at": _time(excerpt.begins_at),
        "not_read": excerpt.why or None,
        "lines": [
            {
                "at": _time(each.at),
                "priority": each.priority,
                "code": each.code,
                "subsystem": each.subsystem,
                "text": each.text,
            }
            for each in excerpt.lines
        ],
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
