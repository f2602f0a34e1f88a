"""Faults of identity and log position, on real servers: see faults.py."""

from dataclasses import dataclass

from compose.faults import await_status, await_uptime, commit, table_on
from compose.native.server import Server
from compose.native.shapes import Link, Topology, wait_for

_SCHEMA = "identity"
_INSERT = f"INSERT INTO {_SCHEMA}.t () VALUES ()"


@dataclass(frozen=True, slots=True)
class DroppedThen:
    """``replica`` had the server_id of ``source`` for a while, and dropped ``dropped``."""

    source: Server
    replica: Server
    dropped: str


def equal_server_id_for_a_while(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> DroppedThen:
    """Set a replica's server_id to its source's, and back, with a channel by file position.

    Afterwards: AUTO_POSITION=0, set at the position where the replica was; both threads run. What
    the source committed in between is missing, and the file position was never moved.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    await_uptime(there)
    there.execute(there.dialect.stop_replica)
    file, position = here.binary_log_position()
    there.execute(
        there.dialect.change_source_to(auto_position=0, log_file=file, log_pos=position),
        there.dialect.start_replica,
    )
    wait_for(there, commit(here, _INSERT))
    own = there.value("@@GLOBAL.server_id")
    there.execute(f"SET GLOBAL server_id = {here.value('@@GLOBAL.server_id')}")
    dropped = commit(here, *[_INSERT] * 3)
    place = here.binary_log_position()
    await_status(there, lambda status: has_read_to(status, place))
    there.execute(f"SET GLOBAL server_id = {own}")
    wait_for(there, commit(here, _INSERT))
    return DroppedThen(source=here, replica=there, dropped=dropped)


def has_read_to(status: dict[str, object], place: tuple[str, int]) -> bool:
    """Return whether a receiver has read to a place in its source's log."""
    return (status["Source_Log_File"], int(str(status["Read_Source_Log_Pos"]))) == place


@dataclass(frozen=True, slots=True)
class PurgedBefore:
    """``replica`` replicates, but does not have ``missing``, which ``source`` has purged."""

    source: Server
    replica: Server
    missing: str


def purged_before_position(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> PurgedBefore:
    """Point a replica with missing transactions at the end of its source's log, and purge them."""
    here, there = topology[source], topology[replica]
    table_on(here, there, _SCHEMA)
    there.execute(there.dialect.stop_replica)
    missing = commit(here, *[_INSERT] * 3)
    here.execute("FLUSH BINARY LOGS")
    file, position = here.binary_log_position()
    here.execute(f"PURGE BINARY LOGS TO '{file}'")
    there.execute(
        there.dialect.change_source_to(auto_position=0, log_file=file, log_pos=position),
        there.dialect.start_replica,
    )
    wait_for(there, commit(here, _INSERT))
    return PurgedBefore(source=here, replica=there, missing=missing)


@dataclass(frozen=True, slots=True)
class DuplicateServerUuid:
    """``copied_to`` runs with the ``server_uuid`` of ``copied_from``."""

    copied_from: Server
    copied_to: Server
    server_uuid: str


def duplicate_server_uuid(
    topology: Topology, *, copied_from: str = "a", copied_to: str = "b"
) -> DuplicateServerUuid:
    """Copy a server_uuid to another server, as cloning a data directory with its auto.cnf does.

    Afterwards: both run. Receivers between the two stop with an error about the equal UUIDs. Two
    replicas of one source with one UUID keep disconnecting each other.
    """
    first, second = topology[copied_from], topology[copied_to]
    server_uuid = str(first.value("@@GLOBAL.server_uuid"))
    second.kill()  # a shutdown may take 10 s: see Server.stop
    (second.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={server_uuid}\n")
    second.start()
    if Link(source=copied_from, replica=copied_to) in topology.links:
        await_status(second, lambda status: "equal MySQL server UUIDs" in status["Last_IO_Error"])
    return DuplicateServerUuid(copied_from=first, copied_to=second, server_uuid=server_uuid)
