"""Shows who could replicate from whom: one table, then what is behind each cell that is not clean.

1. A row is what connects, a column the source that answers.
2. Columns and explanations beyond the limits are counted; `--json` has all.
3. This module evaluates nothing.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.content_text import pairs_text
from gtid_audit.views.handshakes import Handshakes
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import headline, labelled, moment_of, show
from topology.facts.missing_logs import STAYS
from topology.facts.source_answer import FailedCheck, Outcome, SourceAnswer
from topology.rules.answering_sources import NOT_EVALUATED

SOURCES_SHOWN_MAX: Final = 8
EXPLAINED_MAX: Final = 20
_NUMBER_COLUMNS: Final = 4

_STYLE: Final = {
    Outcome.SERVED: "green",
    Outcome.GROUP: "green",
    Outcome.DIVERGED: "bold yellow",
    Outcome.INCOMPLETE: "bold yellow",
    Outcome.REFUSED: "bold red",
    Outcome.UNKNOWN: "bold magenta",
}
_REFUSED: Final = {
    FailedCheck.VERSIONS: "versions",
    FailedCheck.NO_SERVER_ID: "server_id 0",
    FailedCheck.SAME_SERVER_ID: "same server_id",
    FailedCheck.SOURCE_MODE: "gtid_mode",
    FailedCheck.SAME_SERVER_UUID: "same UUID",
    FailedCheck.NO_BINARY_LOG: "no binary log",
    FailedCheck.MORE_GTIDS: "1236 has more",
    FailedCheck.PURGED: "1236 purged",
    FailedCheck.GROUP_NAME: "3092 group name",
    FailedCheck.NOT_IN_GROUP: "3092 has more",
}


def show_handshakes(shown: Handshakes) -> None:
    """Show the verdict, the table, the explanations, and the steps of a promotion."""
    head = headline(shown.verdict, handshake_headline(shown))
    parts: list[RenderableType] = [head, Text(), _table(shown)]
    parts += rest_of(len(_sources(shown)), SOURCES_SHOWN_MAX, "sources")
    for server, reason in shown.matrix.unread:
        parts.append(line_of(f"  {server} was not read: {reason}"))
    for each in shown.matrix.partial:
        parts.append(line_of(f"  {each.server} was read in part: {each.detail}"))
    answers = shown.matrix.answers
    if shown.promotion is not None:
        answers = shown.matrix.of_source(shown.promotion.candidate)
    explained = _explained(answers)
    for answer in explained[:EXPLAINED_MAX]:
        title = f"{answer.replica} ◀── {answer.source}"
        if answer.joins:
            title = f"{answer.joins} ◀── group {answer.group}"
        parts += [Text(), Text(printable(title), style="bold")]
        parts.append(labelled(_rows(answer)))
    parts += rest_of(len(explained), EXPLAINED_MAX, "answers")
    parts += _promotion(shown)
    if shown.offered is None:
        parts += [Text(), Text(printable(_compared(shown.matrix.compared)), style=QUIET)]
    show(*parts)


def _compared(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return whether contents were compared: equal sets prove nothing about rows."""
    what = f"compared in part, between {pairs_text(pairs)}" if pairs else "not compared"
    return (
        f"Content {what}. Equal GTID sets may contain different transactions. --content compares"
        " more."
    )


def handshake_headline(shown: Handshakes) -> str:
    """Return what stands after the verdict."""
    about = [shown.matrix.cluster, counted(len(shown.matrix.servers), "server")]
    if shown.promotion is not None:
        about.append(f"promote {shown.promotion.candidate}")
    if shown.offered is not None:
        about.append(f"offered: {counted(shown.offered.gtid_count, 'GTID')}")
    if shown.read_at is not None:
        about.append(f"read {moment_of(shown.read_at)}")
    return " · ".join(about)


def handshake_summary(shown: Handshakes) -> str:
    """Return the headline with the number of answers of each kind, for one line."""
    counts = outcome_counts(shown)
    said = [f"{count:,} {name}" for name, count in counts.items() if count]
    return " · ".join([handshake_headline(shown), *said])


def outcome_counts(shown: Handshakes) -> dict[str, int]:
    """Return the number of answers of each kind, and of servers not read, or in part."""
    outcomes = [each.outcome for each in shown.matrix.answers]
    counts = {each.value: outcomes.count(each) for each in Outcome}
    return counts | {"unread": len(shown.matrix.unread) + len(shown.matrix.partial)}


