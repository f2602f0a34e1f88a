r"""MySQL's text form of GTID sets. Only here, and in the kernels for text, are ends inclusive.

1. The grammar is that of a 9.7 server, verified with GTID_SUBTRACT. It allows white space (also VT
   and FF) around every token, extra commas, any order, overlaps, and `UUID:tag` without numbers.
   `2-1` is an empty interval. UUIDs may have no dashes, or be in braces. A tag is sticky: in
   `UUID:1-2:foo:3:5` both 3 and 5 belong to `foo`.
2. An entry in the form that servers print is read with one regular expression. Any other entry is
   read token by token; only this parser produces error messages. A property test verifies that both
   return the same result.
3. Only ASCII digits are accepted (Python's `int` and `\d` accept others, too). The parser never
   skips text that it does not recognize.
4. This file handles keys and boundaries, not sets.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TypeAlias

from gtid.accelerated import kernels_for
from gtid.boundaries import canonical, count, pairs, unite
from gtid.boundary_sequence import GNO_MAX, Boundaries
from gtid.counted_nouns import counted
from gtid.errors import GtidSetTooLarge, MalformedGtid, MalformedGtidSet, MalformedText
from gtid.tsid import TAG_CHARS_MAX, TAG_PATTERN, UUID_CHARS, uuid_key

# Maps each TSID key to a non-empty canonical sequence, in key order.
Ranges: TypeAlias = Mapping[str, Boundaries]

# The default limits of `GtidSet.parse`; together they limit the memory of a set to about 500 MB.
# A server's max_allowed_packet is 64 MiB by default, so a server does not return longer text.
TEXT_BYTES_MAX = 64 * 1024 * 1024
# Each takes 16 bytes in a long sequence. The text of this many intervals reaches TEXT_BYTES_MAX.
INTERVALS_MAX = 5_000_000
# Each takes about 400 bytes, for the key, a short sequence and the entry in the dictionary.
TSIDS_MAX = 1_000_000

_WHITESPACE = " \t\n\v\f\r"
_SPACE = f"[{_WHITESPACE}]*"
_DASHED = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_GTID_UUID = re.compile(f"({_DASHED}){_SPACE}")
_SET_UUID = re.compile(rf"({_DASHED}|\{{{_DASHED}\}}|[0-9A-Fa-f]{{32}}){_SPACE}")
_TAG = re.compile(f"({TAG_PATTERN}){_SPACE}")
_NUMBER = re.compile(f"([0-9]+){_SPACE}")
_COLON = re.compile(f"(:){_SPACE}")
_DASH = re.compile(f"(-){_SPACE}")
_COMMAS = re.compile(f"(,)[,{_WHITESPACE}]*")
_LEADING_COMMAS = re.compile(f"([,{_WHITESPACE}]*)")
_LEADING_SPACE = re.compile(f"({_SPACE})")
# A whole entry as servers print it, up to the next one. No part can match in two ways, so there is
# no backtracking (`*+`). The expression checks only the characters of numbers and tags.
_PLAIN_ENTRY = re.compile(
    f"({_DASHED})([0-9:-]*+)([A-Za-z0-9_:-]*+)[{_WHITESPACE}]*+(?:,[,{_WHITESPACE}]*+|\\Z)"
)
_COLON_TAG = re.compile(f":({TAG_PATTERN})")
_DIGITS = b"0123456789"
_IS_COLON = bytes(byte == ord(":") for byte in range(256))
_GNO_DIGITS = len(str(GNO_MAX))
# Longer runs are read and written in pieces, so that Python's temporary objects are freed between.
_PIECE_CHARS = 1024 * 1024
_PIECE_BOUNDARIES = 128 * 1024
# Estimated for a set of millions in a server's text: `:12345678-12345679` is two boundaries.
_CHARS_PER_BOUNDARY = 8


def end_after(last: int) -> int:
    """Return the exclusive end of an interval whose last number is `last`."""
    return last + 1


def last_before(end: int) -> int:
    """Return the last number of an interval with the exclusive end `end`."""
    return end - 1


def parse_ranges(text: str, *, text_bytes_max: int, intervals_max: int, tsids_max: int) -> Ranges:
    """Read a GTID set. Raises MalformedGtidSet, or GtidSetTooLarge before much is allocated.

    `intervals_max` counts the intervals and tags as written, before they are merged.
    """
    # Well-formed text is ASCII, so its characters are bytes. Any other text is rejected later.
    if len(text) > text_bytes_max:
        raise GtidSetTooLarge("bytes of text", len(text), text_bytes_max)
    kernels = kernels_for(len(text) // _CHARS_PER_BOUNDARY)
    if kernels is not None and not text.isascii():
        kernels = None
    colons = text.count(":") if kernels is None else kernels.count_colons(text)
    if colons > intervals_max:
        raise GtidSetTooLarge("intervals and tags", colons, intervals_max)
    if kernels is not None:
        return kernels.read(text, colon_count=colons, tsids_max=tsids_max)
    return in_order(parse_entries(text, tsids_max=tsids_max))


def in_order(numbers: Mapping[str, Sequence[int]]) -> Ranges:
    """Make every sequence canonical, drop the empty ones and sort by key."""
    folded = ((key, canonical(numbers[key])) for key in sorted(numbers))
    return {key: boundaries for key, boundaries in folded if boundaries}


def united(parts: Mapping[str, Sequence[Boundaries]]) -> Ranges:
    """Unite the canonical sequences of each key, drop the empty ones and sort by key."""
    folded = ((key, unite(parts[key])) for key in sorted(parts))
    return {key: boundaries for key, boundaries in folded if boundaries}


class _Found(dict[str, "list[int] | array[int]"]):
    """The numbers read so far, in the order written: start, end, start, end, ... of each TSID."""

    def __init__(self, tsids_max: int) -> None:
        super().__init__()
        self._tsids_max = tsids_max

    def add(self, key: str, numbers: list[int] | array[int]) -> None:
        """Append to the numbers of a TSID. The caller must not use `numbers` again."""
        held = self.get(key)
        if held is None:
            if len(self) == self._tsids_max:
                raise GtidSetTooLarge("TSIDs", len(self) + 1, self._tsids_max)
            self[key] = numbers
            return
        if isinstance(held, list) and len(held) >= _PIECE_BOUNDARIES:
            self[key] = held = array("q", held)
        held.extend(numbers)


def parse_entries(text: str, *, tsids_max: int = TSIDS_MAX) -> Mapping[str, Sequence[int]]:
    """Read all entries: each with the regular expression if it matches, else token by token."""
    found = _Found(tsids_max)
    reader = _Reader(text, MalformedGtidSet)
    reader.take(_LEADING_COMMAS)
    while not reader.at_end():
        entry = _PLAIN_ENTRY.match(text, reader.position)
        if entry is not None and _take_plain_entry(text, entry, found):
            reader.position = entry.end()
        else:
            _take_entry(reader, found)
    return found


def parse_carefully(text: str) -> Mapping[str, Sequence[int]]:
    """Read every entry token by token. This defines the grammar and its errors."""
    found = _Found(TSIDS_MAX)
    reader = _Reader(text, MalformedGtidSet)
    reader.take(_LEADING_COMMAS)
    while not reader.at_end():
        _take_entry(reader, found)
    return found


def _take_plain_entry(text: str, entry: re.Match[str], found: _Found) -> bool:
    """Add all of an entry; return False if it is not plain, when parts of it may already be added.

    The caller then reads the entry again. Adding a part twice does no harm.
    """
    uuid = entry[1].lower()
    begin, end = entry.span(2)
    last = entry.end(3)
    if end == last:
        return _take_run(text, begin, end, uuid, found)
    # Group 3 begins with the first tag. The untagged part ends before the colon in front of it.
    if text[end - 1] != ":":
        return False
    key = uuid
    for tag in _COLON_TAG.finditer(text, end - 1, last):
        if tag.end() - tag.start(1) > TAG_CHARS_MAX:
            return False
        if not _take_run(text, begin, tag.start(), key, found):
            return False
        key, begin = f"{uuid}:{tag[1].lower()}", tag.end()
    return _take_run(text, begin, last, key, found)


def _take_run(text: str, begin: int, end: int, key: str, found: _Found) -> bool:
    """Add `:1-2:5:7-9` as 1, 3, 5, 6, 7, 10; return False if the text has another form."""
    while begin < end:
        cut = end
        if end - begin > _PIECE_CHARS:
            cut = text.find(":", begin + _PIECE_CHARS, end)
            cut = end if cut < 0 else cut
        numbers = _run_numbers(text[begin:cut])
        if numbers is None:
            return False
        found.add(key, numbers)
        begin = cut
    return True


def _run_numbers(run: str) -> list[int] | None:
    """Read `:1-2:5:7-9` into start, end, start, end, ...; None if the text has another form.

    Numbers and separators are processed separately: so there is no Python loop over the intervals.
    """
    separators = run.encode("ascii").translate(None, _DIGITS)
    if run[0] != ":" or b"--" in separators or separators.translate(None, b":-"):
        return None
    try:
        numbers = list(map(int, run[1:].replace("-", ":").split(":")))
    except ValueError:  # no digits between two separators, or more digits than int() accepts
        return None
    # A number after a colon is a start. A number before a colon or at the end is a last number.
    starts = list(compress(numbers, separators.translate(_IS_COLON)))
    if min(starts) < 1 or max(numbers) > GNO_MAX:
        return None
    lasts = compress(numbers, (separators[1:] + b":").translate(_IS_COLON))
    boundaries = [0] * (2 * len(starts))
    boundaries[::2] = starts
    boundaries[1::2] = [last + 1 for last in lasts]
    return boundaries


def _take_entry(reader: _Reader, found: _Found) -> None:
    """Read any entry that a 9.7 server accepts. Raises MalformedGtidSet with the position."""
    uuid = _written_uuid_key(reader.require(_SET_UUID, "a UUID"))
    key = uuid
    while reader.take(_COLON) is not None:
        interval = reader.take_interval()
        if interval is not None:
            found.add(key, interval)
        else:
            key = f"{uuid}:{reader.require_tag('a tag or an interval')}"
    if not reader.at_end():
        reader.require(_COMMAS, "a colon, a comma or the end")


def parse_gtid(text: str) -> tuple[str, int]:
    """Read one GTID, `UUID:number` or `UUID:tag:number`; return the TSID key and the number.

    The rules are those of SET GTID_NEXT, and stricter than for sets: the UUID must have dashes.
    One rule differs: numbers are decimal, as in sets. The variable of a 9.7.4 server reads 010 as
    eight, and accepts 0x10 and +1. Raises MalformedGtid.
    """
    reader = _Reader(text, MalformedGtid)
    reader.take(_LEADING_SPACE)
    key = _written_uuid_key(reader.require(_GTID_UUID, "a UUID"))
    reader.require(_COLON, "a colon")
    gno = reader.take_number(lowest=1)
    if gno is None:
        key = f"{key}:{reader.require_tag('a tag or a number')}"
        reader.require(_COLON, "a colon")
        gno = reader.take_number(lowest=1)
    if gno is None:
        raise reader.error("a number")
    if not reader.at_end():
        raise reader.error("the end")
    return key, gno


def _written_uuid_key(written: str) -> str:
    """Convert a UUID, with or without dashes or braces, to lower case with dashes."""
    return uuid_key(written.strip("{}").replace("-", "").lower())


class _Reader:
    """A text and the current position in it. A token includes the white space after it."""

    __slots__ = ("_malformed", "_text", "position")

    def __init__(self, text: str, malformed: type[MalformedText]) -> None:
        self._text = text
        self.position = 0
        self._malformed = malformed

    def at_end(self) -> bool:
        return self.position == len(self._text)

    def take(self, token: re.Pattern[str]) -> str | None:
        match = token.match(self._text, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match[1]

    def require(self, token: re.Pattern[str], expected: str) -> str:
        taken = self.take(token)
        if taken is None:
            raise self.error(expected)
        return taken

    def require_tag(self, expected: str) -> str:
        position = self.position
        tag = self.require(_TAG, expected)
        if len(tag) > TAG_CHARS_MAX:
            raise self.error(f"a tag of 1 to {TAG_CHARS_MAX} characters", position)
        return tag.lower()

    def take_number(self, *, lowest: int) -> int | None:
        position = self.position
        written = self.take(_NUMBER)
        if written is None:
            return None
        # Leading zeros are allowed; int() itself rejects more than a few thousand digits.
        digits = written.lstrip("0") or "0"
        if len(digits) > _GNO_DIGITS or not lowest <= int(digits) <= GNO_MAX:
            raise self.error(f"a number from {lowest} to {GNO_MAX}", position)
        return int(digits)

    def take_interval(self) -> list[int] | None:
        start = self.take_number(lowest=1)
        if start is None:
            return None
        if self.take(_DASH) is None:
            return [start, start + 1]
        # The server accepts 0 as a last number: `1-0` is another form of an empty interval.
        last = self.take_number(lowest=0)
        if last is None:
            raise self.error("a number")
        return [start, last + 1]

    def error(self, expected: str, position: int | None = None) -> MalformedText:
        place = self.position if position is None else position
        return self._malformed.at(self._text, position=place, expected=expected)


def format_ranges(ranges: Ranges, *, separator: str) -> str:
    """Write a set in MySQL's form, with `separator` between UUIDs."""
    pieces: list[str] = []
    previous = ""
    for key, boundaries in ranges.items():
        uuid = key[:UUID_CHARS]
        if uuid == previous:
            pieces.append(key[UUID_CHARS:])
        elif previous:
            pieces.append(separator + key)
        else:
            pieces.append(key)
        pieces += (":", format_intervals(boundaries))
        previous = uuid
    return "".join(pieces)


