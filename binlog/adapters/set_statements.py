"""The statements that ask a server for its GTID sets, each with the order that its use needs.

How it works
------------
A server evaluates the variables of a SELECT from left to right, at different moments. Between two
of them a transaction may begin to commit (it is in gtid_owned), may commit (it leaves gtid_owned
and enters gtid_executed, in one step under a lock), and a log may be purged (its transactions enter
gtid_purged). Sets only move in this direction:

    gtid_owned ─► gtid_executed ─► gtid_purged (gtid_executed keeps it)

So the order of the questions decides what the answers prove together:

* SETTLED_SETS, owned before executed: their union has all that was executed or in commit at the
  first question. In the opposite order a transaction that commits between the two is in neither.
* STATE_SETS, owned, purged, executed: as above, and purged stays within executed. A snapshot stores
  these (topology/adapters/mysql.py). In the opposite order a server would seem to have purged what
  it has not executed.
* HELD_SETS, executed before purged: `executed - purged` has only what is in a log at the second
  question. In the opposite order it has, too, what is purged between the two: the search for it
  finds no file, and a dump of it is refused (error 1236). Here purged may exceed executed, by a
  transaction that is executed and purged between the two: a reader subtracts and assumes nothing
  else.
* SENT_SETS, purged before executed: a stream of batches counts as read what is in executed. What is
  purged between the two must not leave a batch silently, so it is requested, and refused.

Example, HELD_SETS: the server has executed A:1-9 and purged A:1-3. It answers executed = A:1-9,
purges A:4-6, and answers purged = A:1-6. The difference is A:7-9, which the logs have. Asked the
other way round it is A:4-9.

Why not one statement for all: no order has all four properties. Owned could be asked everywhere,
but a reader of logs does not use it, and its text has an entry for each session that commits.
"""

from typing import Final

SETTLED_SETS: Final = "SELECT @@GLOBAL.gtid_owned AS owned, @@GLOBAL.gtid_executed AS executed"
STATE_SETS: Final = (
    "@@GLOBAL.gtid_owned AS gtid_owned, @@GLOBAL.gtid_purged AS gtid_purged,"
    " @@GLOBAL.gtid_executed AS gtid_executed"
)
HELD_SETS: Final = "@@GLOBAL.gtid_executed AS executed, @@GLOBAL.gtid_purged AS purged"
SENT_SETS: Final = "@@GLOBAL.gtid_purged AS gtid_purged, @@GLOBAL.gtid_executed AS gtid_executed"
# One set alone: what else is read belongs to it by its place before or after it.
OWNED: Final = "@@GLOBAL.gtid_owned"
EXECUTED: Final = "@@GLOBAL.gtid_executed"
PURGED: Final = "@@GLOBAL.gtid_purged"
