"""The GTID set: immutable and canonical; its memory is proportional to its intervals.

1. A set holds one non-empty canonical sequence of boundaries for each TSID, in MySQL's order. So
   equal sets have equal contents, and printing needs no sorting. See gtid/boundaries.py.
2. The number of GTIDs affects neither time nor memory. Only `gtids` lists them singly, up to a
   limit. There is no `len`, because the count may exceed a C integer.
3. The representation of the boundaries is private to this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import groupby
from typing import Final, final
from uuid import UUID

from gtid import boundaries as line
from gtid.boundaries import TruthTable
from gtid.boundary_sequence import GNO_END, Boundaries, settled
from gtid.counted_nouns import counted
from gtid.errors import GnoOutOfRange, GtidSetTooLarge, MalformedInterval
from gtid.gtid import Gtid
from gtid.gtid_text import (
    INTERVALS_MAX,
    TEXT_BYTES_MAX,
    TSIDS_MAX,
    Ranges,
    end_after,
    format_ranges,
    in_order,
    last_before,
    parse_ranges,
    shorten_ranges,
    united,
)
from gtid.tsid import UUID_CHARS, Tsid, tsid_of_key, uuid_text

# Enough to list every transaction of a repair; larger sets are processed as intervals.
GTIDS_MAX: Final = 1_000_000

# Up to this many sets are united one after the other: usually the second adds nothing to the first.
_FEW_SETS: Final = 3

# Limits for output that fits on one screen.
SHOWN_RANGES_MAX: Final = 6
SHOWN_UUIDS_MAX: Final = 8


@final
class GtidSet:
    """An immutable set of GTIDs, as a server holds in `gtid_executed`.

    Operators: `|` union, `&` intersection, `-` subtraction, `^` symmetric difference; `<=`, `<`,
    `>=`, `>` containment; `in` for one Gtid; `bool` for "not empty".

    >>> executed = GtidSet.parse("3E11FA47-71CA-11E1-9E33-C80AA9429562:1-10:dba:1-3")
    >>> purged = GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:3-4:6:dba:2")
    >>> print(executed - purged)
    3e11fa47-71ca-11e1-9e33-c80aa9429562:1-2:5:7-10:dba:1:3
    """

    __slots__ = ("_hash", "_ranges")

    # Invariant: keys ascend; every sequence is canonical and not empty; 1 <= each < GNO_END + 1.
    _ranges: Ranges
    _hash: int | None

    def __new__(cls) -> GtidSet:
        """Return the empty set, which is always the same object."""
        return _EMPTY

    # -- constructors -----------------------------------------------------------------------

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        text_bytes_max: int = TEXT_BYTES_MAX,
        intervals_max: int = INTERVALS_MAX,
        tsids_max: int = TSIDS_MAX,
    ) -> GtidSet:
        """Read the text of a set, as a server prints it or an operator types it.

        gtid_text.py has the grammar. `intervals_max` limits the intervals and tags as written,
        `tsids_max` the distinct TSIDs. Raises MalformedGtidSet with the position, GtidSetTooLarge.
        """
        ranges = parse_ranges(
            text,
            text_bytes_max=text_bytes_max,
            intervals_max=intervals_max,
            tsids_max=tsids_max,
        )
        return set_of_ranges(ranges)

    @classmethod
    def of(cls, gtids: Gtid | Iterable[Gtid]) -> GtidSet:
        """Make the set of exactly these GTIDs."""
        singly = (gtids,) if isinstance(gtids, Gtid) else gtids
        return cls.from_intervals((gtid.tsid, gtid.gno, end_after(gtid.gno)) for gtid in singly)

    @classmethod
    def from_intervals(cls, intervals: Iterable[tuple[Tsid, int, int]]) -> GtidSet:
        """Make a set of intervals (tsid, start, exclusive end), in any order; they may overlap.

        An interval whose end equals its start is empty. Raises GnoOutOfRange unless
        1 <= start and end <= GNO_END, and MalformedInterval if an end is below its start.
        """
        numbers: dict[Tsid, list[int]] = {}
        last: Tsid | None = None
        its_numbers: list[int] = []
        for tsid, start, end in intervals:
            if start < 1:
                raise GnoOutOfRange(start)
            if end > GNO_END:
                raise GnoOutOfRange(last_before(end))
            if end < start:
                raise MalformedInterval(start, end)
            if tsid is not last:  # finding it takes longer than all else
                last, its_numbers = tsid, numbers.setdefault(tsid, [])
            its_numbers += (start, end)
        return set_of_ranges(in_order({str(tsid): numbers[tsid] for tsid in numbers}))

    @classmethod
    def union_of(cls, sets: Iterable[GtidSet]) -> GtidSet:
        """Unite any number of sets at once; much faster than repeated `|`."""
        held = [one for one in sets if one]
        if len(held) <= _FEW_SETS:
            return reduce(GtidSet.__or__, held, _EMPTY)
        parts: dict[str, list[Boundaries]] = {}
        for one in held:
            for key, boundaries in ranges_of(one).items():
                parts.setdefault(key, []).append(boundaries)
        return set_of_ranges(united(parts))

    # -- algebra ----------------------------------------------------------------------------

    def __or__(self, other: GtidSet) -> GtidSet:
        return _combine(self, other, line.UNION)

    def __and__(self, other: GtidSet) -> GtidSet:
        return _combine(self, other, line.INTERSECTION)

    def __sub__(self, other: GtidSet) -> GtidSet:
        return _combine(self, other, line.SUBTRACTION)

    def __xor__(self, other: GtidSet) -> GtidSet:
        return _combine(self, other, line.SYMMETRIC_DIFFERENCE)

    def __le__(self, other: GtidSet) -> bool:
        return _is_subset(self, other)

    def __lt__(self, other: GtidSet) -> bool:
        return self != other and _is_subset(self, other)

    def __ge__(self, other: GtidSet) -> bool:
        return _is_subset(other, self)

    def __gt__(self, other: GtidSet) -> bool:
        return self != other and _is_subset(other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GtidSet):
            return NotImplemented
        return self is other or self._ranges == other._ranges

    def __hash__(self) -> int:
        if self._hash is None:
            lines = ((key, line.hash_of(held)) for key, held in self._ranges.items())
            _set_hash(self, hash(tuple(lines)))
        assert self._hash is not None
        return self._hash

    def __contains__(self, gtid: Gtid) -> bool:
        return line.contains(self._ranges.get(str(gtid.tsid), ()), gtid.gno)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def is_disjoint(self, other: GtidSet) -> bool:
        """Return whether no GTID is in both."""
        theirs = ranges_of(other)
        return all(
            line.is_disjoint(boundaries, theirs.get(key, ()))
            for key, boundaries in self._ranges.items()
        )

    # -- properties and contents ------------------------------------------------------------

    @property
    def gtid_count(self) -> int:
        """The number of GTIDs in the set: MySQL's "volume"."""
        return sum(map(line.count, self._ranges.values()))

    @property
    def interval_count(self) -> int:
        """The number of intervals in the set's text form."""
        return sum(map(len, self._ranges.values())) // 2

    @property
    def tsid_count(self) -> int:
        """The number of TSIDs with at least one GTID in the set."""
        return len(self._ranges)

    @property
    def tsids(self) -> tuple[Tsid, ...]:
        """The TSIDs, in MySQL's order."""
        return tuple(map(tsid_of_key, self._ranges))

    @property
    def uuids(self) -> tuple[UUID, ...]:
        """The distinct UUIDs, in MySQL's order."""
        return tuple(dict.fromkeys(tsid.uuid for tsid in self.tsids))

    def intervals(self) -> Iterator[tuple[Tsid, int, int]]:
        """Yield (tsid, start, end) in order; ends are exclusive."""
        for key, boundaries in self._ranges.items():
            tsid = tsid_of_key(key)
            for start, end in line.pairs(boundaries):
                yield tsid, start, end

    def gtids(self, *, limit: int = GTIDS_MAX) -> Iterator[Gtid]:
        """Return each GTID in order. Raises GtidSetTooLarge at once if there are more than `limit`.

        It never truncates silently: for the first few, use `s.first(n).gtids()`.
        """
        if self.gtid_count > limit:
            raise GtidSetTooLarge("GTIDs", self.gtid_count, limit)
        return (
            Gtid(tsid, gno) for tsid, start, end in self.intervals() for gno in range(start, end)
        )

    def highest(self, tsid: Tsid) -> int | None:
        """Return the highest number of this TSID, or None if the set has none."""
        boundaries = self._ranges.get(str(tsid))
        return last_before(boundaries[-1]) if boundaries else None

    # -- subsets ----------------------------------------------------------------------------

    def from_uuid(self, uuid: UUID) -> GtidSet:
        """Keep the GTIDs that this server committed, with any tag or none."""
        return self._parted(uuid, wanted=True)

    def without_uuid(self, uuid: UUID) -> GtidSet:
        """Keep the GTIDs that other servers committed."""
        return self._parted(uuid, wanted=False)

    def _parted(self, uuid: UUID, *, wanted: bool) -> GtidSet:
        if not self._ranges:
            return self
        text = uuid_text(uuid)
        kept = {
            key: held for key, held in self._ranges.items() if (key[:UUID_CHARS] == text) is wanted
        }
        return self if len(kept) == len(self._ranges) else set_of_ranges(kept)

    def from_tsid(self, tsid: Tsid) -> GtidSet:
        """Keep the GTIDs with exactly this UUID and tag; an empty tag means untagged."""
        key = str(tsid)
        return set_of_ranges({key: self._ranges[key]} if key in self._ranges else {})

    def holes(self) -> GtidSet:
        """Return the gaps of each TSID: the numbers missing between its lowest and highest."""
        inner = ((key, line.inner(boundaries)) for key, boundaries in self._ranges.items())
        return set_of_ranges({key: boundaries for key, boundaries in inner if boundaries})

    def filled(self) -> GtidSet:
        """Return, for each TSID, the interval from 1 to its highest number.

        `x & s.filled()` is the part of `x` that is not above the highest numbers of `s`.
        """
        filled = ((key, (1, boundaries[-1])) for key, boundaries in self._ranges.items())
        return set_of_ranges({key: settled(boundaries) for key, boundaries in filled})

    def first(self, gtid_count: int) -> GtidSet:
        """Keep the first `gtid_count` GTIDs in order, or all if there are fewer."""
        kept: dict[str, Boundaries] = {}
        left = gtid_count
        for key, boundaries in self._ranges.items():
            if left <= 0:
                break
            kept[key] = line.first(boundaries, left)
            left -= line.count(kept[key])
        return set_of_ranges(kept)

    # -- text -------------------------------------------------------------------------------

    def to_text(self, *, separator: str = ",") -> str:
        r"""Write MySQL's text form. A server separates UUIDs with `",\n"`."""
        return format_ranges(self._ranges, separator=separator)

    def __str__(self) -> str:
        return self.to_text()

    def shortened(
        self, *, ranges_max: int = SHOWN_RANGES_MAX, uuids_max: int = SHOWN_UUIDS_MAX
    ) -> str:
        """Write a short form for operators: at most `ranges_max` ranges of `uuids_max` UUIDs.

        The text counts the ranges, UUIDs and GTIDs that it omits.
        """
        entries: list[str] = []
        hidden: dict[str, Boundaries] = {}
        uuid_count = 0
        for uuid, group in groupby(self._ranges.items(), lambda item: item[0][:UUID_CHARS]):
            uuid_count += 1
            if uuid_count <= uuids_max:
                entries.append(shorten_ranges(uuid, dict(group), ranges_max=ranges_max))
            else:
                hidden.update(group)
        if hidden:
            gtids = counted(set_of_ranges(hidden).gtid_count, "GTID")
            entries.append(f"… (+{counted(uuid_count - uuids_max, 'more UUID')}, {gtids})")
        return ", ".join(entries)

    def __repr__(self) -> str:
        return f"<GtidSet {self.shortened()}>" if self else "<GtidSet empty>"

    # -- immutability and pickling ----------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a GtidSet is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a GtidSet is immutable: cannot delete {name}")

    def __reduce__(self) -> tuple[object, tuple[Ranges]]:
        return _set_of_pickled, (self._ranges,)


