"""Runs a follower to the end of the log, of files or a live server, and queries missing tables.

Files that do not continue each other are a gap, as between two runs: the follower stops before it,
or forgets all tables there. A live server sends its files itself, one after the other.

The server returns a table's present definition. That definition holds since the table became
unknown, if the log, read again after the query, has no change of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from binlog.adapters.log_ends import breaks_in
from binlog.adapters.log_files import read_events
from binlog.adapters.schema_defining import DefiningEvents
from binlog.adapters.schema_events import begun_at_seconds
from binlog.adapters.schema_follow import (
    Follower,
    FollowReport,
    LogGap,
    gap_after,
    starting_place,
)
from binlog.adapters.schema_servers import ServerTables
from binlog.adapters.schema_store import Followed, SchemaStore
from binlog.locating.continuity import LogBreak
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.sql_words import CannotFollow
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import Entry, Place, Source, State, TableKey, bytes_behind
from binlog.schema.tracker import SchemaTracker


@dataclass(frozen=True, slots=True)
class Followers:
    """The result of one `binlog schema follow`."""

    server: UUID
    report: FollowReport
    staged: tuple[Entry, ...]
    asked: tuple[Entry, ...]
    unknown: tuple[Entry, ...]


def created_at_of(path: Path) -> int:
    """Return the time of a file's first event."""
    return begun_at_seconds(read_events(path))


def follow_files(
    store: SchemaStore, server: UUID, paths: tuple[Path, ...], *, skips_gap: bool
) -> Followers:
    """Follow files. Raises LogGap, CorruptBinlog, StoreInUse; what was read before is kept."""
    by_name = {path.name: path for path in paths}
    ordered = sorted(paths, key=lambda path: Place(path.name, 0).order)
    names = [path.name for path in ordered]
    with store.writing("gtid-audit binlog schema follow"):
        staged = store.put_staged(server)
        begin = _Beginning(store, server, SchemaFacts(), skips_gap=skips_gap)
        start = begin.start(names, lambda name: created_at_of(by_name[name]))
        left = ordered[names.index(start.file) :]
        report = FollowReport(start, start, 0)
        for broken, part in _parts(left):
            place = report.ended_at
            if broken is not None:
                first = Place(part[0].name, 0)
                place = begin.skip(gap_after(place, broken), first, created_at_of(part[0]))
            defining = DefiningEvents()
            events = defining.of_files(part, place)
            after = begin.follower().follow(events, place, changed=defining.forget)
            count = report.entry_count + after.entry_count
            report = FollowReport(start, after.ended_at, count)
        return Followers(server, report, staged, (), _unknown(begin.tracker))


def _parts(paths: Sequence[Path]) -> Iterator[tuple[LogBreak | None, Sequence[Path]]]:
    """Yield files that continue each other, with the break before them; the first have none."""
    breaks = breaks_in(paths)
    starts = [0, *breaks]
    for start, end in zip(starts, [*breaks, len(paths)], strict=True):
        yield breaks.get(start), paths[start:end]


def follow_server(store: SchemaStore, source: ServerTables, *, skips_gap: bool) -> Followers:
    """Follow a live server to the end of its log. Raises LogGap, DumpRefused, StoreInUse."""
    server, facts = source.uuid_and_facts()
    with store.writing("gtid-audit binlog schema follow"):
        staged = store.put_staged(server)
        begin = _Beginning(store, server, facts, skips_gap=skips_gap)
        start = begin.start(source.logs(), source.created_at)
        follower = begin.follower()

        def follow(place: Place) -> FollowReport:
            defining = DefiningEvents()
            events = defining.of_server(
                source.connect,
                place,
                bytes_ahead=bytes_behind(place, source.logs().items()),
                timeout_seconds_max=source.seconds_max,
            )
            return follower.follow(events, place, changed=defining.forget)

        report = follow(start)
        asked = _ask(source, begin.tracker)
        after = follow(report.ended_at)
        adopted = tuple(_adopt(begin.tracker, asked))
        follower.adopted(adopted, after.ended_at)
        whole = FollowReport(
            start,
            after.ended_at,
            report.entry_count + after.entry_count,
        )
        return Followers(server, whole, staged, adopted, _unknown(begin.tracker))


class _Beginning:
    """The start of a follower: its place and its tracker."""

    def __init__(
        self, store: SchemaStore, server: UUID, facts: SchemaFacts, *, skips_gap: bool
    ) -> None:
        self._store = store
        self._server = server
        self._skips_gap = skips_gap
        self._followed = store.followed(server)
        self.tracker = SchemaTracker(store.catalogue(server), facts=facts)

    def start(self, names: Iterable[str], created_at: Callable[[str], int]) -> Place:
        names = tuple(names)
        try:
            return starting_place(self._followed, names, created_at=created_at)
        except LogGap as gap:
            return self.skip(gap, Place(names[0], 0), created_at(names[0]))

    def skip(self, gap: LogGap, start: Place, created_at: int) -> Place:
        """Forget all tables at the place after a gap, and return it. Raises the gap otherwise."""
        if not self._skips_gap:
            raise gap
        lost = self.tracker.lose_all(start, f"logs before it were not read: {gap}")
        # A place in the gap may be asked for later: its log may exist elsewhere. The entries there
        # are separate, because a server's definition of now holds after the gap, not in it.
        reached = self._store.followed(self._server)
        if reached is not None and reached.place.order < start.order:
            why = f"logs after it were not read: {gap}"
            lost = (*(replace(each, place=reached.place, why=why) for each in lost), *lost)
        begun = Followed(start, created_at)
        self._store.save(self._server, lost, self.tracker.catalogue, begun)
        self._followed = begun
        return start

    def follower(self) -> Follower:
        created_at = self._followed.created_at if self._followed else 0
        return Follower(self._store, self._server, self.tracker, created_at=created_at)


def _ask(
    source: ServerTables, tracker: SchemaTracker
) -> dict[TableKey, tuple[Entry, TableDefinition | None]]:
    """Query the server for every table that is not known."""
    found = {}
    for entry in _unknown(tracker):
        try:
            definition = source.definition(entry.key)
        except CannotFollow:
            continue  # the answer cannot be parsed: the table stays unknown
        found[entry.key] = (entry, definition)
    return found


def _adopt(
    tracker: SchemaTracker, asked: dict[TableKey, tuple[Entry, TableDefinition | None]]
) -> Iterator[Entry]:
    for key, (entry, definition) in asked.items():
        if tracker.catalogue.entries.get(key) is entry:
            yield tracker.adopt(entry, definition, Source.SERVER)


def _unknown(tracker: SchemaTracker) -> tuple[Entry, ...]:
    entries = tracker.catalogue.entries.values()
    unknown = [entry for entry in entries if entry.state is State.UNKNOWN]
    return tuple(sorted(unknown, key=lambda entry: (entry.key.schema, entry.key.table)))
