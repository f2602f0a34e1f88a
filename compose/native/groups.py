"""A replication group of real servers, on loopback: Group Replication in single-primary mode.

The members have no channels between them. A server that replicates from one of them is a normal
replica. Needs server packages with the plugin (8.0 and later).
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER, seed_data_directory
from compose.native.server import Server, free_port
from compose.native.shapes import Link, Topology, follow, wait_for

GROUP_NAME = "6d1f0001-0000-4000-8000-000000000000"
PLUGIN = "--plugin-load-add=group_replication.so"


@contextmanager
def group_and_replica(
    installation: Installation,
    *,
    members: Sequence[str] = ("m1", "m2"),
    replica: str = "r",
    named_as_replica: bool = False,
    multi_primary: bool = False,
) -> Iterator[Topology]:
    """Run a group whose first member is the primary, and a replica of that primary.

    The group's name is a new UUID, or the replica's server_uuid. A server cannot join a group whose
    name is its own server_uuid (3092, seen on 9.7.4).
    """
    seed_data_directory(installation)
    mode = "OFF" if multi_primary else "ON"
    settings = Settings(extra=(PLUGIN, f"--loose-group-replication-single-primary-mode={mode}"))
    servers: dict[str, Server] = {}
    try:
        for name in members:
            servers[name] = Server(installation, name, settings=settings)
        servers[replica] = Server(installation, replica)
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            for started in [pool.submit(server.start) for server in servers.values()]:
                started.result()
        first = servers[members[0]]
        group_name = GROUP_NAME
        if named_as_replica:
            group_name = str(servers[replica].value("@@GLOBAL.server_uuid"))
        start_group([servers[name] for name in members], group_name)
        follow(servers[replica], first)
        wait_for(servers[replica], first.value("@@GLOBAL.gtid_executed"))
        yield Topology(servers, (Link(source=members[0], replica=replica),))
    finally:
        for server in servers.values():
            server.discard()


def start_group(members: Sequence[Server], group_name: str) -> None:
    """Let the first of these servers bootstrap a group, and the others join it."""
    addresses = {member.name: f"127.0.0.1:{free_port('127.0.0.1')}" for member in members}
    for number, member in enumerate(members):
        member.execute(
            f"SET GLOBAL group_replication_group_name = '{group_name}'",
            f"SET GLOBAL group_replication_local_address = '{addresses[member.name]}'",
            f"SET GLOBAL group_replication_group_seeds = '{','.join(addresses.values())}'",
            f"SET GLOBAL group_replication_bootstrap_group = {'ON' if not number else 'OFF'}",
            "SET GLOBAL group_replication_recovery_get_public_key = ON",
            f"START GROUP_REPLICATION USER = '{REPLICATION_USER}'",
            "SET GLOBAL group_replication_bootstrap_group = OFF",
        )
    _await_online(members)


def _await_online(members: Sequence[Server]) -> None:
    deadline = time.monotonic() + 60.0
    while True:
        states = members[0].query(
            "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"
        )
        if [state for (state,) in states] == ["ONLINE"] * len(members):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the group shows {states}\n{members[-1].error_log_tail()}")
        time.sleep(0.05)
