"""Reads the events of requested transactions from a server, or from files on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path

from binlog.adapters.spooled import Spooled
from binlog.errors import ReusedGtid
from binlog.scan import EventGroup
from gtid import GtidSet
from gtid_audit.operands.logs_from_operands import LogServer
from gtid_audit.output import warn


def events_of_source(
    source: LogServer | tuple[Path, ...],
    wanted: GtidSet,
    seconds: float,
    *,
    counts_rows: bool = True,
    reused: Callable[[ReusedGtid], None] | None = None,
) -> Iterator[EventGroup]:
    """Yield the events of the wanted transactions; warn about a purged part.

    `reused`: see `FileLogs.events_of`; a server's log has each GTID once.
    """
    if isinstance(source, LogServer):
        from binlog.adapters.heads_server import purged_of
        from binlog.adapters.stream import ServerLogs

        connect = source.connector(seconds_max=seconds)
        # The server refuses the whole dump if it has purged a part of the wanted set.
        purged = purged_of(connect) & wanted
        if purged:
            warn(f"{source.name} has purged {purged.shortened()}")
        logs = ServerLogs(connect, timeout_seconds_max=seconds)
        yield from logs.events_of(wanted - purged, store=Spooled, counts_rows=counts_rows)
        return
    from binlog.adapters.log_files import FileLogs

    yield from FileLogs(source).events_of(
        wanted, store=Spooled, counts_rows=counts_rows, reused=reused
    )
