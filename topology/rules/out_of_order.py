"""Transactions that arrive after later ones of the same source: a row may become older again.

How it works
------------
A source logs its own transactions in ascending GNO order (one TSID, one run without a gap), and
sends them in this order. An applier with one worker, or with replica_preserve_commit_order, commits
them in this order and leaves no gap, not even after a crash. So replication alone cannot produce a
replica that has executed a:7 and not a:6. The applier skipped a:6 (sql_replica_skip_counter,
RELAY_LOG_POS, a file position), or RESET BINARY LOGS AND GTIDS removed it from gtid_executed and
its rows are present. While a:6 does not arrive, the finding is H1 or H8. A restart with
relay_log_recovery, or a new connection with auto-position, fetches it again. It is then applied
after a:7: `UPDATE … SET v = 6` overwrites the newer row with an older one, or the applier stops
(1062, 1032). Afterwards the sets are equal, and nothing shows it.

The same is true if a receiver has a:3 but neither a:1 nor a:2, and the replica has not executed
them either. Its source omitted them because the replica had them when it connected. Only a RESET
can have removed them since, and this connection will not deliver them.

Transactions of other origins may be in the source's log in another order than that of their GNOs,
so that log is read (topology/facts/log_order.py). Two cases are excluded: a parallel applier
without commit order, whose gaps do not depend on what was committed above them, and the GTIDs of a
group, whose members have blocks of GNOs.
"""

from typing import Final

from gtid import GtidSet
from gtid.counted_nouns import counted
from topology.facts.applier_workers import commits_in_order
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.log_order import gaps_of_others, logged_before
from topology.facts.memberships import group_uuids
from topology.facts.skipping import may_skip
from topology.readings.read_once import is_read_once
from topology.rules.build import many

_TEXT: Final = (
    " {replica} already has later transactions of {source}. So its applier skipped {what} before"
    " (sql_replica_skip_counter, a log position), or RESET BINARY LOGS AND GTIDS removed them from"
    " gtid_executed, or a session committed the later ones (gtid_next). They may never arrive. If"
    " they arrive, they may replace newer rows with older ones, or stop the applier. Run STOP"
    " REPLICA on {replica} and compare the rows first."
)

_NOT_READ: Final = (
    " {replica} already has later transactions of the same origin, and its applier commits in the"
    " order in which it receives: it may have skipped {what} (sql_replica_skip_counter). The binary"
    " log of {source} shows which were logged first, but gtid-audit could not read it: {why}. Audit"
    " again with an account that may read it, or compare the rows."
)

_WITHOUT_HISTORY: Final = (
    " {replica} has executed nothing, and has {schemas} besides MySQL's own. If RESET BINARY LOGS"
    " AND GTIDS removed its history, or a backup was loaded without gtid_purged, the rows of these"
    " transactions are there. Then the transactions do not arrive, or the applier applies them a"
    " second time. Run STOP REPLICA on {replica} and compare the rows first."
)


def behind_later_ones(
    facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet, *, received: GtidSet | None = None
) -> GtidSet:
    """Return which GTIDs arrive after later ones of the same origin that the replica has.

    `received` is what was received, if none of `gtids` was.
    """
    replica, source = facts.first[edge.replica], facts.last[edge.source]
    uuid = source.server_uuid
    if uuid is None or uuid in group_uuids(facts.last.values()):
        return GtidSet()
    if is_read_once(facts.last[edge.replica]) and len(replica.channels or ()) > 1:
        return GtidSet()  # at any one moment, one channel may be ahead of another
    later = (received or GtidSet()) - gtids  # 5.6 lists what has only begun to arrive
    if commits_in_order(facts.last[edge.replica]):
        later |= replica.gtid_executed or GtidSet()
    found = gtids & logged_before(facts, edge)
    for tsid, start, end in (source.gtid_executed or GtidSet()).from_uuid(uuid).intervals():
        run = GtidSet.from_intervals([(tsid, start, end)])
        highest = (run & later).highest(tsid)
        if highest is not None:
            found |= gtids & GtidSet.from_intervals([(tsid, start, highest + 1)])
    return found


def out_of_order_text(edge: EdgeFacts, gtids: GtidSet) -> str:
    """Explain the problem with these GTIDs; "" if there are none."""
    if not gtids:
        return ""
    return _TEXT.format(replica=edge.replica, source=edge.source, what=many(gtids))


def unread_order(facts: ClusterFacts, edge: EdgeFacts, gtids: GtidSet) -> str:
    """Explain that an applier may have skipped some, if the log that shows it was not read.

    Only if both servers commit in order and an applier may skip: otherwise a gap is expected.
    """
    source, replica = facts.last[edge.source], edge.replica
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
    """Explain that a replica without any GTID already has data; "" if it has none.

    RESET BINARY LOGS AND GTIDS leaves this state, and so does a dump that was loaded without
    gtid_purged. If the replica was reset after its receiver had connected, the receiver gets
    nothing of it again; a receiver that connects afterwards gets everything again. A new replica
    that begins to apply has its first schema a moment later: what was received settles the
    question.
    """
    server = facts.last[edge.replica]
    history = server.history_evidence
    if server.gtid_executed or edge.channel.gtid_retrieved:
        return ""
    if history is None or not history.schemas_count:
        return ""
    schemas = counted(history.schemas_count, "schema")
    return _WITHOUT_HISTORY.format(replica=server.name, schemas=schemas)
