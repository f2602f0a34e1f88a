"""What a planner reads of the world's binary logs and rows: contents of transactions, row states.

It stands for gtid_audit/transactions_for_plan.py, which reads real servers: the same findings, the
same servers, the same classes; from the true world. Rows are folded here once more, by hand.
"""

from __future__ import annotations

from repair.case import LogEvidence
from repair.transaction_content import (
    ContentClass,
    RowsOn,
    RowState,
    TransactionContent,
    nothing_read,
)
from tests.simulation import replication as act
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import Gtid, Key, Server, Transaction, World
from topology.findings import ClusterAudit, Finding

EXTRA = ("E1", "E2", "E3", "E6", "J3")
MISSING = ("H1", "H3", "H4", "H5", "H8", "P1", "C3")
STOPPED = ("A2", "A3")

Net = dict[Key, tuple[int | None, int | None]]


def log_evidence(world: World, audit: ClusterAudit, visible: tuple[str, ...]) -> LogEvidence:
    """Return what a planner would read for the findings of an audit."""
    contents: dict[str, TransactionContent] = {}
    for finding in audit.findings:
        wanted = _wanted(world, finding)
        if wanted:
            contents[finding.id] = _content(world, finding, wanted, visible)
    return LogEvidence(contents=contents)


def _wanted(world: World, finding: Finding) -> set[Gtid]:
    if finding.code in STOPPED and finding.replica is not None:
        failed = [
            channel.failed.gtid
            for channel in world[finding.replica].channels
            if channel.name == finding.channel and channel.failed is not None
        ]
        return set(failed)
    if finding.code not in (*EXTRA, *MISSING):
        return set()
    wanted = members_of(finding.gtid_set, world)
    if finding.code == "C3" and None not in (finding.source, finding.replica):
        source, replica = world[str(finding.source)], world[str(finding.replica)]
        missing = source.executed - source.purged - replica.executed
        wanted |= {each for each in missing if each[0] != replica.uuid}
    return wanted


def _content(
    world: World, finding: Finding, wanted: set[Gtid], visible: tuple[str, ...]
) -> TransactionContent:
    everything = gtids(wanted)
    ends = (finding.replica, finding.source)
    first = ends if finding.code in EXTRA else ends[::-1]
    origins = [name for name in visible if any(each[0] == world[name].uuid for each in wanted)]
    names = [name for name in dict.fromkeys([*origins, *first, *visible]) if name in visible]
    # Without gtid_mode = ON a server sends no transactions by GTID.
    names = [name for name in names if not world[str(name)].permissive]
    held = [(len(wanted & world[str(name)].logged()), str(name)) for name in names]
    best = max((count for count, _ in held), default=0)
    if not best:
        return nothing_read(everything, "no server that could be read still has them")
    holder = world[next(name for count, name in held if count == best)]
    found = [each for log in holder.files for each in log.entries if each.gtid in wanted]
    classes: dict[ContentClass, set[Gtid]] = {kind: set() for kind in ContentClass}
    for each in found:
        classes[_class_of(each)].add(each.gtid)
    classes[ContentClass.UNREAD] = wanted - {each.gtid for each in found}
    return TransactionContent(
        holder.name,
        {kind: gtids(members) for kind, members in classes.items() if members},
        unread="" if not classes[ContentClass.UNREAD] else "purged",
        rows_on=_rows_on(world, finding, found, holder, visible, classes),
    )


def _class_of(made: Transaction) -> ContentClass:
    if made.is_empty:
        return ContentClass.EMPTY
    is_ddl = any(each.kind in act.DDL for each in made.changes)
    return ContentClass.DDL if is_ddl else ContentClass.DATA


def _rows_on(  # noqa: PLR0917 - what the content of a finding is made of
    world: World,
    finding: Finding,
    found: list[Transaction],
    holder: Server,
    visible: tuple[str, ...],
    classes: dict[ContentClass, set[Gtid]],
) -> dict[str, RowsOn]:
    if finding.code in EXTRA:
        names = list(visible)
    else:
        names = [name for name in (finding.replica, finding.source) if name in visible]
    if classes[ContentClass.DDL] or classes[ContentClass.UNREAD]:
        return {name: RowsOn(RowState.UNREAD, "definitions, or not read") for name in names}
    if any(each.has_statements for each in found):
        return {name: RowsOn(RowState.UNREAD, "logged as a statement") for name in names}
    net = net_changes(found, holder)
    if net is None:
        return {name: RowsOn(RowState.UNREAD, "not in order") for name in names}
    return {name: RowsOn(_state(world[name], net)) for name in names}


def net_changes(found: list[Transaction], holder: Server) -> Net | None:
    """Return each row before the first and after the last of these transactions.

    None where another transaction changed a row in between.
    """
    befores = {made.work: dict(undo) for made, undo in holder.applied}
    net: Net = {}
    for made in found:
        before = befores.get(made.work, {})
        for change in made.changes:
            if change.key in net and net[change.key][1] != before.get(change.key):
                return None
            old = net[change.key][0] if change.key in net else before.get(change.key)
            net[change.key] = (old, change.new)
    return net


def _state(server: Server, net: Net) -> RowState:
    if all(server.rows.get(key) == before for key, (before, _) in net.items()):
        return RowState.AS_BEFORE
    if all(server.rows.get(key) == after for key, (_, after) in net.items()):
        return RowState.AS_AFTER
    return RowState.CONFLICT
