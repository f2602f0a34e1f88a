"""Faults that leave equal GTID sets and different rows, each produced on real servers.

The rules are those of faults.py. No server reports any of these faults: both threads run without an
error, and the sets are equal.
"""

from dataclasses import dataclass, replace

from compose.faults import (
    FaultNotProduced,
    LostTail,
    commit,
    lost_tail_crash,
    table_on,
)
from compose.native.server import Server
from compose.native.shapes import Topology, follow, wait_for
from compose.own_gtids import last_number


@dataclass(frozen=True, slots=True)
class SkippedWork:
    """``replica`` has the GTIDs ``skipped`` of ``source``, but not their rows."""

    source: Server
    replica: Server
    skipped: str


def restart_with(server: Server, *options: str) -> None:
    """Restart a server with additional options."""
    server.settings = replace(server.settings, extra=(*server.settings.extra, *options))
    server.restart()


def skipped_errors(
    topology: Topology, *, source: str = "a", replica: str = "b", mode: str = "skip_errors"
) -> SkippedWork:
    """Let a replica skip an insert and an update that fail on it.

    `mode` is the cause: "skip_errors" (replica_skip_errors=all) or "idempotent"
    (replica_exec_mode=IDEMPOTENT, which skips only the update of a missing row).
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "skipped")
    if mode == "skip_errors":
        there.execute(there.dialect.stop_replica)
        restart_with(there, f"--{there.dialect.words.replica_variable_prefix}skip_errors=all")
        there.execute(there.dialect.start_replica)
    else:
        there.execute(
            there.dialect.stop_replica,
            f"SET GLOBAL {there.dialect.words.replica_variable_prefix}exec_mode = 'IDEMPOTENT'",
            there.dialect.start_replica,
        )
    wait_for(there, commit(here, "INSERT INTO skipped.t (id, note) VALUES (1, 'one')"))
    there.execute(
        "SET SESSION sql_log_bin = 0",
        "DELETE FROM skipped.t WHERE id = 1",
        "INSERT INTO skipped.t (id, note) VALUES (3, 'written here')",
    )
    statements = ["UPDATE skipped.t SET note = 'changed' WHERE id = 1"]
    if mode == "skip_errors":
        statements.append("INSERT INTO skipped.t (id, note) VALUES (3, 'written there')")
    skipped = commit(here, *statements)
    wait_for(there, commit(here, "INSERT INTO skipped.t (id, note) VALUES (5, 'later')"))
    return SkippedWork(source=here, replica=there, skipped=skipped)


@dataclass(frozen=True, slots=True)
class HandMadeGtid:
    """``made_on`` committed ``gtid``, a GTID of ``origin``, before ``origin`` reached it."""

    origin: Server
    made_on: Server
    gtid: str


def hand_made_gtid(
    topology: Topology, *, origin: str = "a", made_on: str = "b", distance: int = 3
) -> HandMadeGtid:
    """Commit a row under a GTID that another server will reach `distance` commits later.

    The channel back to the origin is stopped first, so that the origin does not receive it.
    Afterwards: an isolated GNO of the origin's UUID on the other server.
    """
    here, there = topology[origin], topology[made_on]
    table_on(here, there, "handmade")
    here.execute(here.dialect.stop_replica)
    own = str(here.value("@@GLOBAL.server_uuid"))
    gtid = f"{own}:{last_number(here) + distance}"
    there.execute(
        f"SET SESSION gtid_next = '{gtid}'",
        "INSERT INTO handmade.t (id, note) VALUES (100, 'made by hand')",
        "SET SESSION gtid_next = 'AUTOMATIC'",
    )
    return HandMadeGtid(origin=here, made_on=there, gtid=gtid)


def reach(made: HandMadeGtid, *, distance: int = 3) -> None:
    """Let the origin commit until it has used the hand-made GTID, and the next one."""
    here = made.origin
    statements = ["INSERT INTO handmade.t (note) VALUES ('written by the origin')"] * (distance + 1)
    wait_for(made.made_on, commit(here, *statements))
    here.execute(here.dialect.start_replica)
    wait_for(here, made.made_on.value("@@GLOBAL.gtid_executed"))


@dataclass(frozen=True, slots=True)
class ReturnedPrimary:
    """``old`` returned with ``tail``, which ``new`` has only as empty transactions."""

    old: Server
    new: Server
    tail: str


def returned_primary(
    topology: Topology, *, old: str = "a", new: str = "b", tail_count: int = 3
) -> ReturnedPrimary:
    """Fail over from a primary whose last transactions were not replicated, and let it return.

    The operator commits empty transactions for these on the new primary, and the old primary
    follows the new one. Afterwards: equal sets, no error, and the rows of the last transactions on
    the old primary only.
    """
    here, there = topology[old], topology[new]
    table_on(here, there, "returned")
    there.execute(there.dialect.stop_replica)
    tail = commit(here, *["INSERT INTO returned.t (note) VALUES ('not received')"] * tail_count)
    here.kill()
    commit(there, "INSERT INTO returned.t (note) VALUES ('after the failover')")
    uuid, _, numbers = tail.rpartition(":")
    first, _, last = numbers.partition("-")
    for gno in range(int(first), int(last or first) + 1):
        there.execute(f"SET SESSION gtid_next = '{uuid}:{gno}'", "BEGIN", "COMMIT")
    here.start()
    here.execute(here.dialect.stop_replica)
    follow(here, there)
    there.execute(there.dialect.start_replica)
    wait_for(here, there.value("@@GLOBAL.gtid_executed"))
    wait_for(there, here.value("@@GLOBAL.gtid_executed"))
    executed = [server.value("@@GLOBAL.gtid_executed") for server in (here, there)]
    if executed[0] != executed[1]:
        raise FaultNotProduced(f"the sets are {executed[0]} and {executed[1]}")
    return ReturnedPrimary(old=here, new=there, tail=tail)


def reused_above_free_gnos(
    topology: Topology, *, source: str = "a", replica: str = "b", first: int = 41
) -> LostTail:
    """Let a source lose three hand-made GTIDs above free ones, fill these, and reuse the three.

    Afterwards: both sets are equal, both threads run without an error. The first transactions after
    the restart are the same on both; the three differ.
    """
    uuid = topology[source].value("@@GLOBAL.server_uuid")
    statements = [
        statement
        for gno in range(first, first + 3)
        for statement in (
            f"SET gtid_next = '{uuid}:{gno}'",
            f"INSERT INTO lost.t VALUES ({gno}000, 'lost')",
        )
    ]
    fault = lost_tail_crash(topology, source=source, replica=replica, statements=statements)
    here, there = fault.source, fault.replica
    # As many as are free, three for the lost ones, and at least one after them.
    refilled = commit(here, *["INSERT INTO lost.t (note) VALUES ('after the crash')"] * (first + 3))
    there.execute(there.dialect.start_replica)
    wait_for(there, refilled)
    if not here.query("SELECT GTID_SUBSET(%s, %s)", [fault.lost, refilled])[0][0]:
        raise FaultNotProduced(f"{here.name} lost {fault.lost} and then wrote {refilled}")
    return fault
