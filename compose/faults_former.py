"""A relay log that has former transactions of its source, which has reused their GTIDs since."""

import shutil
import time
from dataclasses import dataclass

from compose.faults import commit, table_on
from compose.faults_applier import await_received
from compose.native.provision import copy_data_directory
from compose.native.server import Server
from compose.native.shapes import Topology, wait_for

_CLOCK_SECONDS = 1.1  # a restart in the second of a commit looks like one before it
_DELAY_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class FormerInRelayLog:
    """``replica`` has received ``former``; ``source`` has other transactions under these GTIDs."""

    source: Server
    replica: Server
    former: str
    table: str = "former.t"


def former_in_relay_log(
    topology: Topology, *, source: str = "a", replica: str = "b", is_restored: bool = True
) -> FormerInRelayLog:
    """Let a delayed replica receive transactions, and restore an older copy of its source.

    The source reuses their GTIDs while the receiver is stopped. With ``is_restored`` false it is
    only restarted, and the transactions are still the same.

    Afterwards: both servers run, and the receiver of the replica is stopped.
    """
    here, there = topology[source], topology[replica]
    table_on(here, there, "former")
    words = there.dialect
    there.execute(
        words.stop_replica,
        f"{words.words.change_source} {words.words.option_prefix}DELAY = {_DELAY_SECONDS}",
        words.start_replica,
    )
    copy = here.folder / "older-copy"
    here.stop()
    copy_data_directory(here.datadir, copy)
    here.start()
    time.sleep(_CLOCK_SECONDS)
    former = commit(here, *["INSERT INTO former.t (note) VALUES ('former')"] * 2)
    await_received(there, former)
    there.execute(f"{words.stop_replica} IO_THREAD")
    here.kill()
    if is_restored:
        shutil.rmtree(here.datadir)
        copy.rename(here.datadir)
    time.sleep(_CLOCK_SECONDS)
    here.start()
    time.sleep(_CLOCK_SECONDS)
    commit(here, *["INSERT INTO former.t (note) VALUES ('new')"] * 3)
    return FormerInRelayLog(here, there, former)


def apply_at_once(fault: FormerInRelayLog) -> None:
    """Start the receiver, remove the delay, and wait until all is applied.

    The receiver runs meanwhile: with both threads stopped, the change deletes the relay log.
    """
    words = fault.replica.dialect
    fault.replica.execute(
        words.start_replica,
        f"{words.stop_replica} SQL_THREAD",
        f"{words.words.change_source} {words.words.option_prefix}DELAY = 0",
        words.start_replica,
    )
    wait_for(fault.replica, fault.source.value("@@GLOBAL.gtid_executed"))