def format_intervals(boundaries: Boundaries) -> str:
    """Write intervals in MySQL's form, for example `1-2:5`."""
    if isinstance(boundaries, array):
        kernels = kernels_for(len(boundaries))
        if kernels is not None:
            return kernels.write(boundaries)
    if len(boundaries) <= _PIECE_BOUNDARIES:
        return ":".join(
            [
                f"{start}-{end - 1}" if end - start > 1 else str(start)
                for start, end in pairs(boundaries)
            ]
        )
    return ":".join(
        format_intervals(boundaries[begin : begin + _PIECE_BOUNDARIES])
        for begin in range(0, len(boundaries), _PIECE_BOUNDARIES)
    )


def shorten_ranges(uuid: str, ranges: Ranges, *, ranges_max: int) -> str:
    """Write the first ranges of one UUID, and the number of the others."""
    text = uuid
    left = ranges_max
    hidden_ranges = hidden_gtids = 0
    for key, boundaries in ranges.items():
        shown, rest = boundaries[: 2 * left], boundaries[2 * left :]
        if shown:
            text += f"{key[UUID_CHARS:]}:{format_intervals(shown)}"
        left -= len(shown) // 2
        hidden_ranges += len(rest) // 2
        hidden_gtids += count(rest)
    if hidden_ranges:
        gtids = counted(hidden_gtids, "GTID")
        text += f" … (+{counted(hidden_ranges, 'more range')}, {gtids})"
    return text
