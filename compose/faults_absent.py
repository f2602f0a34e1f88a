"""Faults that leave a replica without transactions of its source, produced on real servers.

See faults.py. The sets look as if a file position had been set past the transactions, or as if an
applier had passed them. Here the cause is another one.
"""

from dataclasses import dataclass

from compose.faults import (
    FaultNotProduced,
    _both_threads_run,
    await_status,
    await_uptime,
    commit,
    table_on,
)
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for


@dataclass(frozen=True, slots=True)
class NeverReceived:
    """``replica`` does not have ``absent`` of ``source``, and its channel will not bring it."""

    source: Server
    replica: Server
    absent: str


def both_reset(
    topology: Topology, *, source: str = "source", replica: str = "replica1"
) -> NeverReceived:
    """Reset the binary logs and GTIDs of a source and of its replica, and keep the channel.

    Afterwards: both threads run. Retrieved_Gtid_Set of the replica still has the former history. So
    the source does not send what it now has under the same GTIDs, and these rows are missing.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "resets")
    commit(here, *["INSERT INTO resets.t (note) VALUES ('before')"] * 4)
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    there.execute(there.dialect.stop_replica)
    for server in (here, there):
        server.execute(server.dialect.words.reset_binary_logs_and_gtids)
    commit(here, *["INSERT INTO resets.t (note) VALUES ('afterwards')"] * 12)
    there.execute(there.dialect.start_replica)
    await_status(there, _both_threads_run)
    uuid = here.value("@@GLOBAL.server_uuid")
    wait_for(there, f"{uuid}:10-12")
    absent = here.query(
        "SELECT GTID_SUBTRACT(%s, %s)",
        [f"{uuid}:1-12", str(there.value("@@GLOBAL.gtid_executed"))],
    )[0][0]
    if not absent:
        raise FaultNotProduced(f"{there.name} received all of {here.name}")
    return NeverReceived(source=here, replica=there, absent=str(absent))


def equal_id_for_a_while(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> NeverReceived:
    """Set a replica's server_id to that of its source for three transactions, with auto-position.

    Afterwards: both threads run, and the three are missing on the replica.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "while_equal")
    await_uptime(there)
    own = there.value("@@GLOBAL.server_id")
    there.execute(f"SET GLOBAL server_id = {here.value('@@GLOBAL.server_id')}")
    absent = commit(here, *["INSERT INTO while_equal.t () VALUES ()"] * 3)
    await_read_to_end(there, here)
    there.execute(f"SET GLOBAL server_id = {own}")
    wait_for(there, commit(here, "INSERT INTO while_equal.t () VALUES ()"))
    return NeverReceived(source=here, replica=there, absent=absent)


def await_read_to_end(replica: Server, source: Server) -> None:
    """Wait until the receiver of a replica has read all that its source's log has now."""
    file, offset = source.binary_log_position()
    await_status(
        replica,
        lambda status: (
            (status["Source_Log_File"], int(status["Read_Source_Log_Pos"])) == (file, offset)
        ),
    )


def dump_loaded_at_its_place(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> NeverReceived:
    """Load the rows of a schema as a dump without gtid_purged does, and set the dump's position.

    Afterwards: both threads run, the rows are equal, and the replica does not have the GTIDs.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "dumped")
    await_uptime(there)
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    there.execute(there.dialect.stop_replica)
    absent = commit(here, *["INSERT INTO dumped.t () VALUES ()"] * 3)
    file, offset = here.binary_log_position()
    values = ", ".join(f"({row[0]})" for row in here.query("SELECT id FROM dumped.t"))
    there.execute(
        "SET SESSION sql_log_bin = 0",
        "DELETE FROM dumped.t",
        f"INSERT INTO dumped.t (id) VALUES {values}",
        there.dialect.change_source_to(auto_position=0, log_file=file, log_pos=offset),
        there.dialect.start_replica,
    )
    wait_for(there, commit(here, "INSERT INTO dumped.t () VALUES ()"))
    await_status(there, _both_threads_run)
    return NeverReceived(source=here, replica=there, absent=absent)
