"""What a planner reads of the world's binary logs and rows: contents of transactions, row states.

It stands for repair/adapters/transactions_for_plan.py, which reads real servers: the same findings, the
same servers, the same classes; from the true world. Rows are folded here once more, by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.content.content_questions import (
    MISSING,
    STOPPED,
    ContentQuestion,
    arrivals,
    question_of,
)
from repair.content.transaction_content import RowsOn, RowState, TransactionContent, nothing_read
from repair.model.strategy_case import LogEvidence
from tests.simulation import replication as act
from tests.simulation.failing_events import failing_events
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import Gtid, Key, Server, Transaction, World, uuid_of
from tests.simulation.toy_table import net_row
from topology.catalogue.findings import ClusterAudit, Finding
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ClusterSnapshot

Net = dict[Key, tuple[int | None, int | None]]


def log_evidence(world: World, snapshot: ClusterSnapshot, audit: ClusterAudit) -> LogEvidence:
    """Return what a planner would read for the findings of an audit."""
    contents: dict[str, TransactionContent] = {}
    brought = {
        channel: _content(world, question) for channel, question in arrivals(snapshot).items()
    }
    for finding in audit.findings:
        channel = (finding.replica or "", finding.channel or "")
        if finding.code == "A7":
            if channel in brought:
                contents[finding.id] = brought[channel]
            continue
        question = question_of(finding, snapshot, failing=_failing(world, finding))
        if question is not None:
            content = _content(world, question, _source(world, finding))
            if finding.code in STOPPED:  # whether its rows are as on the source is not asked
                kept = {
                    name: replace(on, is_like_source=False, now=())
                    for name, on in content.rows_on.items()
                }
                content = replace(content, rows_on=kept)
            contents[finding.id] = content
    events = dict(failing_events(world, audit))
    connected = dict(_connected(world, snapshot))
    return LogEvidence(contents=contents, arrivals=brought, events=events, connected=connected)


def _connected(
    world: World, snapshot: ClusterSnapshot
) -> Iterator[tuple[str, tuple[ConnectedReplica, ...]]]:
    """Yield what each server that answers lists as its replicas, servers of the audit included."""
    for server in snapshot.last:
        if server.version is not None:
            yield (
                server.name,
                tuple(
                    ConnectedReplica(str(uuid_of(other.uuid)))
                    for other, channel in world.replicas_of(server.name)
                    if channel.receiver == "Yes"
                ),
            )


def _failing(world: World, finding: Finding) -> GtidSet:
    if finding.code not in STOPPED or finding.replica is None:
        return GtidSet()
    return gtids(
        channel.failed.gtid
        for channel in world[finding.replica].channels
        if channel.name == finding.channel and channel.failed is not None
    )


def _source(world: World, finding: Finding) -> Server | None:
    """Return the source of what is missing: its rows of today are compared as well."""
    is_hole = finding.code in (*MISSING, *STOPPED) and finding.source in world.servers
    return world[finding.source or ""] if is_hole else None


def _content(
    world: World, question: ContentQuestion, source: Server | None = None
) -> TransactionContent:
    wanted = members_of(question.wanted, world)
    everything = gtids(wanted)
    # Without gtid_mode = ON a server sends no transactions by GTID.
    names = [name for name in question.holders if not world[name].permissive]
    held = [(len(wanted & world[name].logged()), name) for name in names]
    best = max((count for count, _ in held), default=0)
    if not best:
        return nothing_read(everything, "no server that could be read still has them")
    holder = world[next(name for count, name in held if count == best)]
    found = [each for log in holder.files for each in log.entries if each.gtid in wanted]
    classes: dict[ContentClass, set[Gtid]] = {kind: set() for kind in ContentClass}
    server_ids: dict[int, set[Gtid]] = {}
    for each in found:
        classes[_class_of(each)].add(each.gtid)
        server_ids.setdefault(each.server_id, set()).add(each.gtid)
    classes[ContentClass.UNREAD] = wanted - {each.gtid for each in found}
    doubtful = {
        name: {gtid for gtid in classes[ContentClass.EMPTY] if not _shows_empty(world[name], gtid)}
        for name in question.holders
    }
    for doubted in doubtful.values():
        classes[ContentClass.EMPTY] -= doubted
        classes[ContentClass.UNREAD] |= doubted
    # What is logged as a statement, and the DROP of a table, is not compared: only what is created.
    is_opaque = any(
        each.has_statements or any(change.kind == "drop" for change in each.changes)
        for each in found
    )
    net = None if is_opaque or classes[ContentClass.UNREAD] else net_changes(found, holder)
    state = RowsOn(RowState.UNREAD, "not read, or not in order")
    own = {name: members_of(gtids, world) for name, gtids in question.own}
    rows = None if net is None else tuple(net_row(key, *values) for key, values in net.items())
    alike = source if source is holder else None
    return TransactionContent(
        holder.name,
        {kind: gtids(members) for kind, members in classes.items() if members},
        unread="" if not classes[ContentClass.UNREAD] else "purged",
        is_out_of_order=net is None and not is_opaque and not classes[ContentClass.UNREAD],
        rows=None if net is None or classes[ContentClass.DDL] else rows,
        rows_beside_created=rows if classes[ContentClass.DDL] else None,
        rows_on={
            name: state
            if net is None
            else _rows_on(
                world[name],
                net,
                own.get(name),
                wanted,
                None if _lags(world[name], alike, wanted) else alike,
            )
            for name in question.servers
        },
        doubtful={name: gtids(members) for name, members in doubtful.items() if members},
        logged_before=_logged_before(world, question.source, wanted),
        server_ids={each: gtids(members) for each, members in server_ids.items()},
        later_work={}
        if net is None
        else {name: "" for name, members in own.items() if _has_met(world[name], net, members)},
    )


def _logged_before(world: World, source: str, wanted: set[Gtid]) -> GtidSet:
    """Return what the header of a source's last file lists that is not before the wanted ones."""
    files = world[source].listed if source in world.servers else []
    heads = (each.previous for each in reversed(files) if not set(each.previous) & wanted)
    return gtids(next(heads, ()))


