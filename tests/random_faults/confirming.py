"""Asks the servers by SQL whether a finding that the fault does not explain is there.

1. Nothing of the product's rules is used: sets are subtracted by the servers, and the state of
   threads and settings is read from them.
2. The load has ended. First every replica gets the time to catch up, so that what was only late is
   gone.
"""

import time
from typing import Final

from compose.native.server import Server
from compose.native.shapes import Topology
from tests.random_faults.expectations import Reported
from tests.random_faults.scene import executed

_IDLE_SECONDS = 1.0
_DRAIN_SECONDS_MAX = 15.0
_POLL_SECONDS = 0.1
_MISSING: Final = frozenset({"H1", "H2", "H3", "H4", "H5", "H8", "P1", "P2", "J1", "J2", "C2"})
_EXTRA: Final = frozenset({"E1", "E2", "E3", "E6", "J3"})


def drain(topology: Topology) -> None:
    """Wait until no set has changed for some time."""
    deadline = time.monotonic() + _DRAIN_SECONDS_MAX
    last, since = _sets(topology), time.monotonic()
    while time.monotonic() < min(deadline, since + _IDLE_SECONDS):
        time.sleep(_POLL_SECONDS)
        if (now := _sets(topology)) != last:
            last, since = now, time.monotonic()


def _sets(topology: Topology) -> list[str]:
    return [executed(server) for server in topology.servers.values() if server.running]


def is_confirmed(finding: Reported, topology: Topology) -> bool:
    """Return whether SQL shows what a finding states; False where SQL cannot show it."""
    servers = topology.servers
    replica = servers.get(finding.replica or "")
    source = servers.get(finding.source or "")
    if replica is None or not replica.running:
        return False
    if finding.code.startswith("A"):
        return _is_stopped(replica)
    if finding.code == "C3":
        return str(replica.replica_status().get("Auto_Position")) == "0"
    if finding.code == "C4":
        modes = {str(each.value("@@GLOBAL.gtid_mode")) for each in servers.values()}
        return modes != {"ON"}
    if source is None or not source.running or not finding.gtids:
        return False
    claimed = str(finding.gtids).replace("\n", "")
    if finding.code in _MISSING:
        return _has(source, claimed) and not _overlaps(replica, claimed)
    if finding.code == "P5":  # the candidate has purged them
        question = "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_purged)"
        return bool(source.query(question, [claimed])[0][0]) and not _overlaps(replica, claimed)
    if finding.code in _EXTRA:
        received = str(replica.replica_status().get("Retrieved_Gtid_Set") or "")
        return _has(replica, claimed, received) and not _overlaps(source, claimed)
    return False


def _is_stopped(replica: Server) -> bool:
    status = replica.replica_status()
    states = {status.get("Replica_IO_Running"), status.get("Replica_SQL_Running")}
    return bool(status) and states != {"Yes"}


def _has(server: Server, claimed: str, received: str = "") -> bool:
    """Return whether a server has executed these GTIDs, or has them in its relay log."""
    question = "SELECT GTID_SUBSET(%s, CONCAT(@@GLOBAL.gtid_executed, ',', %s))"
    return bool(server.query(question, [claimed, received])[0][0])


def _overlaps(server: Server, claimed: str) -> bool:
    """Return whether a server has any of these GTIDs."""
    question = "SELECT GTID_SUBTRACT(%s, GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed))"
    return bool(server.query(question, [claimed, claimed])[0][0])