def _set_of_pickled(ranges: Ranges) -> GtidSet:
    """Wrap pickled ranges; another release may have another threshold between tuple and array."""
    return set_of_ranges({key: settled(held) for key, held in ranges.items()})


def set_of_ranges(ranges: Ranges) -> GtidSet:
    """Wrap ranges that satisfy the invariant of GtidSet. For the modules of this package only."""
    made = object.__new__(GtidSet)
    _set_ranges(made, ranges)
    _set_hash(made, None)
    return made


def ranges_of(gtid_set: GtidSet) -> Ranges:
    """Return the representation. For the modules of this package only."""
    return gtid_set._ranges  # noqa: SLF001  (the only access)


def _combine(left: GtidSet, right: object, table: TruthTable) -> GtidSet:
    """Apply a truth table to two sets, TSID by TSID; return `left` itself if it does not change.

    Return NotImplemented if `right` is not a set. mypy expects this of operators only.
    """
    if not isinstance(right, GtidSet):
        return NotImplemented  # type: ignore[no-any-return]
    ours, theirs = ranges_of(left), ranges_of(right)
    left_only, right_only, both = table
    if not theirs:
        return left if left_only else _EMPTY
    if not ours:
        return right if right_only else _EMPTY
    if ours is theirs:
        return left if both else _EMPTY
    combined: dict[str, Boundaries] = {}
    unchanged = 0
    for key, held in ours.items():
        made = line.combine(held, theirs.get(key, ()), table)
        if made:
            combined[key] = made
            unchanged += made == held
    # Without right_only, a TSID that is not on the left contributes nothing.
    added = theirs.keys() - ours.keys() if right_only else ()
    if added:
        combined.update((key, theirs[key]) for key in added)
        combined = {key: combined[key] for key in sorted(combined)}
    elif unchanged == len(ours):
        return left
    return set_of_ranges(combined) if combined else _EMPTY


def _is_subset(left: object, right: object) -> bool:
    if not (isinstance(left, GtidSet) and isinstance(right, GtidSet)):
        return NotImplemented  # type: ignore[no-any-return]
    ours, theirs = ranges_of(left), ranges_of(right)
    if len(ours) > len(theirs):
        return False
    return all(line.is_subset(held, theirs.get(key, ())) for key, held in ours.items())


# The slots themselves: object.__setattr__ takes three times as long, and sets are made often.
_set_ranges: Callable[[GtidSet, Ranges], None] = vars(GtidSet)["_ranges"].__set__
_set_hash: Callable[[GtidSet, int | None], None] = vars(GtidSet)["_hash"].__set__

_EMPTY: Final = set_of_ranges({})
