"""MySQL's binary forms of GTID sets: the body of PREVIOUS_GTIDS, the set in COM_BINLOG_DUMP_GTID.

Header, 8 bytes: version 0 is a 7-byte TSID count and 00; versions 1 and 2 are the version, a 6-byte
TSID count, and the version again. Integers are little-endian, ends exclusive.

version 0   per TSID: UUID (16), interval count (8), start and end (8 each) per interval. No tags.
version 1   the same, with the tag between UUID and interval count: its length as a variable-length
            integer (so one byte, twice the length), then its characters. Both were read from files
            that a 9.7.4 server wrote; once it has seen a tag it keeps writing version 1.
version 2   tags once, in a table; variable-length differences. As described and decoded in MySQL's
            libs/mysql/gtids: no server writes it yet, and 9.7.4 still refuses it in a dump
            request, so this file only reads it.

What a 9.7.4 server takes is taken: any order of TSIDs, one TSID twice, a tag in capitals. What it
refuses is refused: intervals out of order or touching, numbers out of range, bytes left over.
Memory is bounded by the input: every count is checked against the bytes that are left.
"""

from __future__ import annotations

import sys
from array import array
from struct import pack

from gtid.boundaries import Boundaries, is_canonical, settled
from gtid.errors import MalformedBinary, MalformedTag, UnknownFormatVersion
from gtid.gtid_set import GtidSet, ranges_of, set_of_ranges
from gtid.text import GNO_END, GNO_MAX, united
from gtid.tsid import UUID_CHARS, canonical_tag, uuid_key

_HEADER_BYTES = 8
_UUID_BYTES = 16
_INTERVAL_BYTES = 16
_NUMBER_BYTES = 8
_BYTE_BITS = 8


