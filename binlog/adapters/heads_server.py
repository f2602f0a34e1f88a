"""Locates GTIDs on a live server: by the headers of a few binary logs, on one connection.

1. SHOW BINLOG EVENTS IN 'file' LIMIT 2 returns a file's format description and its previous GTIDs
   as text. This is one short query for each header, and the server reads no further (verified on
   5.6.24 and 9.7.4).
2. The binary logs contain what a server has executed and not purged. (The reference manual on
   gtid_purged: transactions committed without being logged count as purged.) So the headers alone
   determine the file. Only positions need a dump, and the dump requests only the wanted GTIDs.
3. The server may purge files during the search. Then the search restarts, a few times.
4. This file converts the server's errors to those of `binlog.errors`.

Privileges: REPLICATION CLIENT for SHOW BINARY LOGS, and those of a dump for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlog.adapters.server_errors import read_answer, statements_refused
from binlog.adapters.set_statements import HELD_SETS, PURGED
from binlog.adapters.stream import Connect, ServerLogs
from binlog.errors import BinlogError, StatementRefused
from binlog.locating.index import HeaderSearch, Span, search_heads
from binlog.locating.places import (
    PLACES_MAX,
    Absence,
    FilePlaces,
    Located,
    TransactionPlace,
    absences,
)
from gtid import GtidSet

_SETS = f"SELECT {HELD_SETS}"
_PURGED = f"SELECT {PURGED}"
_FILES = "SHOW BINARY LOGS"
_HEAD = "SHOW BINLOG EVENTS IN %s LIMIT 2"
_PREVIOUS_GTIDS = "Previous_gtids"
# ER_ERROR_WHEN_EXECUTING_COMMAND: "Could not find target log", if it has been purged.
_NOT_SHOWN = 1220
_ATTEMPTS_MAX = 3
# Each dump takes a connection. The last dump of this many requests all the remaining GTIDs.
_DUMPS_MAX = 16


@dataclass(frozen=True, slots=True)
class ServerLogFacts:
    """What a server reports about its logs at one time; `sizes` are in bytes, by file."""

    executed: GtidSet
    purged: GtidSet
    files: tuple[str, ...]
    sizes: tuple[int, ...]


class ServerHeads:
    """The headers of a server's binary logs. It uses `connection` and leaves it open."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        # The order matters (set_statements.py): a GTID executed by now is in a file of the list
        # that is read next, and what `executed - purged` has was in a log at the second question.
        sets = _asked(connection, _SETS)
        listed = _asked(connection, _FILES)
        with read_answer("its GTID sets and binary logs"):
            [(executed, purged)] = sets
            self.facts = ServerLogFacts(
                executed=GtidSet.parse(_text(executed)),
                purged=GtidSet.parse(_text(purged)),
                files=tuple(str(row[0]) for row in listed),
                sizes=tuple(int(row[1]) for row in listed),
            )

    def previous_gtids_of(self, number: int) -> GtidSet | None:
        """Query one header; return None without one. Raises StatementRefused, DumpBroken."""
        rows = _asked(self._connection, _HEAD, (self.facts.files[number],))
        with read_answer(f"the header of {self.facts.files[number]}"):
            info = next((row[5] for row in rows if row[2] == _PREVIOUS_GTIDS), None)
            return None if info is None else GtidSet.parse(_text(info))


def facts_of_server(connect: Connect) -> ServerLogFacts:
    """Query a server's GTID sets and binary logs. Raises StatementRefused, DumpBroken."""
    with closing(_connected(connect)) as connection:
        return ServerHeads(connection).facts


def purged_of(connect: Connect) -> GtidSet:
    """Query a server's gtid_purged. Raises StatementRefused, DumpBroken."""
    with closing(_connected(connect)) as connection:
        rows = _asked(connection, _PURGED)
    with read_answer("gtid_purged"):
        [(purged,)] = rows
        return GtidSet.parse(_text(purged))


def logged_before(connect: Connect, wanted: GtidSet) -> GtidSet:
    """Return what a server logged in the files before the one in which `wanted` begins.

    What it has purged is included. Transactions that are in that file before the first wanted one
    are not. Raises StatementRefused, DumpBroken.
    """
    with closing(_connected(connect)) as connection:
        heads = ServerHeads(connection)
        for number in reversed(range(len(heads.facts.files))):
            previous = heads.previous_gtids_of(number) or GtidSet()
            if not previous & wanted:
                return previous
    return GtidSet()


