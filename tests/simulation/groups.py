"""Group Replication in single-primary mode: members join, leave, are expelled, restart.

How it works
------------
A group is not a channel: `World.group` says who is configured for it, who is ONLINE, and who is its
primary. A member's queue (group_replication_applier) is a `Channel` that only the applier uses, in
`Server.group_applier`; SHOW REPLICA STATUS does not list it (seen on 9.7.4). A transaction is in
the queue of every other online member before the primary has committed it.

What was seen on 9.7.4 and is built in: no view change takes a GTID; a new primary draws the next
number of the group; an online secondary refuses every write (1290), a member that left refuses it
until an operator sets super_read_only=OFF and then commits under its own server_uuid; a member
with a transaction that the group does not have may not join (3092), nor may a server with the
group's name as its server_uuid; RESET BINARY LOGS AND GTIDS and channels are refused on online members (3190, 'thread_start' hook).
"""

from __future__ import annotations

import random

from tests.simulation import replication as act
from tests.simulation.faults import crash
from tests.simulation.membership import leave, new_queue
from tests.simulation.state import Place, Relayed, Server, World
from tests.simulation.steps import Args, step


def _some_configured(world: World, dice: random.Random) -> Args | None:
    return (dice.choice(world.group.names),) if world.group is not None else None


@step("group-leave", _some_configured)
def group_leave(world: World, name: str) -> bool:
    """STOP GROUP_REPLICATION."""
    if world.group is None or name not in world.group.online | world.group.expelled:
        return False
    server = world[name]
    while server.pending:
        act.finish(world, server, server.pending[0])
    leave(world, server)
    return True


@step("group-expel", _some_configured)
def group_expel(world: World, name: str) -> bool:
    """Let the others expel a member that they do not reach; its state is ERROR."""
    group = world.group
    if group is None or name not in group.online or len(group.online) < 3:
        return False
    server = world[name]
    if server.pending:
        return False
    leave(world, server)
    group.expelled.add(name)
    return True


def may_join(world: World, server: Server) -> bool:
    """Return whether the group takes a server, and a donor's binary logs have what it needs."""
    group = world.group
    if group is None or server.name in group.online or not group.online:
        return False
    if server.channels or not server.log_bin or server.permissive or server.uuid == group.uuid:
        return False
    donor = world[group.primary]
    queue = donor.group_applier
    known = donor.executed | donor.owned | (queue.retrieved if queue is not None else set())
    return server.executed <= known and donor.purged <= server.executed and not donor.pending


def join(world: World, server: Server) -> None:
    """Take a server in: distributed recovery brings what it is missing, in the donor's order."""
    group = world.group
    assert group is not None, "asked before"
    server.group_applier = queue = new_queue(server)
    donor = world[group.primary]
    missing = [
        each for log in donor.files for each in log.entries if each.gtid not in server.executed
    ]
    if donor.group_applier is not None:
        known = {each.gtid for each in missing} | server.executed
        missing += [
            each.transaction
            for each in donor.group_applier.relay
            if each.transaction.gtid not in known
        ]
    for each in missing:
        queue.relay.append(Relayed(each, Place(0, 0)))
        queue.retrieved.add(each.gtid)
    group.expelled.discard(server.name)
    group.online.add(server.name)


@step("group-join", _some_configured, is_fault=False)
def group_join(world: World, name: str) -> bool:
    """START GROUP_REPLICATION."""
    if not may_join(world, world[name]):
        return False
    join(world, world[name])
    return True


def bootstrap(world: World, server: Server) -> None:
    """START GROUP_REPLICATION with group_replication_bootstrap_group = ON."""
    group = world.group
    assert group is not None, "asked before"
    world.primaries -= set(group.names)
    group.online, group.expelled, group.primary = {server.name}, set(), server.name
    group.bootstrapped_at = world.clock
    server.group_applier = new_queue(server)
    world.primaries.add(server.name)


@step("group-restart", _some_configured)
def group_restart(world: World, name: str) -> bool:
    """Stop the whole group, bootstrap it from one member; the others join where they may."""
    group = world.group
    if group is None or world[name].channels or not world[name].log_bin:
        return False
    members = [world[each] for each in sorted(group.online | group.expelled)]
    if any(each.lock or each.session_owns is not None for each in members):
        return False
    for each in members:
        while each.pending:
            act.finish(world, each, each.pending[0])
        leave(world, each)
    bootstrap(world, world[name])
    for each in members:
        if may_join(world, each):
            join(world, each)
    return True


@step("group-crash", _some_configured)
def group_crash(world: World, name: str) -> bool:
    """Lose power on a member and its last transaction; the others have it. It does not rejoin."""
    return world.group is not None and crash(world, name, 1)
