"""What the members of a replication group are missing, and what a server outside its group has.

How it works
------------
A group delivers every transaction to all its members (memberships.py), so members differ only by
what is on its way. With the readings of edge_facts.py, for a member m:

    missing = what any member had in its first reading - what m has in its last one
    queued    of these: m has received it (group_replication_applier)
    coming    the rest: the group, or recovery, still has to deliver it

A transaction reaches all members before any commits it, so `coming` of an ONLINE member is empty
after a moment. If it stays, a member joined with it, and the group does not deliver it.

A server that is configured for the group and is no member receives nothing. `extra` is what it
executed and no member has, owns, has received or still receives from a channel: the group refuses
to let it join (3092). `missing` is what members have and it does not. Recovery fetches that from
one donor; `purged` is what even the best donor has purged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gtid import GtidSet
from topology.facts.cluster_readings import ClusterReadings
from topology.facts.errant import held_by
from topology.facts.memberships import Membership, uuid_of_group
from topology.facts.unseen import unseen_sources
from topology.readings.read_once import is_read_once
from topology.readings.snapshot import ReadServer

_LONG: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MemberBacklog:
    """What one member has not executed yet and another has."""

    server: str
    queued: GtidSet  # received by its queue
    coming: GtidSet  # not received
    holder: str  # a member that has all or most of `coming`; "" if there is none
    is_recovering: bool  # in either reading
    is_long: bool  # the group and its members have run for longer than the last day
    # In recovery: it received or executed something between the readings. ONLINE: the same, and
    # `coming` continues what arrived then. Own commits do not bring what it is missing.
    moved: bool


@dataclass(frozen=True, slots=True)
class GroupLeaver:
    """A server that is configured for a group and is no member now."""

    server: str
    donor: str  # the member from which recovery would get the most; "" if none was read
    extra: GtidSet  # it has executed this, and no member has it or receives it
    missing: GtidSet  # members have it
    purged: GtidSet  # of `missing`: the donor has purged it
    unseen: tuple[str, ...]  # servers that were not read, and may deliver `extra` to the group


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The differences within one group, and between the group and the servers outside it."""

    membership: Membership
    backlogs: tuple[MemberBacklog, ...]
    leavers: tuple[GroupLeaver, ...]
    gaps: GtidSet  # between GTIDs of the group: no member has executed or received them


def group_facts(readings: ClusterReadings) -> tuple[GroupFacts, ...]:
    """Return the facts of every group of which the members are known."""
    return tuple(
        GroupFacts(
            membership=each,
            backlogs=tuple(_backlog(name, part, readings) for part in each.parts for name in part),
            leavers=tuple(_leaver(name, each, readings) for name in each.outside),
            gaps=_gaps(each, readings),
        )
        for each in readings.graph.memberships
        if not each.doubt and not is_read_in_part(each, readings)
    )


def is_read_in_part(membership: Membership, readings: ClusterReadings) -> bool:
    """Return whether a server of a group was read once: members differ by what is on its way."""
    names = (*(name for part in membership.parts for name in part), *membership.outside)
    return any(is_read_once(readings.last[name]) for name in names)


def _backlog(name: str, part: tuple[str, ...], readings: ClusterReadings) -> MemberBacklog:
    first, last = readings.fully_read[name].first, readings.fully_read[name].last
    assert first.group is not None, "its view was read"
    assert last.group is not None, "its view was read"
    others = {other: readings.fully_read[other].first for other in part if other != name}
    missing = GtidSet.union_of(each.gtid_executed for each in others.values()) - last.gtid_executed
    for uuid in readings.policy.allowed_uuids:
        missing = missing.without_uuid(uuid)
    # What a session of this member commits now, the others may have executed already.
    missing -= last.gtid_owned - last.group.received
    queued = missing & (last.group.received | last.gtid_retrieved)
    coming = missing - queued
    holders = ((-(coming & each.gtid_executed).gtid_count, other) for other, each in others.items())
    states = {first.group.member_state, last.group.member_state}
    is_recovering = "RECOVERING" in states
    had = first.gtid_executed | first.group.received
    has = last.gtid_executed | last.group.received
    moved = (first.gtid_executed, first.group.received) != (
        last.gtid_executed,
        last.group.received,
    )
    if not is_recovering:
        moved = moved and _continues(coming, has - had, has)
    return MemberBacklog(
        server=name,
        queued=queued,
        coming=coming,
        holder=min(holders)[1] if coming else "",
        is_recovering=is_recovering,
        is_long=all(_runs_long(readings.fully_read[other].last) for other in part),
        moved=moved,
    )


