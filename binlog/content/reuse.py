"""Looks where a GTID may have been used twice: around each restart of a server.

1. A server that lost the tail of its log reuses the lost GTIDs, beginning with its first own
   transaction after the restart: automatic GNOs are the smallest free ones
   (Gtid_state::get_automatic_gno, sql/rpl_gtid_state.cc). So the first own transactions after each
   restart decide; where they differ from what the other log holds under the same GTIDs, the search
   goes on until they agree again. Where a log has purged the first, the search begins behind them.
   A lost tail may lie above GNOs that were free: UUID:1-5 and, made by hand, :10-12, which are
   lost. The server then fills :6-9, which agree, and reuses :10-12 behind them. The other log holds
   them in its own order, :10-12 before :6-9. So of each run the first that the other log holds, in
   the order of that log, are compared too: what it had before the restart is among them.
2. A server that stopped before its replicas had received everything keeps a tail that no other
   server has. After a failover the operator may have committed empty transactions under these
   GTIDs elsewhere. So the last own transactions before each restart are compared as well, and the
   search goes backwards until they agree.
3. A member of a group commits under the UUID of the group: own are both UUIDs.
4. A restart begins a log: its format description has the moment of creation, which a log begun by
   rotation does not have (Format_description_log_event::created, sql/log_event.h). RESET BINARY
   LOGS AND GTIDS begins one too.
5. What cannot be read is reported, with the reason. It never counts as agreement.
6. Pure: `ComparedLogs` reads.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Final, Protocol

from binlog.content.compare import (
    Agreement,
    Comparison,
    Version,
    compare_versions,
)
from binlog.errors import BinlogError
from binlog.scan import EventGroup
from gtid import Gtid, GtidSet, Tsid

# Own transactions compared first after a start, and the most that are compared if they go on to
# differ. A lost tail is what was not synced: at most some seconds' work.
FIRST_COMPARED: Final = 4
# GNOs that were free below others are used first; more separate ones are not compared.
INTERVALS_MAX: Final = 64
COMPARED_MAX: Final = 20_000
_ALL: Final = 2**63  # more than there are GNOs: a run, or a file of it, in one set
# Given transactions that are read and compared at once.
GIVEN_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Start:
    """A server's start, as its logs show it: the log that began then."""

    file: str
    # Seconds since 1970, by the server's clock.
    started_at_seconds: int


@dataclass(frozen=True, slots=True)
class Unread:
    """What of a log could not be read, and so says nothing."""

    log: str
    reason: str
    is_lasting: bool = False  # it is gone: it can never be compared


