"""`binlog compare`: compares what two servers' logs, in files or live, hold under the same GTIDs.

How it works
------------
Equal GTID sets do not prove equal data. Example: `a` committed A:1-100 and its replica `b` received
them all. `a` crashed and lost A:99-100, which were not yet on disk. After the restart, `a` gave
A:99-100 to other transactions. Then `a` went on to A:150, and `b` received A:101-150:

    a  gtid_executed A:1-150    A:99 in its log: INSERT x
    b  gtid_executed A:1-150    A:99 in its log: UPDATE y

The comparison takes these steps:

1. State: a live server is queried in SQL for its sets, its log files and its uptime. Logs are read
   afterwards, so a transaction that arrives in between is in no state and is not compared.
2. Selection: by default the own transactions around each restart (binlog/content/reuse.py). The
   search goes on while they differ, and stops where they agree again: here after A:99-100.
   `--everywhere` selects all GTIDs that both hold, `--only` a given set.
3. Reading: live logs are read by the dump protocol, and only the selected transactions are sent.
4. Comparison: each GTID gets an agreement. Differences become facts (content_facts.py), and the
   rule of the audit evaluates these (E4), so command and audit report the same.
5. Rows: if both servers are live, the rows that differing transactions touched are read from both.
   They show whether the data still differs now.

Invariant: a transaction that could not be read, or is not comparable, never counts as equal. It is
UNKNOWN. Purged logs are UNKNOWN only if these GTIDs were requested, or nothing was compared.

Why simpler ways fail: log files cannot be compared byte by byte, because a replica writes its own
positions and commit times. Reading all logs of both servers takes too long for a default.
"""

from functools import partial
from typing import Final

from binlog.adapters.compare_server import ServerCompared
from binlog.content.compare import Agreement
from binlog.content.reuse import Compared, compare_after_starts, compare_given
from gtid import GtidSet
from gtid_audit import clock
from gtid_audit.operands.logs_from_operands import LogOperand, LogServer
from gtid_audit.tasks.compared_sides import Side, side_of
from gtid_audit.views.logs_compared import LogsCompared
from repair.adapters.affected_rows import AffectedRows, look_up_rows
from topology.adapters.content_facts import Comparing, reading_of
from topology.adapters.content_filters import filters_of
from topology.catalogue.findings import CONTENT, Unknown
from topology.readings.contents import ContentReading, UnreadContent
from topology.rules.content import same_gtid_different_content

# The cluster name in findings about two logs, which have no fleet.
CLUSTER: Final = "compare"

NONE_IN_COMMON: Final = "no GTID was compared: the two logs have no GTID in common"
NONE_AROUND_RESTARTS: Final = (
    "no GTID was compared: around their restarts, the two logs have no transactions in common that"
    " one of the servers committed; --everywhere compares every GTID that both have"
)


def compare_logs(
    left: LogOperand,
    right: LogOperand,
    *,
    everywhere: bool,
    only: GtidSet | None,
    seconds_max: float,
) -> LogsCompared:
    """Compare two servers' logs. Raises BinlogError, MySQLError, OSError if nothing can be read.

    Args:
        left, right: log files, or a server.
        everywhere: compare every GTID that both hold, not only those around each restart.
        only: compare only these GTIDs.
        seconds_max: for one query to a server.
    """
    sides = side_of(left, seconds_max), side_of(right, seconds_max)
    if only is not None:
        compared = compare_given(*sides, wanted=only)
    elif everywhere:
        from binlog.adapters.compare_all import compare_all

        compared = compare_all(*sides)
    else:
        compared = compare_after_starts(*sides)
    comparing = Comparing(
        names=(sides[0].name, sides[1].name),
        origins={
            side.state.server_uuid: side.name for side in sides if isinstance(side, ServerCompared)
        },
        filters={
            side.name: partial(filters_of, operand.connector(seconds_max=seconds_max))
            for side, operand in zip(sides, (left, right), strict=True)
            if isinstance(operand, LogServer)
        },
        is_asked_for=True,
    )
    reading = reading_of(compared, comparing, read_at=clock.now())
    is_around_restarts = only is None and not everywhere
    nothing = NONE_AROUND_RESTARTS if is_around_restarts else NONE_IN_COMMON
    rows = None
    if isinstance(left, LogServer) and isinstance(right, LogServer):
        rows = _affected(left, right, sides, compared, seconds_max)
    return LogsCompared(
        compared=compared,
        reading=reading,
        findings=tuple(same_gtid_different_content(reading, cluster=CLUSTER)),
        unknown=tuple(
            sorted(_unknown(reading, comparing, is_given=only is not None, nothing=nothing))
        ),
        rows=rows,
    )


def _unknown(
    reading: ContentReading, comparing: Comparing, *, is_given: bool, nothing: str
) -> set[Unknown]:
    """Return what was requested and has no answer.

    Logs are purged from their beginning. So a comparison of all that both logs still hold is
    complete without the purged part. It is incomplete if exactly these GTIDs were requested, or if
    nothing was left to compare.
    """
    unread = set(reading.unread)
    if is_given or not reading.compared_count:
        unread |= set(reading.remarks)
    if not reading.compared_count and not reading.unread:
        unread.add(UnreadContent(", ".join(comparing.names), nothing))
    return {Unknown(CLUSTER, each.server, CONTENT, each.reason) for each in unread}


def _affected(
    left: LogServer,
    right: LogServer,
    sides: tuple[Side, Side],
    compared: Compared,
    seconds_max: float,
) -> AffectedRows | None:
    gtids = GtidSet.of(
        each.gtid
        for each in compared.comparisons
        if each.agreement in (Agreement.DIFFERENT, Agreement.DRIFTED, Agreement.SKIPPED)
    )
    if not gtids:
        return None
    ours, theirs = sides
    return look_up_rows(
        gtids,
        (ours.groups_of, theirs.groups_of),
        (left.connector(seconds_max=seconds_max), right.connector(seconds_max=seconds_max)),
        seconds_max=seconds_max,
    )
