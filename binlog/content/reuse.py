"""Searches for reused GTIDs around each restart of a server.

1. A server that lost the end of its log reuses the lost GTIDs, beginning with its first own
   transaction after the restart: automatic GNOs are the lowest free ones
   (Gtid_state::get_automatic_gno, sql/rpl_gtid_state.cc). So the first own transactions after each
   restart are compared. While they differ from those in the other log, the search continues
   forward. If a log has purged the first ones, the search begins after them.
   Lost GTIDs may be above free GNOs. Example: UUID:1-5 exist, and an operator's :10-12 are lost.
   The server then assigns :6-9, which agree, and reuses :10-12 after them. The other log contains
   :10-12 before :6-9. So for each run, the first transactions in the order of the other log are
   compared, too: these include what that log had before the restart. They are read with those of
   rule 2 in one request, and what was read then is not requested again to be compared.
2. A server that stopped before its replicas had received everything has last transactions that no
   other server has. After a failover, the operator may have committed empty transactions under
   these GTIDs elsewhere. So the last own transactions before each restart are compared as well,
   and the search continues backward until they agree.
3. A member of a group also commits under the UUID of the group: its own GTIDs have both UUIDs.
4. A restart begins a log whose format description has a creation time. A log begun by rotation has
   none (Format_description_log_event::created, sql/log_event.h). RESET BINARY LOGS AND GTIDS also
   begins a log with a creation time.
5. Logs that cannot be read are reported with the reason, and never count as agreement.
6. This module is pure: a `ComparedLogs` reads the logs.

How it works
------------
`ContentSearch` has the state: what differs, which GTIDs were compared, and what could not be read.
From each restart the search goes in two ways, forward and backward. A way yields windows: 4 GNOs of
each interval, then 8, 16 and so on (`_sizes`). A way ends when its last window agreed.

Example: server `a` has committed UUID:1-100. It lost :91-100 in a crash, and reused :91-95 since.
The other server has :1-100, as `a` had sent them before.

    request 1    forward :91-94, backward :87-90    :91-94 differ, :87-90 agree
    request 2    forward :95                        it differs; nothing of `a` is left

The result has :91-95, each with both versions. A request reads the windows of all open ways from
each log, because a request costs more than the transactions in it.

Invariants: a GTID counts as compared only if both versions were read. What is purged, or cannot be
read, is in `unread` with the reason. Each window of a way is disjoint from those before it, so the
search ends: at the end of the logs, or at COMPARED_MAX, and then the result is marked as cut.

Why simpler ways fail: to compare all transactions reads both logs as a whole, which an audit of a
server in use must not do. To compare the sets shows nothing: both servers have every one of these
GTIDs. To compare only the last transactions misses a restart long ago, after which 1,000 others
agreed. To stop at the first that agrees in one way would miss the other way.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final, Protocol

from binlog.content.compare import (
    Agreement,
    Comparison,
    Version,
    compare_all_versions,
    each_version,
    versions_of,
)
from binlog.content.server_starts import ServerStart
from binlog.errors import BinlogError
from binlog.scan import EventGroup
from gtid import Gtid, GtidSet, Tsid
from gtid.counted_nouns import counted

# How many own transactions are compared first after a restart, and at most if they differ. Lost
# transactions are those that were not synced to disk: at most a few seconds of work.
FIRST_COMPARED: Final = 4
# Free GNOs below others are assigned first. At most this many separate intervals are compared.
INTERVALS_MAX: Final = 64
COMPARED_MAX: Final = 20_000
_ALL: Final = 2**63  # above the highest GNO: a run, or one file of it, in a single set
# How many of the requested transactions are read and compared together.
GIVEN_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a log that could not be read, so it was not compared."""

    log: str
    reason: str
    is_lasting: bool = False  # purged: it can never be compared


