"""An applier's wait for a session that owns the GTID of the next transaction.

Such a wait may end in two ways. The session rolls back, and the applier applies the transaction. Or
the session commits under the GTID, and the transaction's rows never arrive although the sets are
equal (seen on 9.7.4). So the contents of the GTID must be compared afterwards.

The owner may also be a worker of another channel that delivers the same transactions. If both
channels have several workers that commit in order, each may wait for the other indefinitely. STOP
REPLICA does not end either wait. KILL of the worker that owns the GTID frees the other channel, and
its own applier stops with error 1317 (all seen on 9.7.4).
"""

import re
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding
from topology.readings.snapshot import ServerSnapshot

# 5.7 and later: "Waiting for GTID to be committed"; 5.6: "waiting for GTID to be written to binary
# log" (sql/rpl_gtid_execution.cc).
_GTID_WAIT: Final = re.compile("waiting for GTID to be", re.IGNORECASE)


OWNER: Final = "owned by the applier of channel"


def is_gtid_wait(state: str) -> bool:
    """Return whether the state of a thread shows this wait."""
    return bool(_GTID_WAIT.search(state))


def waits_for_gtid(finding: Finding) -> bool:
    """Return whether a finding reports this wait (A5)."""
    return finding.code == "A5" and any(
        fact.fact == "state" and is_gtid_wait(fact.value) for fact in finding.evidence
    )


def channel_that_owns(gtids: GtidSet, server: ServerSnapshot, *, waiting: str) -> str | None:
    """Return the channel, other than the waiting one, whose worker owns these GTIDs."""
    for channel in server.channels or ():
        if channel.name == waiting:
            continue
        for worker in channel.workers:
            if worker.applying & gtids and not is_gtid_wait(worker.state):
                return channel.name
    return None


def owning_channel(finding: Finding) -> str | None:
    """Return the channel whose applier owns the GTID for which another one waits, or None."""
    return next((fact.value for fact in finding.evidence if fact.fact == OWNER), None)
