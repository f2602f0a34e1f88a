"""Shows pictures of a cluster: its topology, the UUIDs that differ, where a finding's GTIDs are.

Everything fits 80 columns, with names of servers of any length. Signs carry the meaning, and
colours only repeat it. This module evaluates nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gtid import GtidSet, Tsid
from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.interval_map import (
    LEGEND,
    CellState,
    IntervalMap,
    MappedServer,
    maps_of,
)
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.short_labels import fitted_names, labels_of
from gtid_audit.views.topology_tree import TreeLink, tree_of
from gtid_audit.views.uuid_overview import overview_of
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Verdict
from topology.readings.snapshot import ClusterSnapshot

TREE_LINES_MAX: Final = 40
UUIDS_SHOWN_MAX: Final = 10
SERVERS_SHOWN_MAX: Final = 8  # in one picture, and for one UUID
NAME_CHARACTERS_MAX: Final = 16  # beside a picture
ERRANT_CODES: Final = frozenset({"E1", "E2", "J3"})


def topology_parts(snapshot: ClusterSnapshot | None, audit: ClusterAudit) -> list[RenderableType]:
    """Show the topology as a tree, and, if the cluster is not OK, the UUIDs that differ."""
    if snapshot is None:
        return []
    lines = tree_of(snapshot, _codes_by_server(audit))
    shown = []
    for line in lines[:TREE_LINES_MAX]:
        flows = line.link in (TreeLink.FLOWS, TreeLink.MEMBER, TreeLink.ROOT)
        text = Text(line.indent, style=QUIET)
        text.append(line.link.value, style="green" if flows else "bold red")
        text.append(printable(line.name), style="default")
        if line.state:
            state = f"  {printable(', '.join(line.state))}"
            text.append(state, style=QUIET if flows else "red")
        shown.append(text)
    parts: list[RenderableType] = [Text(), Padding(Group(*shown), (0, 0, 0, 2))]
    parts += rest_of(len(lines), TREE_LINES_MAX, "lines of the topology")
    return parts if audit.verdict is Verdict.OK else [*parts, *_uuids(snapshot)]


def _codes_by_server(audit: ClusterAudit) -> dict[str, list[str]]:
    """Return the codes of the findings above info, by the server that they are about."""
    found: dict[str, list[str]] = {}
    for each in audit.findings:
        name = each.replica or each.source
        if name is not None and is_loud(each) and each.code not in found.get(name, []):
            found.setdefault(name, []).append(each.code)
    return found


def _uuids(snapshot: ClusterSnapshot) -> Iterator[RenderableType]:
    overview = overview_of(snapshot)
    if overview is None or not overview.rows:
        return
    differing, count = len(overview.rows), len(overview.rows) + overview.equal_count
    if count == 1:
        return  # the picture of the finding shows as much
    verb = "differs" if differing == 1 else "differ"
    title = f"Of {counted(count, 'UUID')} in gtid_executed, {differing:,} {verb}:"
    yield from (Text(), Text(title, style=QUIET))
    names = _uuid_names(snapshot)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in overview.rows[:UUIDS_SHOWN_MAX]:
        listed = [f"{missing:,} on {name}" for name, missing in row.missing[:SERVERS_SHOWN_MAX]]
        more = len(row.missing) - len(listed)
        listed += [f"some on {counted(more, 'more server')}"] if more else []
        grid.add_row(
            line_of(_tsid_name(row.tsid, names)),
            Text(f"{row.transactions:,}"),
            line_of(f"missing: {', '.join(listed)}"),
        )
    yield Padding(grid, (0, 0, 0, 2))
    yield from rest_of(len(overview.rows), UUIDS_SHOWN_MAX, "UUIDs that differ")


def _uuid_names(snapshot: ClusterSnapshot) -> Mapping[UUID, str]:
    """Return a name for each UUID of a cluster: a unique label, and its server."""
    servers = snapshot.last_read.items()
    uuids = {tsid.uuid for _, server in servers for tsid in server.gtid_executed.tsids}
    owners = {server.server_uuid: name for name, server in servers}
    labels = labels_of([*uuids, *owners])
    fitted = fitted_names(list(snapshot.last_read), characters_max=NAME_CHARACTERS_MAX)
    return {
        uuid: f"{label} of {fitted[owners[uuid]]}" if uuid in owners else label
        for uuid, label in labels.items()
    }


def _tsid_name(tsid: Tsid, names: Mapping[UUID, str]) -> str:
    tag = f" tag {tsid.tag}" if tsid.tag else ""
    return f"{names.get(tsid.uuid, str(tsid.uuid))}{tag}"


def picture_of(finding: Finding, snapshot: ClusterSnapshot | None) -> RenderableType | None:
    """Draw which server has which GTIDs around those of the finding: its servers first."""
    if snapshot is None or not finding.gtid_set:
        return None
    ends = [name for name in (finding.source, finding.replica) if name in snapshot.last_read]
    others = [name for name in snapshot.last_read if name not in ends]
    held = [
        MappedServer(
            name,
            server.gtid_executed,
            server.gtid_purged,
            server.gtid_owned,
            finding.gtid_set if is_errant_on(finding, name) else GtidSet(),
        )
        for name in [*ends, *others][:SERVERS_SHOWN_MAX]
        for server in (snapshot.last_read[name],)
    ]
    drawn = maps_of(finding.gtid_set, held)
    names = _uuid_names(snapshot)
    fitted = fitted_names(list(snapshot.last_read), characters_max=NAME_CHARACTERS_MAX)
    parts: list[RenderableType] = []
    for each in drawn:
        parts.append(Text(f"{printable(_tsid_name(each.tsid, names))}, 1 … {each.last:,}", QUIET))
        grid = Table.grid(padding=(0, 1))
        for name, cells in each.rows:
            line = Text()
            for index, cell in enumerate(cells):
                style = "green" if cell is CellState.EXECUTED else QUIET
                line.append(cell.value, style="bold red" if index in each.marked else style)
            grid.add_row(line_of(fitted[name]), line)
        grid.add_row(Text(), Text(each.marks, style="bold red"))
        grid.add_row(Text(), Text(each.scale, style=QUIET))
        parts.append(grid)
    if drawn:
        parts += rest_of(len(ends) + len(others), SERVERS_SHOWN_MAX, "servers")
        parts += rest_of(len(finding.gtid_set.tsids), len(drawn), "UUIDs")
        parts.append(Text(_legend(drawn), style=QUIET))
    return Group(*parts) if parts else None


def is_errant_on(finding: Finding, name: str) -> bool:
    """Return whether a finding reports its set as errant on a server."""
    return finding.code in ERRANT_CODES and finding.replica == name


def _legend(drawn: Iterable[IntervalMap]) -> str:
    """Return the meaning of the signs that are drawn."""
    states = {cell for each in drawn for _, cells in each.rows for cell in cells}
    return "  ".join(f"{sign} {word}" for cell, sign, word in LEGEND if cell in states)


def is_loud(finding: Finding) -> bool:
    """Return whether a finding is shown in full. Unread facts (U1) have their own list."""
    return finding.severity is not Severity.INFO and finding.code != "U1"
