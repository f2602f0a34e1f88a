"""C2: transactions upstream of a replica that carry its server_id under another UUID.

Its receiver drops them without an error. What a server commits that has this server_id now is in
settings.py. Here are those of a copy that kept the server_id, of a group, of a former server_uuid,
and those that a session committed under the UUID of another server. A log shows the server_id
(former_ids.py).
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.former_ids import under_uuids_of_others
from topology.facts.memberships import group_uuids
from topology.readings.snapshot import ServerSnapshot
from topology.rules.build import Rules, evidence, many, on_edge


def former_server_id(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C2: transactions upstream of a replica with its own server_id, of no current UUID.

    If another server has the same server_id now, the C2 of settings.py reports those of a group,
    and those of that server if it is upstream.
    """
    groups = group_uuids(facts.last.values())
    for edge in facts.edges:
        replica = facts.last[edge.replica]
        own_id = edge.own_id - _of_equal_ids(facts, edge)
        if not own_id:
            continue
        ids = [server.server_id for server in facts.last.values()]
        of_groups = any(own_id.from_uuid(uuid) for uuid in groups)
        if of_groups and ids.count(replica.server_id) > 1:
            continue
        coming = own_id - _logged_upstream(facts, edge)
        by_hand = under_uuids_of_others(own_id, replica, facts.last)
        is_likely = coming or _of_its_group(replica, own_id) or by_hand
        yield on_edge(
            facts,
            edge,
            "C2",
            own_id,
            grade=Grade.LIKELY if is_likely else Grade.PROVED,
            proof=(
                evidence("server_id", replica.server_id, replica),
                evidence("server_uuid", replica.server_uuid, replica),
                evidence("upstream, logged with this server_id", own_id, replica),
            ),
            explanation=f"{replica.name} drops {many(own_id)} of its sources as if they were"
            f" its own: they carry its server_id, {replica.server_id}, under "
            + _whose(facts, edge, own_id).format(name=replica.name)
            + (_COMING.format(what=many(coming), name=replica.name) if coming else ""),
        )


def _of_equal_ids(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return the part that servers upstream committed which have the server_id of the replica."""
    replica = facts.last[edge.replica]
    others = [facts.last[name] for name in facts.graph.upstream_of(replica.name, stopped_too=True)]
    return GtidSet.union_of(
        edge.own_id.from_uuid(each.server_uuid)
        for each in others
        if each.server_uuid is not None
        and each.server_id == replica.server_id
        and each.server_uuid != replica.server_uuid
    )


def _logged_upstream(facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    upstream = facts.graph.upstream_of(edge.source, stopped_too=True)
    servers = [facts.last[name] for name in upstream | {edge.source}]
    return GtidSet.union_of(
        (each.gtid_executed or GtidSet()) | (each.gtid_owned or GtidSet()) for each in servers
    )


_COMING: Final = (
    " {what} of these was received by a server that sends to {name}, and not applied there: unless"
    " its applier has passed them (a RESET), they reach {name} next."
)
_AS_ANOTHER: Final = (
    "a UUID that no server of this audit has. {name} was probably cloned or restored, and kept its"
    " server_id. Set another server_id on it. Then it must fetch the dropped transactions again."
)
_AS_A_STRANGER: Final = (
    "the UUID of a group, and a member of that group has, or had, the same server_id. Set another"
    " server_id on {name}. Then it must fetch the dropped transactions again."
)
_AS_A_MEMBER: Final = (
    "the UUID of its group. {name} probably committed them as the primary and lost them since (a"
    " crash, an older copy of its data). gtid-audit looked up only the first and the last"
    " transaction of each interval. If {name} joins its group again, the group delivers them."
)
_BY_HAND: Final = (
    "a UUID that is not its own. They include {what} under the UUID of another server of this"
    " audit: a session on {name} probably set gtid_next to them, and {name} has lost them since (a"
    " crash, an older copy of its data, RESET BINARY LOGS AND GTIDS). Audit again when the source"
    " of {name} has applied them: H8 then has the repair. With another server_id {name} applies"
    " them, also if it still has the rows (a RESET): compare first."
)


def _whose(facts: ClusterFacts, edge: EdgeFacts, own_id: GtidSet) -> str:
    replica = facts.last[edge.replica]
    if _of_its_group(replica, own_id):
        return _AS_A_MEMBER
    if by_hand := under_uuids_of_others(own_id, replica, facts.last):
        return _BY_HAND.format(what=many(by_hand), name="{name}")
    groups = group_uuids(facts.last.values())
    return _AS_A_STRANGER if any(own_id.from_uuid(uuid) for uuid in groups) else _AS_ANOTHER


def _of_its_group(server: ServerSnapshot, gtids: GtidSet) -> bool:
    return any(gtids.from_uuid(uuid) for uuid in group_uuids([server]))


RULES: Rules = (former_server_id,)  # C2
