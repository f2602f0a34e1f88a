"""Shows how definitions of replicas differ from those of their sources: one block per object."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import on_one_line, printable
from gtid_audit.views.drift_document import diff_lines, drift_document
from gtid_audit.views.report_parts import QUIET, Unwrapped, line_of, rest_of
from gtid_audit.views.report_text import headline, labelled, moment_of, show
from gtid_audit.views.verdict_answers import DocumentAnswer
from topology.catalogue.findings import Grade, Severity, worst_verdict
from topology.definitions.drift_classes import DRIFT_CLASSES, words_of
from topology.definitions.drift_statements import NOT_LOGGED
from topology.definitions.object_drift import ClusterDrift, ObjectDrift, PairDrift
from topology.readings.logged_ddl import LoggedDdl

DIFFERENCES_SHOWN_MAX: Final = 20
DIFF_LINES_SHOWN_MAX: Final = 40
UNKNOWN_SHOWN_MAX: Final = 20
_STATEMENT_CHARACTERS_MAX: Final = 200
_STYLE: Final = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "cyan",
}
_NO_EVENT: Final = (
    "no DDL that only {} has executed: made with sql_log_bin = 0, by a restore, or where a filter"
    " or an error skipped DDL"
)


def show_drift(clusters: Sequence[ClusterDrift]) -> None:
    """Show every difference, the most severe first in each pair."""
    verdict = worst_verdict(each.verdict for each in clusters)
    parts: list[RenderableType] = [headline(verdict, drift_headline(clusters))]
    for cluster in clusters:
        for pair in cluster.pairs:
            parts += [Text(), line_of(_pair_line(cluster, pair, many=len(clusters) > 1))]
            shown = pair.differences[:DIFFERENCES_SHOWN_MAX]
            for difference in shown:
                parts += _difference_parts(difference, pair)
            parts += rest_of(len(pair.differences), DIFFERENCES_SHOWN_MAX, "differences")
    unknown = [(each.cluster, *fact) for each in clusters for fact in each.unknown]
    if unknown:
        parts += [Text(), Text("Not read", style="bold")]
        parts.append(
            labelled(
                (server, line_of(f"{fact.fact}: {fact.reason.value}: {fact.detail}"))
                for _, server, fact in unknown[:UNKNOWN_SHOWN_MAX]
            )
        )
        parts += rest_of(len(unknown), UNKNOWN_SHOWN_MAX, "facts")
    show(*parts)


def _pair_line(cluster: ClusterDrift, pair: PairDrift, *, many: bool) -> str:
    named = f"{cluster.cluster}: " if many else ""
    arrow = f"{pair.source} → {pair.replica}"
    if not pair.facts.has_channel:
        arrow = f"{pair.source} and {pair.replica} (no channel connects them)"
    count = len(pair.differences)
    said = f"{counted(pair.compared_count, 'object')} compared"
    differ = f", {count:,} {'differs' if count == 1 else 'differ'}" if count else ", all alike"
    if not pair.compared_count:
        differ = ""  # nothing was, or could be
    way = pair.facts.way.gtids.gtid_count
    on_way = f"; {counted(way, 'transaction')} on the way" if way else ""
    return f"{named}{arrow}: {said}{differ}{on_way}"


def drift_headline(clusters: Sequence[ClusterDrift]) -> str:
    """Return what stands after the verdict."""
    pairs = [pair for each in clusters for pair in each.pairs]
    differing = sum(len(pair.differences) for pair in pairs)
    servers = sum(len(each.servers) for each in clusters)
    said = f"{counted(differing, 'object')} {'differs' if differing == 1 else 'differ'}"
    return (
        f"{counted(servers, 'server')} · {counted(len(pairs), 'pair')} ·"
        f" {said if differing else 'no difference found'}"
    )


def drift_answer(clusters: Sequence[ClusterDrift]) -> DocumentAnswer:
    """Return the answer of `schema drift`, in any form."""
    pairs = [pair for each in clusters for pair in each.pairs]
    return DocumentAnswer(
        worst_verdict(each.verdict for each in clusters),
        drift_headline(clusters),
        lambda: drift_document(clusters),
        lambda: show_drift(clusters),
        {
            "differences": sum(len(pair.differences) for pair in pairs),
            "unknown": sum(len(each.unknown) for each in clusters),
            "servers": sum(len(each.servers) for each in clusters),
        },
    )


def _difference_parts(difference: ObjectDrift, pair: PairDrift) -> Iterator[RenderableType]:
    title = Text(on_one_line(difference.key.label), style=_STYLE[difference.severity])
    classes = ", ".join(difference.class_words)
    title.append(f"  {classes} · {difference.severity.value} · {difference.grade.value}", "default")
    yield Text()
    yield title
    lines = diff_lines(difference, source=pair.source, replica=pair.replica)
    if difference.changes and lines:
        yield Padding(_diff(lines), (0, 0, 0, 2))
    yield labelled(_rows(difference, pair))
    if difference.statements:
        yield from map(Unwrapped, (NOT_LOGGED, *difference.statements))


def _diff(lines: Sequence[str]) -> Text:
    text = Text()
    for line in lines[:DIFF_LINES_SHOWN_MAX]:
        style = "red" if line.startswith("-") else "green" if line.startswith("+") else QUIET
        text.append(f"{printable(line)}\n", style)
    if len(lines) > DIFF_LINES_SHOWN_MAX:
        rest = len(lines) - DIFF_LINES_SHOWN_MAX
        text.append(f"… and {counted(rest, 'more line')}; --json has all\n", QUIET)
    text.rstrip()
    return text


def _rows(difference: ObjectDrift, pair: PairDrift) -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = []
    if difference.replica_key is not None:
        rows.append(("name", line_of(f"{difference.replica_key} on {pair.replica}")))
    if difference.contained:
        rows.append(("holds", line_of(counted(difference.contained, "object"))))
    rows.append(("rows", line_of(difference.rows_text)))
    if difference.errors:
        named = ", ".join(map(str, difference.errors))
        rows.append(("errors", line_of(f"{named} may follow (gtid-audit explain NUMBER)")))
    rows += [("unless", line_of(cause)) for cause in difference.causes]
    rows += [("on its way", line_of(_ddl(each))) for each in difference.pending]
    if difference.made_by:
        rows += [("made by", line_of(_ddl(each))) for each in difference.made_by]
    elif difference.grade is Grade.PROVED:
        rows.append(("made by", line_of(_NO_EVENT.format(pair.replica))))
    for each in difference.classes:
        row, words = DRIFT_CLASSES[each], words_of(each, difference.key.kind)
        said = f"{words}: {row.repairable.value}. {_first_up(row.advice)}"
        rows.append(("do", line_of(said)))
    if difference.statements:
        rows.append(("SQL", line_of(f"on {pair.replica}, as you decide:")))
    return rows


def _ddl(ddl: LoggedDdl) -> str:
    when = f", {moment_of(ddl.committed_at)}" if ddl.committed_at else ""
    text = " ".join(ddl.statement.split()) or "its content could not be read"
    cut = text[:_STATEMENT_CHARACTERS_MAX]
    return f"{ddl.gtid}{when}: {cut}{'…' if len(text) > len(cut) else ''}"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]
