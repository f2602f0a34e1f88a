"""Servers that no channel links, evaluated as possible edges: which could join, which could not.

How it works
------------
Channels divide the servers of a cluster into parts. Nothing flows between two parts. The largest
part (most servers, then most transactions, then by UUID) is regarded as the running topology. In
each other part, the servers that have no source of their own would have to join it. For each of
them and each server of the main part, the handshake's sets decide, in MySQL Shell's words:

* *extra*: executed there, and neither executed nor owned by the candidate or a server that the
  candidate receives from. The candidate would accept the server, and its extra transactions would
  be hidden: it has diverged (J3). A transaction that only a replica of the candidate has never
  arrives on the candidate.
* *purged*: missing there, and purged by the candidate: refused with 1236 (J2). Transactions of its
  own UUID that the server lost count as well: the candidate compares everything that it has purged.
* neither: it can join (J1); it is new, identical or recoverable.

The largest part need not be the topology: a server that was detached with its replicas is one too.
If the other server has everything that the part has (`has_all`), the part could as well join it,
and nothing has diverged. Sets do not separate that from a former source that returned with
transactions of its own, so J3 is `likely` there.

A replication group of which every member was read is a part like any other.

The finding reports the best candidate: one that hides nothing that another server has, among these
one that has purged nothing that is missing, among these one that accepts auto-position, and among
these one from which the others replicate. So a server that was a replica of two sources joins the
other replica of both: each source alone hides what it received from the other one.

    a ──▶ d ◀── e      x has A:1-3,E:1-3      extra for a: E:1-3, for e: A:1-3, for d: nothing

What a replica of the main part has, and neither committed nor has from a source of that part, does
not count: it is errant there (E1).

If every candidate of the main part hides something that a server of another part committed itself,
the servers of that part are candidates as well. What is left *elsewhere* is extra for the best
candidate only: it belongs to another server, so the server has not diverged by it.

A part with a source outside the audit may be linked through that source, and so may members of a
group that were not read: neither is evaluated here, with one exception.

A server without any source receives nothing. If it has transactions of a server of such an *open*
part, or of that part's unread source, it received them once. If others of these are missing, they
will not arrive. Two primaries s and r may each have been the other's source. They look the same as
a chain r → x → s with an unread x, in which s was the primary before. Only transactions that s or x
committed since distinguish the two. Where the policy declares x external, nothing else makes the
verdict UNKNOWN. In that case a server that committed nothing for s is reported without such
transactions as well. A server that has executed nothing is reported, too: it is new, or a reset
(RESET BINARY LOGS AND GTIDS) has made it forget everything. The finding is never more than
`likely`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.last_result import keep_last_result
from topology.facts.unseen import address_of, is_aurora_reader, outside_channels
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ReadServer

_PARTS_MIN: Final = 2  # one part is the whole
# With one of these, the server accepts no receiver with auto-position.
_REFUSES: Final = frozenset({"gtid_mode", "log_bin", "binary_log"})


@dataclass(frozen=True, slots=True)
class Joining:
    """What would happen if `server` replicated from `candidate`."""

    candidate: str
    server: str
    missing: GtidSet  # the candidate has it and the server does not; excludes `own`
    own: GtidSet  # the same, under the server's own UUID: its receiver would drop it
    purged: GtidSet  # the part of both that the candidate cannot send: it would refuse
    is_purged_now: bool  # some of it is purged now; if False, it will be once it is applied
    extra: GtidSet  # the server has it, and the candidate neither has nor receives it
    # The part of `extra` that belongs to another candidate, or that another part committed itself.
    elsewhere: GtidSet
    lost: GtidSet  # no server of that part has these GTIDs of its own UUIDs: a loss
    ahead: GtidSet  # the server has it; one of the candidate's sources does, the candidate not yet
    unread: tuple[str, ...] = ()  # the candidate's sources outside the audit: a possible link
    has_all: bool = False  # the server has everything that the candidate's part has
    # The server has it, and the main part does not. Empty if the candidate is of the main part.
    not_on_main: GtidSet = field(default_factory=GtidSet)

    @property
    def only_there(self) -> GtidSet:
        """Return what no candidate has: with it, the server has diverged from all of them."""
        return self.extra - self.elsewhere

    @property
    def state(self) -> str:
        """Return the state of the server, in the terms of MySQL Shell."""
        if self.extra:
            return "diverged"
        if self.purged:
            return "irrecoverable"
        return "recoverable" if self.missing or self.own else "identical"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a cluster, and what is known of each."""

    joinings: tuple[Joining, ...]
    unevaluated: tuple[tuple[str, ...], ...]  # unlinked, and not evaluated: facts are missing


