"""MySQL's binary encodings of GTID sets, as in PREVIOUS_GTIDS events and COM_BINLOG_DUMP_GTID.

The header has 8 bytes. In version 0 it is a 7-byte TSID count and 00. In versions 1 and 2 it is the
version, a 6-byte TSID count, and the version again. Integers are little-endian, ends exclusive.

version 0   per TSID: UUID (16), interval count (8), start and end (8 each) per interval. No tags.
version 1   the same, with the tag between UUID and interval count: its length as a variable-length
            integer (so one byte, twice the length), then its characters. Versions 0 and 1 were
            verified with files that a 9.7.4 server wrote. Once that server has stored a tag, it
            continues to write version 1.
version 2   each tag once, in a table; boundaries as variable-length differences. MySQL's
            libs/mysql/gtids describes and decodes this version. No server writes it yet, and 9.7.4
            rejects it in a dump request, so this file only reads it.

This file accepts what a 9.7.4 server accepts: any order of TSIDs, a repeated TSID, a tag in
capitals. It rejects what the server rejects: intervals that are out of order or touch, numbers out
of range, trailing bytes. The input bounds the memory: every count is checked against the bytes that
remain.
"""

from __future__ import annotations

import sys
from array import array
from struct import pack

from gtid.boundaries import is_canonical
from gtid.boundary_sequence import GNO_END, GNO_MAX, Boundaries, settled
from gtid.errors import MalformedBinary, MalformedTag, UnknownFormatVersion
from gtid.gtid_set import GtidSet, ranges_of, set_of_ranges
from gtid.gtid_text import united
from gtid.tsid import UUID_CHARS, canonical_tag, uuid_key

_HEADER_BYTES = 8
_UUID_BYTES = 16
_INTERVAL_BYTES = 16
_NUMBER_BYTES = 8
_BYTE_BITS = 8


def encode(gtid_set: GtidSet) -> bytes:
    """Encode a set without tags as version 0 and any other as version 1, as servers do."""
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
    """Decode version 0, 1 or 2. Raises MalformedBinary, or UnknownFormatVersion if later."""
    reader = _Reader(encoded)
    header = reader.take(_HEADER_BYTES, "a header of 8 bytes")
    version = header[-1]
    if version not in _DECODERS:
        raise UnknownFormatVersion(version)
    if version and header[0] != version:
        raise MalformedBinary(f"format version {version} again", 0)
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
    """Convert each number from the machine's byte order to little-endian, or back."""
    if sys.byteorder == "little":
        return numbers
    turned = numbers[:]
    turned.byteswap()
    return turned


class _Reader:
    """Encoded bytes and the current position in them."""

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
        """Read an integer of 1 to 9 bytes: the trailing ones of the first count the others."""
        [head] = self.take(1, "a variable-length integer")
        more = (~head & (head + 1)).bit_length() - 1  # the position of the lowest zero
        rest = int.from_bytes(self.take(more, "the rest of an integer"), "little")
        # In an integer of 8 or 9 bytes, the first byte holds no bit of the value.
        own_bits = max(0, _BYTE_BITS - 1 - more)
        return head >> (more + 1) | rest << own_bits

    def take_uuid(self) -> str:
        return uuid_key(self.take(_UUID_BYTES, "a UUID of 16 bytes").hex())

    def take_tag(self) -> str:
        """Read a tag; return it with a colon before it, as in a key, or "" if it is empty."""
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
        """Read an interval count and that many intervals, each of two 8-byte numbers."""
        interval_count = self.take_number()
        self.check_count(interval_count, bytes_each=_INTERVAL_BYTES, what="intervals")
        begin = self._position
        self._position += interval_count * _INTERVAL_BYTES
        numbers: array[int] = array("q")
        numbers.frombytes(memoryview(self._encoded)[begin : self._position])
        boundaries = _little_endian(numbers)
        if not boundaries or (boundaries[0] >= 1 and is_canonical(boundaries)):
            return settled(boundaries)
        if min(boundaries) < 1:  # also a number above GNO_END: it is negative in a signed array
            raise MalformedBinary(f"numbers from 1 to {GNO_MAX}", begin)
        raise MalformedBinary("intervals in order that do not touch", begin)

    def take_differences(self) -> Boundaries:
        """Read a boundary count and that many differences; an odd count omits a first 1."""
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
            raise MalformedBinary(f"at most {room} {what}, not {count},", self._position)

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
    if tsid_count == 0:  # the encoding then omits the table of tags, too
        return
    tag_count = reader.take_varint()
    reader.check_count(tag_count, bytes_each=1, what="tags")
    tags = [reader.take_tag() for _ in range(tag_count)]
    uuid = ""
    for _ in range(tsid_count):
        code = reader.take_varint()  # lowest bit: a UUID follows; the other bits: index of the tag
        if code >> 1 >= tag_count:
            raise reader.error(f"the index of one of {tag_count} tags")
        if code % 2:
            uuid = reader.take_uuid()
        elif not uuid:
            raise reader.error("a UUID before")
        parts.setdefault(uuid + tags[code >> 1], []).append(reader.take_differences())


# The decoder of each version, and the smallest number of bytes that one TSID takes in it.
_DECODERS = {
    0: (_decode_untagged, _UUID_BYTES + _NUMBER_BYTES),
    1: (_decode_tagged, _UUID_BYTES + 1 + _NUMBER_BYTES),
    2: (_decode_compact, 2),
}
