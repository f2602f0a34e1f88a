"""Copies of a server's files that no channel links to it: a clone, or a backup restored beside it.

A copy of the data directory of a stopped server is what a physical backup, CLONE INSTANCE and a
snapshot of a volume restore: rows, gtid_executed and binary logs of one moment. CLONE INSTANCE
copies no binary log and makes a server_uuid; of an image that was copied both stay as they were.
"""

import shutil
from dataclasses import dataclass

from compose.faults import commit
from compose.native.server import Server
from compose.native.shapes import Topology

_OF_THE_COPIED = ("CREATE DATABASE copied", "CREATE TABLE copied.t (id INT PRIMARY KEY, note TEXT)")


@dataclass(frozen=True)
class PhysicalCopy:
    """A server, and one that holds its files of an earlier moment."""

    of: Server
    copy: Server
    later: str  # what the server committed after the copy was made


def copied(
    topology: Topology, *, of: str = "a", to: str = "b", keeps_uuid: bool = False
) -> PhysicalCopy:
    """Replace the files of one server by those of another one, which commits more afterwards.

    The copy gets a server_uuid of its own, unless `keeps_uuid`: an image whose auto.cnf was copied
    too. Both servers are stopped for it, and no channel links them.
    """
    here, there = topology[of], topology[to]
    here.execute(*_OF_THE_COPIED, "INSERT INTO copied.t VALUES (1, 'before')", "FLUSH BINARY LOGS")
    here.stop()
    there.stop()
    shutil.rmtree(there.datadir)
    shutil.copytree(here.datadir, there.datadir)
    if not keeps_uuid:
        (there.datadir / "auto.cnf").unlink()
    for server in (here, there):
        server.start()
    later = commit(here, "INSERT INTO copied.t VALUES (2, 'after')", "FLUSH BINARY LOGS")
    return PhysicalCopy(of=here, copy=there, later=later)
