"""Finds the files that contain the wanted GTIDs, with the headers of as few files as possible.

1. The header of each file contains the GTIDs that were logged before it (PREVIOUS_GTIDS_LOG_EVENT).
   These sets only grow from file to file. So a GTID is in the last file whose header does not
   contain it. A binary search finds that file: 10 or 11 headers among 1,000 files.
2. The search processes a set of GTIDs as a whole: each header splits it into the GTIDs before that
   file and those from there on. No header is read twice.
3. A header may be unknown: a server without GTIDs wrote it, or the file is damaged. Then the search
   uses an adjacent header, and the result is a span of several files. Nothing is assumed.
4. This file does not know where headers come from, and reads no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gtid import GtidSet

# Returns the previous GTIDs of the file with this number, from 0 on; None if they are unknown.
PreviousGtidsOf = Callable[[int], GtidSet | None]


@dataclass(frozen=True, slots=True)
class Span:
    """Some wanted GTIDs, and the range of files that contains each of them, if any file does.

    A span has more than one file if headers in it are unknown. GTIDs in a span that ends with the
    last file may not be logged yet.
    """

    first: int
    end: int
    gtids: GtidSet

    def __post_init__(self) -> None:
        assert 0 <= self.first < self.end
        assert self.gtids


@dataclass(frozen=True, slots=True)
class HeaderSearch:
    """The result of the search. `spans` are in the order of the logs and do not overlap.

    Invariant: `before_first` and the spans' GTIDs are disjoint; their union is the wanted set.
    """

    # Logged before the first file: purged, or in files that were not passed.
    before_first: GtidSet
    spans: tuple[Span, ...]
    heads_read: int


def search_heads(
    wanted: GtidSet, *, file_count: int, previous_gtids_of: PreviousGtidsOf
) -> HeaderSearch:
    """Find the files of the wanted GTIDs among `file_count` files in the order of the logs.

    The logs must be those of one server and of one kind, without a RESET in between. Then all later
    headers contain the GTIDs of each header. If headers are known, the search reads at most
    ceil(log2(file_count)) + 1 of them for one GTID.
    """
    assert file_count >= 0
    heads = _Heads(previous_gtids_of)
    spans = tuple(_halved(wanted, 0, file_count, heads)) if wanted and file_count else ()
    before_first = GtidSet()
    # The first file's header matters only for GTIDs that the others did not place after it.
    if spans and spans[0].first == 0:
        previous = heads.at(0)
        before_first = spans[0].gtids & previous if previous is not None else before_first
        spans = tuple(_without(before_first, spans))
    return HeaderSearch(before_first, spans, heads.count)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The first file whose header does not list all that the headers before it list."""

    number: int
    absent: GtidSet


def first_shrunk(heads: Iterable[GtidSet | None]) -> Shrunk | None:
    """Return where the headers, in the order of the files, do not grow; None if they all do.

    The logs were reset, an older copy was restored, or the files are of several servers or in
    another order: `search_heads` may miss a file. A header that is None shows nothing.
    """
    known = GtidSet()
    for number, listed in enumerate(heads):
        if listed is None:
            continue
        if not known <= listed:
            return Shrunk(number, known - listed)
        known = listed
    return None


class _Heads:
    """The headers read so far."""

    def __init__(self, previous_gtids_of: PreviousGtidsOf) -> None:
        self._previous_gtids_of = previous_gtids_of
        self._seen: dict[int, GtidSet | None] = {}

    @property
    def count(self) -> int:
        return len(self._seen)

    def at(self, number: int) -> GtidSet | None:
        if number not in self._seen:
            self._seen[number] = self._previous_gtids_of(number)
        return self._seen[number]

    def known_within(self, first: int, end: int) -> tuple[int, GtidSet] | None:
        """Return the known header between `first` and `end` that is nearest to the middle."""
        for number in _from_the_middle(first + 1, end):
            previous = self.at(number)
            if previous is not None:
                return number, previous
        return None


def _from_the_middle(first: int, end: int) -> Iterator[int]:
    """Yield all numbers from `first` up to `end`: the middle first, then alternately outward."""
    middle = (first + end) // 2
    for distance in range(end - first):
        for number in dict.fromkeys((middle + distance, middle - distance)):
            if first <= number < end:
                yield number


def _halved(wanted: GtidSet, first: int, end: int, heads: _Heads) -> Iterator[Span]:
    """Assign the wanted GTIDs to the files from `first` up to `end` by binary search."""
    known = heads.known_within(first, end)
    if known is None:
        yield Span(first, end, wanted)
        return
    number, previous = known
    for part, begin, stop in (
        (wanted & previous, first, number),
        (wanted - previous, number, end),
    ):
        if part:
            yield from _halved(part, begin, stop, heads)


def _without(taken: GtidSet, spans: Iterable[Span]) -> Iterator[Span]:
    for span in spans:
        left = span.gtids - taken
        if left:
            yield Span(span.first, span.end, left)
