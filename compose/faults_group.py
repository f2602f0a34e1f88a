"""A replication group that was restarted from the wrong member, on real servers.

The rules are those of faults.py. Needs a server whose packages have the plugin (8.0 and later).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compose.faults import FaultNotProduced
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server, free_port
from compose.native.shapes import wait_for

GROUP_NAME = "6d1f0002-0000-4000-8000-000000000000"
_JOIN_SECONDS_MAX = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class RestartedGroup:
    """Both members hold different transactions under ``reused``, GTIDs of the group."""

    first: Server
    second: Server
    reused: str


@contextmanager
def restarted_from_the_wrong_member(installation: Installation) -> Iterator[RestartedGroup]:
    """Let the second member bootstrap the group although the first had committed more.

    The second member leaves; the first commits `reused` alone and crashes; the second bootstraps
    the group and commits other transactions under the same GTIDs; the first joins again.
    Afterwards: both are ONLINE with equal sets, and the rows of ``grouped.t`` differ.
    """
    addresses = [f"127.0.0.1:{free_port('127.0.0.1')}" for _ in range(2)]
    members = [
        Server(installation, name, settings=_settings(address, addresses))
        for name, address in zip(("first", "second"), addresses, strict=True)
    ]
    first, second = members
    try:
        for member in members:
            member.start()
        _join(first, bootstrap=True)
        first.execute(
            "CREATE DATABASE grouped",
            "CREATE TABLE grouped.t (id INT PRIMARY KEY, note VARCHAR(40))",
        )
        _join(second, bootstrap=False)
        wait_for(second, first.value("@@GLOBAL.gtid_executed"))
        second.execute("STOP GROUP_REPLICATION")
        before = str(first.value("@@GLOBAL.gtid_executed"))
        first.execute(
            *(f"INSERT INTO grouped.t VALUES ({n}, 'of the first')" for n in (1, 2)),
        )
        after = first.value("@@GLOBAL.gtid_executed")
        reused = str(first.query("SELECT GTID_SUBTRACT(%s, %s)", [after, before])[0][0])
        first.kill()
        _join(second, bootstrap=True)
        second.execute(
            *(f"INSERT INTO grouped.t VALUES ({n}, 'of the second')" for n in (1, 2, 3)),
        )
        first.start()
        _join(first, bootstrap=False)
        wait_for(first, second.value("@@GLOBAL.gtid_executed"))
        yield RestartedGroup(first, second, reused.replace("\n", ""))
    finally:
        for member in members:
            member.discard()


def _settings(address: str, addresses: list[str]) -> Settings:
    return Settings(
        extra=(
            "--plugin-load-add=group_replication.so",
            f"--group-replication-group-name={GROUP_NAME}",
            f"--group-replication-local-address={address}",
            f"--group-replication-group-seeds={','.join(addresses)}",
            "--group-replication-start-on-boot=OFF",
            "--group-replication-recovery-get-public-key=ON",
        )
    )


def _join(member: Server, *, bootstrap: bool) -> None:
    if bootstrap:
        member.execute("SET GLOBAL group_replication_bootstrap_group = ON")
    member.execute(f"START GROUP_REPLICATION USER = '{REPLICATION_USER}'")
    member.execute("SET GLOBAL group_replication_bootstrap_group = OFF")
    deadline = time.monotonic() + _JOIN_SECONDS_MAX
    question = (
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ID = @@GLOBAL.server_uuid"
    )
    while (states := [state for (state,) in member.query(question)]) != ["ONLINE"]:
        if time.monotonic() > deadline:
            raise FaultNotProduced(f"{member.name} shows {states}")
        time.sleep(_POLL_SECONDS)
