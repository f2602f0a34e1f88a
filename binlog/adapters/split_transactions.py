"""Finds the transactions that begin in one relay log and end in a later one, for `cover`.

How it works
------------
A receiver may make a new relay log inside a transaction: MySQL 5.6 at max_relay_log_size, later
versions if it was restarted and requests by position. The ledger of each file alone then has

    relay.000002   GTID :4, without an end
    relay.000003   a row without a GTID and without an end, or no row
    relay.000004   a row without a GTID, or only the XID event, which is no row; then :5

A row shows neither whether it continues :4, nor whether it ends it: of a statement without its
BEGIN, the ledger makes a transaction of its own. So the events are read on from the GTID event,
over the files, by the rules for a single log (transactions.py).

1. The files are of one server and one channel, and their numbers are consecutive. Otherwise a part
   may be missing, and the transaction is not whole.
2. The header of each file lists what the files before have. It may list :4 before its end is there
   (5.6.24). If it does not list them, the receiver forgot them and began anew.
3. A GTID event, or a second BEGIN, is another transaction: the one before has no end.

The rows without a GTID up to the end are parts of :4, and no transactions without a GTID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from binlog.adapters.byte_ranges import read_between
from binlog.errors import BinlogError
from binlog.events import Event, FormatDescription, Query
from binlog.locating.cover import ArchivedLog
from binlog.locating.histories import number_in
from binlog.scan import scan_events
from binlog.transactions import BETWEEN_GROUPS, TransactionFolder
from gtid import Gtid, GtidSet


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The last transaction of a file, of which the end is not there."""

    gtid: Gtid
    start: int
    description: FormatDescription


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file of an archive, read alone."""

    path: Path
    log: ArchivedLog
    unfinished: Unfinished | None = None
    anonymous_starts: tuple[int, ...] = ()  # of a relay log: rows without a GTID


# Server, channel and number of a relay log.
_Place: TypeAlias = tuple[int, str, int]


def with_split_transactions(files: Sequence[ReadFile]) -> tuple[ArchivedLog, ...]:
    """Return what the files contain, with the transactions that are whole only over several."""
    relay_logs: defaultdict[_Place, list[int]] = defaultdict(list)
    for number, each in enumerate(files):
        if each.log.origin.is_relay_log:
            relay_logs[_place_of(each.log)].append(number)
    logs = [each.log for each in files]
    for number, each in enumerate(files):
        if each.unfinished is None:
            continue
        gtid = GtidSet.of(each.unfinished.gtid)
        ends = _later_ends(files, relay_logs, number, each.unfinished)
        if ends:
            log = logs[number]
            logs[number] = replace(log, gtids=log.gtids | gtid, parts=log.parts | gtid)
        for later, end in ends.items():
            log = logs[later]
            inside = sum(start < end for start in files[later].anonymous_starts)
            logs[later] = replace(
                log, anonymous_count=log.anonymous_count - inside, parts=log.parts | gtid
            )
    return tuple(logs)


def _later_ends(
    files: Sequence[ReadFile],
    relay_logs: Mapping[_Place, Sequence[int]],
    first: int,
    unfinished: Unfinished,
) -> dict[int, int]:
    """Return where a split transaction ends in each later file that has a part of it.

    Empty if its end is not in the archive.
    """
    folder = TransactionFolder(description=unfinished.description, counts_rows=False)
    ends: dict[int, int] = {}
    event_count = 0
    try:
        for number, event in _events_from(files, relay_logs, first, unfinished):
            if not event.header.is_artificial and not isinstance(event.body, BETWEEN_GROUPS):
                is_begin = isinstance(event.body, Query) and event.body.sql == b"BEGIN"
                if is_begin and event_count > 1:
                    return {}
                event_count += 1
                if number != first:
                    ends[number] = event.end
            if closed := folder.fold(event):
                return ends if closed[0].is_complete else {}
    except BinlogError:  # its file is reported as unread
        return {}
    return {}


def _events_from(
    files: Sequence[ReadFile],
    relay_logs: Mapping[_Place, Sequence[int]],
    first: int,
    unfinished: Unfinished,
) -> Iterator[tuple[int, Event]]:
    """Yield the events from a transaction on, over the files that continue its file."""
    path = files[first].path
    begun = scan_events(
        read_between(path, unfinished.start),
        file=path.name,
        position=unfinished.start,
        description=unfinished.description,
    )
    for event in begun:
        yield first, event
    at = first
    while True:
        server, channel, number = _place_of(files[at].log)
        later = [
            each
            for each in relay_logs.get((server, channel, number + 1), ())
            if _continues(files[each].log, files[at].log, unfinished.gtid)
        ]
        if not later:
            return
        folder = files[at].path.parent
        at = next((each for each in later if files[each].path.parent == folder), later[0])
        path = files[at].path
        for event in scan_events(read_between(path), file=path.name):
            yield at, event


def _place_of(log: ArchivedLog) -> _Place:
    return log.origin.server_id, log.file.rpartition(".")[0], number_in(log.file)


def _continues(later: ArchivedLog, log: ArchivedLog, gtid: Gtid) -> bool:
    """Return whether a receiver wrote the later file without forgetting what the other one has."""
    if later.previous_gtids is None or log.previous_gtids is None:
        return False
    listed = later.previous_gtids | GtidSet.of(gtid)
    is_later = later.origin.made_at_seconds >= log.origin.made_at_seconds
    return is_later and log.previous_gtids | log.gtids <= listed
