"""Servers on which the transactions of a finding are missing, in the order to add them."""

from collections.abc import Iterable, Iterator, Sequence

from gtid import GtidSet
from repair.content.transaction_content import RowState
from repair.model.actions import InjectEmpty, RedoTransactions, simulate
from repair.model.replication_model import Model, ModelServer, below, upstream
from repair.model.strategy_case import Case, Refusal, is_seen_in_part
from repair.model.unseen_replicas import refused_for
from repair.sql.replay import Replayed
from topology.catalogue.findings import ClusterAudit, Finding

# The families of findings about transactions that are missing on a replica.
_MISSING_ON_REPLICA = frozenset("HPT")


def targets_without(case: Case) -> list[tuple[ModelServer, GtidSet]] | Refusal:
    """Return every server on which transactions of the finding are missing; the source last.

    Unlike the targets of a declaration, it includes servers to which a running channel will deliver
    them.
    """
    wanted = case.wanted
    if case.source is None:
        return Refusal("the server on which they are missing could not be read")
    names = dict.fromkeys((case.source.name, *other_sources(case)))
    reached = {each.name: each for name in names for each in _component(case.model, name, wanted)}
    servers = [reached[name] for name in sorted(reached)]
    return [
        (server, wanted - server.executed)
        for server in _ends_first(case.model, servers, last=case.source)
        if wanted - server.executed
    ]


def other_sources(case: Case) -> Iterator[str]:
    """Yield the other sources of the replica, for errant transactions: none of them has these.

    One finding covers all of them. Once the finding's own source has the GTIDs, the finding is
    gone.
    """
    if case.replica is None or case.finding.code not in ("E1", "E2"):
        return
    for channel in case.replica.channels:
        source = case.model.servers.get(channel.source) if channel.source is not None else None
        if source is not None and not case.wanted & source.executed:
            yield source.name


def others_left_out(case: Case) -> Iterator[str]:
    """Yield the sources of the replica that a redo on the finding's source does not reach."""
    here = case.finding.source
    others = ", ".join(name for name in other_sources(case) if name != here)
    if others:
        yield (
            f"it would run only on {here}, and {others}, from which {case.finding.replica}"
            " replicates as well, would not get it"
        )


def where_to_redo(case: Case, redone: tuple[Replayed, ...]) -> ModelServer:
    """Return the server from which the transactions reach all others; otherwise the source."""
    source = case.source
    assert source is not None, "the caller has checked"
    targets = targets_without(case)
    assert not isinstance(targets, Refusal), "it refuses only without a source"
    servers = [server for server, _ in reversed(targets)]
    for server in (source, *servers):
        if any(each.gtid in server.executed for each in redone if each.gtid is not None):
            continue
        after = simulate(case.model, RedoTransactions(server.name, redone))
        if all(case.finding.gtid_set <= after[each.name].executed for each in servers):
            return server
    return source


def passed_on_by_group(model: Model, names: Iterable[str], gtids: GtidSet) -> str | None:
    """Return why GTIDs cannot be added on servers above a member of a group; None if they can.

    The model delivers by channels only: the other members would seem not to get what one receives.
    On a member itself nothing is added at all (invariants.py).
    """
    for name in names:
        if model[name].group_name is not None:
            continue
        receiving = below(model, name)
        for member in (model[each] for each in receiving):
            others = [
                each.name
                for each in model.servers.values()
                if member.group_name is not None
                and each.group_name == member.group_name
                and each.name != member.name
                and each.name not in receiving
                and gtids - each.executed
            ]
            if others and gtids - member.executed:
                return (
                    f"{member.name} receives from {name}, and would pass these transactions on to"
                    f" {', '.join(others)} as a member of the group {member.group_name}. gtid-audit"
                    f" does not simulate what a group delivers: do it on {name} by hand, then audit"
                    " again"
                )
    return None


def _component(model: Model, name: str, wanted: GtidSet) -> list[ModelServer]:
    """Return every server that channels link with a server, in either direction.

    The path does not lead through a server that has the transactions. Beyond a replica with several
    sources there is another source, which has its own findings.
    """
    found, frontier = {name}, [name]
    while frontier:
        here = frontier.pop()
        if wanted <= model[here].executed:
            continue
        linked = {replica.name for replica, _ in model.replicas_of(here)} | {
            channel.source
            for channel in model[here].channels
            if channel.source is not None and channel.source in model.servers
        }
        frontier.extend(linked - found)
        found |= linked
    return [model[each] for each in sorted(found)]


