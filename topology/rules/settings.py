"""C2, C15: identity numbers and settings that lose transactions without an error.

1. C2: servers with one server_id. A replica drops every event that carries its own server_id,
   because it treats the other server's transactions as its own. If transactions can flow from one
   of them to the other, that is a loss without an error. (Seen on 9.7.4 in a chain a → b → c with
   equal ids of a and c.) A receiver refuses it only if the two are linked directly (13117, 1593).
   former_server_ids.py has the transactions that no server of now explains.
2. C15: settings with which the applier skips errors or converts values. The server logs the GTID,
   does not change the row, and the sets agree.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade, Severity, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.former_ids import (
    maybe_own_server_id,
    of_unknown_uuids,
    shown_with_own_server_id,
)
from topology.facts.memberships import group_uuids
from topology.facts.receivers import leaves_out
from topology.readings.dialect import CHANGED_SINCE_START, SERVER_ID_SOURCE
from topology.readings.notable_settings import notable_values
from topology.readings.same_ids import accepts_own_server_id, may_accept_own_server_id
from topology.readings.snapshot import ThreadState
from topology.rules.build import Rules, evidence, finding, many

EQUAL_IDS: Final = "equal MySQL server ids"  # in a receiver's error: 1593, since 8.0 13117

_COUNTER: Final = "sql_replica_skip_counter"

# Each setting, and its effect unless the value is harmless: see notable_settings.py.
_SKIPS: Final = {
    "replica_skip_errors": (
        "the applier ignores these errors and does not apply the change (5.6 also leaves out the"
        " GTID of a DDL statement, see H8)"
    ),
    "replica_exec_mode": "the applier ignores duplicate keys and missing rows",
    "replica_type_conversions": (
        "the applier converts values that do not fit, and loses a part of them"
    ),
    _COUNTER: "the applier skips this number of the next event groups",
}


def duplicate_server_id(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C2: two servers of one topology with one server_id."""
    by_uuid = sorted(facts.last, key=lambda name: (str(facts.last[name].server_uuid), name))
    by_id: dict[int, list[str]] = {}
    for name in by_uuid:
        if server_id := facts.last[name].server_id:  # one with 0 neither sends nor receives
            by_id.setdefault(server_id, []).append(name)
    for left, right in (pair for names in by_id.values() for pair in combinations(names, 2)):
        one, other = facts.last[left], facts.last[right]
        if one.server_uuid == other.server_uuid:
            continue  # C1 includes it
        flows = [
            (origin, replica)
            for origin, replica in ((left, right), (right, left))
            if origin in facts.graph.upstream_of(replica, stopped_too=True)
        ]
        if flows and all(accepts_own_server_id(facts.last[b], facts.last[a]) for a, b in flows):
            continue
        if flows:
            yield _dropping(facts, flows)
        elif any({left, right} <= set(group) for group in facts.islands):
            yield finding(
                facts,
                "C2",
                source=left,
                replica=right,
                severity=Severity.WARNING,
                grade=Grade.PROVED,
                proof=tuple(
                    evidence("server_id", server.server_id, server) for server in (one, other)
                ),
                explanation=f"{left} and {right} have the same server_id, {one.server_id}. No"
                " transactions flow from one to the other now. If one becomes the source of the"
                " other, the replica will drop every transaction of its source.",
            )


_MAYBE_OWN: Final = (
    " {what} of these may carry the server_id of {name}, if it committed them itself under a UUID"
    " that is not its own (that of its group, or its former one): its receiver drops those."
)

_AS_EARLIER_ONES: Final = (
    " The receiver of {name} has read past earlier transactions of the same origin (H8). If a"
    " server with the server_id of {name} committed them, it drops these as well. If {name} forgot"
    " them (RESET BINARY LOGS AND GTIDS), these may be among what it forgot: their rows are there."
)


_OF_A_MEMBER: Final = (
    " The receiver of {name} {shown}: it drops what a server with its server_id, {server_id},"
    " committed. If a member of the group has this server_id, it may drop these."
)


_SHOWN_OWN: Final = (
    " The log of {source} shows {what} of these with the server_id of {name}: its receiver drops"
    " them. If {name} committed them itself and lost them since, compare the rows before they are"
    " fetched again (a crash, an older copy of its data, RESET BINARY LOGS AND GTIDS, a clone that"
    " kept the server_id)."
)


_CHANGED_ID: Final = (
    " The server_id of {name}, {server_id}, {may_have} changed while it ran: its applier drops"
    " {what} of these if a server with this server_id committed them."
)


