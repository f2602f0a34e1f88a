"""Transactions that arrive behind later ones of the same source: a row may become older again.

How it works
------------
A source logs its own transactions in the order of their numbers (one TSID, one run without a gap),
and sends them in this order. An applier with one worker, or with replica_preserve_commit_order,
commits them in this order and leaves no gap, not even after a crash. So a replica that has executed
a:7 and not a:6 did not come to that by replication. The applier skipped a:6
(sql_replica_skip_counter, RELAY_LOG_POS, a file position), or RESET BINARY LOGS AND GTIDS removed
it from gtid_executed and its rows are there. While a:6 does not come at all it is H1 or H8. A
restart with relay_log_recovery, or a new connection by sets, fetches it again. It is then applied
behind a:7: `UPDATE … SET v = 6` puts an older row over the newer one, or the applier stops (1062,
1032). Afterwards the sets are equal, and nothing shows it any more.

A receiver that has a:3 and neither a:1 nor a:2, which the replica has not executed either, shows
the same: its source left them out, because the replica had them when it connected. Only a RESET
has removed them since, and on this connection they do not come.

Transactions of other origins may be in the source's log in another order than that of their
numbers: its log is asked (topology/log_order.py). Left out: a parallel applier without commit order
(its gaps do not depend on what was committed above them); GTIDs of a group, whose members have
blocks of numbers.
"""

from typing import Final

from gtid import GtidSet
from topology.applier_workers import commits_in_order
from topology.facts import ClusterFacts, EdgeFacts
from topology.log_order import gaps_of_others, logged_before
from topology.rules.build import many
from topology.skipping import may_skip
from topology.unseen import group_uuids

_TEXT: Final = (
    " {replica} has later transactions of {source} already. So its applier skipped {what} before"
    " (sql_replica_skip_counter, a log position), or RESET BINARY LOGS AND GTIDS removed them from"
    " gtid_executed. Either they do not come, or they may put older rows over newer ones, or stop"
    " the applier. Run STOP REPLICA on {replica} and compare the rows first."
)

_NOT_READ: Final = (
    " {replica} has later transactions of the same origin already, and its applier commits in the"
    " order of what it receives: it may have skipped {what} (sql_replica_skip_counter). The binary"
    " log of {source} shows which were logged first, and could not be read: {why}. Audit again with"
    " an account that may read it, or compare the rows."
)

_WITHOUT_HISTORY: Final = (
    " {replica} has executed nothing, and has {schemas} besides MySQL's own. If RESET BINARY LOGS"
    " AND GTIDS removed its history, or a backup was loaded without gtid_purged, the rows of these"
    " transactions are there: they do not come, or are applied a second time. Run STOP REPLICA on"
    " {replica} and compare the rows first."
)


def behind_later_ones(
    facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet, *, received: GtidSet | None = None
) -> GtidSet:
    """Return which GTIDs arrive behind later ones of the same origin that the replica has.

    `received`: where none of `gtids` was received, what was.
    """
    replica, source = facts.first[edge.edge.replica], facts.last[edge.edge.source]
    uuid = source.server_uuid
    if uuid is None or uuid in group_uuids(facts.last.values()):
        return GtidSet()
    later = (received or GtidSet()) - gtids  # 5.6 lists what has begun to arrive
    if commits_in_order(facts.last[edge.edge.replica]):
        later |= replica.gtid_executed or GtidSet()
    found = gtids & logged_before(facts, edge)
    for tsid, start, end in (source.gtid_executed or GtidSet()).from_uuid(uuid).intervals():
        run = GtidSet.from_intervals([(tsid, start, end)])
        highest = (run & later).highest(tsid)
        if highest is not None:
            found |= gtids & GtidSet.from_intervals([(tsid, start, highest + 1)])
    return found


def out_of_order_text(edge: EdgeFacts, gtids: GtidSet) -> str:
    """Explain what is wrong with them; empty if there are none."""
    if not gtids:
        return ""
    return _TEXT.format(replica=edge.edge.replica, source=edge.edge.source, what=many(gtids))


def unread_order(facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet) -> str:
    """Explain that an applier may have skipped some, where the log that shows it was not read.

    Only where both servers commit in order and an applier may skip: there a gap is no matter of
    course.
    """
    source, replica = facts.last[edge.edge.source], edge.edge.replica
    answers = source.history_evidence
    if answers is None or not answers.unread or not commits_in_order(source):
        return ""
    gaps = gtids & gaps_of_others(facts, edge)
    if not gaps or not may_skip(facts, edge.edge):
        return ""
    return _NOT_READ.format(
        replica=replica, source=source.name, what=many(gaps), why=answers.unread
    )


def rows_without_history(facts: ClusterFacts, edge: EdgeFacts) -> str:
    """Explain that a replica without any GTID has data already; empty if it has none.

    RESET BINARY LOGS AND GTIDS leaves it so, and a dump that was loaded without gtid_purged. The
    receiver of a replica that was reset after it had connected gets nothing of it any more; one
    that connects afterwards gets everything again. A new replica that begins to apply what it has
    received has its first schema a moment later: what was received leaves nothing open.
    """
    server = facts.last[edge.edge.replica]
    history = server.history_evidence
    if server.gtid_executed or edge.edge.channel.gtid_retrieved:
        return ""
    if history is None or not history.schemas_count:
        return ""
    schemas = "1 schema" if history.schemas_count == 1 else f"{history.schemas_count} schemas"
    return _WITHOUT_HISTORY.format(replica=server.name, schemas=schemas)
