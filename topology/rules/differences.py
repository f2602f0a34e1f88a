"""E1, E2, T4, T6: extra transactions on a replica, and those it will not receive.

1. Each rule evaluates one part of the difference; cluster_facts.py makes the parts disjoint.
2. A finding is `proved` only if the evidence excludes every benign cause; each rule documents them.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.facts.assigned_gtids import assigned_text
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.declared_sets import DECLARED, declared_text
from topology.facts.edge_facts import EdgeFacts
from topology.facts.lost import Cause, Loss, losses_of
from topology.facts.memberships import group_name_of, group_uuids, uuid_of_group
from topology.facts.receivers import hanging, is_dated
from topology.readings.snapshot import ReadServer
from topology.rules.build import Rules, evidence, finding, many, on_edge
from topology.rules.extra_content import content_text
from topology.rules.gone_logs import gone_logs_text
from topology.rules.hidden_received import hidden_text, that_may_hide
from topology.rules.lost_history import distance_to

# The fact that a channel from the replica towards its source was stopped by an operator.
WAY_BACK = "channel towards the source"
# The fact that an errant GTID has the UUID of a server that did not commit it (H7).
MADE_BY_HAND = "never committed by the server whose server_uuid it has"


def unconfirmed_lead(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T4: the replica has what its source is still committing."""
    for lost in facts.lost:
        if lost.leading and not lost.undecided:
            origin, hangs = facts.last[lost.origin], hanging(facts, lost)
            text = (
                f"{lost.origin} is still committing {many(lost.leading)} that"
                f" {lost.holder} already has"
            )
            age: tuple[Evidence, ...] = ()
            if hangs is not None:
                age = (evidence("seconds since it was logged", hangs.seconds, origin),)
                text += (
                    f", the first for {hangs.seconds:,} s: its clients wait. With semi-synchronous"
                    " replication a source waits for the acknowledgement of a replica until"
                    " rpl_semi_sync_source_timeout has passed. Check the state of the sessions in"
                    f" SHOW PROCESSLIST of {lost.origin}"
                )
            elif not is_dated(facts, lost):
                text += (
                    f". It is not known for how long, because the binary log of {lost.holder} does"
                    " not show it. If the next audit reports the same transactions, the clients of"
                    f" {lost.origin} wait"
                )
            made_here = lost.leading - facts.last[lost.holder].gtid_retrieved
            if made_here:
                text += _OWNED_BY_SESSION.format(
                    holder=lost.holder, origin=lost.origin, what=many(made_here)
                )
            is_known = hangs is None and is_dated(facts, lost) and not made_here
            yield finding(
                facts,
                "T4",
                source=lost.origin,
                replica=lost.holder,
                gtid_set=lost.leading,
                grade=Grade.PROVED if is_known else Grade.LIKELY,
                severity=None if hangs is None else Severity.WARNING,
                strategies=None if hangs is None else (),
                proof=(
                    evidence("has", lost.leading, facts.first[lost.holder]),
                    evidence("owned, not yet executed", lost.leading, origin),
                    *age,
                ),
                explanation=f"{text}.",
            )


_OWNED_BY_SESSION = (
    ". No channel of {holder} counts {what} of these as received: a session of {origin} may own the"
    " GTID (SET gtid_next) and commit nothing. Then {holder} has a transaction that was made by"
    " hand (H7)"
)