def encode(gtid_set: GtidSet) -> bytes:
    """Write version 0 for a set without tags, else version 1: as servers do."""
    ranges = ranges_of(gtid_set)
    tagged = any(len(key) > UUID_CHARS for key in ranges)
    if tagged:
        pieces = [b"\1", len(ranges).to_bytes(6, "little"), b"\1"]
    else:
        pieces = [len(ranges).to_bytes(_HEADER_BYTES, "little")]
    for key, boundaries in ranges.items():
        pieces.append(bytes.fromhex(key[:UUID_CHARS].replace("-", "")))
        if tagged:
            tag = key[UUID_CHARS:].removeprefix(":").encode("ascii")
            pieces += (bytes((len(tag) << 1,)), tag)
        pieces += (pack("<Q", len(boundaries) // 2), _bytes_of(boundaries))
    return b"".join(pieces)


def decode(encoded: bytes) -> GtidSet:
    """Read version 0, 1 or 2. Raises MalformedBinary; for a later version UnknownFormatVersion."""
    reader = _Reader(encoded)
    header = reader.take(_HEADER_BYTES, "a header of 8 bytes")
    version = header[-1]
    if version not in _DECODERS:
        raise UnknownFormatVersion(version)
    if version and header[0] != version:
        raise MalformedBinary(f"format version {version} once more", 0)
    tsid_count = int.from_bytes(header[1:7] if version else header[:7], "little")
    parts: dict[str, list[Boundaries]] = {}
    decoder, tsid_bytes_min = _DECODERS[version]
    reader.check_count(tsid_count, bytes_each=tsid_bytes_min, what="TSIDs")
    decoder(reader, tsid_count, parts)
    reader.check_end()
    return set_of_ranges(united(parts))


def _bytes_of(boundaries: Boundaries) -> bytes:
    if isinstance(boundaries, tuple):
        return pack(f"<{len(boundaries)}Q", *boundaries)
    return _little_endian(boundaries).tobytes()


def _little_endian(numbers: array[int]) -> array[int]:
    """Turn the bytes of each number from the machine's order to the format's, or back."""
    if sys.byteorder == "little":
        return numbers
    turned = numbers[:]
    turned.byteswap()
    return turned


class _Reader:
    """A place in some bytes."""

    __slots__ = ("_encoded", "_position")

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._position = 0

    def take(self, byte_count: int, expected: str) -> bytes:
        begin = self._position
        if byte_count > len(self._encoded) - begin:
            raise MalformedBinary(expected, begin)
        self._position = begin + byte_count
        return self._encoded[begin : self._position]

    def take_number(self) -> int:
        return int.from_bytes(self.take(_NUMBER_BYTES, "a number of 8 bytes"), "little")

    def take_varint(self) -> int:
        """Read an integer of 1 to 9 bytes: as many trailing ones in the first as bytes follow."""
        [head] = self.take(1, "a variable-length integer")
        more = (~head & (head + 1)).bit_length() - 1  # the position of the lowest zero
        rest = int.from_bytes(self.take(more, "the rest of an integer"), "little")
        # Of 9 bytes the first holds no bit of the value, nor of 8.
        own_bits = max(0, _BYTE_BITS - 1 - more)
        return head >> (more + 1) | rest << own_bits

    def take_uuid(self) -> str:
        return uuid_key(self.take(_UUID_BYTES, "a UUID of 16 bytes").hex())

    def take_tag(self) -> str:
        """Read a tag; give it with the colon that a key has before it, or nothing."""
        begin = self._position
        length = self.take_varint()
        written = self.take(length, f"a tag of {length} bytes")
        if not written:
            return ""
        try:
            return ":" + canonical_tag(written.decode("latin-1"))
        except MalformedTag as error:
            raise MalformedBinary("a tag of 1 to 32 letters, digits and _", begin) from error

    def take_boundaries(self) -> Boundaries:
        """Read an interval count and as many intervals of two 8-byte numbers."""
        interval_count = self.take_number()
        self.check_count(interval_count, bytes_each=_INTERVAL_BYTES, what="intervals")
        begin = self._position
        self._position += interval_count * _INTERVAL_BYTES
        numbers: array[int] = array("q")
        numbers.frombytes(memoryview(self._encoded)[begin : self._position])
        boundaries = _little_endian(numbers)
        if not boundaries or (boundaries[0] >= 1 and is_canonical(boundaries)):
            return settled(boundaries)
        if min(boundaries) < 1:  # or above GNO_END, which is negative here
            raise MalformedBinary(f"numbers from 1 to {GNO_MAX}", begin)
        raise MalformedBinary("intervals in order that do not touch", begin)

    def take_differences(self) -> Boundaries:
        """Read a boundary count and as many differences; an odd count leaves out a first 1."""
        count = self.take_varint()
        self.check_count(count, bytes_each=1, what="boundaries")
        boundaries = [1] if count % 2 else []
        lowest = 2
        for _ in range(count):
            begin = self._position
            boundary = lowest + self.take_varint()
            if boundary > GNO_END:
                raise MalformedBinary(f"numbers from 1 to {GNO_MAX}", begin)
            boundaries.append(boundary)
            lowest = boundary + 1
        return settled(boundaries)

    def check_count(self, count: int, *, bytes_each: int, what: str) -> None:
        room = (len(self._encoded) - self._position) // bytes_each
        if count > room:
            raise MalformedBinary(f"{count} {what}, with room for {room},", self._position)

    def check_end(self) -> None:
        if self._position != len(self._encoded):
            raise MalformedBinary("the end", self._position)

    def error(self, expected: str) -> MalformedBinary:
        return MalformedBinary(expected, self._position)


def _decode_untagged(reader: _Reader, tsid_count: int, parts: dict[str, list[Boundaries]]) -> None:
    for _ in range(tsid_count):
        key = reader.take_uuid()
        parts.setdefault(key, []).append(reader.take_boundaries())


def _decode_tagged(reader: _Reader, tsid_count: int, parts: dict[str, list[Boundaries]]) -> None:
    for _ in range(tsid_count):
        key = reader.take_uuid() + reader.take_tag()
        parts.setdefault(key, []).append(reader.take_boundaries())


def _decode_compact(reader: _Reader, tsid_count: int, parts: dict[str, list[Boundaries]]) -> None:
    if tsid_count == 0:  # then the table of tags is left out, too
        return
    tag_count = reader.take_varint()
    reader.check_count(tag_count, bytes_each=1, what="tags")
    tags = [reader.take_tag() for _ in range(tag_count)]
    uuid = ""
    for _ in range(tsid_count):
        code = reader.take_varint()  # the lowest bit: a UUID follows; the others: which tag
        if code >> 1 >= tag_count:
            raise reader.error(f"one of {tag_count} tags before")
        if code % 2:
            uuid = reader.take_uuid()
        elif not uuid:
            raise reader.error("a UUID before")
        parts.setdefault(uuid + tags[code >> 1], []).append(reader.take_differences())


# The decoder of each version, and the fewest bytes that one TSID takes in it.
_DECODERS = {
    0: (_decode_untagged, _UUID_BYTES + _NUMBER_BYTES),
    1: (_decode_tagged, _UUID_BYTES + 1 + _NUMBER_BYTES),
    2: (_decode_compact, 2),
}
