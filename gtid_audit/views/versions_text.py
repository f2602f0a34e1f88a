"""Shows the schema version of each server: what it has, what it applied, what it received."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.next_steps import HEAD, PROGRAM, StepLine
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import headline, labelled, moment_of, show
from gtid_audit.views.verdict_answers import DocumentAnswer
from gtid_audit.views.versions_document import counts_of, versions_document
from topology.catalogue.findings import worst_verdict
from topology.catalogue.next_step_table import NextStep
from topology.definitions.schema_versions import ClusterVersions, ServerSchemaVersion
from topology.readings.logged_ddl import LoggedDdl

_SHOWN_MAX: Final = 5
_UNKNOWN_SHOWN_MAX: Final = 20
_STATEMENT_CHARACTERS_MAX: Final = 120
_NOT_READ: Final = "?"


def show_versions(
    clusters: Sequence[tuple[str, ClusterVersions]], operands: Sequence[str] = ()
) -> None:
    """Show the servers of each cluster, and what they are apart by.

    `operands` are the words of the command line that select the same servers and schemas.
    """
    verdict = worst_verdict(each.verdict for _, each in clusters)
    differ = any(each.digests_differ for _, each in clusters)
    parts: list[RenderableType] = [headline(verdict, versions_headline(clusters))]
    for name, cluster in clusters:
        parts += [Text()]
        if len(clusters) > 1:
            parts.append(line_of(name))
        parts.append(_table(cluster))
        for server in cluster.servers:
            parts += _details(server, cluster)
    parts += _unknown(clusters)
    if differ and operands:
        drift = NextStep(shlex.join((PROGRAM, "schema", "drift", *operands)))
        parts += [Text(), StepLine(HEAD, drift)]
    show(*parts)


def versions_headline(clusters: Sequence[tuple[str, ClusterVersions]]) -> str:
    """Return what stands after the verdict."""
    servers = sum(len(each.servers) for _, each in clusters)
    differ = any(each.digests_differ for _, each in clusters)
    said = "definitions differ" if differ else "no difference of definitions"
    return f"{counted(servers, 'server')} · {said}"


def versions_answer(
    clusters: Sequence[tuple[str, ClusterVersions]], operands: Sequence[str] = ()
) -> DocumentAnswer:
    """Return the answer of `schema versions`, in any form. `operands` are as in show_versions."""
    return DocumentAnswer(
        worst_verdict(each.verdict for _, each in clusters),
        versions_headline(clusters),
        lambda: versions_document(clusters),
        lambda: show_versions(clusters, operands),
        {
            "differing_clusters": sum(each.digests_differ for _, each in clusters),
            "unknown": sum(len(each.unknown) for _, each in clusters),
            "servers": sum(len(each.servers) for _, each in clusters),
        },
    )


def _table(cluster: ClusterVersions) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style=QUIET)
    table.add_column("server", no_wrap=True)
    names = ("schemas", "tables", "views", "routines", "triggers", "events", "columns")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("digest")
    table.add_column("DDL behind", justify="right")
    usual = _usual_digest(cluster)
    for server in cluster.servers:
        counts: dict[str, int | None] = {
            **counts_of(server),
            "columns": server.facts.objects.column_count if server.facts.objects else None,
        }
        digest = server.facts.digest or _NOT_READ
        stands_out = digest != usual
        behind = f"{len(server.missing):,}" + ("+" if cluster.why_incomplete else "")
        table.add_row(
            printable(server.facts.server),
            *(_NOT_READ if counts[name] is None else f"{counts[name]:,}" for name in names),
            Text(digest, style="bold yellow" if stands_out else ""),
            behind,
        )
    return table


def _usual_digest(cluster: ClusterVersions) -> str:
    """Return the digest that most servers have; of the first of them if several are as frequent."""
    found = [each.facts.digest for each in cluster.servers if each.facts.digest]
    return max(found, key=found.count, default=_NOT_READ)


def _details(server: ServerSchemaVersion, cluster: ClusterVersions) -> Iterator[RenderableType]:
    yield Text()
    yield line_of(server.facts.server)
    rows: list[tuple[str, RenderableType]] = [("applied", line_of(_version(server, cluster)))]
    if server.received != server.applied and server.received is not None:
        rows.append(("received", line_of(_ddl(server.received))))
    for each in server.missing[:_SHOWN_MAX]:
        rows.append(("missing", line_of(_ddl(each))))
    if len(server.missing) > _SHOWN_MAX:
        rest = len(server.missing) - _SHOWN_MAX
        rows.append(("", Text(f"… and {rest:,} more; --json has all", style=QUIET)))
    waits = server.waits(cluster.read_at)
    if waits is not None and cluster.is_behind(server):
        rows.append(("waits", line_of(f"the oldest of them for {_for(waits)}")))
    yield labelled(rows)


def _version(server: ServerSchemaVersion, cluster: ClusterVersions) -> str:
    if server.applied is not None:
        return _ddl(server.applied)
    if server.older_than:
        return f"older than the log {server.older_than}: no DDL in the logs that were searched"
    if any(name == server.facts.server for name, _ in cluster.unknown) or cluster.unknown:
        return "not known"
    return "no DDL in the logs that were searched"


def _ddl(ddl: LoggedDdl) -> str:
    when = f", {moment_of(ddl.committed_at)}" if ddl.committed_at else ""
    text = " ".join(ddl.statement.split())
    cut = text[:_STATEMENT_CHARACTERS_MAX]
    return f"{ddl.gtid}{when}: {cut}{'…' if len(text) > len(cut) else ''}"


def _for(duration: timedelta) -> str:
    return f"{max(0, round(duration.total_seconds())):,} s"


def _unknown(clusters: Sequence[tuple[str, ClusterVersions]]) -> Iterator[RenderableType]:
    rows = [
        (server, f"{fact.fact}: {fact.reason.value}: {fact.detail}")
        for _, cluster in clusters
        for server, fact in cluster.unknown
    ]
    rows += [
        ("DDL", f"not all transactions that servers are apart by were searched: {why}")
        for why in (cluster.why_incomplete for _, cluster in clusters)
        if why
    ]
    if rows:
        yield Text()
        yield Text("Not read", style="bold")
        yield labelled((label, line_of(text)) for label, text in rows[:_UNKNOWN_SHOWN_MAX])
        yield from rest_of(len(rows), _UNKNOWN_SHOWN_MAX, "facts")