class ComparedLogs(Protocol):
    """The logs of one server, as far as they are compared. Every method may raise BinlogError."""

    @property
    def name(self) -> str:
        """Return what the server, or the folder of files, is called."""

    @property
    def names_fold(self) -> bool | None:
        """Return whether names of tables are compared in lower case; None if that is not known."""

    def starts(self) -> Iterator[Start | Unread]:
        """Return the starts to be looked at, the latest first."""

    def own_since(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Return what the server itself committed since a start and before the next.

        In sets of the first so many of each interval (`first_of_each`), as long as there are any.
        """

    def own_before(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Return what the server itself committed last before a start and has not purged.

        In sets of the last so many of each interval (`last_of_each`), as long as there are any.
        """

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return which of the transactions were logged once and are in these logs no more."""

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Yield those of the transactions that the logs hold, in their order, with their events."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found. `comparisons` are those that do not agree, in order of GTID."""

    comparisons: tuple[Comparison, ...]
    gtids: GtidSet  # all that were compared
    starts: tuple[tuple[str, Start], ...]  # that were looked at, with the log's name
    unread: tuple[Unread, ...]
    is_cut: bool = False  # the differences go on beyond what was compared


def counted(gtids: GtidSet) -> str:
    """Return how many GTIDs there are, and which: `3 GTIDs, UUID:1-3`."""
    number = gtids.gtid_count
    return f"{number:,} GTID{'' if number == 1 else 's'}, {gtids.shortened()}"


def compare_after_starts(
    left: ComparedLogs,
    right: ComparedLogs,
    *,
    others: Iterable[ComparedLogs] = (),
    also: GtidSet | None = None,
    more: Callable[["Search"], None] | None = None,
) -> Compared:
    """Compare what either server committed around each of its starts, and some GTIDs besides.

    In each comparison `left` is left's version and `right` right's. `others` are servers around
    whose restarts the two are compared as well: one may hold what another server committed before
    it lost it, and the other what that server committed later. `more` goes on searching.
    """
    search = Search(left, right)
    for origin in (left, right, *others):
        search.look(origin)
    if also:
        search.compare_in_chunks(also)
    if more is not None:
        more(search)
    return search.result()


def compare_given(left: ComparedLogs, right: ComparedLogs, *, wanted: GtidSet) -> Compared:
    """Compare the given transactions, as far as both logs hold them; the rest is reported."""
    search = Search(left, right)
    search.compare_in_chunks(wanted)
    return search.result()


def first_of_each(gtids: GtidSet, size: int) -> GtidSet:
    """Return the first `size` numbers of each interval, of the first and the last intervals.

    A server fills what is free below before it goes on above: lost numbers may be the first of
    any interval of those it has given since its start.
    """
    return _outermost(
        [(tsid, start, min(end, start + size)) for tsid, start, end in gtids.intervals()]
    )


def last_of_each(gtids: GtidSet, size: int) -> GtidSet:
    """Return the last `size` GNOs of each interval, of the first and the last intervals."""
    return _outermost(
        [(tsid, max(start, end - size), end) for tsid, start, end in gtids.intervals()]
    )


def _outermost(intervals: list[tuple[Tsid, int, int]]) -> GtidSet:
    half = INTERVALS_MAX // 2
    if len(intervals) > INTERVALS_MAX:
        intervals = intervals[:half] + intervals[-half:]
    return GtidSet.from_intervals(intervals)


_GOES_ON: Final = frozenset({Agreement.DIFFERENT, Agreement.TWICE, Agreement.SKIPPED})


class Search:
    """Gathers what is found."""

    def __init__(self, left: ComparedLogs, right: ComparedLogs) -> None:
        self._left = left
        self._right = right
        self._found: dict[Gtid, Comparison] = {}
        self._gtids = GtidSet()
        self._starts: list[tuple[str, Start]] = []
        self._unread: dict[Unread, None] = {}
        self._is_cut = False
        folds = {logs.names_fold for logs in (left, right)}
        self._names_fold = True if True in folds else None if None in folds else False

    def look(self, origin: ComparedLogs) -> None:
        """Look at the first own transactions of one server after each of its starts."""
        try:
            for start in origin.starts():
                if isinstance(start, Unread):
                    self.note(start)
                    continue
                self._starts.append((origin.name, start))
                self._look_after(origin, start)
        except BinlogError as error:
            self.note(Unread(origin.name, str(error)))

    def _look_after(self, origin: ComparedLogs, start: Start) -> None:
        """Compare on both sides of a start, on each as long as it goes on to differ.

        The first sets of both sides are asked for together: one question to each server.
        """
        ways = [
            self._comparable(origin, origin.own_since(start, sizes=repeat(_ALL))),
            origin.own_before(start, sizes=_sizes()),
        ]
        looked_at = 0
        while windows := [(way, window) for way in ways if (window := next(way, None))]:
            both = GtidSet()
            for _, window in windows:
                both |= window
            looked_at += both.gtid_count
            differing = self.compare(self.held(both))
            ways = [way for way, window in windows if window & differing]
            if ways and looked_at >= COMPARED_MAX:
                self.cut()
                return

    def _comparable(self, origin: ComparedLogs, runs: Iterator[GtidSet]) -> Iterator[GtidSet]:
        """Yield the first of each interval that both logs hold, then more of them.

        Where the first of an interval are purged, its search begins at the first that is not. With
        the first come those that a log which is not the origin's has before all others.
        """
        sizes = _sizes()
        for run in runs:
            left = run
            for logs in (self._left, self._right):
                try:
                    gone = logs.unheld(run)
                except BinlogError as error:
                    self.note(Unread(logs.name, str(error)))
                    return
                if gone & first_of_each(run, FIRST_COMPARED):
                    self._note_gone(logs, gone)
                left -= gone
            also = self._logged_first(origin, left)
            while left:
                window = first_of_each(left, next(sizes)) | also
                also = GtidSet()
                left -= window
                yield window

    def _logged_first(self, origin: ComparedLogs, run: GtidSet) -> GtidSet:
        """Return those of a run that another log than the origin's holds before all others."""
        found = GtidSet()
        if not run - first_of_each(run, FIRST_COMPARED):
            return found  # all of them are compared anyhow
        for logs in (self._left, self._right):
            if logs is origin:
                continue
            try:
                groups = list(islice(logs.groups_of(run), FIRST_COMPARED))
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                continue
            found |= GtidSet.of(_versions(groups))
        return found

    def _note_gone(self, logs: ComparedLogs, gone: GtidSet) -> None:
        text = f"purged, or never in these logs: {counted(gone)}"
        self.note(Unread(logs.name, text, is_lasting=True))

    def held(self, wanted: GtidSet) -> GtidSet:
        """Leave out, and say, what one of the logs no longer holds, or all where it is unread."""
        for logs in (self._left, self._right):
            try:
                gone = logs.unheld(wanted)
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                return GtidSet()
            if gone:
                self._note_gone(logs, gone)
                wanted -= gone
        return wanted

    def note(self, unread: Unread) -> None:
        """Return what could not be read."""
        self._unread[unread] = None

    def agree(self, gtids: GtidSet) -> None:
        """Take transactions that are known to be the same."""
        self._gtids |= gtids

    def cut(self) -> None:
        """Note that there is more than is compared."""
        self._is_cut = True

    def compare_in_chunks(self, wanted: GtidSet) -> None:
        """Compare given transactions; report those that are not in one of the logs."""
        wanted = self.held(wanted)
        while wanted:
            chunk = wanted.first(GIVEN_AT_ONCE)
            wanted -= chunk
            unread = len(self._unread)
            self.compare(chunk)
            absent = chunk - self._gtids
            if absent and len(self._unread) == unread:
                names = f"{self._left.name}, {self._right.name}"
                self.note(Unread(names, f"not in both logs: {counted(absent)}", is_lasting=True))

    def compare(self, wanted: GtidSet) -> GtidSet:
        """Compare some transactions; return those after which the search goes on."""
        sides = []
        for logs in (self._left, self._right):
            try:
                sides.append(_versions(logs.groups_of(wanted)))
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                return GtidSet()
        goes_on = []
        for gtid in sorted(sides[0].keys() & sides[1].keys()):
            last = compare_versions(sides[0][gtid], sides[1][gtid], names_fold=self._names_fold)
            if last.agreement in _GOES_ON:
                goes_on.append(gtid)
            if last.agreement is not Agreement.SAME:
                self._found[gtid] = last
        self._gtids |= GtidSet.of(sides[0].keys() & sides[1].keys())
        return GtidSet.of(goes_on)

    def result(self) -> Compared:
        """Close the search."""
        return Compared(
            comparisons=tuple(comparison for _, comparison in sorted(self._found.items())),
            gtids=self._gtids,
            starts=tuple(self._starts),
            unread=tuple(self._unread),
            is_cut=self._is_cut,
        )


def _versions(groups: Iterable[EventGroup]) -> dict[Gtid, Version]:
    return {
        group.transaction.gtid: Version.of(group)
        for group in groups
        if group.transaction.gtid is not None
    }


def _sizes() -> Iterator[int]:
    size = FIRST_COMPARED
    while True:
        yield size
        size *= 2