def locate_on_server(
    connect: Connect,
    wanted: GtidSet,
    *,
    timeout_seconds_max: float,
    places_max: int = PLACES_MAX,
    say: Callable[[str], None] = lambda _: None,
) -> Located:
    """Find the wanted GTIDs in a server's binary logs.

    `timeout_seconds_max` limits each dump. Raises StatementRefused, DumpBroken. Errors that occur
    while positions are fetched are not raised: the result contains them beside the files.
    """
    with closing(_connected(connect)) as connection:
        heads, search = _searched(connection, wanted)
    fetched = _Fetched(ServerLogs(connect, timeout_seconds_max))
    for part in _dumps(search.spans, places_max=places_max):
        say(f"positions of {part.gtid_count:,} transactions")
        fetched.add(part)
    facts = heads.facts
    files = tuple(_files(search, facts.files, fetched))
    left = wanted & facts.executed - facts.purged - search.before_first
    left -= GtidSet.union_of(each.gtids for each in files)
    parts = (
        (Absence.PURGED, wanted & facts.purged),
        (Absence.BEFORE_FIRST, search.before_first),
        (Absence.NOT_EXECUTED, wanted - facts.executed - facts.purged),
        (Absence.IN_NO_FILE, left & fetched.answered),
        (Absence.UNREAD, left - fetched.answered),
    )
    return Located(
        wanted=wanted,
        files=files,
        absent=absences(parts),
        file_count=len(facts.files),
        heads_read=search.heads_read,
        errors=tuple(fetched.errors),
    )


@dataclass(slots=True)
class _Fetched:
    """The results of the dumps of wanted transactions."""

    logs: ServerLogs
    places: dict[str, list[TransactionPlace]] = field(default_factory=dict)  # by file
    # The GTIDs requested in complete dumps: one that such a dump did not return is in no log.
    answered: GtidSet = field(default_factory=GtidSet)
    errors: list[BinlogError] = field(default_factory=list)

    def add(self, part: GtidSet) -> None:
        """Fetch positions; record an error: the headers still determine the files."""
        try:
            for file, place in self.logs.places_of(part):
                self.places.setdefault(file, []).append(place)
        except BinlogError as error:
            self.errors.append(error)
        else:
            self.answered |= part


def _connected(connect: Connect) -> Connection[Any]:
    with statements_refused():
        return connect() if callable(connect) else pymysql.connect(**connect)


def _asked(
    connection: Connection[Any], sql: str, arguments: Sequence[str] = ()
) -> tuple[tuple[Any, ...], ...]:
    with statements_refused(), connection.cursor(Cursor) as cursor:
        cursor.execute(sql, arguments or None)
        return tuple(cursor.fetchall())


def _searched(connection: Connection[Any], wanted: GtidSet) -> tuple[ServerHeads, HeaderSearch]:
    """Search the headers; start again if the server purged a file during the search."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        heads = ServerHeads(connection)
        facts = heads.facts
        try:
            return heads, search_heads(
                wanted & facts.executed - facts.purged,
                file_count=len(facts.files),
                previous_gtids_of=heads.previous_gtids_of,
            )
        except StatementRefused as refused:
            if refused.code != _NOT_SHOWN or attempt == _ATTEMPTS_MAX:
                raise
    raise AssertionError("the last attempt returns or raises")


def _dumps(spans: Sequence[Span], *, places_max: int) -> Iterator[GtidSet]:
    """Split the GTIDs to fetch into dumps: one for each run of adjacent files.

    In a dump, a server reads everything from the first wanted transaction to the last.
    """
    runs: list[list[GtidSet]] = []
    last_end = 0
    room = places_max
    for span in spans:
        part = _first(span.gtids, room)
        room -= part.gtid_count
        if not part:
            break
        if runs and (last_end == span.first or len(runs) >= _DUMPS_MAX):
            runs[-1].append(part)
        else:
            runs.append([part])
        last_end = span.end
    yield from map(GtidSet.union_of, runs)


def _first(gtids: GtidSet, count: int) -> GtidSet:
    return gtids if gtids.gtid_count <= count else gtids.first(count)


def _files(search: HeaderSearch, names: Sequence[str], fetched: _Fetched) -> Iterator[FilePlaces]:
    """Combine the files that the headers determine and the positions that were fetched."""
    by_heads = {span.first: span.gtids for span in search.spans if span.end == span.first + 1}
    for number, name in enumerate(names):
        here = fetched.places.get(name, [])
        gtids = by_heads.get(number, GtidSet()) - fetched.answered
        gtids |= GtidSet.of(each.gtid for each in here)
        if gtids:
            yield FilePlaces(name, gtids, tuple(here))


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
