"""All errors in GTIDs and GTID sets, and in the text or bytes that encode them.

1. The class shows the source of the error: text, bytes, a single value, or the size.
2. An error in text or bytes states what was expected, and at which position. Positions count from
   0.
3. Every error can be pickled, because worker processes raise them, too.
"""

from __future__ import annotations

from typing import Self

_SHOWN_BEFORE = 12
_SHOWN_AFTER = 20


class GtidError(Exception):
    """The root of all errors of this package."""


class MalformedText(GtidError):
    """Text that does not follow MySQL's grammar.

    `text_position` is the 0-based offset of the character at which `expected` was required.
    """

    def __init__(self, expected: str, text_position: int, excerpt: str) -> None:
        super().__init__(expected, text_position, excerpt)
        self.expected = expected
        self.text_position = text_position
        self.excerpt = excerpt

    def __str__(self) -> str:
        return f"expected {self.expected} at character {self.text_position}: {self.excerpt}"

    @classmethod
    def at(cls, text: str, *, position: int, expected: str) -> Self:
        """Make the error with the text around `position` as its excerpt."""
        begin = max(0, position - _SHOWN_BEFORE)
        end = position + _SHOWN_AFTER
        before = ("..." if begin else "") + _printable(text[begin:position])
        after = _printable(text[position:end]) + ("..." if end < len(text) else "")
        return cls(expected, position, f"{before}[HERE]{after}")


class MalformedGtidSet(MalformedText):
    """Text that is not a GTID set (error 1772 on a server)."""


class MalformedGtid(MalformedText):
    """Text that is not a single GTID (error 1774 on a server)."""


class MalformedTag(GtidError):
    """A tag that is not 1 to 32 of `a-z`, `0-9`, `_`, starting with a letter or `_`."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag

    def __str__(self) -> str:
        shown = _printable(self.tag[:40])
        return (
            f"expected a tag of 1 to 32 letters, digits and _, not starting with a digit: {shown}"
        )


class GnoOutOfRange(GtidError):
    """A transaction number outside 1 to 2**63 - 2."""

    def __init__(self, gno: int) -> None:
        super().__init__(gno)
        self.gno = gno

    def __str__(self) -> str:
        return f"expected a number from 1 to 9223372036854775806, not {self.gno}"


class MalformedInterval(GtidError):
    """An interval `[start, end)` that ends before it starts."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start, end)
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return f"expected an interval that starts before its end, not [{self.start}, {self.end})"


class MalformedBinary(GtidError):
    """Bytes that do not encode a GTID set (error 1773 on a server).

    `byte_position` is the 0-based offset at which `expected` was required.
    """

    def __init__(self, expected: str, byte_position: int) -> None:
        super().__init__(expected, byte_position)
        self.expected = expected
        self.byte_position = byte_position

    def __str__(self) -> str:
        return f"expected {self.expected} at byte {self.byte_position}"


class UnknownFormatVersion(MalformedBinary):
    """An unsupported version of the encoding; a newer server may have written it."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format version 0, 1 or 2, not {version},", 7)
        self.args = (version,)
        self.version = version


class GtidSetTooLarge(GtidError):
    """A set larger than the caller's limit. `actual` and `limit` are in units of `what`."""

    def __init__(self, what: str, actual: int, limit: int) -> None:
        super().__init__(what, actual, limit)
        self.what = what
        self.actual = actual
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.actual} {self.what}, more than the limit of {self.limit}"


def _printable(text: str) -> str:
    """Return `text` as one line of ASCII, because errors are printed to logs and terminals."""
    return text.encode("unicode_escape").decode("ascii")
