"""Which transactions a replica would drop because of their server_id, and which servers share one.

A receiver compares the server_id of an event with that of its server, and nothing else
(sql/rpl_replica.cc, queue_event). Two things show the server_id of a transaction:

1. The logs, where they were read: of what a server lost, both ends of each interval represent it
   (topology/facts/lost.py), and of what a server may have committed under a former server_uuid.
   Where they were not, a proved E3, E6 or H7.
2. The UUID, if another server of the audit has it: its transactions carry the server_id of that
   server (topology/facts/progress.py, `same_server_id`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.former_ids import of_no_server, servers_by_id
from topology.facts.progress import same_server_id
from topology.facts.source_answer import LoggedServerIds, SourceAnswer
from topology.readings.history_evidence import ends_of, intervals_of
from topology.readings.same_ids import accepts_own_server_id
from topology.readings.snapshot import ServerSnapshot

_LOST: Final = frozenset({"E3", "E6"})
_BY_HAND: Final = frozenset({"H7"})


@dataclass(frozen=True, slots=True)
class SharedServerId:
    """A server that must have another server_id: which others have it, and what it drops."""

    server: str
    server_id: int
    others: tuple[str, ...]  # empty: the server that had it is not one of the servers
    dropped: GtidSet = field(default_factory=GtidSet)


def logged_ids_of(
    facts: ClusterFacts, findings: Collection[Finding], replica: str
) -> LoggedServerIds:
    """Return what is known of the server_ids of transactions that a replica does not have."""
    server = facts.last[replica]
    own_id, uuid = server.server_id, server.server_uuid
    if not own_id or uuid is None:
        return LoggedServerIds()
    logged = _ids_in_logs(facts)
    own, by_hand, has = GtidSet(), GtidSet(), server.gtid_executed or GtidSet()
    for lost in facts.lost:
        for part in intervals_of(lost.lost) if lost.origin == replica else ():
            ids = [logged.get(end, frozenset()) for end in ends_of(part)]
            if all(each == {own_id} for each in ids):
                own |= part
            elif all(each and own_id not in each for each in ids):
                by_hand |= part
    # What the replica surely committed itself has its server_id, also where no log was read.
    own |= _proved(findings, replica, _LOST) - by_hand
    by_hand = (by_hand | _proved(findings, replica, _BY_HAND)) - own
    shown = GtidSet.union_of(gtid for gtid, ids in logged.items() if ids == {own_id})
    others = GtidSet.union_of(gtid for gtid, ids in logged.items() if own_id not in ids)
    due = GtidSet.union_of(each.logged for each in facts.last.values()) - has
    former = GtidSet.union_of(
        part
        for part in intervals_of(of_no_server(due, facts.last))
        if all(logged.get(end, frozenset()) == {own_id} for end in ends_of(part))
    )
    below = GtidSet.union_of(edge.own_id for edge in facts.edges_into(replica))
    same_id = (same_server_id(server, facts.last) - others) | shown | former | below
    return LoggedServerIds(same_id.without_uuid(uuid), own, by_hand)


def shared_ids(facts: ClusterFacts, answers: tuple[SourceAnswer, ...]) -> Iterator[SharedServerId]:
    """Yield the servers whose server_id another one has, or that drop what carries theirs."""
    dropped: dict[str, GtidSet] = {}
    for each in answers:
        dropped[each.replica] = dropped.get(each.replica, GtidSet()) | each.same_id
    by_id = servers_by_id(facts.last)
    for name, server in sorted(facts.last.items()):
        if not server.server_id:
            continue
        others = tuple(
            sorted(
                other.name
                for other in by_id.get(server.server_id, ())
                if _share(server, other) and other.name != name
            )
        )
        if others or dropped.get(name):
            yield SharedServerId(name, server.server_id, others, dropped.get(name, GtidSet()))


def to_renumber(shared: tuple[SharedServerId, ...], candidate: str) -> tuple[SharedServerId, ...]:
    """Return which servers need another server_id: all of those that share one, except one.

    A server that drops transactions needs another one in any case: the number in the logs of the
    others stays. Of the rest, the candidate keeps its number, or the first server does.
    """
    free = sorted(
        (each for each in shared if not each.dropped),
        key=lambda each: (each.server != candidate, each.server),
    )
    kept: set[str] = set()
    for each in free:
        taken = any(other.server_id == each.server_id for other in free if other.server in kept)
        if not taken:
            kept.add(each.server)
    return tuple(each for each in shared if each.server not in kept)


def _proved(findings: Collection[Finding], origin: str, codes: frozenset[str]) -> GtidSet:
    """Return what findings prove about transactions of the UUID of a server (lost_history.py)."""
    return GtidSet.union_of(
        each.gtid_set
        for each in findings
        if each.code in codes and each.source == origin and each.grade is Grade.PROVED
    )


def _share(one: ServerSnapshot, other: ServerSnapshot) -> bool:
    """Return whether one of two servers with one server_id drops what the other commits."""
    is_same = one.server_uuid == other.server_uuid  # C1
    return not (is_same or accepts_own_server_id(one, other) or accepts_own_server_id(other, one))


def _ids_in_logs(facts: ClusterFacts) -> Mapping[GtidSet, frozenset[int]]:
    """Return the server_ids that logs show, by GTID; more than one if two logs differ (E4)."""
    found: dict[GtidSet, frozenset[int]] = {}
    for server in facts.last.values():
        for record in server.history_evidence.commits if server.history_evidence else ():
            found[record.gtid] = found.get(record.gtid, frozenset()) | {record.server_id}
    return found
