"""Reads MySQL's integers and strings from one event body, and never past its end.

A read beyond the end raises `MalformedBody` with its offset; the decoder adds the file and the
position. There are two kinds of variable-length integers. `net_integer` is that of the client
protocol (net_field_length_ll, mysys/pack.cc). `varlen_*` is that of the serialization library of
8.3 and later ("Variable-length integers", libs/mysql/serialization/readme.md).
"""

# net_field_length_ll: a first byte below 251 is the number itself. 251 means NULL and 255 an error;
# neither is valid in a binlog event.
_NET_NULL = 251
_NET_INTEGER_BYTES = {252: 2, 253: 3, 254: 8}


class MalformedBody(Exception):
    """The body contradicts its type's layout. `offset` counts from the body's first byte."""

    def __init__(self, *, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what


class Cursor:
    """A body and the current position in it. `at` only increases, up to `end`."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)

    @property
    def remaining(self) -> int:
        """The number of bytes that are not read yet."""
        return self.end - self.at

    def fail(self, what: str) -> MalformedBody:
        """Return an error with the current position."""
        return MalformedBody(offset=self.at, what=what)

    def take(self, count: int, what: str) -> bytes:
        """Read the next `count` bytes; `what` describes them in the error message."""
        if count > self.remaining:
            raise self.fail(f"expected {what} of {count} bytes, but {self.remaining} are left")
        start = self.at
        self.at += count
        return self.data[start : self.at]

    def integer(self, count: int, what: str) -> int:
        """Read a little-endian unsigned integer of `count` bytes."""
        return int.from_bytes(self.take(count, what), "little")

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        return self.take(self.remaining, "the rest")

    def text(self, count: int, what: str) -> str:
        """Read a name. Names in binlogs are UTF-8 (my_charset system_charset_info)."""
        return self.take(count, what).decode("utf-8", errors="backslashreplace")

    def net_integer(self, what: str) -> int:
        """Read a length-encoded integer of the client protocol."""
        start = self.at
        first = self.integer(1, what)
        if first < _NET_NULL:
            return first
        if first not in _NET_INTEGER_BYTES:
            self.at = start
            raise self.fail(f"expected {what} as a length-encoded integer, found byte {first}")
        return self.integer(_NET_INTEGER_BYTES[first], what)

    def varlen_unsigned(self, what: str) -> int:
        """Read a serialization integer: n trailing ones in the first byte mean n more bytes."""
        first = self.integer(1, what)
        more = 0
        while first >> more & 1:
            more += 1
        if more == 0:
            return first >> 1
        high = self.integer(more, what)
        # Eight more bytes contain the whole number; otherwise the first byte has its lowest bits.
        return high if more == 8 else high << (7 - more) | first >> (more + 1)  # noqa: PLR2004

    def varlen_signed(self, what: str) -> int:
        """Read a signed serialization integer: lowest bit the sign; a negative is complemented."""
        coded = self.varlen_unsigned(what)
        return ~(coded >> 1) if coded & 1 else coded >> 1
