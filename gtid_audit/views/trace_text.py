"""Shows a trace on one page: the error, the transaction, where it is, what explains it, log lines.

It is short: long lists are counted, and `--json` has them complete. Nothing is decided here.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import without_credentials
from gtid_audit.views.next_steps import StepLine
from gtid_audit.views.report_parts import QUIET, line_of
from gtid_audit.views.report_text import headline, labelled, show
from gtid_audit.views.trace_words import (
    bounded,
    cause_words,
    causes_in,
    difference_words,
    log_words,
    next_commands,
    place_words,
    thread_words,
    verdict_of_trace,
)
from topology.catalogue.next_step_table import NextStep
from topology.tracing.causes import differences_now, remaining_causes
from topology.tracing.error_classes import meaning_of
from topology.tracing.trace_values import (
    ChangeSearch,
    ErrorLogExcerpt,
    ErrorLogLine,
    Trace,
    TracedFailure,
    TracedTransaction,
)

WORKERS_SHOWN_MAX: Final = 3
CAUSES_SHOWN_MAX: Final = 3
CHANGES_SHOWN_MAX: Final = 3
LINES_SHOWN_MAX: Final = 5
LINE_CHARACTERS_MAX: Final = 300
TABLES_SHOWN_MAX: Final = 5

Row: TypeAlias = tuple[str, RenderableType]


def show_trace(trace: Trace, dsns: Mapping[str, str]) -> None:
    """Show the page."""
    parts: list[RenderableType] = [headline(verdict_of_trace(trace), trace_headline(trace))]
    if trace.wanted:
        parts += [Text(), line_of(str(trace.wanted)), labelled(_wanted(trace))]
    for traced in trace.failures:
        title = f"{traced.failure.replica}: {thread_words(traced.failure)}"
        parts += [Text(), Rule(line_of(title), align="left", characters="─", style=QUIET)]
        parts.append(labelled(_rows(traced, trace)))
    notes = [f"{each.name}: {note}" for each in trace.servers for note in each.notes]
    notes += [f"{each.replica}: {thread_words(each)}" for each in trace.others]
    if notes:
        parts += [
            Text(),
            labelled([("also" if not at else "", line_of(note)) for at, note in enumerate(notes)]),
        ]
    unread = [
        line_of(
            without_credentials(f"  {each.name}: {fact.fact}: {fact.reason.value}: {fact.detail}")
        )
        for each in trace.servers
        for fact in each.unread
    ]
    if unread:
        parts += [
            Text(),
            Text("Not read, so this part of the page is not known:", style="bold magenta"),
        ]
        parts += unread
    commands = next_commands(trace, dsns)
    if commands:
        parts += [Text(), Text("Next:", style="bold")]
        parts += [StepLine("  ", NextStep(each)) for each in commands]
    show(*parts)


def trace_headline(trace: Trace) -> str:
    """Return what stands after the verdict."""
    names = ", ".join(each.name for each in trace.servers if not each.is_found)
    if trace.failures:
        count = counted(len(trace.failures) + len(trace.others), "thread")
        return f"{names} · {count} with an error"
    if trace.others:
        others = counted(len(trace.others), "thread")
        return f"{names} · no applier failed on this GTID; {others} with another error"
    unread = any(each.unread for each in trace.servers)
    if unread:
        return f"{names} · no error was found, and not everything could be read"
    return f"nothing is stopped with an error on {names}"


def _wanted(trace: Trace) -> Iterator[Row]:
    for number, place in enumerate(trace.places):
        yield "" if number else "where", line_of(f"{place.server}: {place_words(place)}")
    if trace.transaction is not None and not trace.failures:
        yield from _transaction("content", trace.transaction)


def _rows(traced: TracedFailure, trace: Trace) -> Iterator[Row]:
    failure = traced.failure
    yield "error", line_of(_error(traced))
    yield "", line_of(without_credentials(bounded(failure.cause_text)))
    for number, worker in enumerate(failure.workers[:WORKERS_SHOWN_MAX]):
        gtid = f" on {worker.applying}" if worker.applying else ""
        said = f"worker {worker.worker_id}: error {worker.errno}{gtid}"
        if number:
            said = f"{said}: {bounded(worker.error)}"
        yield "" if number else "workers", line_of(said)
    yield from _rest(len(failure.workers), WORKERS_SHOWN_MAX, "worker")
    meaning = meaning_of(failure)
    if meaning is None:
        yield "means", line_of("this text is not known to gtid-audit; the log lines below may help")
    else:
        yield "means", line_of(f"{meaning.title}. {meaning.meaning}")
        for number, advice in enumerate(meaning.advice):
            yield "" if number else "do", line_of(advice)
    source = traced.source or "not found"
    yield "source", line_of(f"{source}{': ' if traced.source_note else ''}{traced.source_note}")
    yield from _event(traced)
    yield from _explained(traced, trace)
    for number, excerpt in enumerate(traced.error_logs):
        yield "" if number else "log", line_of(log_words(excerpt))
        yield from _lines(excerpt)


def _error(traced: TracedFailure) -> str:
    failure, channel = traced.failure, traced.failure.channel
    at = traced.failed_at
    when = f"{_at(at)} UTC" if at is not None else failure.failed_at or "time not known"
    return (
        f"{failure.errno or 'no number'} at {when}; receiver {channel.receiver.value}, applier"
        f" {channel.applier.value}"
    )


def _event(traced: TracedFailure) -> Iterator[Row]:
    for transaction in traced.transactions:
        yield from _transaction("event", transaction)
    if not traced.transactions and traced.failure.gtids:
        text = f"{traced.failure.gtids}: no server that was read has it in its binary logs"
        yield "event", line_of(text)
    if traced.candidates:
        text = f"one of these, or a later one: {traced.candidates.shortened()}"
        yield "event", line_of(f"{text} (the position of a parallel applier is a low-water mark)")
    relay = traced.failure.channel.relay_applied_to
    for number, place in enumerate(traced.places):
        yield "" if number else "where", line_of(f"{place.server}: {place_words(place)}")
    if relay is not None and traced.places:
        yield "", line_of(f"{traced.failure.replica}: relay log read to {relay}")


def _transaction(label: str, transaction: TracedTransaction) -> Iterator[Row]:
    at = f"committed {_at(transaction.committed_at)} UTC" if transaction.committed_at else ""
    size = "" if transaction.is_relayed else f" ({transaction.size_bytes:,} bytes)"
    facts = [
        f"{transaction.server} {transaction.place}{size}",
        at,
        f"server_id {transaction.server_id}",
        transaction.kind,
    ]
    if transaction.error_code:
        facts.append(f"logged with error {transaction.error_code}")
    name = str(transaction.gtid) or "anonymous"
    yield label, line_of(" · ".join((name, *filter(None, facts))))
    for each in transaction.tables[:TABLES_SHOWN_MAX]:
        counts = (
            (each.rows_written, "inserted"),
            (each.rows_updated, "updated"),
            (each.rows_deleted, "deleted"),
        )
        done = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        yield "", line_of(f"{each.schema}.{each.table}: {done}")
    yield from _rest(len(transaction.tables), TABLES_SHOWN_MAX, "table")
    for text in (*transaction.statements, *transaction.rows):
        yield "", line_of(text)
    if transaction.why:
        yield "", line_of(transaction.why)


def _explained(traced: TracedFailure, trace: Trace) -> Iterator[Row]:
    causes = causes_in(traced, trace)
    for number, cause in enumerate(causes[:CAUSES_SHOWN_MAX]):
        text = f"{cause.grade.value}: {cause_words(cause, traced)}"
        yield "" if number else "cause", line_of(text)
    yield from _rest(len(causes), CAUSES_SHOWN_MAX, "cause")
    remaining = remaining_causes(traced, causes)
    if remaining and not causes:
        yield "cause", line_of("no transaction that was read explains it")
    for number, text in enumerate(remaining):
        yield "" if number else "or", line_of(text)
    for search in traced.searches:
        yield from _search(search)
    for number, (source, replica) in enumerate(differences_now(traced)):
        yield "" if number else "now", line_of(difference_words(source, replica))


def _search(search: ChangeSearch) -> Iterator[Row]:
    if search.why and not search.changes:
        return  # remaining causes, and the unread facts, have the reason
    where = f"{search.server} from {search.first_file} on"
    changes = search.changes[-CHANGES_SHOWN_MAX:]
    yield "DDL", line_of(f"{where}: {counted(search.count, 'change')} of the table")
    for each in changes:
        done = f"{each.gtid} {_at(each.happened_at)} UTC: {'; '.join(each.statements)}"
        yield "", line_of(f"  {done}")


def _lines(excerpt: ErrorLogExcerpt) -> Iterator[Row]:
    """Show the lines that matter most: errors of replication, then the nearest ones."""
    near = sorted(excerpt.lines, key=lambda line: _rank(excerpt, line))[:LINES_SHOWN_MAX]
    for each in sorted(near, key=lambda line: line.at):
        text = each.text
        if len(text) > LINE_CHARACTERS_MAX:
            text = f"{text[: LINE_CHARACTERS_MAX - 1]}…"
        said = without_credentials(f"{each.at:%H:%M:%S.%f} {each.priority} {each.code}: {text}")
        yield "", Text(line_of(said).plain, style=QUIET)
    yield from _rest(excerpt.count, len(near), "line")


def _rank(excerpt: ErrorLogExcerpt, line: ErrorLogLine) -> tuple[bool, bool, float]:
    distance = min(abs((line.at - each).total_seconds()) for each in excerpt.moments)
    is_error = line.priority == "Error"
    return not (is_error and line.subsystem == "Repl"), not is_error, distance


def _rest(count: int, shown: int, noun: str) -> Iterator[Row]:
    if count > shown:
        yield "", Text(f"… and {counted(count - shown, f'more {noun}')}; --json", style=QUIET)


def _at(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at is not None else "at an unknown time"