def _table(shown: Handshakes) -> RenderableType:
    matrix = shown.matrix
    if shown.offered is not None:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
        table.add_column("source")
        table.add_column("its answer")
        table.add_column("can send it until at least")
        for answer in matrix.answers:
            table.add_row(Text(printable(answer.source)), _cell(answer), _until(answer))
        return Padding(table, (0, 0, 0, 2))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=QUIET)
    table.add_column("from")
    sources = _sources(shown)[:SOURCES_SHOWN_MAX]
    for source in sources:
        table.add_column(Text(printable(source)))
    cells = {(each.replica, each.source): _cell(each) for each in matrix.answers}
    for replica in matrix.servers:
        row = [cells.get((replica, source), Text("-", style=QUIET)) for source in sources]
        if [replica] != list(sources):  # a candidate alone has no answer to itself
            table.add_row(Text(printable(replica)), *row)
    return Padding(table, (0, 0, 0, 2))


def _sources(shown: Handshakes) -> tuple[str, ...]:
    """Return the columns of the table; none for a set, which has one row for each source."""
    if shown.offered is not None:
        return ()
    return shown.matrix.servers if shown.promotion is None else (shown.promotion.candidate,)


def _cell(answer: SourceAnswer) -> Text:
    style = _STYLE[answer.outcome]
    if answer.group and answer.refusal is FailedCheck.PURGED:
        return Text("needs a clone", style=style)
    if answer.refusal is not None:
        return Text(_REFUSED[answer.refusal], style=style)
    if answer.outcome is Outcome.UNKNOWN:
        return Text("unknown", style=style)
    if answer.outcome is Outcome.DIVERGED:
        hidden = answer.gtid_set | answer.unlike
        return Text(f"hides {hidden.gtid_count:,}", style=style)
    if answer.outcome is Outcome.INCOMPLETE:
        return Text(f"loses {answer.dropped.gtid_count:,}", style=style)
    if answer.outcome is Outcome.GROUP:
        return Text("group", style=style)
    count = answer.fetched.gtid_count
    word = "yes"
    if answer.joins:
        word = "may join" if answer.joins == answer.replica else "once joined"
    return Text(f"{word}, +{count:,}" if count else word, style=style)


def _until(answer: SourceAnswer) -> Text:
    """Return when the first log that is needed expires, and which one that is."""
    if answer.outcome not in (Outcome.SERVED, Outcome.DIVERGED):
        return Text("-", style=QUIET)
    if answer.is_deadline_unread:
        return Text("unknown", style=_STYLE[Outcome.UNKNOWN])
    if answer.deadline is None:
        return Text("no setting limits it", style=QUIET)
    until = f"{moment_of(answer.deadline.until)}  ({answer.deadline.reach.file})"
    return Text(printable(until))


def _explained(answers: Iterable[SourceAnswer]) -> list[SourceAnswer]:
    """Return the answers that need words: of what depends on one join, or one primary, the first.

    The primary of a group has the answer of its secondaries.
    """
    found: dict[tuple[str, str], SourceAnswer] = {}
    for each in answers:
        is_of_primary = each.through and not each.group
        if (each.attaches and not each.doubts) or is_of_primary:
            continue
        is_join = each.joins and not each.unlike
        key = ("", each.joins) if is_join else (each.replica, each.source)
        found.setdefault(key, each)
    return list(found.values())


def _rows(answer: SourceAnswer) -> Iterator[tuple[str, RenderableType]]:
    source, replica = answer.source, answer.replica
    if answer.outcome is Outcome.UNKNOWN:
        is_final = answer.unread.endswith((NOT_EVALUATED, STAYS))
        again = "" if is_final else " Run it again, or audit the servers."
        yield "what", line_of(f"Not known: {answer.unread}.{again}")
    if answer.group:
        yield from _group_rows(answer)
    elif answer.refusal is FailedCheck.PURGED:
        yield "what", line_of(f"{source} has purged transactions that {replica} needs.")
    elif answer.refusal is FailedCheck.MORE_GTIDS:
        yield (
            "what",
            line_of(
                f"{replica} has transactions of {source} that {source} does not have any more."
            ),
        )
    elif answer.refusal is not None:
        yield "what", line_of(_WHY[answer.refusal].format(source=source, replica=replica))
    elif answer.gtid_set and answer.received == answer.gtid_set:
        yield (
            "what",
            line_of(
                f"{source} would accept the connection. {replica} has transactions that {source}"
                " has received and not executed, and nothing shows that it applies them. Start its"
                " applier, or look at why it waits, and run this again."
            ),
        )
    elif answer.gtid_set:
        yield (
            "what",
            line_of(
                f"{source} would accept the connection. {replica} has transactions that {source}"
                " does not have and will not receive: no server reports that."
            ),
        )
    if answer.gtid_set:
        yield "set", Text(answer.gtid_set.shortened())
    if answer.unlike:
        text = (
            f"another content on both: {answer.unlike.shortened()}. An audit compares only some"
            " transactions, with --content also the newest of each UUID: there may be more."
        )
        yield "E4", line_of(text)
    if answer.dropped and not answer.group:
        yield from _dropped_rows(answer)
    if answer.text is not None:
        yield "error", line_of(f"{answer.text.errno}: {answer.text.text}")
        if answer.text.seen_on is None:
            yield "", line_of("The words of these versions may differ.")
    for doubt in answer.doubts:
        yield "but", line_of(f"{doubt}.")


