"""H2, A6: a gap that parallel workers left when the applier stopped.

Benign and malign causes look the same in the sets: an older transaction is received and missing,
later ones are applied, and the applier is stopped.

* Workers were at different positions when it stopped (a crash, a kill, an error). The applier has
  not passed the gap: it fills it when it starts.
* The applier has skipped the transaction, or forgot it in a RESET. Then it has passed it, and the
  gap stays: H8. The source's log separates the two: what is before the applier's position there is
  passed, what is after it is not (log_searches.py). Without that answer H2 is `likely`.
* The source logged the gap behind the later ones, because it fetched it again. Then these are
  before the applier's position in the source's log, and the gap is a backlog (T2).
* The replica was reset (RESET BINARY LOGS AND GTIDS), and its relay log deleted: its receiver asks
  for the forgotten ones again, and its binary logs have none below them. Of a new replica, whose
  workers stopped among the first transactions, nothing looks different: H2 is `likely`.
* No worker applied the later ones: after a RESET gtid_purged was set by hand, with a hole. A later
  one in the replica's own binary log was applied. Without one H2 is `likely`.
* No worker applied the later ones: a session committed them (gtid_next), as when an operator skips
  a transaction and uses a wrong number. Then there is no gap of workers, and no H2: the next start
  applies the transaction. The log of the replica has the server_id of who committed the later ones
  (topology/facts/committed_by_hand.py). If it was not read, H2 is `likely`.
* Another channel applied the later ones. A replica with several channels is not reported here.

H2 becomes A6 where the applier cannot start. With relay_log_recovery = 1 mysqld deletes the relay
log when it starts, and cannot if it still has to fill a gap (error 1872, seen on 5.6.24). Then
START REPLICA UNTIL SQL_AFTER_MTS_GAPS is refused as well, and Retrieved_Gtid_Set is empty. A
repository that cannot be read gives the same error: A6 is `likely`. Error 1803 names the gaps.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade, Strategy
from topology.facts.channel_places import logged_above, searched
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.committed_by_hand import applied_above, only_by_hand_above
from topology.facts.edge_facts import EdgeFacts
from topology.facts.reset_signs import excludes_reset
from topology.readings.snapshot import ThreadState
from topology.rules.build import Rules, evidence, many, on_edge

_SEVERAL: Final = 2


def crash_gap(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H2: a gap below applied transactions, of an applier that is stopped."""
    for edge in facts.edges:
        by_hand = only_by_hand_above(edge.edge, edge.queued_below, servers=facts.last)
        gap, channel = edge.queued_below - by_hand, edge.channel
        replica = facts.fully_read[edge.replica].last
        workers = replica.setting("replica_parallel_workers")
        if not gap or channel.applier is not ThreadState.STOPPED:
            continue
        if len(replica.channels or ()) >= _SEVERAL or workers in ("0", "1"):
            continue
        if _arrived_later(facts, edge, gap):
            continue  # a backlog (T2): nothing was applied before its turn
        is_ahead = gap <= edge.ahead
        below_logged = gap & (replica.gtid_executed - replica.gtid_purged).filled()
        below_applied = gap & applied_above(edge.edge, servers=facts.last).filled()
        # A gap below all that it has of an origin: a RESET looks like it (reset_signs.py).
        may_be_reset = not excludes_reset(replica, gap)
        is_known = is_ahead and below_applied == gap and workers is not None
        is_proved = is_known and not may_be_reset
        found = on_edge(
            facts,
            edge,
            "H2",
            gap,
            grade=Grade.PROVED if is_proved else Grade.LIKELY,
            proof=(
                evidence("received, missing below the highest applied", gap, replica),
                evidence("of these, after the applier's position", gap & edge.ahead, replica),
                evidence("of these, below one in its own binary log", below_logged, replica),
                evidence("of these, below one that an applier logged", below_applied, replica),
                evidence("applier", channel.applier.value, replica),
                evidence("replica_parallel_workers", workers or "unknown", replica),
            ),
            explanation=(_GAP if is_proved else _MAYBE_A_GAP).format(
                replica=edge.replica, gap=many(gap)
            )
            + ("" if is_ahead else _OR_PASSED.format(source=edge.source))
            + (_OR_RESET.format(replica=edge.replica) if may_be_reset else "")
            + ("" if below_logged == gap else _OR_DECLARED.format(replica=edge.replica))
            + ("" if below_applied >= below_logged else _OR_BY_HAND.format(replica=edge.replica)),
        )
        if found.grade is not Grade.PROVED:
            found = replace(found, strategies=_careful(found.strategies))
        yield found


def _arrived_later(facts: ClusterFacts, edge: EdgeFacts, gap: GtidSet) -> bool:
    """Return whether the source logged all that is applied above a gap before the gap.

    A source that fetched a transaction again has it behind later ones. The position of the applier
    is then after these, and no worker is ahead of it.
    """
    source, replica = facts.fully_read[edge.source].last, facts.fully_read[edge.replica]
    behind, _ = searched(edge.edge, source=source, replica=replica.first)
    above = logged_above(gap, replica.last, source)
    return bool(above) and above <= behind