def allowed_extra(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield T6: extra transactions that the policy permits."""
    for edge in facts.edges:
        if edge.allowed:
            yield on_edge(
                facts,
                edge,
                "T6",
                edge.allowed,
                grade=Grade.PROVED,
                proof=(evidence("extra, of an allowed UUID", edge.allowed, _holder(facts, edge)),),
                explanation=f"{edge.replica} has {many(edge.allowed)} that {edge.source}"
                " does not have, with UUIDs that the policy allows." + _if_purged(facts, edge),
            )


def _if_purged(facts: ClusterFacts, edge: EdgeFacts) -> str:
    """Return what allowed transactions that are purged mean for a failover; "" without any."""
    holder = _holder(facts, edge)
    purged = edge.allowed & (holder.gtid_purged or GtidSet())
    if not purged:
        return ""
    return (
        f" Its binary logs no longer have {many(purged)} of these: a server without them that"
        f" replicates from {holder.name} by auto-position is refused with error 1236, also after a"
        f" failover to it (gtid-audit handshake --promote {holder.name})."
    )


def errant_available(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E1: extra, and still in the replica's binary logs."""
    for edge in facts.edges:
        holder = _holder(facts, edge)
        available = _errant_set(facts, edge) - (holder.gtid_purged or GtidSet())
        if available and not _is_reported_elsewhere(facts, edge):
            yield _errant(facts, edge, "E1", available)


def errant_purged(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E2: extra, and no longer in the replica's binary logs."""
    for edge in facts.edges:
        purged = _errant_set(facts, edge) & (_holder(facts, edge).gtid_purged or GtidSet())
        if purged and not _is_reported_elsewhere(facts, edge):
            yield _errant(facts, edge, "E2", purged)


def _errant_set(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the errant set, without what a reset removed from the source's list.

    A reset (E6) also removes the GTIDs that the source received from others. Then only the extra
    transactions that the replica committed itself may be errant.
    """
    was_reset = edge.errant and any(
        loss.cause is Cause.RESET and loss.origin == edge.source for loss in losses_of(facts)
    )
    return edge.errant.from_uuid(_holder(facts, edge).server_uuid) if was_reset else edge.errant


def _is_reported_elsewhere(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    """Return whether another finding has the cause of an errant set.

    1. Another source of the same replica, before this one by UUID, does not have the set either.
    2. The set waits in a channel that an operator stopped (A7): starting that channel delivers it.
       If that channel leads directly from the replica to its source, and has never delivered
       anything of that origin, the write itself may be the fault: E1 is reported with the channel.
    """
    for other in facts.edges_into(edge.replica):
        places = [
            (str(facts.last[each.source].server_uuid), each.channel.name)
            for each in (other.edge, edge.edge)
        ]
        if edge.errant == other.errant and places[0] < places[1]:
            return True
    for other in facts.edges if edge.way_back_is_stopped else ():
        channel = other.edge
        if channel.replica != edge.replica and not channel.is_open:
            waiting = other.expected | other.queued_above | other.queued_below
            is_direct = (channel.source, channel.replica) == (edge.replica, edge.source)
            if edge.errant <= waiting and not (is_direct and _is_first_work(facts, edge)):
                return True
    return False


def _is_first_work(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    """Return whether a source still has nothing of an origin of the replica's extra GTIDs.

    In a pair in which clients write to both servers, each has earlier transactions of both.
    """
    had = facts.fully_read[edge.source].last.gtid_executed
    return any(not had.from_uuid(tsid.uuid) for tsid in edge.errant.tsids)


def _errant(facts: ClusterFacts, edge: EdgeFacts, code: str, gtid_set: GtidSet) -> Finding:
    """Return the finding of an errant set, with the same text whether it is purged or not.

    Proved, with two exceptions. A channel that an operator stopped keeps the set from the source:
    then the intention decides. Or its origin is no server of the audit.
    """
    holder, source = _holder(facts, edge), facts.last[edge.source]
    sender, strategies = facts.last[edge.replica], _STRATEGIES[code, edge.way_back_is_stopped]
    if edge.unseen:
        return _errant_in_part(facts, edge, code, gtid_set)
    proof: tuple[Evidence, ...] = (
        evidence("extra, read first", gtid_set, holder),
        evidence("absent, read afterwards", gtid_set, source),
        evidence("gtid_purged", holder.gtid_purged, holder),
    )
    way_back = ""
    if edge.way_back_is_stopped:
        proof += (evidence(WAY_BACK, "stopped, without an error", source),)
        way_back = _way_back_text(edge, code)
        if code == "E1":
            way_back += gone_logs_text(sender, replica=edge.source, needed=gtid_set)
    others = _other_sources_without(facts, edge, gtid_set)
    if others:
        proof += (evidence("absent on its other sources too", ", ".join(others), holder),)
        way_back += f" Its other sources do not have them either: {', '.join(others)}."
    for loss in _made_by_hand(facts, holder.name, gtid_set):
        proof += (evidence(MADE_BY_HAND, loss.gtid_set, facts.last[loss.origin]),)
        way_back += _MADE_BY_HAND.format(
            what=loss.gtid_set.shortened(),
            origin=loss.origin,
            distance=distance_to(loss),
            holder=holder.name,
        )
    hiding = that_may_hide(facts, edge)
    is_hidden = gtid_set.gtid_count <= len(hiding)  # one per server, the last one
    if hiding:
        way_back += hidden_text(gtid_set, hiding)
    assigned = assigned_text(edge, gtid_set, sender, source)
    declared = declared_text(source, sender, gtid_set)
    way_back += assigned + declared
    if declared:
        proof += (evidence(DECLARED, source.gtid_purged, source),)
    foreign = _of_no_server(facts, gtid_set)
    if foreign:
        proof += (evidence("server_uuid of no server of this audit", foreign, holder),)
        way_back += _of_no_server_text(facts, source.name, foreign, code)
    is_open = bool(foreign and _without_uuid(facts))
    if is_open:
        strategies = ("add_servers",)
    origin = _origin(gtid_set, holder)
    is_likely = edge.way_back_is_stopped or bool(hiding or foreign or assigned or declared)
    return on_edge(
        facts,
        edge,
        code,
        gtid_set,
        grade=Grade.LIKELY if is_likely else Grade.PROVED,
        severity=Severity.WARNING if is_hidden or (is_open and foreign == gtid_set) else None,
        # If there are several, it is unknown which is on its way: none is declared unneeded.
        strategies=() if hiding and not is_hidden else strategies,
        proof=proof,
        explanation=f"{edge.replica} has {many(gtid_set)} ({origin}) that its source"
        f" {edge.source} does not have and does not receive."
        f"{content_text(sender, gtid_set)}{way_back}",
    )


def _other_sources_without(facts: ClusterFacts, edge: EdgeFacts, gtid_set: GtidSet) -> list[str]:
    """Return the other sources of a replica that do not have its errant set either."""
    return [
        other.source
        for other in facts.edges_into(edge.replica)
        if other.source != edge.source and gtid_set <= other.errant
    ]


def _origin(gtid_set: GtidSet, holder: ReadServer) -> str:
    if gtid_set == gtid_set.from_uuid(holder.server_uuid):
        return "its own"
    uuid = uuid_of_group(group_name_of(holder))
    if uuid is not None and gtid_set == gtid_set.from_uuid(uuid):
        return "its group's"
    return "committed elsewhere"


_STRATEGIES = {
    ("E1", True): ("start_channel", "inject_empty", "undo_on_replica"),
    ("E1", False): ("inject_empty", "redo_on_source", "undo_on_replica"),
    ("E2", True): ("inject_empty", "reclone"),
    ("E2", False): ("inject_empty", "reclone"),
}


def _made_by_hand(facts: ClusterFacts, holder: str, gtid_set: GtidSet) -> Iterator[Loss]:
    for loss in losses_of(facts):
        is_part = loss.holder == holder and loss.gtid_set <= gtid_set
        if loss.cause is Cause.BY_HAND and is_part:
            yield loss


_MADE_BY_HAND = (
    " {what} has the server_uuid of {origin}, which never committed it: a session set gtid_next by"
    " hand. {distance} Then {holder} skips the new transaction."
)
_BY_HAND = {
    "E1": "a session set gtid_next",
    "E2": "a session set gtid_next, or gtid_purged (with another UUID than was meant)",
}
_OF_NO_SERVER = (
    " No server of this audit has the server_uuid of {what}. Possible causes: {hand}; a"
    " former source, or a server outside this audit, committed them; {source} was"
    " replaced, or restored and given a new server_uuid, and lost them. Compare the rows on"
    " {source} before you choose a repair."
)

_MAY_BE_OF_UNREAD = (
    " Or a server of this audit that gtid-audit could not read has this server_uuid: {unread}. Let"
    " gtid-audit read it, and audit again, before you change anything."
)


def _of_no_server_text(facts: ClusterFacts, source: str, foreign: GtidSet, code: str) -> str:
    text = _OF_NO_SERVER.format(source=source, what=foreign.shortened(), hand=_BY_HAND[code])
    unread = _without_uuid(facts)
    return text + (_MAY_BE_OF_UNREAD.format(unread=unread) if unread else "")


def _without_uuid(facts: ClusterFacts) -> str:
    """Return the servers of the audit whose server_uuid was not read."""
    return ", ".join(sorted(name for name, each in facts.last.items() if each.server_uuid is None))


def _way_back_text(edge: EdgeFacts, code: str) -> str:
    """Explain the effect of starting the stopped channel: the holder of an E2 cannot send it."""
    source, holder = edge.source, edge.replica
    if code == "E2":
        return (
            f" A channel, or Group Replication, is stopped on the way to {source}. {holder} has"
            " purged them: starting it delivers them only if a server on the way has already"
            " received them."
        )
    return (
        f" A channel, or Group Replication, is stopped on the way to {source}. If clients may write"
        f" on {holder}, they are not errant. When it is started, {source} applies them, unless"
        " their rows conflict or a server on the way does not forward them."
    )


def _errant_in_part(facts: ClusterFacts, edge: EdgeFacts, code: str, gtid_set: GtidSet) -> Finding:
    """Return the finding of an errant set if the audit did not read the whole topology.

    The set may still be on its way: a server that was not read delivers to the source, directly or
    through others. Until it is read, the operator must not declare, redo or undo anything. While it
    delivers, in order, what the replica committed earlier, the rest is a backlog of servers that
    nothing else shows.
    """
    holder, source = _holder(facts, edge), facts.last[edge.source]
    unseen = ", ".join(edge.unseen)
    is_unread = bool({*edge.unseen} & facts.last.keys())
    are_not = "gtid-audit did not read" if is_unread else "are not part of this audit"
    arrives = code == "E1" and _earlier_ones_arrive(facts, edge, gtid_set)
    return on_edge(
        facts,
        edge,
        code,
        gtid_set,
        grade=Grade.LIKELY,
        severity=Severity.INFO if arrives else Severity.WARNING,
        strategies=("add_servers",),
        proof=(
            evidence("extra, read first", gtid_set, holder),
            evidence("absent, read afterwards", gtid_set, source),
            evidence("gtid_purged", holder.gtid_purged, holder),
            evidence("sources that were not read", unseen, source),
            evidence(
                "earlier ones arrived between the readings", "yes" if arrives else "no", source
            ),
        ),
        explanation=f"{edge.replica} has {many(gtid_set)} that its source {edge.source}"
        f" does not have. They are errant, or they are on their way through servers that {are_not}:"
        f" {unseen}."
        + (" Earlier ones arrived between the readings, in order." if arrives else "")
        + f" {'Let gtid-audit read' if is_unread else 'Add'} these servers and audit again.",
    )


def _earlier_ones_arrive(facts: ClusterFacts, edge: EdgeFacts, gtid_set: GtidSet) -> bool:
    """Return whether a source executed, between the readings, what precedes an extra set.

    The extra set must be the tail of each origin: a gap was passed on the way.
    """
    name = edge.source
    now = facts.fully_read[name].last.gtid_executed
    arrived = now - facts.fully_read[name].first.gtid_executed
    return not gtid_set & now.filled() and {*gtid_set.tsids} <= {*arrived.tsids}


def _of_no_server(facts: ClusterFacts, gtid_set: GtidSet) -> GtidSet:
    """Return what of a set has the UUID of no audited server, and of no group of them.

    Its origin cannot be queried. A GTID that a client set with gtid_next looks like a lost one of a
    server whose server_uuid has changed. That happens if its auto.cnf was removed, or if an empty
    server is at its address.
    """
    for server in facts.last.values():
        if server.server_uuid is not None:
            gtid_set = gtid_set.without_uuid(server.server_uuid)
    for uuid in group_uuids(facts.last.values()):
        gtid_set = gtid_set.without_uuid(uuid)
    return gtid_set


def _holder(facts: ClusterFacts, edge: EdgeFacts) -> ReadServer:
    """Return the reading from which extra GTIDs are computed: the replica's first."""
    return facts.fully_read[edge.replica].first


RULES: Rules = (
    unconfirmed_lead,  # T4
    allowed_extra,  # T6
    errant_available,  # E1
    errant_purged,  # E2
)
