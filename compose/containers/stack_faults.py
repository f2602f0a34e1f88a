"""Faults of the stack's pair: what breaks it, and what repairs it.

Each is undone completely by its repair, in the same two servers. It does not know how the stack was
started, nor what is found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class RunningPair(Protocol):
    """What a fault needs of the stack: ``compose.containers.stack.Stack`` has it."""

    project: str

    def sql(self, server: str, statements: str) -> str:
        """Run statements as root and return the rows."""

    def docker(self, *arguments: str) -> str:
        """Run the docker client and return its output."""

    def container(self, service: str) -> str:
        """Return the id of a service's container."""


@dataclass(frozen=True, slots=True)
class StackFault:
    """A fault of the pair ``db1``, ``db2``."""

    text: str
    inject: Callable[[RunningPair], None]
    repair: Callable[[RunningPair], None]


def _conflict(stack: RunningPair) -> None:
    """Insert one row on each side with the same key, and let them cross."""
    stack.sql(
        "db1",
        "CREATE DATABASE IF NOT EXISTS stack_fault;"
        "CREATE TABLE IF NOT EXISTS stack_fault.t (id INT PRIMARY KEY, v INT);",
    )
    _wait_for_db2(stack)
    stack.sql("db2", "STOP REPLICA SQL_THREAD;")
    stack.sql("db1", "INSERT INTO stack_fault.t VALUES (1, 1);")
    # Unlogged, so that the row of db1 alone has a GTID and the repair loses nothing.
    stack.sql("db2", "SET sql_log_bin = 0; INSERT INTO stack_fault.t VALUES (1, 2);")
    stack.sql("db2", "START REPLICA SQL_THREAD;")


def _conflict_repaired(stack: RunningPair) -> None:
    stack.sql("db2", "SET sql_log_bin = 0; DELETE FROM stack_fault.t WHERE id = 1;")
    stack.sql("db2", "START REPLICA SQL_THREAD;")
    _wait_for_db2(stack)
    stack.sql("db1", "DROP DATABASE stack_fault;")
    _wait_for_db2(stack)


def _wait_for_db2(stack: RunningPair) -> None:
    executed = stack.sql("db1", "SELECT @@GLOBAL.gtid_executed;").strip().replace("\\n", "")
    stack.sql("db2", f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60);")


def _stopped(stack: RunningPair) -> None:
    stack.sql("db2", "STOP REPLICA;")


def _stopped_repaired(stack: RunningPair) -> None:
    stack.sql("db2", "START REPLICA;")


def _partition(stack: RunningPair) -> None:
    """Take db2 out of the network by which the two replicate; the auditor still reaches both."""
    stack.docker("network", "disconnect", f"{stack.project}_replication", stack.container("db2"))


def _partition_repaired(stack: RunningPair) -> None:
    network = f"{stack.project}_replication"
    # A connection made again has no name of its own.
    stack.docker(
        *("network", "connect", "--alias", "db2.replication", network, stack.container("db2"))
    )


def _frozen(stack: RunningPair) -> None:
    stack.docker("pause", stack.container("db2"))


def _frozen_repaired(stack: RunningPair) -> None:
    stack.docker("unpause", stack.container("db2"))


FAULTS = {
    "conflict": StackFault(
        "db2 has a row with the key of a row of db1: its applier stops with a duplicate key",
        _conflict,
        _conflict_repaired,
    ),
    "stopped": StackFault("db2 does not replicate: STOP REPLICA", _stopped, _stopped_repaired),
    "partition": StackFault(
        "db1 and db2 do not reach each other; the auditor reaches both",
        _partition,
        _partition_repaired,
    ),
    "frozen": StackFault("db2 is paused: it accepts nothing", _frozen, _frozen_repaired),
}