@keep_last_result
def evaluate_parts(facts: ClusterFacts) -> Parts:
    """Evaluate the parts of a cluster that no channel links."""
    # An Aurora reader needs no channel: its storage is that of a writer.
    readers = {name for name, each in facts.last.items() if is_aurora_reader(each)}
    islands = [part for part in facts.islands if not set(part) <= readers]
    if len(islands) < _PARTS_MIN:
        return Parts((), ())
    excused = {name for name, _ in outside_channels(facts.graph)}
    known_groups = {each.configured for each in facts.graph.memberships if each.is_known}
    for group in facts.graph.together:
        excused.update(() if group in known_groups else group)
    if facts.graph.together:  # a server whose settings were not read may be of a group
        excused.update(name for name, each in facts.last.items() if each.settings is None)
    unlinked = [part for part in islands if not excused & set(part)]
    known = [part for part in unlinked if set(part) <= facts.fully_read.keys()]
    if len(unlinked) < len(islands) and len(unlinked) < _PARTS_MIN:
        return Parts(tuple(_left_behind(facts, known)), ())
    if len(known) < _PARTS_MIN:
        return Parts((), tuple(unlinked))
    main = max(
        known,
        key=lambda part: (
            len(part),
            _executed(facts, part).gtid_count,
            sorted(_uuid(facts, name) for name in part),
        ),
    )
    joinings = tuple(
        _best_of_all(facts, server, main, [each for each in known if each not in (part, main)])
        for part in known
        if part != main
        for server in _entrances(facts, part)
    )
    unknown = [part for part in unlinked if part not in known]
    return Parts(joinings, (main, *unknown) if unknown else ())


def _left_behind(facts: ClusterFacts, known: Sequence[tuple[str, ...]]) -> Iterator[Joining]:
    """Yield servers without a source that receive nothing from an open part: see *How it works*."""
    peers = {name for group in facts.graph.together for name in group}
    for server in (name for part in known for name in _entrances(facts, part)):
        has = _executed(facts, (server,))
        found: list[Joining] = []
        for part in facts.islands:
            channels = [each for name, each in outside_channels(facts.graph) if name in part]
            if not channels or peers & set(part) or not set(part) <= facts.fully_read.keys():
                continue
            executed = _executed(facts, part)
            uuids = {_uuid(facts, name) for name in part} | {
                each.source_uuid for each in channels if each.source_uuid is not None
            }
            # A copy of the server itself (equal server_uuid) delivers nothing to it.
            fed = GtidSet.union_of(executed.from_uuid(uuid) for uuid in uuids)
            fed = fed.without_uuid(_uuid(facts, server))
            addresses = tuple(sorted({address_of(each) for each in channels}))
            is_declared = set(addresses) <= facts.policy.external_sources
            # It has committed for them: after a failover the unread source may receive from it.
            feeds = bool(executed.from_uuid(_uuid(facts, server)))
            is_behind = bool(fed - has) and (not has or bool(fed & has))
            if is_behind or (fed & has and is_declared and not feeds):
                found.append(replace(_best(facts, server, part), unread=addresses))
        if found:
            yield min(found, key=lambda each: (bool(each.purged), _uuid(facts, each.candidate)))


def _entrances(facts: ClusterFacts, part: tuple[str, ...]) -> tuple[str, ...]:
    """Return the servers of a part that have no source; in a ring, the one with the largest set."""
    without = tuple(name for name in part if not facts.graph.upstream_of(name, stopped_too=True))
    if without:
        return without
    return (max(part, key=lambda name: (_executed(facts, (name,)).gtid_count, _uuid(facts, name))),)


