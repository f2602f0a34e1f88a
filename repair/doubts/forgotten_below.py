"""Servers downstream of a gap that have also forgotten its transactions.

How it works
------------
A source omits what a replica had when its receiver connected, for the whole duration of the
connection (sql/rpl_binlog_sender.cc: the set that the replica sent is read once). So a replica that
was reset since then does not get these GTIDs again, not even as empty transactions:

    a                  b: reset            c: connected to b, then reset
    a:1                (forgotten)         (forgotten)
                       a:1, empty          nothing: its receiver sent a:1 when it connected

No set shows when a receiver connected. If the rows are present and the GTIDs are not, the server
was reset, or was loaded without them. The plan gives it its own empty transactions, before those of
its source. Whichever arrives first, the GTID has no other content.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.doubts.rows_there import is_there_already
from repair.model.replication_model import ModelServer, below
from repair.model.strategy_case import Case
from topology.facts.reset_signs import has_earlier


def forgotten_below(case: Case) -> Iterator[tuple[ModelServer, GtidSet]]:
    """Yield the servers that need their own empty transactions, those at the ends first.

    Only for a gap whose rows are present. A server with an earlier transaction of the same origin
    in its binary logs was not reset. A server whose channel is stopped connects when it is started.
    """
    if not is_there_already(case) or case.replica is None:
        return
    for name in reversed(below(case.model, case.replica.name, running=True)):
        server = case.model[name]
        missing = case.wanted - server.executed
        if missing and not has_earlier(server.available, missing):
            yield server, missing