def _shows_empty(server: Server, gtid: Gtid) -> bool:
    """Return whether a server has not the transaction, or has it as an empty one."""
    if gtid not in server.executed or (gtid in server.purged and gtid[0] != server.uuid):
        return True
    if server.permissive:  # it sends nothing by GTID; what it received came from those that do
        return gtid[0] != server.uuid and any(
            gtid in each.retrieved for each in server.channels if each.auto_position
        )
    version = server.logged_version(gtid)
    return version is not None and version.is_empty


def _class_of(made: Transaction) -> ContentClass:
    if made.is_empty:
        return ContentClass.EMPTY
    is_ddl = any(each.kind in act.DDL for each in made.changes)
    return ContentClass.DDL if is_ddl else ContentClass.DATA


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


def _lags(server: Server, source: Server | None, wanted: set[Gtid]) -> bool:
    return source is not None and bool(source.executed - server.executed - wanted)


def _rows_on(
    server: Server, net: Net, own: set[Gtid] | None, wanted: set[Gtid], source: Server | None
) -> RowsOn:
    state = _state_beside(server, net, own)
    if state is not _state(server, net):
        return RowsOn(state)
    off = (key for key, (before, _) in net.items() if server.rows.get(key) != before)
    is_like = (
        source is not None
        and bool(net)
        and server is not source
        and RowState.AS_AFTER not in (state, _state(source, net))
        and all(server.rows.get(key) == source.rows.get(key) for key in net)
        and _is_logged(source, net, wanted)
    )
    overtaken = (
        key
        for key, (_, after) in net.items()
        if source is not None
        and server is not source
        and server.rows.get(key) == source.rows.get(key) != after
    )
    now = ((key, before, server.rows.get(key)) for key, (before, _) in net.items() if is_like)
    return RowsOn(
        state,
        off=tuple(net_row(key, *net[key]) for key in off),
        is_like_source=is_like,
        overtaken=tuple(net_row(key, *net[key]) for key in overtaken),
        now=tuple(net_row(*each) for each in now),
        has_some=state is RowState.CONFLICT
        and any(server.rows.get(key) == new != old for key, (old, new) in net.items()),
        is_in_part=state is RowState.CONFLICT
        and all(server.rows.get(key) in values for key, values in net.items()),
    )


def _is_logged(source: Server, net: Net, wanted: set[Gtid]) -> bool:
    """Return whether the source's rows are as its log left them, up to the first statement."""
    lowest: dict[tuple[str, str], int] = {}
    for uuid, tag, number in sorted(wanted, reverse=True):
        lowest[uuid, tag] = number
    since: list[Transaction] = []
    for made in (entry for log in source.files for entry in log.entries):
        uuid, tag, number = made.gtid
        if number < lowest.get((uuid, tag), 0):
            continue
        if made.has_statements or any(change.kind in act.DDL for change in made.changes):
            break
        since.append(made)
    folded = net_changes(since, source)
    return folded is not None and all(
        key in folded and source.rows.get(key) == folded[key][1] for key in net
    )


def _state_beside(server: Server, net: Net, own: set[Gtid] | None) -> RowState:
    """Return how the rows stand; as changed where the server's own work may have met one of them."""
    state = _state(server, net)
    if not own or state is not RowState.AS_BEFORE:
        return state
    return RowState.CONFLICT if _has_met(server, net, own) else state


def _has_met(server: Server, net: Net, own: set[Gtid]) -> bool:
    """Return whether a server's own work changed one of the rows, or may have."""
    logged = [each for log in server.files for each in log.entries if each.gtid in own]
    is_read = own == {each.gtid for each in logged} and not server.permissive
    is_opaque = any(
        each.has_statements or any(change.kind == "drop" for change in each.changes)
        for each in logged
    )
    met = any(net.keys() & each.keys for each in logged)
    return met or is_opaque or not is_read


def _state(server: Server, net: Net) -> RowState:
    if all(server.rows.get(key) == before for key, (before, _) in net.items()):
        return RowState.AS_BEFORE
    if all(server.rows.get(key) == after for key, (_, after) in net.items()):
        return RowState.AS_AFTER
    return RowState.CONFLICT
