"""Faults of histories and identities, each produced on real servers: see faults.py.

A history is the GTIDs that a server has of its own UUID. It can be reset, another server can add to
it, or a failover can leave it behind. A server can also have another server's server_id.
"""

from dataclasses import dataclass

from compose.faults import (
    FaultNotProduced,
    _both_threads_run,
    _source_refused,
    await_applier_stopped,
    await_status,
    commit,
    table_on,
)
from compose.faults_applier import delayed
from compose.native.provision import REPLICATION_USER
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from compose.own_gtids import last_number
from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class ResetHistory:
    """``source`` no longer has ``forgotten``, own transactions that ``replica`` has."""

    source: Server
    replica: Server
    forgotten: str


def reset_history(
    topology: Topology, *, source: str = "source", replica: str = "replica1", new_count: int = 2
) -> ResetHistory:
    """Reset the binary logs and GTIDs of a source, and write on.

    Afterwards: the rows of the source are unchanged; its own GTIDs begin again at 1. Its replicas
    have more of its GTIDs than it has, and their receivers have stopped.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "forgotten")
    commit(here, *["INSERT INTO forgotten.t () VALUES ()"] * 5)
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    before = str(here.value("@@GLOBAL.gtid_executed"))
    here.execute(here.dialect.words.reset_binary_logs_and_gtids)
    if new_count:
        commit(here, *["INSERT INTO forgotten.t () VALUES ()"] * new_count)
    now = str(here.value("@@GLOBAL.gtid_executed"))
    forgotten = here.query("SELECT GTID_SUBTRACT(%s, %s)", [before, now])[0][0]
    # The receiver of a running channel may wait forever for the end of the old log.
    there.execute(there.dialect.stop_receiver, there.dialect.start_receiver)
    await_status(there, _source_refused)
    return ResetHistory(source=here, replica=there, forgotten=str(forgotten).replace("\n", ""))


@dataclass(frozen=True, slots=True)
class MadeByHand:
    """A session on ``written_on`` committed ``gtid``, of ``owner``'s UUID."""

    owner: Server
    written_on: Server
    gtid: str


def made_by_hand(
    topology: Topology, *, owner: str = "source", written_on: str = "replica1", gno: int = 50
) -> MadeByHand:
    """Commit a row under a GTID that another server has not reached.

    Afterwards: all threads run. When the owner reaches that GTID, its transaction will be skipped.
    """
    here, there = topology[owner], topology[written_on]
    table_on(here, there, "by_hand")
    gtid = f"{here.value('@@GLOBAL.server_uuid')}:{gno}"
    there.execute(
        f"SET SESSION gtid_next = '{gtid}'",
        "INSERT INTO by_hand.t (note) VALUES ('by hand')",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )
    return MadeByHand(owner=here, written_on=there, gtid=gtid)


@dataclass(frozen=True, slots=True)
class Failover:
    """``promoted`` took over; ``old`` is back with ``tail``, which was never replicated."""

    old: Server
    promoted: Server
    tail: str


def failover_with_tail(
    topology: Topology,
    *,
    old: str = "source",
    promoted: str = "replica1",
    other: str = "replica2",
    tail_count: int = 2,
) -> Failover:
    """Promote a replica while the source goes on writing, and let the other replica follow it.

    Afterwards: no channel links the old source with the others. It has own transactions that they
    do not have, and they have transactions that it does not have.
    """
    here, there, third = topology[old], topology[promoted], topology[other]
    table_on(here, there, "tail")
    wait_for(third, here.value("@@GLOBAL.gtid_executed"))
    for replica in (there, third):
        replica.execute(replica.dialect.stop_replica, replica.dialect.reset_replica)
    tail = commit(here, *["INSERT INTO tail.t (note) VALUES ('not replicated')"] * tail_count)
    follow(third, there)
    wait_for(third, commit(there, *["INSERT INTO tail.t (note) VALUES ('after')"] * 3))
    return Failover(old=here, promoted=there, tail=tail)