def _careful(strategies: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
    """Return the strategies of a gap that workers may not have left: a start is a decision then."""
    return tuple(replace(each, risk=_NOT_PROVED) for each in strategies)


def gap_not_recovered(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A6: a gap below applied transactions, and an applier that cannot start for it."""
    for edge in facts.edges:
        channel, source = edge.channel, facts.first[edge.source]
        server = facts.fully_read[edge.replica]
        replica, executed = server.last, server.last.gtid_executed
        workers = replica.setting("replica_parallel_workers")
        if channel.applier_errno not in _CANNOT_START or workers in ("0", "1"):
            continue
        if replica.setting("relay_log_recovery") not in ("1", "ON"):
            continue  # mysqld fills gaps then, and the error has another cause (A3)
        gap = (source.gtid_executed or GtidSet()) & executed.filled()
        gap -= executed | server.last.gtid_owned
        if not gap or channel.applier is not ThreadState.STOPPED:
            continue
        is_named = channel.applier_errno == _NOT_RECOVERED
        yield on_edge(
            facts,
            edge,
            "A6",
            gap,
            grade=Grade.PROVED if is_named else Grade.LIKELY,
            proof=(
                evidence("applier errno", channel.applier_errno, replica),
                evidence("applier error", channel.applier_error, replica),
                evidence("missing below the highest applied", gap, replica),
                evidence("replica_parallel_workers", workers or "unknown", replica),
                evidence(
                    "relay_log_recovery",
                    replica.setting("relay_log_recovery") or "unknown",
                    replica,
                ),
            ),
            explanation=f"The applier of {edge.replica} cannot start (error"
            f" {channel.applier_errno}): its workers stopped at different positions, and"
            f" {many(gap)} below the highest applied are missing. With relay_log_recovery = 1"
            " mysqld cannot fill such a gap. Until it is filled, CHANGE REPLICATION SOURCE is"
            " refused with error 1802. By file position, do not run RESET REPLICA: it deletes the"
            " position. Restart mysqld once with relay_log_recovery = 0: the applier then fills the"
            " gap from its relay log." + ("" if is_named else _OR_UNREADABLE),
        )


_CANNOT_START: Final = frozenset({1803, 1872, 13124})
_NOT_RECOVERED: Final = 1803
_OR_UNREADABLE: Final = (
    " The same error is reported if mysqld cannot read its applier's position, or if a file of the"
    " relay log is missing: look into its error log and its directory first. With a missing file,"
    " the restart with relay_log_recovery = 0 skips what only that file had. A gap that is still"
    " there after the start was skipped or forgotten (H1, H8)."
)
_OR_PASSED: Final = (
    " The log of {source} does not show whether the applier has passed them. If they were skipped,"
    " or forgotten in a RESET, the gap stays: audit again after the start (H8)."
)

_OR_RESET: Final = (
    " The binary logs of {replica} do not show an earlier transaction of the same origin. If it was"
    " reset (RESET BINARY LOGS AND GTIDS), its workers left no gap: it had applied these before,"
    " and a start applies them again. Compare the rows first."
)

_GAP: Final = (
    "The applier of {replica} stopped within a gap: its workers had applied later transactions"
    " before {gap} that it has received. It fills the gap when it starts. Until then CHANGE"
    " REPLICATION SOURCE is refused with error 1802, and RESET REPLICA loses the list of what is"
    " missing."
)
_MAYBE_A_GAP: Final = (
    "The applier of {replica} is stopped and has not applied {gap} that it has received, below"
    " later ones that {replica} has executed. If its workers left this gap, it fills it when it"
    " starts. Until then CHANGE REPLICATION SOURCE is refused with error 1802, and RESET REPLICA"
    " loses the list of what is missing."
)
_NOT_PROVED: Final = (
    "if workers did not leave this gap, what waits may not match the rows, and may be applied a"
    " second time"
)
_OR_BY_HAND: Final = (
    " Its binary log was not read far enough to show who committed the later ones. If it was a"
    " session (an empty transaction under a wrong GTID), the workers left no gap, and CHANGE is not"
    " refused. {replica} then never gets what its source has under these GTIDs (E4). In the output"
    " of mysqlbinlog they have the server_id of {replica} then: compare the rows before the applier"
    " starts."
)
_OR_DECLARED: Final = (
    " The binary log of {replica} has none of the later transactions. If gtid_purged was set by"
    " hand (after a RESET or a restore), the workers left no gap: the rows of these transactions"
    " may be there, and the applier may pass them. Compare the rows before the applier starts."
)

RULES: Rules = (
    crash_gap,  # H2
    gap_not_recovered,  # A6
)
