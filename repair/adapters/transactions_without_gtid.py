"""Looks for transactions without a GTID that a channel has not applied yet.

1. They come from the time when gtid_mode of the source was OFF or OFF_PERMISSIVE, even for one
   transaction. With auto-position a source sends GTIDs that its replica does not have, beginning in
   the newest file that can have one. SET GLOBAL gtid_mode begins a new file. So what is in an older
   file without a GTID is never sent, no set shows it, and no thread reports an error (seen on
   9.7.4).
2. Only a file position delivers them, and only while gtid_mode is not ON on the source: with ON it
   sends none at all (1236, with the place of the first one; sql/rpl_binlog_sender.cc).
   So a plan looks for them before it switches a channel to auto-position, or starts one: from the
   applier's position to the end of the log.
3. A channel may have forgotten its position (RESET REPLICA). Then the whole log is read, and what
   is there may have been applied.
4. What was not read is UNREAD, with the reason. Servers are only read, and within limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final

import pymysql

from binlog.adapters.compression import find_decompressor
from binlog.adapters.server_errors import server_words
from binlog.adapters.stream import FromPlace
from binlog.adapters.stream_packets import dump_events
from binlog.adapters.stream_session import RequestLimits, can_name
from binlog.decode import FIRST_POSITION
from binlog.errors import BinlogError, DumpRefused
from binlog.transactions import TransactionFolder
from repair.model.strategy_case import WithoutGtid
from topology.adapters.connection import way_to
from topology.facts.graph import build_graph
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.target import ServerTarget

# A channel that is further behind is first started as it is, until it has caught up.
READ_BYTES_MAX: Final = 64 * 1024**2

_REFUSED: Final = re.compile(
    r"Cannot replicate anonymous transaction when .*, at file (?:\S*/)?(\S+), position (\d+)"
)


def read_without_gtid(
    snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], *, seconds_max: float
) -> Mapping[tuple[str, str], WithoutGtid]:
    """Return what was found, by server and channel; a channel without an entry has none ahead.

    Args:
        snapshot: the readings of one cluster.
        targets: how to connect to its servers, by name.
        seconds_max: for one channel, including the connect.
    """
    servers = {server.name: server for server in snapshot.last}
    found: dict[tuple[str, str], WithoutGtid] = {}
    for edge in build_graph(snapshot).edges:
        source = servers[edge.source]
        if edge.is_moved or not _may_skip(edge.channel) or not source.binary_logs:
            continue  # a channel that received from another server has a position in another log
        outcome = _read(source, edge.channel.applied_to, targets.get(source.name), seconds_max)
        if outcome is not None:
            found[edge.replica, edge.channel.name] = outcome
    return found


def _may_skip(channel: ChannelSnapshot) -> bool:
    """Return whether a start or switch decides what is sent; else the receiver has asked."""
    return not channel.auto_position or channel.receiver is ThreadState.STOPPED


def _read(
    source: ServerSnapshot,
    place: LogPosition | None,
    target: ServerTarget | None,
    seconds_max: float,
) -> WithoutGtid | None:
    """Read the log of one source from a position to its end."""
    sizes = {log.name: log.size_bytes for log in source.binary_logs or ()}
    names = [(LogPosition.of(file=name, position=FIRST_POSITION), name) for name in sizes]
    begun = [at for at, _ in names if at is not None]
    if not begun or (place is not None and place.file not in sizes and place > begun[0]):
        return None  # it is in a log that the source does not have (a reset, another server)
    if place is not None and place < begun[0]:
        return WithoutGtid(unread=f"it has purged its log from {place} on")
    start = place if place is not None else begun[0]
    bytes_ahead = sizes[start.file] - start.position
    bytes_ahead += sum(sizes[at.file] for at in begun if at > start)
    if bytes_ahead <= 0:
        return None
    if bytes_ahead > READ_BYTES_MAX:
        return WithoutGtid(unread=f"{bytes_ahead // 1024**2:,} MiB of its log follow {start}")
    if target is None:
        return WithoutGtid(unread="no connection to it is configured")
    last = replace(begun[-1], position=sizes[begun[-1].file])
    found: WithoutGtid | None
    try:
        found = _first(target, start, last, seconds_max)
    except pymysql.MySQLError as error:
        return WithoutGtid(unread=server_words(error))
    except DumpRefused as error:
        named = _REFUSED.search(error.text)
        at = ":".join(named.groups()) if named else ""
        found = WithoutGtid(at=at, unread="" if at else str(error))
    except (BinlogError, OSError) as error:
        return WithoutGtid(unread=str(error))
    if found is not None and found.at and place is None:
        return WithoutGtid(maybe_at=found.at)
    return found


def _first(
    target: ServerTarget, start: LogPosition, last: LogPosition, seconds_max: float
) -> WithoutGtid | None:
    """Return the first transaction without a GTID from `start` on. Raises BinlogError.

    `last` is the end of the log when the server was read: a dump that a server ends earlier looks
    like one that has reached the end.
    """
    if not can_name(start.position):
        return WithoutGtid(unread=f"no request can begin at {start}")
    bounds = RequestLimits.start(timeout_seconds_max=seconds_max, bytes_max=2 * READ_BYTES_MAX)
    folder = TransactionFolder(decompress=find_decompressor())
    wish, reached = FromPlace(start.file, start.position), start
    way = way_to(target, seconds_max=seconds_max)
    with closing(dump_events(way, wish, bounds)) as events:
        for event in events:
            for transaction in folder.fold(event):
                if transaction.gtid is None:
                    return WithoutGtid(at=f"{transaction.file}:{transaction.start}")
            at = LogPosition.of(file=event.file, position=event.end)
            if at is not None and not event.header.is_artificial:
                reached = max(reached, at)
    if reached < last:
        return WithoutGtid(unread=f"the server sent its log only up to {reached}")
    return None
