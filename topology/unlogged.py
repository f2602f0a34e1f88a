"""Which GTIDs a server has executed although its binary logs never held them.

How it works
------------
A server purges whole binary logs, the oldest first. So what it has purged is, but for one
exception, older than all that its logs still hold: in every UUID, `gtid_purged` lies below the
first logged GTID. A GTID of gtid_purged *above* a logged one got there in another way:

* **an operator declared it executed** (SET GLOBAL gtid_purged = '+…'): then its rows are missing;
* **it was applied without being logged** (log_replica_updates=OFF or log_bin=OFF for a while,
  sql_log_bin=0 with gtid_next), or a crash took the end of the log and not the rows: then they are
  there;
* **it was logged out of order and purged**: a parallel applier without commit order wrote A:10
  before A:9, and the log that ended between them was purged. Nothing is wrong.

The last one is excluded by one fact: the Previous_gtids of the first log that is left name all that
the purged logs held. `candidates` says of which servers that is worth reading (sets only);
`unlogged` subtracts it. Between the other causes no reading decides. Once the logs before such a
GTID are purged as well, nothing shows it any more.

Source: sql/binlog.cc (MYSQL_BIN_LOG::init_gtid_sets), sql/rpl_gtid_state.cc (add_lost_gtids); tried
on 9.7.4 and 5.6.24.
"""

from typing import Final

from gtid import GNO_MAX, GtidSet, Tsid
from topology.snapshot import ServerSnapshot

_OFF: Final = frozenset({"OFF", "0"})


def candidates(server: ServerSnapshot) -> GtidSet:
    """Return what a server has purged above a GTID of the same UUID and tag that it has logged.

    Empty for a server that does not log what it applies, or whose facts were not read.
    """
    executed, purged = server.gtid_executed, server.gtid_purged
    if executed is None or not purged or not server.binary_logs:
        return GtidSet()
    if server.setting("log_replica_updates") in _OFF:
        return GtidSet()
    first_logged: dict[Tsid, tuple[Tsid, int, int]] = {}
    for tsid, first, _ in (executed - purged).intervals():
        first_logged.setdefault(tsid, (tsid, first, GNO_MAX))
    return purged & GtidSet.from_intervals(first_logged.values())


def unlogged(server: ServerSnapshot) -> GtidSet:
    """Return what a server has executed and never logged, as far as its first log was read."""
    evidence = server.history_evidence
    if evidence is None or evidence.first_log is None:
        return GtidSet()
    return candidates(server) - evidence.first_log.previous_gtids
