"""Faults by filters and by START REPLICA UNTIL, each produced on real servers.

The rules are those of faults.py.
"""

from dataclasses import dataclass

from compose.faults import await_status, commit, table_on
from compose.faults_content import restart_with
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for

_SCHEMA = "filtered"
_INSERT = f"INSERT INTO {_SCHEMA}.t () VALUES ()"


@dataclass(frozen=True, slots=True)
class Filtered:
    """``replica`` will not get the changes of ``gtids``."""

    source: Server
    replica: Server
    gtids: str


def binary_log_filter(
    topology: Topology, *, source: str = "first", on: str = "middle", replica: str = "last"
) -> Filtered:
    """Restart a server with --binlog-ignore-db, and let its source change that schema.

    Afterwards: all sets are equal, all threads run, and the row is missing on ``replica``.
    """
    here, there = topology[on], topology[replica]
    table_on(topology[source], here, _SCHEMA)
    topology.settle()
    restart_with(here, f"--binlog-ignore-db={_SCHEMA}")
    await_status(here, lambda status: status["Replica_IO_Running"] == "Yes")
    gtids = commit(topology[source], _INSERT)
    topology.settle()
    await_status(there, lambda status: status["Replica_IO_Running"] == "Yes")
    return Filtered(source=here, replica=there, gtids=gtids)


def channel_filter(
    topology: Topology, *, source: str = "first", on: str = "middle", replica: str = "last"
) -> Filtered:
    """Let the channel of a server ignore a schema, and its source change that schema.

    Afterwards: all sets are equal, all threads run, and the row is missing on two servers.
    """
    here, there = topology[on], topology[replica]
    table_on(topology[source], here, _SCHEMA)
    topology.settle()
    here.execute(
        here.dialect.stop_applier,
        f"CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ({_SCHEMA})",
        here.dialect.start_applier,
    )
    gtids = commit(topology[source], _INSERT)
    wait_for(there, gtids)
    return Filtered(source=topology[source], replica=there, gtids=gtids)


def ignore_server(replica: Server, *server_ids: int) -> None:
    """Set IGNORE_SERVER_IDS of a channel, which servers before 8.0 permit with GTIDs."""
    listed = ", ".join(map(str, server_ids))
    replica.execute(
        replica.dialect.stop_replica,
        f"{replica.dialect.words.change_source} IGNORE_SERVER_IDS = ({listed})",
        replica.dialect.start_replica,
    )
    await_status(replica, lambda status: status["Replica_IO_Running"] == "Yes")


def ignored_transaction(
    topology: Topology, *, source: str = "a", replica: str = "b", server_id: int | None = None
) -> Filtered:
    """Let a replica drop a transaction by IGNORE_SERVER_IDS.

    With `server_id` the source commits under this server_id, which no server has now.
    """
    here, there = topology[source], topology[replica]
    schema = f"ignored{server_id or ''}"
    table_on(here, there, schema)
    if server_id is not None:
        here.execute(f"SET GLOBAL server_id = {server_id}")
    ignore_server(there, server_id or here.server_id)
    gtids = commit(here, f"INSERT INTO {schema}.t () VALUES ()")
    if server_id is not None:
        here.execute(f"SET GLOBAL server_id = {here.server_id}")
    end = here.binary_log_position()[1]
    await_status(there, lambda status: bool(status["Read_Source_Log_Pos"] >= end))
    return Filtered(source=here, replica=there, gtids=gtids)


def started_until(
    topology: Topology, *, source: str = "a", replica: str = "b", count: int = 2
) -> Filtered:
    """Start an applier with UNTIL SQL_BEFORE_GTIDS, and let its source commit past that point."""
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    wait_for(there, commit(here, _INSERT))
    there.execute(there.dialect.stop_replica)
    gtids = commit(here, *[_INSERT] * count)
    uuid, _, numbers = gtids.rpartition(":")
    first = f"{uuid}:{numbers.partition('-')[0]}"
    there.execute(f"{there.dialect.start_replica} UNTIL SQL_BEFORE_GTIDS = '{first}'")
    await_status(there, lambda status: status["Replica_SQL_Running"] == "No")
    return Filtered(source=here, replica=there, gtids=gtids)


def without_logged_updates(topology: Topology, *, on: str = "middle") -> None:
    """Restart a server with log_replica_updates = OFF."""
    server = topology[on]
    topology.settle()
    restart_with(server, f"--{server.dialect.words.log_replica_updates.replace('_', '-')}=OFF")
    replicas = [topology[link.replica] for link in topology.links if link.source == on]
    for each in (server, *replicas):
        await_status(each, lambda status: status["Replica_IO_Running"] == "Yes")


def unlogged_updates(
    topology: Topology, *, source: str = "first", on: str = "middle", replica: str = "last"
) -> Filtered:
    """Let the source of a server with log_replica_updates = OFF commit."""
    here, there = topology[on], topology[replica]
    gtids = commit(topology[source], "CREATE DATABASE unlogged")
    wait_for(here, gtids)
    # Refused if it connects after the commit; otherwise it waits for transactions that never come.
    await_status(there, lambda status: status["Replica_IO_Running"] != "Connecting")
    return Filtered(source=here, replica=there, gtids=gtids)


def equal_server_id(topology: Topology, *, source: str = "a", replica: str = "b") -> Filtered:
    """Set a replica's server_id to that of its source: the receiver stops when it connects."""
    here, there = topology[source], topology[replica]
    there.execute(
        there.dialect.stop_replica,
        f"SET GLOBAL server_id = {here.server_id}",
        there.dialect.start_replica,
    )
    gtids = commit(here, "CREATE DATABASE refused")
    await_status(there, lambda status: status["Replica_IO_Running"] == "No")
    return Filtered(source=here, replica=there, gtids=gtids)
