"""Finds the first transactions of a group after its bootstrap, in the binary logs of a member.

A group numbers its transactions in ascending order, within a block of one member. So the first one
that was committed after a moment is found by bisection: about twenty transactions are read for a
run of a million. The time is that of the original commit (8.0.1 and later), or the time of the
event.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pymysql

from binlog.adapters.compare_server import ServerCompared
from binlog.errors import BinlogError, UnexpectedAnswer
from binlog.log_times import EPOCH
from gtid import GtidError, GtidSet, Tsid
from topology.adapters.compare_contents import state_of
from topology.adapters.connection import way_to
from topology.questions.contents_to_compare import Bootstrap
from topology.readings.contents import UnreadContent
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

# Reuse begins with the first transaction after the bootstrap. The next ones are for clocks that
# differ a little.
_FIRST: Final = 3
_RUNS_MAX: Final = 16  # blocks of GTIDs, the highest ones
_FAILED: Final = (BinlogError, GtidError, pymysql.MySQLError, OSError)
_MICROSECONDS: Final = 1_000_000


def first_of_groups(
    snapshot: ClusterSnapshot,
    targets: Mapping[str, ServerTarget],
    bootstraps: Sequence[Bootstrap],
    *,
    seconds_max: float,
) -> tuple[GtidSet, tuple[UnreadContent, ...]]:
    """Return the first GTIDs of these groups since their bootstrap, and what could not be read.

    `seconds_max` is for one query to one server.
    """
    servers, found, unread = snapshot.last_read, GtidSet(), []
    for each in bootstraps:
        server = servers[each.server]
        if not server.binary_logs or each.server not in targets:
            unread.append(UnreadContent(each.server, _UNREAD.format(why="no binary log")))
            continue
        way = way_to(targets[each.server], seconds_max=seconds_max)
        logs = ServerCompared(state_of(server, server.binary_logs), way, seconds_max)
        try:
            found |= first_since(logs, server.logged.from_uuid(each.uuid), each.at)
        except _FAILED as error:
            unread.append(UnreadContent(each.server, _UNREAD.format(why=error)))
    return found, tuple(unread)


_UNREAD: Final = "the first transactions after the bootstrap of its group were not read: {why}"


def first_since(logs: ServerCompared, logged: GtidSet, at: datetime) -> GtidSet:
    """Return the first GTIDs of each run that were committed at a moment or later.

    Raises:
        BinlogError, pymysql.MySQLError, OSError: the server did not send a transaction.
    """
    microseconds = (at - EPOCH) // timedelta(microseconds=1)
    found = []
    for tsid, start, end in sorted(logged.intervals(), key=lambda run: run[1])[-_RUNS_MAX:]:
        first = bisect_left(range(start, end), microseconds, key=partial(_committed_at, logs, tsid))
        found.append((tsid, start + first, min(end, start + first + _FIRST)))
    return GtidSet.from_intervals(each for each in found if each[1] < each[2])


def _committed_at(logs: ServerCompared, tsid: Tsid, number: int) -> int:
    """Return when a transaction was committed first, in microseconds since 1970."""
    wanted = GtidSet.from_intervals([(tsid, number, number + 1)])
    group = next(logs.groups_of(wanted), None)
    if group is None:
        raise UnexpectedAnswer(what=str(wanted), found="nothing, although its binary logs have it")
    made = group.transaction
    return made.original_commit_timestamp or made.timestamp_seconds * _MICROSECONDS
