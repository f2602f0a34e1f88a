"""Faults of replication groups, on real servers: a wrong restart, an expelled member.

The rules are those of faults.py. They need server packages with the plugin (8.0 and later).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pymysql
from pymysql.constants import CR

from compose.faults import FaultNotProduced, _await
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server, free_port
from compose.native.shapes import Topology, wait_for

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

    The second member leaves; the first commits `reused` alone and crashes. The second bootstraps
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


def bootstrapped_from_behind(topology: Topology, *, first: str, second: str) -> RestartedGroup:
    """Let a member without the last transactions bootstrap the group; no server restarts.

    Afterwards both are ONLINE with equal sets, and the rows of ``again.t`` differ.
    """
    ahead, behind = topology[first], topology[second]
    ahead.execute(
        "CREATE DATABASE again", "CREATE TABLE again.t (id INT PRIMARY KEY, note VARCHAR(40))"
    )
    wait_for(behind, ahead.value("@@GLOBAL.gtid_executed"))
    behind.execute("STOP GROUP_REPLICATION")
    before = str(behind.value("@@GLOBAL.gtid_executed"))
    ahead.execute(*(f"INSERT INTO again.t VALUES ({n}, 'of {first}')" for n in (1, 2)))
    after = ahead.value("@@GLOBAL.gtid_executed")
    reused = str(ahead.query("SELECT GTID_SUBTRACT(%s, %s)", [after, before])[0][0])
    ahead.execute("STOP GROUP_REPLICATION")
    _join(behind, bootstrap=True)
    behind.execute(*(f"INSERT INTO again.t VALUES ({n}, 'of {second}')" for n in (3, 4, 5, 6)))
    _join(ahead, bootstrap=False)
    wait_for(ahead, behind.value("@@GLOBAL.gtid_executed"))
    return RestartedGroup(ahead, behind, reused.replace("\n", ""))


@dataclass(frozen=True, slots=True)
class ExpelledMember:
    """``member`` left the group and committed ``errant`` under its own server_uuid."""

    member: Server
    errant: str


def expelled_member(
    topology: Topology, *, primary: str = "m1", member: str = "m3"
) -> ExpelledMember:
    """Let a group of three expel a member that it cannot reach, and write on that member.

    In state ERROR the server refuses every write (1290, 3100), and clients (offline_mode). The
    operator stops Group Replication there and makes the server writable. Afterwards: the group goes
    on without the member; the member is OFFLINE and has a row of ``expelled.t`` that no other has.
    """
    first, out = topology[primary], topology[member]
    first.execute(
        "CREATE DATABASE expelled",
        "CREATE TABLE expelled.t (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40))",
    )
    before = str(first.value("@@GLOBAL.gtid_executed"))
    wait_for(out, before)
    out.execute("SET GLOBAL group_replication_autorejoin_tries = 0")
    others = "SELECT COUNT(*) FROM performance_schema.replication_group_members"
    uuid = out.value("@@GLOBAL.server_uuid")
    for name, server in topology.servers.items():
        if name != member and _state(server):
            server.execute("SET GLOBAL group_replication_member_expel_timeout = 0")
    out.freeze()
    try:
        _await(
            lambda: not first.query(f"{others} WHERE MEMBER_ID = '{uuid}'")[0][0],
            lambda: f"{first.name} did not expel {out.name}",
        )
    finally:
        out.thaw()
    _await(lambda: _has_left_on_failure(out), out.error_log_tail)
    out.execute(
        "STOP GROUP_REPLICATION",
        "SET GLOBAL super_read_only = OFF",
        "SET GLOBAL read_only = OFF",
        "SET GLOBAL offline_mode = OFF",
        "INSERT INTO expelled.t (note) VALUES ('on the expelled member')",
    )
    after = out.value("@@GLOBAL.gtid_executed")
    errant = str(out.query("SELECT GTID_SUBTRACT(%s, %s)", [after, before])[0][0])
    return ExpelledMember(member=out, errant=errant.replace("\n", ""))


def _has_left_on_failure(member: Server) -> bool:
    """Return whether a member has noticed its expulsion, and has set offline_mode."""
    try:
        return _state(member) == "ERROR" and bool(member.value("@@GLOBAL.offline_mode"))
    except pymysql.err.OperationalError as failure:
        if failure.args[0] != CR.CR_SERVER_LOST:
            raise
        return False  # offline_mode also ends sessions that are being opened, such as this one


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
    while (state := _state(member)) != "ONLINE":
        if time.monotonic() > deadline:
            raise FaultNotProduced(f"{member.name} shows {state!r}")
        time.sleep(_POLL_SECONDS)


def _state(member: Server) -> str:
    """Return the state that a member reports of itself; "" if it is in no group."""
    rows = member.query(
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ID = @@GLOBAL.server_uuid"
    )
    return str(rows[0][0]) if rows else ""
