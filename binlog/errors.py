"""What can go wrong when binlogs are read, and whose fault it is.

1. `CorruptBinlog` and its kin: the bytes. They say which file, at which byte, what was expected.
2. `UnsupportedBinlog`: the bytes are valid, but of a kind that this version does not read;
   `UnreadableBinlog`: the machine does not give them.
3. `BinlogMisuse`: the caller.
4. `DumpRefused`, `StatementRefused`: the server. `DumpTimedOut`, `DumpBroken`: the world between.
5. `LimitExceeded`: a limit that the caller set; only the size is wrong.

A divergence between servers is never an exception: it is a finding, and it lives elsewhere.
Every error can be pickled, because workers in other processes raise them too.
"""

from __future__ import annotations

from typing import Any


class BinlogError(Exception):
    """The root of everything this package raises on purpose."""

    # Invariant: an error's fields are exactly the keyword arguments it is made of.
    def __reduce__(self) -> tuple[Any, ...]:
        """Make a copy from the fields, or, where there are none, from the message."""
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(kind: type[BinlogError], args: tuple[Any, ...], fields: dict[str, Any]) -> BinlogError:
    return kind(**fields) if fields else kind(*args)


class CorruptBinlog(BinlogError):
    """The bytes contradict the format. `position` is the byte in `file` where reading failed."""

    def __init__(self, *, file: str, position: int, what: str) -> None:
        super().__init__(f"{file}: at byte {position}: {what}")
        self.file = file
        self.position = position
        self.what = what


class TruncatedBinlog(CorruptBinlog):
    """The input ended inside an event, which starts at `position`; everything before it was sound.

    `in_use` says that the file's own header calls it still open (LOG_EVENT_BINLOG_IN_USE_F): then
    the missing bytes may be on their way, or were lost in a crash. Only the server knows which.
    """

    def __init__(self, *, file: str, position: int, what: str, in_use: bool) -> None:
        super().__init__(file=file, position=position, what=what)
        self.in_use = in_use


class UnsupportedBinlog(BinlogError):
    """A file that is recognised and refused: encrypted, of MariaDB, or older than MySQL 5.0."""

    def __init__(self, *, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what


class UnreadableBinlog(BinlogError):
    """A file that is there and cannot be read: its permissions, its disk, gone meanwhile."""

    def __init__(self, *, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what


class BinlogMisuse(BinlogError):
    """The caller asked for something that cannot be, such as a position inside the magic number."""


class DumpRefused(BinlogError):
    """The server answered the dump request, or broke it off, with an error of its own.

    `code` is the server's error number (1236 for most) and `text` its words, unchanged, because
    they are what tells a purged file from a lost tail.
    """

    def __init__(self, *, code: int, text: str) -> None:
        super().__init__(f"the server refused the binlog dump: error {code}: {text}")
        self.code = code
        self.text = text


class StatementRefused(BinlogError):
    """The server answered a statement about its logs with an error of its own, in its own words."""

    def __init__(self, *, code: int, text: str) -> None:
        super().__init__(f"the server answered with error {code}: {text}")
        self.code = code
        self.text = text


class UnexpectedAnswer(BinlogError):
    """The server answered a question as no MySQL server does: other columns, or no rows."""

    def __init__(self, *, what: str, found: str) -> None:
        super().__init__(f"the server's answer about {what} cannot be read ({found})")
        self.what = what
        self.found = found


class DumpTimedOut(BinlogError):
    """The answer was not complete within the time the caller gave."""

    def __init__(self, *, timeout_seconds_max: float) -> None:
        super().__init__(f"the binlog dump was not complete after {timeout_seconds_max:g} s")
        self.timeout_seconds_max = timeout_seconds_max


class DumpBroken(BinlogError):
    """The connection died, or never came to be, before the answer was complete."""


class LimitExceeded(BinlogError):
    """`what` has more bytes than a bound allows; `name` is the argument that sets the bound."""

    def __init__(self, *, name: str, limit: int, what: str = "the answer") -> None:
        super().__init__(f"{what} is larger than the limit of {limit:,} bytes")
        self.name = name
        self.limit = limit
        self.what = what
