"""The errors of reading binlogs. The class shows where the cause is.

1. `CorruptBinlog` and its subclasses: the bytes. The message has the file, the byte, and what was
   expected.
2. `UnsupportedBinlog`: the bytes are valid, but of a kind that this version does not read.
   `UnreadableBinlog`: the operating system cannot read them.
3. `BinlogMisuse`: the caller. `ReusedGtid`: what the caller selected is not one transaction.
4. `DumpRefused`, `StatementRefused`: the server. `UnsupportedServer`: its kind or version.
   `DumpTimedOut`, `DumpBroken`: the network, or a server that is down.
5. `LimitExceeded`: a limit that the caller set; the data may be valid.

A divergence between servers is never an exception: it is a finding, defined in another package.
Every error can be pickled, because worker processes raise them, too.
"""

from __future__ import annotations

from typing import Any


class BinlogError(Exception):
    """The root of all errors of this package."""

    # Invariant: an error's fields are exactly the keyword arguments of its constructor.
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields or, without fields, the message."""
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
    """The input ended inside the event that starts at `position`; everything before it is valid.

    `in_use`: the file's header marks it as still open (LOG_EVENT_BINLOG_IN_USE_F). Then the server
    may still be writing the missing bytes, or a crash lost them. The file does not show which.
    """

    def __init__(self, *, file: str, position: int, what: str, in_use: bool) -> None:
        super().__init__(file=file, position=position, what=what)
        self.in_use = in_use


class UnsupportedBinlog(BinlogError):
    """A recognized file that is rejected: encrypted, of MariaDB, or older than MySQL 5.0."""

    def __init__(self, *, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what


class UnreadableBinlog(BinlogError):
    """A file that exists and cannot be read: permissions, a disk error, or deleted since."""

    def __init__(self, *, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}")
        self.file = file
        self.what = what


class BinlogMisuse(BinlogError):
    """The caller requested something impossible, such as a position in the magic number."""


class ReusedGtid(BinlogError):
    """Two files have two transactions under one GTID, so the GTID does not select one of them.

    RESET BINARY LOGS AND GTIDS, a crash that lost the end of a log, or a restored backup lets a
    server use GTIDs again.
    """

    def __init__(self, *, gtid: str, files: tuple[str, str]) -> None:
        super().__init__(
            f"{files[0]} and {files[1]} have two different transactions with the GTID {gtid}: a"
            " server used it again (RESET BINARY LOGS AND GTIDS, a crash, a restored backup)."
            " Select the files of one history"
        )
        self.gtid = gtid
        self.files = files


class DumpRefused(BinlogError):
    """The server rejected or ended the dump with an error.

    `code` is the server's error number (usually 1236). `text` is its message, unchanged, because
    only the message distinguishes a purged file from a lost end of a log.
    """

    def __init__(self, *, code: int, text: str) -> None:
        super().__init__(f"the server refused the binlog dump: error {code}: {text}")
        self.code = code
        self.text = text


class StatementRefused(BinlogError):
    """The server rejected a statement about its logs; `text` is its message, unchanged."""

    def __init__(self, *, code: int, text: str) -> None:
        super().__init__(f"the server answered with error {code}: {text}")
        self.code = code
        self.text = text


class UnsupportedServer(BinlogError):
    """A server whose logs this version does not read: of MariaDB, for example, or before 5.6."""

    def __init__(self, *, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name
        self.what = what


class UnexpectedAnswer(BinlogError):
    """The server's response is not that of a MySQL server: other columns, or no rows."""

    def __init__(self, *, what: str, found: str) -> None:
        super().__init__(f"the server's answer about {what} cannot be read ({found})")
        self.what = what
        self.found = found


class DumpTimedOut(BinlogError):
    """The response was not complete within the caller's timeout."""

    def __init__(self, *, timeout_seconds_max: float) -> None:
        super().__init__(f"the binlog dump was not complete after {timeout_seconds_max:g} s")
        self.timeout_seconds_max = timeout_seconds_max


class DumpBroken(BinlogError):
    """The connection failed, or was lost before the response was complete."""


class LimitExceeded(BinlogError):
    """`what` has more bytes than a limit allows; `name` is the argument that sets the limit."""

    def __init__(self, *, name: str, limit: int, what: str = "the answer") -> None:
        super().__init__(f"{what} is larger than the limit of {limit:,} bytes")
        self.name = name
        self.limit = limit
        self.what = what