def _dropped_rows(answer: SourceAnswer) -> Iterator[tuple[str, RenderableType]]:
    """Yield what the receiver would drop, and why: for each cause that the logs leave, one row."""
    replica = answer.replica
    own = answer.dropped - answer.same_id - answer.undecided
    if own:
        text = (
            f"{replica} committed {own.shortened()} itself and lost them. Its receiver drops them:"
            " they do not return."
        )
        yield "lost", line_of(text)
    if answer.undecided:
        text = (
            f"{replica} does not have {answer.undecided.shortened()} of its own UUID, and no log"
            f" that was read shows their server_id. If {replica} committed them and lost them, its"
            " receiver drops them: they do not return. If a session on another server set gtid_next"
            " to them (H7), they arrive."
        )
        yield "lost", line_of(text)
    if answer.same_id:
        text = (
            f"{answer.same_id.shortened()} carry the server_id of {replica}, and another server"
            " committed them: its receiver drops them, without an error. Give it another"
            " server_id first."
        )
        yield "C2", line_of(text)


def _group_rows(answer: SourceAnswer) -> Iterator[tuple[str, RenderableType]]:
    """Yield what a group's answer means: about the server that would join, or about two members."""
    joins, donor = answer.joins, answer.through
    if answer.refusal is FailedCheck.NOT_IN_GROUP:
        text = (
            f"{joins} has transactions that no member has or receives: the group refuses to let it"
            " join. Read their content first: `repair plan` shows how."
        )
        yield "what", line_of(text)
    elif answer.refusal is FailedCheck.GROUP_NAME:
        yield (
            "what",
            line_of(f"The server_uuid of {joins} is the name of the group: it cannot join."),
        )
    elif answer.refusal is FailedCheck.PURGED:
        text = (
            f"{joins} needs transactions that each member has purged, {donor} the least: it needs a"
            " clone of a member before it joins."
        )
        yield "what", line_of(text)
    elif joins:
        yield "what", line_of(f"{joins} can join its group: START GROUP_REPLICATION.")
    elif answer.gtid_set or answer.dropped:
        text = (
            "Both are ONLINE, and one of them had these when it joined (E1): the group does not"
            " deliver them. Compare the rows."
        )
        yield "what", line_of(text)
    if answer.dropped:
        yield "set", Text(answer.dropped.shortened())


_WHY: Final = {
    FailedCheck.VERSIONS: (
        "The versions of {source} and {replica} cannot connect to each other (errors 2026 and"
        " 2059)."
    ),
    FailedCheck.NO_SERVER_ID: "One of {source} and {replica} has server_id 0.",
    FailedCheck.SAME_SERVER_ID: (
        "{source} and {replica} have the same server_id. Only replicate-same-server-id on {replica}"
        " permits that."
    ),
    FailedCheck.SOURCE_MODE: "gtid_mode is not ON on {source}: it refuses auto-position.",
    FailedCheck.SAME_SERVER_UUID: "{source} and {replica} have the same server_uuid.",
    FailedCheck.NO_BINARY_LOG: "{source} has no open binary log.",
}


def _promotion(shown: Handshakes) -> list[RenderableType]:
    promotion = shown.promotion
    if promotion is None:
        return []
    parts: list[RenderableType] = [Text()]
    if promotion.best is not None:
        parts += [line_of(f"{promotion.best} would be the better candidate."), Text()]
    parts.append(Text("in this order", style="bold"))
    for number, step in enumerate(shown.steps, start=1):
        where = f"{step.server}: " if step.server else ""
        parts.append(_numbered(number, f"{where}{step.what}"))
        # Never broken: a statement is copied as it stands.
        parts += [
            Text(f"       {printable(each)}", style=QUIET, overflow="ignore")
            for each in step.statements
        ]
    return parts


def _numbered(number: int, text: str) -> RenderableType:
    """Return a step whose further lines stand below its text, not below its number."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=_NUMBER_COLUMNS, justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(f"{number}.", line_of(text))
    return grid
