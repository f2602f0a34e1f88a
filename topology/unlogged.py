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
the purged logs held. `candidates_in` says of which servers that is worth reading (sets only);
`unlogged` subtracts it. Between the other causes no reading decides. Once the logs before such a
GTID are purged as well, nothing shows it any more.

A second sign needs no logged GTID below: a hole in Retrieved_Gtid_Set (not_received.py) whose GTIDs
the replica has in gtid_purged and the source in its logs. The replica had them when its receiver
came there, and can never show what they are: after RESET BINARY LOGS AND GTIDS, SET GLOBAL
gtid_purged with a set that is too large.

A third sign is the order of two origins (declared_later.py): a server that has logged nothing of a
UUID is in service since before the GTIDs in its gtid_purged were committed.

Source: sql/binlog.cc (MYSQL_BIN_LOG::init_gtid_sets), sql/rpl_gtid_state.cc (add_lost_gtids); tried
on 9.7.4 and 5.6.24.
"""

from collections.abc import Mapping
from typing import Final

from gtid import GNO_MAX, GtidSet, Tsid
from topology.not_received import purged_instead
from topology.notable_settings import notable_values
from topology.snapshot import ClusterSnapshot, ServerSnapshot

_OFF: Final = frozenset({"OFF", "0"})


def logs_received(server: ServerSnapshot) -> bool:
    """Return whether a server logs what it applies; otherwise gtid_purged has all of that."""
    return server.setting("log_replica_updates") not in _OFF


def candidates_in(snapshot: ClusterSnapshot) -> Mapping[str, GtidSet]:
    """Return, by server, what it may have executed and never logged; only servers with such GTIDs.

    A server that does not log what it applies has none, nor one whose facts were not read.
    """
    instead = purged_instead(snapshot)
    found = {
        server.name: _purged_above_logged(server) | instead.get(server.name, GtidSet())
        for server in snapshot.last
        if server.binary_logs and logs_received(server)
    }
    return {name: gtids for name, gtids in found.items() if gtids}


def purged_above_a_gap(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return the servers that are candidates once they log what is missing below gtid_purged.

    A repair that brings it uncovers them: their first log is read before, so that the plan can name
    them.
    """
    return tuple(
        server.name
        for server in snapshot.last
        if server.binary_logs
        and logs_received(server)
        and (purged := server.gtid_purged)
        and purged.filled() - (server.gtid_executed or GtidSet())
    )


def received_unlogged(server: ServerSnapshot, gtids: GtidSet) -> GtidSet:
    """Return what of a set a server received without logging it (log_replica_updates = OFF).

    Seen on 9.7.4: such GTIDs are in gtid_purged at once.
    """
    is_logging = "log_replica_updates" not in notable_values(server.notable_settings)
    if is_logging or server.server_uuid is None:
        return GtidSet()
    return gtids.without_uuid(server.server_uuid)


def unlogged(server: ServerSnapshot, candidates: GtidSet) -> GtidSet:
    """Return which candidates a server has never logged, as far as its first log was read."""
    evidence = server.history_evidence
    if evidence is None or evidence.first_log is None:
        return GtidSet()
    return candidates - evidence.first_log.previous_gtids


def _purged_above_logged(server: ServerSnapshot) -> GtidSet:
    executed, purged = server.gtid_executed, server.gtid_purged
    if executed is None or not purged:
        return GtidSet()
    first_logged: dict[Tsid, tuple[Tsid, int, int]] = {}
    for tsid, first, _ in (executed - purged).intervals():
        first_logged.setdefault(tsid, (tsid, first, GNO_MAX))
    return purged & GtidSet.from_intervals(first_logged.values())