def _ends_first(
    model: Model, servers: list[ModelServer], *, last: ModelServer | None
) -> list[ModelServer]:
    """Order servers so that each comes before those from which it receives; `last` comes last.

    So no server ever waits for a range that its source has already purged.
    """

    def rank(server: ModelServer) -> tuple[int, bool, str]:
        return (-len(upstream(model, server.name)), server == last, server.name)

    return sorted(servers, key=rank)


def roots(
    case: Case, targets: list[tuple[ModelServer, GtidSet]]
) -> Iterator[tuple[ModelServer, GtidSet]]:
    """Yield the targets to which no other one delivers the transactions, and the source itself.

    A stopped channel delivers them when it is started. The source is last, because a later audit
    reports the finding until the source has them. For the source's own GTIDs it is first, because
    the others skip what it commits under them.
    """
    chosen: set[str] = set()
    last: list[tuple[ModelServer, GtidSet]] = []
    for server, gtids in targets:
        is_source = server == case.source
        if is_source or not chosen & upstream(case.model, server.name):
            chosen.add(server.name)
            if is_source and not gtids.from_uuid(server.server_uuid):
                last.append((server, gtids))
            else:
                yield server, gtids
    yield from last


def not_reached(case: Case, targets: Sequence[tuple[ModelServer, GtidSet]]) -> Refusal | None:
    """Refuse if the path from another target to the finding's source does not work.

    Both would need the transactions. If the plan is interrupted in between, it leaves a difference
    between the two. That difference no longer belongs to this finding, and joins others on that
    path.
    """
    source = case.source
    assert source is not None, "without a source there are no targets"
    apart = [
        server.name
        for server, gtids in targets
        if not case.wanted
        <= simulate(case.model, InjectEmpty(server.name, gtids))[source.name].executed
    ]
    if not apart:
        return None
    return Refusal(
        f"{', '.join(apart)} would not deliver them to {source.name}: repair replication between"
        " these servers first"
    )


def meant_to_arrive(finding: Finding, audit: ClusterAudit) -> tuple[str, ...]:
    """Return the codes that explain why a finding's source is missing the replica's extra GTIDs."""
    codes = {
        other.code
        for other in audit.findings
        if other.replica == finding.source
        and other.code[0] in _MISSING_ON_REPLICA
        and (
            other.gtid_set & finding.gtid_set
            or (other.code == "P1" and other.source == finding.replica)
        )
    }
    return tuple(sorted(codes))


def may_be_on_their_way(case: Case) -> str | None:
    """Return why unread servers may deliver the transactions; None if the finding excludes that.

    Whatever executes their GTIDs on the source first, keeps the rows out for good: its channel then
    drops what these servers deliver.
    """
    if not is_seen_in_part(case.finding):
        return None
    return (
        "servers that were not read may deliver the transactions, or their rows: add the"
        " servers that the finding lists, audit and plan again"
    )


def not_all_read(case: Case) -> str | None:
    """Return why unread servers may have, deliver or receive the transactions.

    Replicas that are connected and not part of the audit are such servers as well.
    """
    if (why := may_be_on_their_way(case)) is not None:
        return why
    if not case.unread:
        return refused_for(case.unseen_below)
    return (
        f"{', '.join(case.unread)} could not be read, and may have the transactions, or receive"
        " them; the rows there are not known. Make sure that gtid-audit can read all servers, then"
        " audit and plan again"
    )


def belongs_elsewhere(case: Case) -> str | None:
    """Return why the transactions of a J3 are those of another server; None if they are not.

    Servers that the finding's source is linked with are candidates as well, and a server that
    neither of the two is linked with may have committed the transactions. Redone, they would write
    the rows of one source onto another; undone, they would leave the server that committed them.
    What a replica has and its sources do not have is errant there, and shows nothing.
    """
    source, replica = case.source, case.replica
    if case.finding.code != "J3" or source is None or replica is None:
        return None
    linked = {each.name for each in _component(case.model, source.name, case.wanted)}
    apart = case.model.servers.keys() - {source.name, replica.name}
    holders = [
        name
        for name in sorted(apart - set(below(case.model, replica.name)))
        if _has_as_its_own(case, name, from_sources=name in linked)
    ]
    if not holders:
        return None
    has = "has" if len(holders) == 1 else "have"
    return (
        f"{', '.join(holders)} {has} {case.wanted.shortened()} too, as its own or from its own"
        f" source: {replica.name} may have replicated from several servers. Let it replicate from"
        " each of them, by a channel of its own"
    )


