"""Finds the files that hold given GTIDs, by the heads of as few files as can be.

1. At the head of each file stands what had been logged before it began (PREVIOUS_GTIDS_LOG_EVENT):
   from file to file these sets only grow. So a GTID is in the last file whose head lacks it, and
   that is found by halving: 10 or 11 heads among 1,000 files.
2. A set of GTIDs is halved the same way, all together: each head splits it into those before and
   those from there on. No head is looked at twice.
3. A head may be unknown (a server without GTIDs wrote none, a file is damaged). Then a neighbour is
   asked, and the answer is a span of several files instead of one. Nothing is assumed.
4. This file does not know where heads come from, and looks into no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gtid import GtidSet

# Gives the previous GTIDs of the file of that number, from 0 on; None if they are not known.
PreviousGtidsOf = Callable[[int], GtidSet | None]


@dataclass(frozen=True, slots=True)
class Span:
    """Some wanted GTIDs, and the files in one of which each of them is, if it is in any.

    A span of more than one file has heads within it that are not known. GTIDs in a span that ends
    with the last file may be in no file yet.
    """

    first: int
    end: int
    gtids: GtidSet

    def __post_init__(self) -> None:
        assert 0 <= self.first < self.end
        assert self.gtids


@dataclass(frozen=True, slots=True)
class Search:
    """What the heads say. `spans` are in the order of the logs and do not overlap.

    Invariant: `before_first` and the spans' GTIDs are disjoint; together they are what was wanted.
    """

    # Logged before the first file began: purged, or in files that were not given.
    before_first: GtidSet
    spans: tuple[Span, ...]
    heads_read: int


def search_heads(wanted: GtidSet, *, file_count: int, previous_gtids_of: PreviousGtidsOf) -> Search:
    """Find the files of the wanted GTIDs among `file_count` files in the order of the logs.

    The logs must be one server's, of one kind, without a RESET between: what one head holds, all
    later ones hold. Reads at most ceil(log2(file_count)) + 1 heads for one GTID, where heads are
    known.
    """
    assert file_count >= 0
    heads = _Heads(previous_gtids_of)
    spans = tuple(_halved(wanted, 0, file_count, heads)) if wanted and file_count else ()
    before_first = GtidSet()
    # The first file's head matters only to what the others did not place behind it.
    if spans and spans[0].first == 0:
        previous = heads.at(0)
        before_first = spans[0].gtids & previous if previous is not None else before_first
        spans = tuple(_without(before_first, spans))
    return Search(before_first, spans, heads.count)


class _Heads:
    """The heads seen so far."""

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
        """Return the known header behind `first` and before `end` that is nearest to the middle."""
        for number in _from_the_middle(first + 1, end):
            previous = self.at(number)
            if previous is not None:
                return number, previous
        return None


def _from_the_middle(first: int, end: int) -> Iterator[int]:
    """Yield all numbers from `first` to before `end`: the middle first, then outward in turns."""
    middle = (first + end) // 2
    for distance in range(end - first):
        for number in dict.fromkeys((middle + distance, middle - distance)):
            if first <= number < end:
                yield number


def _halved(wanted: GtidSet, first: int, end: int, heads: _Heads) -> Iterator[Span]:
    """Split the wanted GTIDs over the files from `first` to before `end`, where they are."""
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
