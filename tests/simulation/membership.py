"""What becomes of a replication group when a server leaves it, in order or not. See groups.py."""

from __future__ import annotations

from tests.simulation import replication as act
from tests.simulation.state import Channel, Server, World

# What an online member refuses, and what would need a configuration that the group refuses.
REFUSED_ON_MEMBERS = frozenset(
    {
        *("reset-binary-logs-and-gtids", "clone", "restore", "old-primary-returns", "failover"),
        *("log-bin-off", "log-replica-updates-off", "same-server-uuid", "same-server-id"),
        *("gtid-mode-on-permissive", "drift"),
    }
)


def is_member(world: World, name: str) -> bool:
    """Return whether a server is ONLINE in its group, or was expelled from it (ERROR)."""
    return world.group is not None and name in world.group.online | world.group.expelled


def leave(world: World, server: Server, *, is_crash: bool = False) -> None:
    """End a server's membership; another online member becomes the primary."""
    group = world.group
    assert group is not None, "only members leave"
    queue = server.group_applier
    if queue is not None:
        if not is_crash:
            act.finish_workers(world, server, queue)
        act.roll_back_workers(server, queue)
    server.group_applier = None
    group.online.discard(server.name)
    group.expelled.discard(server.name)
    if group.primary == server.name:
        group.primary = min(group.online, default="")
        world.primaries.discard(server.name)
        if group.primary:
            world.primaries.add(group.primary)


def new_queue(server: Server) -> Channel:
    """Return the queue of a server that becomes a member."""
    queue = Channel(act.GROUP_APPLIER, server.name, workers=4)
    queue.applier = "Yes"
    return queue
