"""Changes of GTID sets by procedures of a managed service, where its accounts may not do them.

RDS adds one range at a time to gtid_purged. What that procedure refuses, as its published
definition shows: a call while a thread of any channel runs; a range of the server's own
server_uuid; one of which a part is executed; GTID tags. A script that would be refused is not
planned. The first and the third are checked again when it runs.
"""

from collections.abc import Iterator
from typing import Final

from binlog.quoting import quote_string
from gtid import GtidSet
from repair.model.replication_model import ModelServer
from repair.sql.guard import Guard
from repair.sql.script import RUN_TODO, literal
from repair.sql.service_calls import ServiceCalls

RANGES_MAX: Final = 1_000  # two lines each: a script that an operator can still read

_RUNS: Final = "SELECT 1 FROM performance_schema.replication_{}_status WHERE SERVICE_STATE <> 'OFF'"


def takes_ranges(calls: ServiceCalls | None, server: ModelServer, gtids: GtidSet) -> bool:
    """Return whether the procedure of a server's service can add a set to its gtid_purged."""
    if calls is None or not calls.purge_range or gtids.interval_count > RANGES_MAX:
        return False
    if any(tsid.tag for tsid in gtids.tsids):
        return False
    if gtids.from_uuid(server.server_uuid):
        return False
    return not any(each.running or each.is_connected for each in server.channels)


def no_thread_runs(name: str) -> Guard:
    """Return the guard that the procedure is not refused for a running channel."""
    return Guard(
        f"NOT EXISTS ({_RUNS.format('connection')}) AND NOT EXISTS ({_RUNS.format('applier')})",
        f"{name}: a channel runs, and the service adds to gtid_purged only while none does; nothing"
        " was changed; stop it, audit and plan again",
    )


def ranges_added(calls: ServiceCalls, gtids: GtidSet) -> Iterator[str]:
    """Yield a call for each range that is not executed: the procedure refuses one that is."""
    for tsid, begin, end in gtids.intervals():
        text = quote_string(f"{tsid}:{begin}-{end - 1}")
        call = quote_string(calls.purging(str(tsid.uuid), begin, end - 1))
        missing = f"NOT GTID_SUBSET({text}, @@GLOBAL.gtid_executed)"
        yield f"SET @todo = IF(@go AND {missing}, {call}, 'DO 0');"
        yield from RUN_TODO


def appended(gtids: GtidSet, calls: ServiceCalls | None) -> tuple[str, ...]:
    """Return the statements that add what is missing of a set to gtid_purged."""
    append = "CONCAT('SET GLOBAL gtid_purged = ''+', @missing, '''')"
    if calls is not None and calls.append_purged:
        append = calls.appending("@missing")
    return (
        f"SET @missing = GTID_SUBTRACT({literal(gtids)}, @@GLOBAL.gtid_executed);",
        "SET @done = (@missing = '');",
        f"SET @todo = IF(@go AND NOT @done, {append}, 'DO 0');",
        *RUN_TODO,
    )


def skipped_by_calls(gtids: GtidSet, calls: ServiceCalls) -> Iterator[str]:
    """Yield a call for each GTID that is not executed: some services refuse one that is."""
    for gtid in gtids.gtids():
        missing = f"NOT GTID_SUBSET({quote_string(str(gtid))}, @@GLOBAL.gtid_executed)"
        call = quote_string(calls.skipping(str(gtid)))
        yield f"SET @todo = IF(@go AND {missing}, {call}, 'DO 0');"
        yield from RUN_TODO
