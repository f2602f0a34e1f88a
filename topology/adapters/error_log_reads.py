"""Reads lines of a server's error log around some times, and when a replication thread failed.

1. performance_schema.error_log exists since 8.0.22. It holds the last 5 MB of the log since the
   server started, and what it could read of the file before that. Earlier versions write a file
   only: its path is all that a client can read.
2. Lines are bounded in length and number; errors of replication and then the nearest lines are
   kept. A password that the server generated for an account is removed.
3. A thread's error has a time in the server's own time zone, without one. Only the server can
   convert it.

Sources: reference manual, "The error_log Table"; sql/rpl_reporting.cc, update_timestamp(). Seen on
9.7.4 and 5.6.24.
"""

import posixpath
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from binlog.log_times import EPOCH, MICROSECONDS
from binlog.quoting import quote_string
from topology.adapters.answered_rows import NotShown, Row, rows_of, text_of
from topology.adapters.connection import Connection
from topology.readings.dialect import Dialect
from topology.readings.hidden_passwords import without_secrets
from topology.tracing.trace_values import ErrorLogExcerpt, ErrorLogLine

LINES_MAX: Final = 20  # for each time
LINE_CHARACTERS_MAX: Final = 600
_FILE: Final = "SELECT @@GLOBAL.log_error AS file, @@GLOBAL.datadir AS folder"
_LINES: Final = (
    "SELECT UNIX_TIMESTAMP(LOGGED) AS logged, PRIO AS priority, ERROR_CODE AS code,"
    " SUBSYSTEM AS subsystem, LEFT(DATA, {characters}) AS data FROM performance_schema.error_log"
    " WHERE {window} ORDER BY PRIO = 'Error' AND SUBSYSTEM = 'Repl' DESC,"
    " ABS(UNIX_TIMESTAMP(LOGGED) - {moment}), LOGGED LIMIT {lines}"
)
_COUNT: Final = "SELECT COUNT(*) AS lines_found FROM performance_schema.error_log WHERE {windows}"
_BEGINS: Final = "SELECT UNIX_TIMESTAMP(MIN(LOGGED)) AS begins FROM performance_schema.error_log"
_WINDOW: Final = "(LOGGED BETWEEN FROM_UNIXTIME({begin}) AND FROM_UNIXTIME({end}))"
_FAILED_AT: Final = (
    "SELECT CONVERT_TZ(STR_TO_DATE({text}, '%y%m%d %H:%i:%s'), 'SYSTEM', '+00:00') AS failed_at"
)
# ER_INIT_GENERATING_TEMP_PASSWORD_FOR_ROOT, share/messages_to_error_log.txt.
_GENERATED: Final = re.compile(r"(password is generated for [^:]*:).*", re.IGNORECASE | re.DOTALL)
# The server has no file: it writes to its standard error.
STDERR: Final = "stderr"


def failed_at_of(connection: Connection, text: str) -> datetime | None:
    """Return the time of a thread's error (UTC), by the server's clock; None without one."""
    if not text.strip():
        return None
    [row] = rows_of(connection, _FAILED_AT.format(text=quote_string(text)), "failed_at")
    at = row["failed_at"]
    if not isinstance(at, datetime):
        raise TypeError(f"the server does not understand its own time {text!r}")
    return at.replace(tzinfo=UTC)


def error_log_file(connection: Connection) -> str:
    """Return the path of the error log on the server's machine, or `stderr`."""
    [row] = rows_of(connection, _FILE, "file")
    file = text_of(row["file"])
    if file in ("", STDERR):
        return STDERR
    return posixpath.normpath(posixpath.join(text_of(row["folder"]), file))


def error_log_around(
    connection: Connection,
    dialect: Dialect,
    excerpt: ErrorLogExcerpt,
    moments: Sequence[datetime],
    *,
    window_seconds: int,
) -> ErrorLogExcerpt:
    """Return an excerpt with the lines around some times of the server's own clock.

    Raises:
        NotShown: this version has no table of it.
    """
    if not dialect.has_error_log_table:
        raise NotShown("performance_schema.error_log exists since 8.0.22")
    spans = [_Span.around(each, window_seconds) for each in moments]
    found: dict[tuple[object, ...], ErrorLogLine] = {}
    for span in spans:
        statement = _LINES.format(
            characters=LINE_CHARACTERS_MAX + 1,
            window=span.condition,
            moment=span.middle,
            lines=LINES_MAX,
        )
        for row in rows_of(connection, statement, "logged"):
            line = _line(row)
            found[(line.at, line.code, line.text)] = line
    windows = " OR ".join(span.condition for span in spans)
    [counted] = rows_of(connection, _COUNT.format(windows=windows), "lines_found")
    [oldest] = rows_of(connection, _BEGINS, "begins")
    return ErrorLogExcerpt(
        excerpt.server,
        excerpt.file,
        tuple(moments),
        window_seconds,
        tuple(sorted(found.values(), key=lambda line: line.at)),
        int(counted["lines_found"]),
        None if oldest["begins"] is None else _moment(oldest["begins"]),
    )


class _Span:
    """A time, and the same distance before and after it, as numbers of SQL."""

    def __init__(self, begin: str, middle: str, end: str) -> None:
        self.middle = middle
        self.condition = _WINDOW.format(begin=begin, end=end)

    @classmethod
    def around(cls, moment: datetime, window_seconds: int) -> "_Span":
        middle = Decimal((moment - EPOCH) // timedelta(microseconds=1)) / MICROSECONDS
        return cls(*(f"{each:.6f}" for each in _ends(middle, window_seconds)))


def _ends(middle: Decimal, window_seconds: int) -> tuple[Decimal, Decimal, Decimal]:
    return max(Decimal(0), middle - window_seconds), middle, middle + window_seconds


def _line(row: Row) -> ErrorLogLine:
    text = _GENERATED.sub(r"\1 (hidden)", without_secrets(text_of(row["data"])))
    line = " ".join(text.split())
    if len(line) > LINE_CHARACTERS_MAX:
        line = f"{line[: LINE_CHARACTERS_MAX - 1]}…"
    return ErrorLogLine(
        _moment(row["logged"]),
        text_of(row["priority"]),
        text_of(row["code"]),
        text_of(row["subsystem"]),
        line,
    )


def _moment(seconds: object) -> datetime:
    return EPOCH + timedelta(microseconds=int(Decimal(str(seconds)) * MICROSECONDS))
