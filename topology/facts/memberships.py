"""Replication groups: which servers are members together, as their own views show.

How it works
------------
Members of a group (Group Replication) deliver to each other without a channel. Each member lists
the members that it sees (performance_schema.replication_group_members). A *view* is the set of
server_uuids that a member lists as ONLINE or RECOVERING, if it is one of them itself; the group
delivers among exactly these. Servers with the same view are a *part* of the group:

    m1, m2, m3 with the view {1, 2, 3}              one part: what one commits, all receive
    m1, m2 with {1, 2}; m3 is OFFLINE, or ERROR     one part; m3 is outside
    m1, m2 with {1, 2}; m3 with {3}                 two parts: a partition, or two groups
    m1, m2 with {1, 2}; m3 still with {1, 2, 3}     the members are changing: nothing is known yet

1. A view counts only if both readings show the same one. A view is a member's own belief: a member
   that was expelled and has not noticed it still lists all.
2. A server of which the view was not read is neither a member nor outside.
3. A group may have any UUID as its name, also one that is no UUID of a server, and commits under
   it. The name is the same for two groups that were bootstrapped apart.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from uuid import UUID

from topology.readings.group_view import GroupMember
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ServerSnapshot
from topology.readings.vendors import Vendor

_NAMES_KEPT: Final = 1024  # of groups whose UUIDs are read from their names
_OF_THE_VIEW: Final = frozenset({"group", "settings", "connection"})


@dataclass(frozen=True, slots=True)
class Membership:
    """One group, as far as its servers were read."""

    name: str
    configured: tuple[str, ...]  # every audited server with this group's name
    parts: tuple[tuple[str, ...], ...]  # servers that are members together; the largest first
    absent: tuple[GroupMember, ...]  # listed in a view, and not read completely
    outside: tuple[str, ...]  # configured for the group, and not a member: OFFLINE or ERROR
    doubt: str  # why the members are not known; "" if they are

    @property
    def is_known(self) -> bool:
        """Return whether every member of the group was read, and which they are is certain."""
        return not self.doubt and not self.absent and len(self.parts) == 1


def memberships_of(
    first: Mapping[str, ServerSnapshot],
    last: Mapping[str, ServerSnapshot],
    *,
    read: Collection[str],
) -> tuple[Membership, ...]:
    """Return the groups, by name. `read` are the servers of which both readings are complete."""
    by_group: dict[str, list[str]] = {}
    for name in sorted(last):
        if group := group_name_of(last[name]):
            by_group.setdefault(group.lower(), []).append(name)
    return tuple(
        _membership(group, names, first=first, last=last, read=read)
        for group, names in sorted(by_group.items())
    )


def _membership(
    group: str,
    names: list[str],
    *,
    first: Mapping[str, ServerSnapshot],
    last: Mapping[str, ServerSnapshot],
    read: Collection[str],
) -> Membership:
    doubts = []
    views: dict[str, frozenset[UUID]] = {}
    for name in names:
        readings = (first[name], last[name])
        if name not in read or any(_view_is_unread(each) for each in readings):
            continue
        if any(each.group is not None and not each.group.members for each in readings):
            doubts.append(f"{name} did not show the members of its group")
            continue
        before, after = (_view_of(each) for each in readings)
        if before != after:
            doubts.append(f"the members of the group changed while {name} was read")
        views[name] = after
    members = {name: view for name, view in views.items() if view}
    doubts += _disagreements(members)
    seen = {last[name].server_uuid for name in views}
    absent = {
        member.server_uuid: member
        for name in members
        for member in _listed(last[name])
        if member.server_uuid not in seen
    }
    by_view: dict[frozenset[UUID], list[str]] = {}
    for name, view in members.items():
        by_view.setdefault(view, []).append(name)
    parts = sorted(by_view.items(), key=lambda item: (-len(item[0]), -len(item[1]), item[1]))
    return Membership(
        name=group,
        configured=tuple(names),
        parts=tuple(tuple(part) for _, part in parts),
        absent=tuple(sorted(absent.values())),
        outside=tuple(name for name, view in views.items() if not view),
        doubt=doubts[0] if doubts else "",
    )


def _view_is_unread(server: ServerSnapshot) -> bool:
    return any(each.fact in _OF_THE_VIEW for each in server.unread)


def _view_of(server: ServerSnapshot) -> frozenset[UUID]:
    """Return the members to which the group delivers, by this one; empty if it is not one."""
    view = frozenset(each.server_uuid for each in _listed(server) if each.delivers)
    return view if server.server_uuid in view else frozenset()


def _listed(server: ServerSnapshot) -> tuple[GroupMember, ...]:
    return server.group.members if server.group is not None else ()


def _disagreements(members: Mapping[str, frozenset[UUID]]) -> Iterator[str]:
    """Yield which views overlap and are not equal: one of them is out of date."""
    names = sorted(members)
    for number, left in enumerate(names):
        for right in names[number + 1 :]:
            if members[left] != members[right] and members[left] & members[right]:
                yield f"{left} and {right} list different members"


# -- what a server is configured for --------------------------------------------------------------


def group_name_of(server: ServerSnapshot) -> str:
    """Return the group that a server is a member of or configured for; "" if there is none."""
    if server.group is not None:
        return server.group.group_name
    return notable_values(server.notable_settings).get("group_replication_group_name", "")


def is_galera(server: ServerSnapshot) -> bool:
    """Return whether a server is a Galera node, which replicates write sets."""
    if "wsrep_on" in notable_values(server.notable_settings):
        return True
    # Percona XtraDB Cluster with wsrep_on = OFF replicates like any other server.
    return server.vendor is Vendor.GALERA and server.setting("wsrep_on") != "OFF"


def configured_together(servers: Iterable[ServerSnapshot]) -> tuple[tuple[str, ...], ...]:
    """Return the servers that are configured for one group, group by group.

    A server that is OFFLINE counts as well: it receives what the others have when it starts Group
    Replication again.
    """
    by_group: dict[str, set[str]] = {}
    for server in servers:
        name = group_name_of(server)
        if name:
            by_group.setdefault(name.lower(), set()).add(server.name)
        elif is_galera(server):
            by_group.setdefault("galera", set()).add(server.name)
    return tuple(sorted(tuple(sorted(names)) for names in by_group.values()))


def group_uuids(servers: Iterable[ServerSnapshot]) -> frozenset[UUID]:
    """Return the UUIDs under which groups commit: they belong to no single server."""
    return frozenset(
        uuid for server in servers if (uuid := uuid_of_group(group_name_of(server))) is not None
    )


@lru_cache(maxsize=_NAMES_KEPT)
def uuid_of_group(name: str) -> UUID | None:
    """Return the UUID under which a group commits, or None: a name that is none is in no GTIDs."""
    try:
        return UUID(name)
    except ValueError:
        return None