def are_dropped(facts: ClusterFacts, edge: EdgeFacts) -> str:
    """Explain that a receiver drops what carries the replica's server_id; "" if nothing does."""
    own = shown_with_own_server_id(edge.edge, servers=facts.last) & edge.expected
    names = {"name": edge.replica, "source": edge.source}
    return _SHOWN_OWN.format(what=many(own), **names) if own else ""


def may_be_dropped(facts: ClusterFacts, edge: EdgeFacts) -> str:
    """Explain that a receiver may drop what it is sent; "" if nothing shows that.

    It drops what the replica itself committed, and what a server with the same server_id did. For a
    server that was not read, only the earlier transactions show that.
    """
    own = maybe_own_server_id(edge.edge, graph=facts.graph, servers=facts.last) & edge.expected
    if own:
        return _MAYBE_OWN.format(name=edge.replica, what=many(own))
    read_past = edge.bypassed if edge.channel.auto_position else GtidSet()
    is_alike = {*read_past.uuids} & {*edge.expected.uuids}  # a tag belongs to the same server
    if is_alike:
        return _AS_EARLIER_ONES.format(name=edge.replica)
    replica, channel = facts.last[edge.replica], edge.channel
    of_groups = GtidSet.union_of(
        edge.expected.from_uuid(uuid) for uuid in sorted(group_uuids(facts.last.values()))
    )
    shown = ""
    has = channel.gtid_retrieved
    others = {each for each in of_groups.tsids if each.uuid in has.uuids} - {*has.tsids}
    if others or of_groups & has.filled():  # a tag belongs to the same group
        shown = "has received other transactions of the group, and not these"
    elif of_groups and leaves_out(facts.first[replica.name], channel):
        shown = "read further between the readings, and received nothing"
    if not shown:
        return ""
    return _OF_A_MEMBER.format(name=replica.name, shown=shown, server_id=replica.server_id)