class ComparedLogs(Protocol):
    """The logs of one server in a comparison. Every method may raise BinlogError."""

    @property
    def name(self) -> str:
        """Return the name of the server, or of the folder of files."""

    @property
    def names_fold(self) -> bool | None:
        """Return whether the server compares table names in lower case; None if unknown."""

    @property
    def has_each_once(self) -> bool:
        """Return whether `groups_of` never yields two transactions with one GTID."""

    def starts(self) -> Iterator[ServerStart | Unread]:
        """Return the restarts to check, the latest first."""

    def own_since(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the GTIDs that the server itself committed between a restart and the next one.

        Each set has the first `next(sizes)` GNOs of each remaining interval (`first_of_each`).
        """

    def own_before(self, start: ServerStart, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Yield the unpurged GTIDs that the server itself committed before a restart.

        Each set has the last `next(sizes)` GNOs of each remaining interval (`last_of_each`).
        """

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return the wanted GTIDs that were logged, but are no longer in these logs."""

    def holes(self, absent: GtidSet) -> GtidSet:
        """Return those that the logs list as logged, of GTIDs that `groups_of` did not yield.

        A file is missing, or a part of one, or they were added to gtid_purged.
        """

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Yield the wanted transactions in these logs, in log order, with their events."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a search. `comparisons` are those that do not agree, in order of GTID."""

    comparisons: tuple[Comparison, ...]
    gtids: GtidSet  # all GTIDs that were compared
    starts: tuple[ServerStart, ...]  # the restarts that were checked
    unread: tuple[Unread, ...]
    is_cut: bool = False  # a limit was reached while transactions still differed


def gtids_in_words(gtids: GtidSet) -> str:
    """Return the number of GTIDs and the set as text: `3 GTIDs, UUID:1-3`."""
    return f"{counted(gtids.gtid_count, 'GTID')}, {gtids.shortened()}"


def compare_after_starts(
    left: ComparedLogs,
    right: ComparedLogs,
    *,
    others: Iterable[ComparedLogs] = (),
    also: GtidSet | None = None,
    more: Callable[["ContentSearch"], None] | None = None,
) -> Compared:
    """Compare the transactions around each restart of both servers, and the GTIDs in `also`.

    In each comparison, `left` is the version of `left`, and `right` that of `right`. `others` are
    servers around whose restarts the two are compared as well. One of the two may have a
    transaction that such a server lost, and the other the one that it committed later. `more`
    continues the search.
    """
    search = ContentSearch(left, right)
    for origin in (left, right, *others):
        search.look(origin)
    if also:
        search.compare_in_chunks(also)
    if more is not None:
        more(search)
    return search.result()


def compare_given(left: ComparedLogs, right: ComparedLogs, *, wanted: GtidSet) -> Compared:
    """Compare the wanted transactions that are in both logs; report the others as unread."""
    search = ContentSearch(left, right)
    search.compare_in_chunks(wanted)
    return search.result()


def first_of_each(gtids: GtidSet, size: int) -> GtidSet:
    """Return the first `size` GNOs of each interval, for the first and the last intervals.

    A server assigns free GNOs below others first. So lost GNOs may be the first of any interval
    that it has assigned since its restart.
    """
    return _outermost(
        [(tsid, start, min(end, start + size)) for tsid, start, end in gtids.intervals()]
    )


def last_of_each(gtids: GtidSet, size: int) -> GtidSet:
    """Return the last `size` GNOs of each interval, for the first and the last intervals."""
    return _outermost(
        [(tsid, max(start, end - size), end) for tsid, start, end in gtids.intervals()]
    )


def _outermost(intervals: list[tuple[Tsid, int, int]]) -> GtidSet:
    half = INTERVALS_MAX // 2
    if len(intervals) > INTERVALS_MAX:
        intervals = intervals[:half] + intervals[-half:]
    return GtidSet.from_intervals(intervals)


_GOES_ON: Final = frozenset({Agreement.DIFFERENT, Agreement.TWICE, Agreement.SKIPPED})


class ContentSearch:
    """Compares transactions of two logs and collects the results."""

    def __init__(self, left: ComparedLogs, right: ComparedLogs) -> None:
        self._left = left
        self._right = right
        self._found: dict[Gtid, Comparison] = {}
        self._gtids = GtidSet()
        self._starts: list[ServerStart] = []
        self._unread: dict[Unread, None] = {}
        self._is_cut = False
        self._read: dict[str, dict[Gtid, Version]] = {}  # by log, for the next comparison only
        folds = {logs.names_fold for logs in (left, right)}
        self._names_fold = True if True in folds else None if None in folds else False

    def look(self, origin: ComparedLogs) -> None:
        """Compare one server's own transactions around each of its restarts."""
        try:
            for start in origin.starts():
                if isinstance(start, Unread):
                    self.note(start)
                    continue
                self._starts.append(start)
                self._look_after(origin, start)
        except BinlogError as error:
            self.note(Unread(origin.name, str(error)))

    def _look_after(self, origin: ComparedLogs, start: ServerStart) -> None:
        """Compare forward and backward from a restart, in each direction while they differ.

        The sets of both directions are requested together: one request to each server.
        """
        before = origin.own_before(start, sizes=_sizes())
        last = next(before, GtidSet())
        runs = origin.own_since(start, sizes=repeat(_ALL))
        ways = [self._comparable(origin, runs, beside=last), chain((last,), before)]
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

    def _comparable(
        self, origin: ComparedLogs, runs: Iterator[GtidSet], *, beside: GtidSet
    ) -> Iterator[GtidSet]:
        """Yield the first GNOs of each interval that both logs contain, then more of them.

        `beside` is compared together with the first set.

        If the first GNOs of an interval are purged, it begins at the first one that is not. The
        first set includes those that a log other than the origin's contains before all others.
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
            also = self._logged_first(origin, left, beside)
            beside = GtidSet()
            while left:
                window = first_of_each(left, next(sizes)) | also
                also = GtidSet()
                left -= window
                yield window

    def _logged_first(self, origin: ComparedLogs, run: GtidSet, beside: GtidSet) -> GtidSet:
        """Return the first transactions of a run in the order of logs other than the origin's.

        Those of `beside` that come before them are kept as well, for the comparison that follows.
        """
        found = GtidSet()
        if not run - first_of_each(run, FIRST_COMPARED):
            return found  # all of them are compared in any case
        for logs in (self._left, self._right):
            if logs is origin:
                continue
            read: dict[Gtid, Version] = {}
            first = GtidSet()
            wanted = run | beside if logs.has_each_once else run
            try:
                for gtid, version in each_version(logs.groups_of(wanted)):
                    read[gtid] = version
                    first |= GtidSet.of(gtid) & run
                    if first.gtid_count == FIRST_COMPARED:
                        break
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                continue
            found |= first
            if logs.has_each_once:
                self._read[logs.name] = read
        return found

    def _note_gone(self, logs: ComparedLogs, gone: GtidSet) -> None:
        text = f"purged, or never in these logs: {gtids_in_words(gone)}"
        self.note(Unread(logs.name, text, is_lasting=True))

    def held(self, wanted: GtidSet) -> GtidSet:
        """Return the GTIDs that both logs still contain; note the others. Empty if unreadable."""
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
        """Record a part that could not be read."""
        self._unread[unread] = None

    def agree(self, gtids: GtidSet) -> None:
        """Record transactions that are known to be the same."""
        self._gtids |= gtids

    def cut(self) -> None:
        """Record that a limit ended the search."""
        self._is_cut = True

    def compare_in_chunks(self, wanted: GtidSet) -> None:
        """Compare the wanted transactions; note those that are missing in one of the logs."""
        wanted = self.held(wanted)
        while wanted:
            chunk = wanted.first(GIVEN_AT_ONCE)
            wanted -= chunk
            unread = len(self._unread)
            self.compare(chunk)
            absent = chunk - self._gtids
            if absent and len(self._unread) == unread:
                names = f"{self._left.name}, {self._right.name}"
                self.note(
                    Unread(names, f"not in both logs: {gtids_in_words(absent)}", is_lasting=True)
                )

    def compare(self, wanted: GtidSet) -> GtidSet:
        """Compare some transactions; return those after which the search continues."""
        sides = []
        read, self._read = self._read, {}
        for logs in (self._left, self._right):
            known = {
                gtid: version for gtid, version in read.get(logs.name, {}).items() if gtid in wanted
            }
            left = wanted - GtidSet.of(known)
            try:
                versions = versions_of(logs.groups_of(left) if left else ())
                sides.append({gtid: (one,) for gtid, one in known.items()} | versions)
                if hole := logs.holes(wanted - GtidSet.of(sides[-1])):
                    self._note_gone(logs, hole)
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                return GtidSet()
        goes_on = []
        for gtid in sorted(sides[0].keys() & sides[1].keys()):
            last = compare_all_versions(sides[0][gtid], sides[1][gtid], names_fold=self._names_fold)
            if last.agreement in _GOES_ON:
                goes_on.append(gtid)
            if last.agreement is not Agreement.SAME:
                self._found[gtid] = last
        self._gtids |= GtidSet.of(sides[0].keys() & sides[1].keys())
        return GtidSet.of(goes_on)

    def result(self) -> Compared:
        """Return the result of the search."""
        return Compared(
            comparisons=tuple(comparison for _, comparison in sorted(self._found.items())),
            gtids=self._gtids,
            starts=tuple(self._starts),
            unread=tuple(self._unread),
            is_cut=self._is_cut,
        )


def _sizes() -> Iterator[int]:
    size = FIRST_COMPARED
    while True:
        yield size
        size *= 2