def attached_with_tail(topology: Topology, *, equal_keys: bool) -> Failover:
    """Attach an old source with unreplicated transactions to the new source, without an error.

    Afterwards: with equal keys, its applier has stopped at a row of these transactions (1062).
    Otherwise both its threads run, and it has all that the new source has, and these as well.
    """
    promoted = topology["replica1"]
    if not equal_keys:
        _draw_keys(promoted, increment=10, offset=5)
    fault = failover_with_tail(topology)
    _draw_keys(promoted, increment=1, offset=1)
    follow(fault.old, promoted)
    if equal_keys:
        await_applier_stopped(fault.old)
    else:
        wait_for(fault.old, promoted.value("@@GLOBAL.gtid_executed"))
    return fault


def _draw_keys(server: Server, *, increment: int, offset: int) -> None:
    server.execute(
        f"SET GLOBAL auto_increment_increment = {increment}",
        f"SET GLOBAL auto_increment_offset = {offset}",
    )


@dataclass(frozen=True, slots=True)
class EqualServerIds:
    """``replica`` has the server_id of ``origin`` and drops ``dropped``."""

    origin: Server
    replica: Server
    dropped: str


def equal_server_ids(
    topology: Topology, *, origin: str = "first", replica: str = "last"
) -> EqualServerIds:
    """Set server_id of the last server of a chain to that of the first, and write on the first.

    Afterwards: all threads run without an error, and what the first commits is missing on the last.
    """
    here, there = topology[origin], topology[replica]
    table_on(here, there, "dropped")
    there.execute(there.dialect.stop_replica)
    there.execute(f"SET GLOBAL server_id = {here.value('@@GLOBAL.server_id')}")
    there.execute(there.dialect.start_replica)
    dropped = commit(here, *["INSERT INTO dropped.t () VALUES ()"] * 3)
    via = topology[next(link.source for link in topology.links if link.replica == replica)]
    wait_for(via, dropped)
    file, offset = via.binary_log_position()
    await_status(
        there,
        lambda status: (
            (status["Source_Log_File"], int(status["Read_Source_Log_Pos"])) == (file, offset)
            and _both_threads_run(status)
        ),
    )
    if there.query("SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", [dropped])[0][0]:
        raise FaultNotProduced(f"{there.name} applied {dropped}")
    return EqualServerIds(origin=here, replica=there, dropped=dropped)


@dataclass(frozen=True, slots=True)
class CommittedByCopy:
    """``copy`` committed ``gtid`` under the identity of ``origin``; ``replica`` has it."""

    origin: Server
    copy: Server
    replica: Server
    gtid: str


def committed_by_copy(
    topology: Topology,
    *,
    origin: str = "source",
    copy: str = "replica2",
    replica: str = "replica1",
    equal_server_id: bool = True,
) -> CommittedByCopy:
    """Let a copy of a server commit, and let a replica read from the copy for a while.

    The copy has the data, the server_uuid and, by default, the server_id: a restored image, or a
    clone with auto.cnf and my.cnf. Afterwards: the replica reads from the origin again. The origin
    refuses it, because the replica has a GTID of the origin's UUID that the origin does not have.
    The origin has been running all the time.
    """
    here, there, third = topology[origin], topology[replica], topology[copy]
    table_on(here, there, "copied")
    commit(here, "INSERT INTO copied.t (note) VALUES ('by the origin')")
    for server in (there, third):
        wait_for(server, here.value("@@GLOBAL.gtid_executed"))
        server.execute(server.dialect.stop_replica)
    third.execute(third.dialect.reset_replica)
    uuid, number = (here.value(f"@@GLOBAL.server_{name}") for name in ("uuid", "id"))
    third.kill()
    (third.datadir / "auto.cnf").write_text(f"[auto]\nserver-uuid={uuid}\n")
    third.start()
    if equal_server_id:
        third.execute(f"SET GLOBAL server_id = {number}")
    follow(there, third)
    gtid = commit(third, "INSERT INTO copied.t (note) VALUES ('by the copy')")
    wait_for(there, gtid)
    there.execute(there.dialect.stop_replica)
    follow(there, here)
    await_status(there, _source_refused)
    return CommittedByCopy(origin=here, copy=third, replica=there, gtid=gtid)