def unread_server_ids(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield what is on its way to a replica, and which it drops if it committed it itself.

    Only what comes from further up, and only if no log that shows the server_id could be read. Of
    what the source of the channel has, T3 says so.
    """
    reasons = {
        name: server.history_evidence.unread
        for name, server in facts.last.items()
        if server.history_evidence is not None and server.history_evidence.unread
    }
    for edge in facts.edges if reasons else ():
        held = of_unknown_uuids(edge.edge, graph=facts.graph, servers=facts.last)
        unclear = maybe_own_server_id(edge.edge, graph=facts.graph, servers=facts.last)
        for name, gtids in sorted(held.items()):
            left = (gtids & unclear) - edge.expected
            if left and name in reasons:
                fact = f"whether its receiver drops {left.shortened()}, which {name} has"
                reason = f"the server_id in the log of {name} was not read: {reasons[name]}"
                yield Unknown(facts.snapshot.cluster, edge.replica, fact, reason)


def may_be_passed(facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet) -> str:
    """Explain that an applier may drop what was received under another server_id.

    The applier compares server_ids like the receiver (sql/log_event.cc, do_shall_skip), and SET
    GLOBAL changes the server_id of a running replica. Equal ids of audited servers are C2; no set
    shows those of other servers. Before 8.0 no server shows the source of the value.
    """
    replica = facts.last[edge.replica]
    source_of_id = replica.setting(SERVER_ID_SOURCE)
    if source_of_id not in (None, CHANGED_SINCE_START):
        return ""
    found = gtids & edge.channel.gtid_retrieved - edge.channel.gtid_applying
    shared = group_uuids(facts.last.values())  # any member commits under such a UUID
    for server in facts.last.values():
        is_another = server.setting(SERVER_ID_SOURCE) != CHANGED_SINCE_START
        uuid = None if server.server_uuid in shared else server.server_uuid
        if uuid is not None and is_another:
            found = found.without_uuid(uuid)
    may_have = "may have been" if source_of_id is None else "was"
    names = {"name": replica.name, "server_id": replica.server_id, "may_have": may_have}
    return _CHANGED_ID.format(what=many(found), **names) if found else ""


def silent_errors(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C15: a replica that skips errors or converts values without an error."""
    for name in sorted(facts.last):
        server = facts.last[name]
        values = {**notable_values(server.notable_settings)}
        harmful = [setting for setting in _SKIPS if setting in values]
        if "gtid_mode" not in values and _COUNTER in harmful:
            harmful.remove(_COUNTER)  # with gtid_mode = ON it skips nothing (seen on 9.7.4)
        # A counter that was used up between the readings skipped a transaction then.
        channels = (*(facts.first[name].channels or ()), *(server.channels or ()))
        waiting = max((channel.skip_counter for channel in channels), default=0)
        if waiting:  # START REPLICA SQL_THREAD copies the value and sets the variable to 0
            values[_COUNTER] = str(waiting)
            harmful.append(_COUNTER)
        if server.channels and harmful:
            effects = "; ".join(
                f"{setting} is {values[setting]}: {_SKIPS[setting]}" for setting in harmful
            )
            yield finding(
                facts,
                "C15",
                replica=name,
                grade=Grade.PROVED,
                proof=tuple(evidence(setting, values[setting], server) for setting in harmful),
                explanation=f"{name} can lose changes without an error."
                f" {effects[0].upper()}{effects[1:]}. Afterwards the GTIDs agree, but the rows"
                " differ.",
            )


_MAY_ACCEPT: Final = (
    " {name} has transactions of the other: it received them before the server_ids were equal, or"
    " it runs with replicate-same-server-id, which no variable shows, and drops nothing."
)


def _may_accept(facts: ClusterFacts, origin: str, replica: str) -> bool:
    """Return whether a replica may run with replicate-same-server-id, and has what it received."""
    uuid, server = facts.last[origin].server_uuid, facts.last[replica]
    if uuid is None or not may_accept_own_server_id(server):
        return False
    return bool(server.gtid_retrieved.from_uuid(uuid) & (server.gtid_executed or GtidSet()))


def _dropping(facts: ClusterFacts, flows: list[tuple[str, str]]) -> Finding:
    """Return the finding of servers between which transactions flow, or would flow."""
    dropped = GtidSet.union_of(_dropped(facts, origin, replica) for origin, replica in flows)
    origin, replica = flows[0]
    servers = (facts.last[origin], facts.last[replica])
    effects = " ".join(_effect(facts, start, end) for start, end in flows)
    is_are = "is" if dropped.gtid_count == 1 else "are"
    may_accept = any(_may_accept(facts, start, end) for start, end in flows)
    return finding(
        facts,
        "C2",
        source=origin,
        replica=replica,
        gtid_set=dropped,
        grade=Grade.LIKELY if may_accept else Grade.PROVED,
        severity=Severity.WARNING if may_accept and not dropped else None,
        proof=(
            *(evidence("server_id", server.server_id, server) for server in servers),
            evidence("transactions of the other that are missing", dropped, servers[1]),
        ),
        explanation=f"{origin} and {replica} have the same server_id, {servers[0].server_id}."
        f" {effects}"
        + (f" {many(dropped)} {is_are} missing." if dropped else "")
        + (_MAY_ACCEPT.format(name=replica) if may_accept else "")
        + " Set another server_id on one of them, then start its channels again. With auto-position"
        " a source sends what its replica did not apply.",
    )


def _effect(facts: ClusterFacts, origin: str, replica: str) -> str:
    """Explain the effect of equal server_ids on the transactions of one server on the other.

    A receiver refuses a source with its own server_id when it connects: it stops with an error and
    receives nothing. In all other cases the replica drops the events, without an error.
    """
    for edge in facts.graph.edges:
        if (edge.source, edge.replica) != (origin, replica):
            continue
        if EQUAL_IDS in edge.channel.receiver_error:
            return (
                f"The receiver of {replica} stopped with error {edge.channel.receiver_errno} for"
                f" this reason, and has received nothing since."
            )
        if edge.channel.receiver is ThreadState.STOPPED:
            return (
                f"The receiver of {replica} is stopped. When it is started, it refuses {origin}"
                " with an error."
            )
    return (
        f"{replica} drops the transactions of {origin} as if they were its own, without an error."
    )


def _dropped(facts: ClusterFacts, origin: str, replica: str) -> GtidSet:
    """Return the origin's own transactions that the replica's sources hold and it does not."""
    uuid = facts.last[origin].server_uuid
    if uuid is None:
        return GtidSet()
    offered = GtidSet.union_of(
        (facts.first[edge.source].gtid_executed or GtidSet()).from_uuid(uuid)
        for edge in facts.edges
        if edge.replica == replica
    )
    offered |= GtidSet.union_of(edge.own_id for edge in facts.edges if edge.replica == replica)
    held = facts.last[replica]
    return offered - (held.gtid_executed or GtidSet()) - (held.gtid_owned or GtidSet())


RULES: Rules = (
    duplicate_server_id,  # C2
    silent_errors,  # C15
)
