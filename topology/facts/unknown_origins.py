"""UUIDs in gtid_executed that belong to no audited server (E5, F2).

How it works
------------
A UUID in a set has an owner: a server, a replication group, or a channel that assigns GTIDs. If all
servers were read, and each channel leads to one of them, an owner outside the audit does not send
anything any more. Two things are left:

* **The servers differ in it**, and timing does not explain it: one server's first reading has what
  another's last reading does not have. A client set gtid_next by hand, a program applies the log of
  another server, or one of the servers had this server_uuid before (E5).
* **All servers have the same of it**, in both readings, and so has each consumer that was read. It
  belongs to a server that no longer exists (F2).

With a source outside the audit nothing is concluded: its UUIDs, and those behind it, are alive.
"""

from dataclasses import dataclass
from uuid import UUID

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.last_result import keep_last_result
from topology.facts.memberships import group_uuids
from topology.facts.unseen import outside_channels, unevaluated_kind


@dataclass(frozen=True, slots=True)
class UnknownOrigins:
    """What the servers have of UUIDs that belong to none of them."""

    alike: GtidSet  # on every server and consumer, in both readings
    missing: tuple[tuple[str, GtidSet], ...]  # by server, what another server has of them


@keep_last_result
def unknown_origins(facts: ClusterFacts) -> UnknownOrigins | None:
    """Return them; None if a server or a source was not read."""
    servers = facts.fully_read
    if servers.keys() != facts.last.keys() or any(outside_channels(facts.graph)):
        return None
    if any(unevaluated_kind(each) for each in facts.last.values()):
        return None
    held = GtidSet.union_of(each.last.gtid_executed for each in servers.values())
    known = _known(facts)
    unknown = [uuid for uuid in held.uuids if uuid not in known]
    if not unknown:
        return UnknownOrigins(GtidSet(), ())
    missing = []
    for name, server in sorted(servers.items()):
        others = [each.first.gtid_executed for other, each in servers.items() if other != name]
        left = _of(unknown, GtidSet.union_of(others)) - server.last.gtid_executed
        missing += [(name, left)] if left else []
    alike = GtidSet.union_of(
        of_it
        for of_it in (held.from_uuid(uuid) for uuid in unknown)
        if _is_everywhere(of_it, facts)
    )
    return UnknownOrigins(alike, tuple(missing))


def _is_everywhere(of_uuid: GtidSet, facts: ClusterFacts) -> bool:
    """Return whether every reading, and every set of a consumer, has these GTIDs."""
    read = [each for two in facts.fully_read.values() for each in (two.first, two.last)]
    sets = [each.gtid_executed for each in read]
    sets += [each.sets[1] for each in facts.snapshot.consumers if each.sets is not None]
    is_owned = any(of_uuid.uuids[0] in each.gtid_owned.uuids for each in read)
    return not is_owned and all(of_uuid <= each for each in sets)


def _of(uuids: list[UUID], gtid_set: GtidSet) -> GtidSet:
    return GtidSet.union_of(gtid_set.from_uuid(uuid) for uuid in uuids)


def _known(facts: ClusterFacts) -> frozenset[UUID]:
    read = (*facts.first.values(), *facts.last.values())
    own = {each.server_uuid for each in read}
    sources = {path.source_uuid for each in read for path in each.channels or ()}
    of_servers = frozenset(each for each in {*own, *sources} if each is not None)
    return of_servers | group_uuids(read) | facts.policy.allowed_uuids
