"""Which GTIDs a server has executed although its binary logs never contained them.

How it works
------------
A server purges whole binary logs, the oldest first. So what it has purged is, with one exception,
older than everything in its remaining logs: in every UUID, `gtid_purged` is below the first logged
GTID. A GTID of gtid_purged *above* a logged one has another cause:

* **an operator declared it executed** (SET GLOBAL gtid_purged = '+…'). Its rows are missing.
* **it was applied without being logged** (log_replica_updates=OFF or log_bin=OFF for a while,
  sql_log_bin=0 with gtid_next). Or a crash lost the end of the log and not the rows. Its rows are
  present.
* **it was logged out of order and purged**. A parallel applier without commit order logged A:10
  before A:9, and the log file that ended between them was purged. Nothing is wrong.

One fact excludes the last cause: the Previous_gtids event of the first remaining log lists
everything that the purged logs held. `candidates_in` returns the servers whose first log is worth
reading (from the sets only), and `unlogged` subtracts what that event lists. No reading
distinguishes the other causes. Once the logs before such a GTID are purged as well, nothing shows
it.

A second sign needs no logged GTID below. It is a gap in Retrieved_Gtid_Set (not_received.py) whose
GTIDs the replica has in gtid_purged and the source in its logs. The replica had them when its
receiver reached them, and can never show their content. The cause is RESET BINARY LOGS AND GTIDS
followed by SET GLOBAL gtid_purged with a set that is too large. For a replica that does not log
what it receives, whose gtid_purged has all of that, the error log must show the change as well
(8.0.22, see declared.py).

A third sign is the order of two origins (declared_later.py). A server that has logged nothing of a
UUID was in service before the GTIDs in its gtid_purged were committed.

Source: sql/binlog.cc (MYSQL_BIN_LOG::init_gtid_sets), sql/rpl_gtid_state.cc (add_lost_gtids); tried
on 9.7.4 and 5.6.24.
"""

from collections.abc import Mapping
from typing import Final

from gtid import GNO_MAX, GtidSet, Tsid
from topology.facts.not_received import purged_instead
from topology.readings.history_evidence import ends_of, intervals_of, samples_of_gap
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

_NOTHING: Final = GtidSet()
_OFF: Final = frozenset({"OFF", "0"})


def logs_received(server: ServerSnapshot) -> bool:
    """Return whether a server logs what it applies; if not, gtid_purged has all of that."""
    return server.setting("log_replica_updates") not in _OFF


def without_event(gtids: GtidSet, server: ServerSnapshot) -> GtidSet:
    """Return what is in no binary log of a server, which has not purged it either.

    Such a log was lost, or mysqld added the GTIDs to gtid_executed without an event. Of a large gap
    both ends of each range were searched for, and a range counts if neither end was found.
    """
    evidence = server.history_evidence
    if evidence is None or not evidence.absent:
        return _NOTHING
    if samples_of_gap(gtids) == gtids:
        return gtids & evidence.absent
    return GtidSet.union_of(
        each for each in intervals_of(gtids) if GtidSet.union_of(ends_of(each)) <= evidence.absent
    )


def is_found(gtids: GtidSet, server: ServerSnapshot) -> bool:
    """Return whether a search of a server's logs found each of these transactions."""
    evidence = server.history_evidence
    return evidence is not None and gtids <= GtidSet.union_of(
        each.gtid for each in evidence.commits
    )


def candidates_in(snapshot: ClusterSnapshot) -> Mapping[str, GtidSet]:
    """Return, by server, what it may have executed and never logged; omit servers without any.

    A server that does not log what it applies has only what it did not receive. One whose facts
    were not read has none.
    """
    found = purged_instead(snapshot)
    for server in snapshot.last:
        if logs_received(server):
            instead = found.pop(server.name, GtidSet())
            if server.binary_logs:
                found[server.name] = _purged_above_logged(server) | instead
    return {name: gtids for name, gtids in found.items() if gtids}


def purged_above_a_gap(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Return servers that become candidates once they log what is missing below gtid_purged.

    A repair that delivers the missing GTIDs reveals them. So their first log is read before, and
    the plan can list them.
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
    """Return the part of a set that a server received without logging (log_replica_updates = OFF).

    Seen on 9.7.4: such GTIDs are in gtid_purged at once.
    """
    is_logging = "log_replica_updates" not in notable_values(server.notable_settings)
    if is_logging or server.server_uuid is None:
        return GtidSet()
    return gtids.without_uuid(server.server_uuid)


def unlogged(server: ServerSnapshot, candidates: GtidSet) -> GtidSet:
    """Return which candidates a server never logged, as far as its first log was read.

    Of a server that does not log what it applies, only its error log shows what was declared: that
    it received them before its relay log began anew looks the same otherwise.
    """
    evidence = server.history_evidence
    if evidence is not None and not logs_received(server):
        changes = evidence.purged_changes or ()
        return candidates & GtidSet.union_of(each.added for each in changes)
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
