"""Looks where a number may have been given twice: at what a server wrote first after each start.

1. A server that lost the tail of its log gives the lost numbers again, beginning with the first
   transaction of its own after the start: automatic GNOs are the smallest free ones
   (Gtid_state::get_automatic_gno, sql/rpl_gtid_state.cc). So the first of its own transactions
   after each start decide; where they differ from what the other log holds under the same GTIDs,
   the search goes on until they agree again.
2. A start begins a log: its format description has the moment of creation, which a log begun by
   rotation has not (Format_description_log_event::created, sql/log_event.h). RESET begins one too.
3. What cannot be read is said, with the reason. It is never taken for agreement.
4. Pure: what there is to read, and how, is told by `ComparedLogs`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from binlog.content.compare import (
    Agreement,
    Comparison,
    Version,
    are_one_commit,
    compare_versions,
)
from binlog.errors import BinlogError
from binlog.scan import EventGroup
from gtid import Gtid, GtidSet

# Own transactions compared first after a start, and the most that are compared if they go on to
# differ. A lost tail is what was not synced: at most some seconds' work.
FIRST_COMPARED: Final = 4
# Numbers that were free below others are given first; more separate ones are not looked at.
INTERVALS_MAX: Final = 64
COMPARED_MAX: Final = 20_000


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
    is_lasting: bool = False  # it is gone: whoever looks again will not find it either


class ComparedLogs(Protocol):
    """The logs of one server, as far as they are compared. Every method may raise BinlogError."""

    @property
    def name(self) -> str:
        """Return what the server, or the folder of files, is called."""

    def starts(self) -> Iterator[Start | Unread]:
        """Give the starts to be looked at, the latest first."""

    def own_since(self, start: Start, *, sizes: Iterator[int]) -> Iterator[GtidSet]:
        """Give what the server itself committed since a start and before the next.

        In sets of the first so many of each interval (`first_of_each`), as long as there are any.
        """

    def unheld(self, wanted: GtidSet) -> GtidSet:
        """Return which of the transactions were logged once and are in these logs no more."""

    def groups_of(self, wanted: GtidSet) -> Iterator[EventGroup]:
        """Give those of the transactions that the logs hold, with their events."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison found. `comparisons` are those that do not agree, in order of GTID."""

    comparisons: tuple[Comparison, ...]
    gtids: GtidSet  # all that were compared
    starts: tuple[tuple[str, Start], ...]  # that were looked at, with the log's name
    unread: tuple[Unread, ...]
    is_cut: bool = False  # the differences go on beyond what was compared


def compare_after_starts(left: ComparedLogs, right: ComparedLogs) -> Compared:
    """Compare what either server committed first after each of its starts.

    In each comparison `left` is left's version and `right` right's.
    """
    search = Search(left, right)
    search.look(left)
    search.look(right)
    return search.result()


def compare_given(left: ComparedLogs, right: ComparedLogs, *, wanted: GtidSet) -> Compared:
    """Compare the given transactions, as far as both logs hold them."""
    search = Search(left, right)
    search.compare(search.held(wanted))
    return search.result()


def first_of_each(gtids: GtidSet, size: int) -> GtidSet:
    """Return the first `size` numbers of each interval, of the first and the last intervals.

    A server fills what is free below before it goes on above: lost numbers may be the first of
    any interval of those it has given since its start.
    """
    intervals = [(tsid, start, min(end, start + size)) for tsid, start, end in gtids.intervals()]
    half = INTERVALS_MAX // 2
    if len(intervals) > INTERVALS_MAX:
        intervals = intervals[:half] + intervals[-half:]
    return GtidSet.from_intervals(intervals)


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
        looked_at = 0
        for window in origin.own_since(start, sizes=_sizes()):
            looked_at += window.gtid_count
            if not self.compare(self.held(window), by_content=False):
                return
            if looked_at >= COMPARED_MAX:
                self.cut()
                return

    def held(self, wanted: GtidSet) -> GtidSet:
        """Leave out, and say, what one of the logs no longer holds, or all where it is unread."""
        for logs in (self._left, self._right):
            try:
                gone = logs.unheld(wanted)
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                return GtidSet()
            if gone:
                text = f"purged, or never in these logs: {gone.shortened()}"
                self.note(Unread(logs.name, text, is_lasting=True))
                wanted -= gone
        return wanted

    def note(self, unread: Unread) -> None:
        """Say what could not be read."""
        self._unread[unread] = None

    def agree(self, gtids: GtidSet) -> None:
        """Take transactions that are known to be the same."""
        self._gtids |= gtids

    def cut(self) -> None:
        """Say that there is more than is compared."""
        self._is_cut = True

    def compare(self, wanted: GtidSet, *, by_content: bool = True) -> bool:
        """Compare some transactions; tell whether any of them was committed twice.

        Without `by_content` those of one commit, by its moment, are the same at once.
        """
        sides = []
        for logs in (self._left, self._right):
            try:
                sides.append(_versions(logs.groups_of(wanted)))
            except BinlogError as error:
                self.note(Unread(logs.name, str(error)))
                return False
        goes_on = False
        for gtid in sorted(sides[0].keys() & sides[1].keys()):
            ours, theirs = sides[0][gtid], sides[1][gtid]
            if not by_content and are_one_commit(ours, theirs):
                continue
            last = compare_versions(ours, theirs)
            goes_on |= last.agreement in (Agreement.DIFFERENT, Agreement.TWICE)
            if last.agreement is not Agreement.SAME:
                self._found[gtid] = last
        self._gtids |= GtidSet.of(sides[0].keys() & sides[1].keys())
        return goes_on

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