def _continues(coming: GtidSet, arrived: GtidSet, has: GtidSet) -> bool:
    """Return whether all of `coming` follows what arrived between the readings, TSID by TSID.

    A hole below what a member has, or a TSID of which nothing arrives, may stay for ever: another
    member had it when it joined. A busy group does not deliver it, whatever else it delivers.
    """
    tsids = {tsid for tsid, _, _ in arrived.intervals()}
    highest = {tsid: end for tsid, _, end in has.intervals()}
    return all(tsid in tsids and start >= highest[tsid] for tsid, start, _ in coming.intervals())


def _runs_long(server: ReadServer) -> bool:
    """Return whether neither the server nor its group was started within the last day.

    A start is when GTIDs are used again for other transactions: then a queue may end in a conflict.
    """
    at = server.group.bootstrapped_at if server.group is not None else None
    now = server.server_clock or server.read_ended
    up = server.uptime_seconds
    return at is not None and now - at > _LONG and up is not None and up > _LONG.total_seconds()


def _leaver(name: str, membership: Membership, readings: ClusterReadings) -> GroupLeaver:
    return leaver_of(name, membership.parts[0] if membership.parts else (), readings)


def leaver_of(name: str, part: tuple[str, ...], readings: ClusterReadings) -> GroupLeaver:
    """Return what decides whether a server can join a part of a group; () if there is none.

    `part` may also be a server that is not a member now: it would bootstrap the group.
    """
    first, last = readings.fully_read[name].first, readings.fully_read[name].last
    members = {other: readings.fully_read[other] for other in part}
    extra = missing = purged = GtidSet()
    unseen: tuple[str, ...] = ()
    donor = ""
    if members:
        extra = first.gtid_executed - _held(part, readings)
        for uuid in readings.policy.allowed_uuids:
            extra = extra.without_uuid(uuid)
        of_members = GtidSet.union_of(each.first.gtid_executed for each in members.values())
        missing = of_members - last.gtid_executed
        blocked = {
            other: missing & each.last.gtid_purged for other, each in sorted(members.items())
        }
        donor = min(blocked, key=lambda other: blocked[other].gtid_count)
        purged = blocked[donor]
        unseen = _unseen(part, readings)
    return GroupLeaver(name, donor, extra, missing, purged, unseen)


def _unseen(part: tuple[str, ...], readings: ClusterReadings) -> tuple[str, ...]:
    """Return what may deliver to a part of a group and was not read, in order.

    A server without its channels may receive from any server.
    """
    found: set[str] = set()
    for member in part:
        found.update(unseen_sources(member, graph=readings.graph, servers=readings.last))
        found.update(
            f"a source of {name}"
            for name in {member} | readings.graph.upstream_of(member, stopped_too=True)
            if readings.last[name].channels is None
        )
    return tuple(sorted(found))


def _held(part: tuple[str, ...], readings: ClusterReadings) -> GtidSet:
    """Return what the members of a part have, or receive from each other and from channels."""
    upstream = {*part}
    for name in part:
        upstream |= readings.graph.upstream_of(name)
    received = (_received(readings.fully_read[name].last) for name in part)
    return held_by(upstream, readings.last) | GtidSet.union_of(received)


def _received(server: ReadServer) -> GtidSet:
    return server.group.received if server.group is not None else GtidSet()


def _gaps(membership: Membership, readings: ClusterReadings) -> GtidSet:
    """Return what lies between the group's GTIDs and no configured server has or has received."""
    uuid = uuid_of_group(membership.name)
    if uuid is None or not membership.is_known:
        return GtidSet()
    seen = GtidSet.union_of(
        gtid_set
        for name in readings.last
        for server in (readings.last[name],)
        for gtid_set in (
            server.gtid_executed,
            server.gtid_owned,
            server.gtid_retrieved,
            server.group.received if server.group is not None else None,
        )
        if gtid_set is not None
    ).from_uuid(uuid)
    return seen.filled() - seen


def severe_group_differences(groups: tuple[GroupFacts, ...]) -> Iterator[object]:
    """Yield the differences that are severe and cheap to read again."""
    for group in groups:
        yield from (each.coming for each in group.backlogs if each.coming)
        yield from (each.extra for each in group.leavers if each.extra)
