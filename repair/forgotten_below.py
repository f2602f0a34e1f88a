"""Servers below a hole that have forgotten its transactions as well.

How it works
------------
A source leaves out what a replica had when its receiver connected, for as long as the connection
lasts (sql/rpl_binlog_sender.cc: the set that the replica sent is read once). So a replica that was
reset since does not get these GTIDs again, not even as empty transactions:

    a                  b: reset            c: connected to b, then reset
    a:1                (forgotten)         (forgotten)
                       a:1, empty          nothing: its receiver sent a:1 when it connected

No set shows when a receiver connected. Where the rows are there and the GTIDs are not, the server
was reset, or was loaded without them. It is given its own empty transactions, before those of the
server above: whichever comes first, nothing else is under the GTID.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.model import ModelServer, below
from repair.rows_there import is_there_already
from repair.strategy_case import Case
from topology.reset_signs import has_earlier


def forgotten_below(case: Case) -> Iterator[tuple[ModelServer, GtidSet]]:
    """Yield the servers that need empty transactions of their own, those at the ends first.

    Only of a hole whose rows are there. A server that has an earlier transaction of the same origin
    in its binary logs was not reset; one whose channel is stopped connects when it is started.
    """
    if not is_there_already(case) or case.replica is None:
        return
    for name in reversed(below(case.model, case.replica.name, running=True)):
        server = case.model[name]
        lacking = case.wanted - case.was_there(name) - server.executed
        if lacking and not has_earlier(server.available, lacking):
            yield server, lacking
