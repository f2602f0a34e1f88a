"""The steps of groups.py on three real members; what is compared after each. See reality.py.

Needs a server whose packages have the plugin (8.0 and later).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server as RealServer
from compose.native.server import free_port
from compose.native.shapes import Topology
from tests.simulation import replication as act
from tests.simulation.reading import gtids
from tests.simulation.reality import Twins, create_tables, real, rows_of
from tests.simulation.shapes import Setup
from tests.simulation.state import World, uuid_of

_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.05


def group_twins(installation: Installation, stack: ExitStack) -> Twins:
    """Start three real members of a group, and a simulated world in the same state."""
    world = Setup("group").world()
    names = sorted(world.servers)
    addresses = {name: f"127.0.0.1:{free_port('127.0.0.1')}" for name in names}
    servers: dict[str, RealServer] = {}
    for name in names:
        settings = Settings(extra=_options(addresses[name], ",".join(addresses.values())))
        servers[name] = RealServer(installation, name, settings=settings)
        stack.callback(servers[name].discard)
        servers[name].start()
    both = Twins(world, Topology(servers), stack)
    for name in names:
        both.uuids[name] = str(servers[name].value("@@GLOBAL.server_uuid"))
        world[name].server_id = servers[name].server_id
        create_tables(servers[name], names)
    bootstrap(both, names[0])
    for name in names[1:]:
        join(both, name)
    return both


def _options(address: str, seeds: str) -> tuple[str, ...]:
    return (
        "--plugin-load-add=group_replication.so",
        f"--group-replication-group-name={uuid_of('g')}",
        f"--group-replication-local-address={address}",
        f"--group-replication-group-seeds={seeds}",
        "--group-replication-start-on-boot=OFF",
        "--group-replication-recovery-get-public-key=ON",
        # A member that was expelled stays out, and can be looked at.
        "--group-replication-member-expel-timeout=0",
        "--group-replication-autorejoin-tries=0",
        "--group-replication-exit-state-action=READ_ONLY",
    )


def _state(here: RealServer) -> str:
    rows = here.query(
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ID = @@GLOBAL.server_uuid"
    )
    return str(rows[0][0]) if rows else "OFFLINE"


def join(both: Twins, name: str) -> None:
    here = both.real(name)
    if _state(here) == "ERROR":
        here.execute("STOP GROUP_REPLICATION")
    here.execute(f"START GROUP_REPLICATION USER = '{REPLICATION_USER}'")
    _wait_for(here, "ONLINE")


def _wait_for(here: RealServer, state: str) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while _state(here) != state:
        assert time.monotonic() < deadline, here.error_log_tail()
        time.sleep(_POLL_SECONDS)


def bootstrap(both: Twins, name: str) -> None:
    both.real(name).execute("SET GLOBAL group_replication_bootstrap_group = ON")
    join(both, name)
    both.real(name).execute("SET GLOBAL group_replication_bootstrap_group = OFF")


@real("group-leave")
def _leave(both: Twins, name: str) -> None:
    both.real(name).execute("STOP GROUP_REPLICATION", "SET GLOBAL super_read_only = OFF")


@real("group-expel")
def _expel(both: Twins, name: str) -> None:
    """Freeze a member until the others have expelled it; then it sees that."""
    assert both.world.group is not None, "a world of a group"
    here, other = both.real(name), both.real(min(both.world.group.online))
    listed = f"SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE MEMBER_ID = '{both.uuids[name]}'"
    here.freeze()
    try:
        deadline = time.monotonic() + _SECONDS_MAX
        while int(other.query(listed)[0][0]):
            assert time.monotonic() < deadline, other.error_log_tail()
            time.sleep(_POLL_SECONDS)
    finally:
        here.thaw()
    _wait_for(here, "ERROR")


@real("group-join")
def _join(both: Twins, name: str) -> None:
    join(both, name)


def real_restart(both: Twins, before: World, name: str) -> None:
    """Stop all members of the group that was, bootstrap one, let those join that may."""
    assert before.group is not None, "a world of a group"
    assert both.world.group is not None, "a world of a group"
    for each in sorted(before.group.online | before.group.expelled):
        both.real(each).execute("STOP GROUP_REPLICATION", "SET GLOBAL super_read_only = OFF")
    bootstrap(both, name)
    for each in sorted(both.world.group.online - {name}):
        join(both, each)


def group_differences(both: Twins) -> list[str]:
    """Return what differs between the simulated and the real members, after a while at the most."""
    act.rest(both.world)
    deadline = time.monotonic() + _SECONDS_MAX / 4
    while (found := list(_compared(both))) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return found


def _compared(both: Twins) -> Iterator[str]:
    group = both.world.group
    assert group is not None, "a world of a group"
    for name, server in both.world.servers.items():
        here = both.real(name)
        shown = both.simulated(str(here.value("@@GLOBAL.gtid_executed")))
        if shown != gtids(server.executed):
            yield f"{name}: gtid_executed is {shown}, simulated {gtids(server.executed)}"
        rows = rows_of(here, both.world.servers)
        if rows != server.rows:
            yield f"{name}: rows are {rows}, simulated {server.rows}"
        state = "ERROR" if name in group.expelled else "OFFLINE"
        state = "ONLINE" if name in group.online else state
        if _state(here) != state:
            yield f"{name}: {_state(here)}, simulated {state}"