def _has_as_its_own(case: Case, name: str, *, from_sources: bool) -> bool:
    """Return whether a server committed some of the transactions, or has them from a source."""
    server, held = case.model[name], case.wanted & case.snapshot_executed[name]
    if held.from_uuid(server.server_uuid):
        return True
    sources = [each.source for each in server.channels if each.source in case.model.servers]
    had = GtidSet.union_of(case.snapshot_executed[each] for each in sources if each is not None)
    return from_sources and bool(held & had if sources else held)


def came_from_source(case: Case) -> str | None:
    """Return why extra transactions are probably the source's own, which it has without a GTID.

    A channel with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS gives what it receives the UUID of its
    replica, or another one. The events keep the server_id of the source (seen on 9.7.4). Under the
    source's own UUID a crash explains that: E3. Rows that are certainly not on the source decide.
    """
    content, source = case.content, case.source
    if content is None or source is None or source.server_id is None:
        return None
    own = content.server_ids.get(source.server_id, GtidSet()) & case.finding.gtid_set
    own = own.without_uuid(source.server_uuid)
    if not own or content.state_on(source.name).state is RowState.AS_BEFORE:
        return None
    return (
        f"{own.shortened()} carries the server_id of {source.name}, which may have committed it"
        f" without a GTID (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS of a channel of"
        f" {case.finding.replica}) and have its rows. Compare the rows. If they are equal, choose"
        " inject_empty; if not, `gtid-audit binlog show SET SERVER --redo` writes the SQL"
    )


def still_receive(case: Case, holders: list[ModelServer], without_gtids: set[str]) -> str:
    """Return why undone rows would come back; "" if every receiver has the transactions now.

    An undo is not logged. The logs of the holders still have the transactions. A downstream server
    that has not applied them, because of a delay, a backlog or a stopped channel, applies them
    afterwards. So does any server that has them in a relay log: its source may have lost them since
    (E3).
    """
    wanted = case.finding.gtid_set
    names = dict.fromkeys(
        name for each in holders for name in (each.name, *below(case.model, each.name))
    )
    received = {
        name
        for name, server in case.model.servers.items()
        for channel in server.channels
        if (channel.retrieved - channel.passed) & wanted - server.executed
    }
    late = [
        name
        for name in dict.fromkeys((*names, *sorted(received)))
        if (name in received or name not in without_gtids)
        and not wanted <= case.snapshot_executed[name]
    ]
    if not late:
        return ""
    return (
        f"{', '.join(late)} had not applied {wanted.shortened()} when the servers were read, and"
        " would apply them after the undo. Wait until they have arrived there, then audit and plan"
        " again"
    )


def unfinished(case: Case, targets: Sequence[str]) -> Iterator[str]:
    """Yield what a plan leaves if it is interrupted between its targets, in their order.

    The finding is gone once its source has the GTIDs. A finding about several sources of a replica
    is gone with the first of them, and a tail (J3) with the first server that has it. What is left
    then is reported (E1, E2) only for servers to which the source alone sends.
    """
    sources = [name for name in other_sources(case) if name in targets]
    source = case.source
    if case.finding.code == "J3":
        reached = {name for name in targets if upstream(case.model, name) & {*targets}}
        left = [name for name in targets if name not in reached]
        is_left = len(left) > 1
    elif is_left := len(set(sources)) > 1:
        left = sources
    elif source is None or source.name not in targets:
        return
    else:
        is_reported = case.finding.code in ("E1", "E2") and len(source.channels) == 1
        above = upstream(case.model, source.name) if is_reported else set()
        left = [name for name in targets[targets.index(source.name) + 1 :] if name not in above]
        if _is_hidden_before(case, source.name, targets):
            left.append(source.name)
        is_left = bool(left)
    if is_left:
        yield (
            "run all scripts: if you stop in between, no later audit reports that"
            f" {' or '.join(dict.fromkeys(left))} is still without {case.wanted.shortened()}"
        )


def _is_hidden_before(case: Case, name: str, targets: Sequence[str]) -> bool:
    """Return whether another source of the replica gets the GTIDs before the finding's source.

    Only for a source that does not log what it receives: no log then shows that it did not send
    them.
    """
    before = {*targets[: targets.index(name)]}
    return any(
        before & upstream(case.model, each) and not case.model[each].logs_received
        for each in other_sources(case)
        if each != name
    )