def source_replaced(topology: Topology, *, source: str = "a", replica: str = "b") -> Server:
    """Change a source's server_uuid, as a clone does, while its replica cannot connect.

    Afterwards: the receiver of the replica retries repeatedly, and shows the former server_uuid.
    `readmit` lets it connect.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "replaced")
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    here.execute(
        "SET SESSION sql_log_bin = 0", f"ALTER USER '{REPLICATION_USER}'@'127.0.0.1' ACCOUNT LOCK"
    )
    here.stop()
    (here.datadir / "auto.cnf").unlink()
    here.start()
    await_status(there, lambda status: status["Replica_IO_Running"] == "Connecting")
    return here


def readmit(source: Server, replica: Server) -> None:
    """Let the receiver of a replaced source's replica connect."""
    source.execute(
        "SET SESSION sql_log_bin = 0", f"ALTER USER '{REPLICATION_USER}'@'127.0.0.1' ACCOUNT UNLOCK"
    )
    await_status(replica, lambda status: status["Replica_IO_Running"] == "Yes")


def declared_too_much(
    topology: Topology, *, source: str = "a", replica: str = "b", count: int = 4
) -> MadeByHand:
    """Set gtid_purged of a replica to GTIDs that its source has not reached.

    The replica has all rows of its source, and no transaction belongs to these GTIDs. Afterwards:
    the source assigns them to its next transactions, and the replica skips these without an error.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "declared")
    commit(here, "INSERT INTO declared.t () VALUES ()")
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    uuid, executed = (
        str(here.value(f"@@GLOBAL.{name}")) for name in ("server_uuid", "gtid_executed")
    )
    last = last_number(here)
    gtid = f"{uuid}:{last + 1}-{last + count}"
    there.execute(
        there.dialect.stop_replica,
        there.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{executed},{gtid}'",
        there.dialect.start_replica,
    )
    return MadeByHand(owner=here, written_on=there, gtid=gtid)


def declared_on_source(
    topology: Topology, *, source: str = "source", replica: str = "replica1"
) -> MadeByHand:
    """Declare as executed on a source what a session wrote on its replica.

    Afterwards: the sets agree, the threads run, and the rows are on the replica alone. The source
    has no channel from the replica, and logged none of its GTIDs before.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "declared")
    gtid = commit(there, *["INSERT INTO declared.t () VALUES ()"] * 2)
    here.execute(f"SET GLOBAL gtid_purged = '+{gtid}'")
    return MadeByHand(owner=there, written_on=here, gtid=gtid)


def declared_while_waiting(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> MadeByHand:
    """Reset a delayed replica, and declare executed what waits in its relay log.

    Afterwards: the sets agree, both threads run, and the applier passes the rows when their time
    has come.
    """
    held = delayed(topology, source=source, replica=replica)
    here, there = held.source, held.replica
    there.execute(
        there.dialect.stop_replica,
        there.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{here.value('@@GLOBAL.gtid_executed')}'",
        there.dialect.start_replica,
    )
    await_status(there, lambda status: status["Replica_IO_Running"] == "Yes")
    return MadeByHand(owner=here, written_on=there, gtid=held.held)


def emptied_while_waiting(
    topology: Topology, *, source: str = "a", replica: str = "b"
) -> MadeByHand:
    """Commit an empty transaction on a delayed replica for each that waits in its relay log.

    Afterwards: the sets agree, both threads run, and the applier passes the rows when their time
    has come.
    """
    held = delayed(topology, source=source, replica=replica)
    for gtid in GtidSet.parse(held.held).gtids():
        held.replica.execute(
            f"SET SESSION gtid_next = '{gtid}'",
            "BEGIN",
            "COMMIT",
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
    return MadeByHand(owner=held.source, written_on=held.replica, gtid=held.held)