def _best_of_all(
    facts: ClusterFacts, server: str, main: tuple[str, ...], others: Sequence[tuple[str, ...]]
) -> Joining:
    """Return the best candidate of the main part; that of another part if only it has everything.

    Two servers that left the topology together have nothing of their own for each other. So the
    other part must have committed some of what the main part does not have.
    """
    best = _best(facts, server, main)
    if not best.elsewhere:
        return best
    for part in others:
        theirs = GtidSet.union_of(best.extra.from_uuid(_uuid(facts, name)) for name in part)
        found = _best(facts, server, part) if theirs else best
        if not found.extra:
            return replace(found, not_on_main=best.extra)
    return best


def _best(facts: ClusterFacts, server: str, main: tuple[str, ...]) -> Joining:
    found = [_joining(facts, server, candidate, main) for candidate in main]
    return min(
        found,
        key=lambda each: (
            bool(each.elsewhere),
            bool(each.purged),
            bool(notable_values(facts.last[each.candidate].notable_settings).keys() & _REFUSES),
            each.candidate not in _entrances(facts, main),
            each.ahead.gtid_count,
            _uuid(facts, each.candidate),
        ),
    )


def _joining(facts: ClusterFacts, server: str, candidate: str, main: tuple[str, ...]) -> Joining:
    """Compare the sets of two servers between which nothing flows; both parts are evaluated."""
    has = _executed(facts, (server,))
    for allowed in facts.policy.allowed_uuids:
        has = has.without_uuid(allowed)
    beyond = has - _executed(facts, main)
    groups = facts.graph.group_uuids  # what members committed under one is of no server
    losing = {_uuid(facts, name) for name in main} - groups
    lost = GtidSet.union_of(beyond.from_uuid(uuid) for uuid in sorted(losing))
    # A replica of the candidate may have followed another cluster for a while.
    upstream = facts.graph.upstream_of(candidate, stopped_too=True) & facts.fully_read.keys()
    receives = _executed(facts, {candidate, *upstream})
    source, replica = facts.fully_read[candidate], facts.fully_read[server].last
    unlogged = _never_logged(source.first) | _never_logged(source.last)
    unlogged -= replica.gtid_executed
    missing = (source.first.gtid_executed - replica.gtid_executed) | unlogged
    is_of_group = _uuid(facts, server) in groups
    own = GtidSet() if is_of_group else missing.from_uuid(_uuid(facts, server))
    gone = missing & (source.first.gtid_purged | source.last.gtid_purged)
    extra = has - receives - lost
    return Joining(
        candidate=candidate,
        server=server,
        missing=missing - own,
        own=own,
        # The source compares the whole set that it has purged, regardless of the UUID.
        purged=gone | (missing & unlogged),
        is_purged_now=bool(gone),
        extra=extra,
        elsewhere=extra & (_belonging_to(facts, main) | _committed_apart(facts, server)),
        lost=lost,
        ahead=(has & receives) - _executed(facts, (candidate,)),
        has_all=_executed(facts, main) <= _executed(facts, (server,)),
    )


def _belonging_to(facts: ClusterFacts, main: tuple[str, ...]) -> GtidSet:
    """Return what a part has executed, without what a replica of it received from elsewhere.

    Such transactions are errant (E1). They show that the replica once followed the server, or its
    source, and not that the server is to follow the replica.
    """
    own = (_executed(facts, (name,)).from_uuid(_uuid(facts, name)) for name in main)
    return GtidSet.union_of((_executed(facts, _entrances(facts, main)), *own))


def _committed_apart(facts: ClusterFacts, server: str) -> GtidSet:
    """Return what servers that no channel links with this one have under their own UUIDs."""
    apart = {name for part in facts.islands if server not in part for name in part}
    return GtidSet.union_of(
        _executed(facts, (name,)).from_uuid(_uuid(facts, name))
        for name in sorted(apart & facts.fully_read.keys())
    )


def _never_logged(source: ReadServer) -> GtidSet:
    """Return what a server receives and will add to gtid_purged: log_replica_updates is OFF."""
    if "log_replica_updates" not in notable_values(source.notable_settings):
        return GtidSet()
    return (source.gtid_retrieved | source.gtid_owned).without_uuid(source.server_uuid)


def _uuid(facts: ClusterFacts, name: str) -> UUID:
    return facts.fully_read[name].last.server_uuid


def _executed(facts: ClusterFacts, names: Iterable[str]) -> GtidSet:
    readings = (facts.fully_read[name].last for name in names)
    return GtidSet.union_of(
        gtid_set for each in readings for gtid_set in (each.gtid_executed, each.gtid_owned)
    )
