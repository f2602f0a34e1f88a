"""What a trace says in words, and the commands for the next step: for the text and for JSON. Pure.

Every text is bounded: MySQL's own texts and statements quote data.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from topology.catalogue.findings import Verdict
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import ThreadState
from topology.tracing.causes import CauseKind, TraceCause, causes_of
from topology.tracing.stopped_threads import ReplicationThread, StoppedThread
from topology.tracing.trace_values import (
    ErrorLogExcerpt,
    GtidOnServer,
    TableNow,
    Trace,
    TracedFailure,
    TracedTransaction,
)

TEXT_CHARACTERS_MAX: Final = 1_000
_CONDITIONAL: Final = (
    "a statement with IF [NOT] EXISTS or OR REPLACE is logged even if it did nothing, so another"
    " one may have made or removed the object"
)
_LOCKS: Final = (1205, 1213)


def verdict_of_trace(trace: Trace) -> Verdict:
    """Return CRITICAL if a thread has an error, else UNKNOWN if something was not read, else OK."""
    if trace.failures or trace.others:
        return Verdict.CRITICAL
    return Verdict.UNKNOWN if any(each.unread for each in trace.servers) else Verdict.OK


def bounded(text: str) -> str:
    """Return a text of a server on one line, cut, and without passwords."""
    line = " ".join(without_secrets(text).split())
    if len(line) <= TEXT_CHARACTERS_MAX:
        return line
    return f"{line[: TEXT_CHARACTERS_MAX - 1]}…"


def thread_words(failure: StoppedThread) -> str:
    """Return what a thread does now: an error may belong to one that connects again."""
    channel = f" of channel {failure.channel.name!r}" if failure.channel.name else ""
    state = {
        ThreadState.STOPPED: "stopped",
        ThreadState.CONNECTING: "is not connected: it ended",
        ThreadState.RUNNING: "runs; it ended",
    }[failure.state]
    number = f"error {failure.errno}" if failure.errno else "an error without a number"
    return f"the {failure.thread.value}{channel} {state} with {number}"


def causes_in(traced: TracedFailure, trace: Trace) -> tuple[TraceCause, ...]:
    """Return the transactions that explain a failure."""
    return causes_of(traced, executed=trace.executed.get(traced.failure.replica))


def cause_words(cause: TraceCause, traced: TracedFailure) -> str:
    """Return how a transaction explains a failure, and why that is in doubt."""
    if cause.is_conditional:
        return f"{_explained(cause, traced)}; {_CONDITIONAL}"
    return _explained(cause, traced)


def _explained(cause: TraceCause, traced: TracedFailure) -> str:
    replica, source, done = traced.failure.replica, traced.source, cause.transaction
    gtid, what = done.gtid, _done(done)
    match cause.kind:
        case CauseKind.MISSING_CHANGE:
            return (
                f"{replica} has not executed {gtid}, which {source} logged before the failing"
                f" transaction: {what}"
            )
        case CauseKind.EMPTIED_CHANGE:
            return f"{replica} logged {gtid} as an empty transaction; on {source} it is: {what}"
        case CauseKind.OWN_CHANGE:
            return f"{replica} executed {gtid}, and {source} did not: {what}"
        case CauseKind.OWN_ROWS:
            return (
                f"{replica} executed {gtid}, which changes rows of the same table, and {source}"
                f" did not: {what}"
            )


def place_words(place: GtidOnServer) -> str:
    """Return what a server has of a GTID."""
    said = []
    if place.is_executed is None:
        said.append("not known: its sets were not read")
    elif place.is_purged:
        said.append("executed, and purged from its binary logs")
    elif place.is_executed:
        said.append(f"executed, in {place.place}" if place.place else "executed")
    else:
        said.append("not executed")
    if place.is_owned:
        said.append("a session or worker executes it now")
    said += [f"received by channel {each!r}" for each in place.received_on]
    said += [f"the applier of channel {each!r} failed on it" for each in place.failed_on]
    return "; ".join([*said, *filter(None, [place.why])])


def difference_words(source: TableNow, replica: TableNow) -> str:
    """Return how the definitions of one table differ now."""
    if not source.columns or not replica.columns:
        on, missing = (replica, source) if not source.columns else (source, replica)
        return f"{source.table} exists on {on.server} and not on {missing.server}"
    before, after = dict(source.columns), dict(replica.columns)
    said = [f"{name} {kind} only on {source.server}" for name, kind in _only(before, after)]
    said += [f"{name} {kind} only on {replica.server}" for name, kind in _only(after, before)]
    said += [
        f"{name} is {kind} on {source.server} and {after[name]} on {replica.server}"
        for name, kind in source.columns
        if name in after and after[name] != kind
    ]
    return f"{source.table}: {'; '.join(said) or 'the columns have another order'}"


def log_words(excerpt: ErrorLogExcerpt) -> str:
    """Return where lines of an error log come from, or why there are none."""
    file = f" ({excerpt.file})" if excerpt.file else ""
    if excerpt.why:
        read = f": read {_file_words(excerpt.file)}" if excerpt.file else ""
        return f"{excerpt.server}: not read: {excerpt.why}{read}"
    around = ", ".join(f"{each:%Y-%m-%d %H:%M:%S} UTC" for each in excerpt.moments)
    shown = f"{len(excerpt.lines)} of {excerpt.count}"
    gone = ""
    if excerpt.begins_at is not None and excerpt.moments:
        first = min(excerpt.moments)
        if excerpt.begins_at > first:
            gone = f"; older lines are only in {_file_words(excerpt.file)}"
    return (
        f"{excerpt.server}{file}: {shown} lines, {excerpt.window_seconds} s around {around}{gone}"
    )


def next_commands(trace: Trace, dsns: Mapping[str, str]) -> tuple[str, ...]:
    """Return complete commands for the next steps, without passwords."""
    found: list[str] = []
    for traced in trace.failures:
        found += _commands(traced, trace, dsns)
    if trace.transaction is not None and not trace.failures:
        found.append(_show(trace.transaction, dsns))
    if not found and trace.servers:
        found.append(_command("audit", "--discover", dsns[trace.servers[0].name]))
    return tuple(dict.fromkeys(found))


def _commands(traced: TracedFailure, trace: Trace, dsns: Mapping[str, str]) -> Iterator[str]:
    replica, source = dsns[traced.failure.replica], dsns.get(traced.source)
    for transaction in traced.transactions[:1]:
        if not transaction.is_relayed:
            yield _show(transaction, dsns)
    for cause in causes_in(traced, trace)[:1]:
        yield _show(cause.transaction, dsns)
    if traced.failure.errno in _LOCKS:
        yield _command("locks", replica)
    if source is None:
        yield _command("trace", replica, "DSN_OF_SOURCE")
        return
    if traced.failure.thread is ReplicationThread.RECEIVER:
        yield _command("handshake", source, replica)
    yield _command("pair", source, replica)
    yield _command("repair", "plan", "--pair", source, replica, "--out", "plan")


def _show(transaction: TracedTransaction, dsns: Mapping[str, str]) -> str:
    return _command("binlog", "show", str(transaction.gtid), dsns[transaction.server])


def _command(*words: str) -> str:
    return shlex.join(("gtid-audit", *words))


def _done(transaction: TracedTransaction) -> str:
    said = [*transaction.statements, *transaction.rows]
    said = said or [f"{each.schema}.{each.table}" for each in transaction.tables]
    at = transaction.happened_at
    when = f", {at:%Y-%m-%d %H:%M:%S} UTC" if at is not None else ""
    return f"{'; '.join(said[:2])} ({transaction.place}{when})"


def _only(these: Mapping[str, str], others: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in these.items() if name not in others]


def _file_words(file: str) -> str:
    if file == "stderr":
        return "what mysqld writes to its standard error (the journal of its service)"
    return file or "its error log"
