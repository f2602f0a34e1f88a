"""Four servers that hold different transactions: what each could replicate from each other.

``lost_on`` crashed and lost own transactions that others have, ``behind`` missed transactions that
some have purged, ``errant_on`` has one of its own.
"""

from dataclasses import dataclass

from compose.faults import commit, lost_tail_crash, purge_until_gone
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for


@dataclass(frozen=True, slots=True)
class FourThatDiffer:
    """The servers by role, in a star around ``lost_on``."""

    lost_on: Server
    purged_on: Server
    errant_on: Server
    behind: Server
    lost: str
    errant: str


def four_that_differ(star: Topology) -> FourThatDiffer:
    """Let one replica stop, purge under it, write on another, and let the source lose its tail.

    The servers of the star are ``source`` and three replicas, in the order of their names.
    Afterwards: the source and the first replica have purged, the second replica has all logs and an
    errant transaction, the third has stopped early.
    """
    source, first, second, third = (star[name] for name in ("source", "one", "two", "three"))
    source.execute("CREATE DATABASE four", "CREATE TABLE four.t (id INT PRIMARY KEY)")
    star.settle()
    third.execute(third.dialect.stop_replica)
    missed = commit(source, "INSERT INTO four.t VALUES (1)", "INSERT INTO four.t VALUES (2)")
    for replica in (first, second):
        wait_for(replica, missed)
    for server in (source, first):
        server.execute("FLUSH BINARY LOGS")
        purge_until_gone(server, missed)
    errant = commit(second, "INSERT INTO four.t VALUES (100)")
    lost = lost_tail_crash(star, source="source", replica="one").lost
    return FourThatDiffer(source, first, second, third, lost, errant)
