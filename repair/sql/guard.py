"""A condition that a script must find true to continue, and the message if it is false.

A condition that is NULL is false. This module has the only SQL for that: steps and replayed
transactions both use it.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from binlog.quoting import quote_string

# Error 1231 shows 200 characters of the refused value (share/errmsg-utf8.txt, seen on 5.6.24 and
# 9.7.4). Error 1772 shows as many on 5.6, and only about 25 on 9.7.
GUARD_CHARACTERS_MAX = 200
# The part of them that the server itself may add to a message.
DETAIL_CHARACTERS_MAX = 110
_CUT = "..."

# Some statements cannot be prepared from a text (CREATE PROCEDURE), or their bytes must stay
# unchanged. They are written as they are. In a read-only session the server refuses everything that
# a log can hold, including DDL and GRANT: error 1792 (seen on 5.6.24 and 9.7.4). A session that
# reconnected has no @go. The opposite setting undoes what an earlier script left in the session
# (`source`).
ONLY_READ_UNLESS_GO = (
    "SET @access = CONCAT('SET SESSION TRANSACTION READ ', IF(@go, 'WRITE', 'ONLY'));",
    "PREPARE access FROM @access;",
    "EXECUTE access;",
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must be true for the script to continue, and the message if it is not."""

    condition: str  # an SQL expression
    message: str
    detail: str = ""  # an SQL expression, whose text is appended to the message
    # Statements without effect that run before the condition. If one fails, the script ends with
    # the server's own error; with --force the condition ends it.
    tries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limit = GUARD_CHARACTERS_MAX - (DETAIL_CHARACTERS_MAX if self.detail else 0)
        if len(self.message) > limit:
            object.__setattr__(self, "message", self.message[: limit - len(_CUT)] + _CUT)

    def statements(self) -> tuple[str, ...]:
        """Return the statements that end the script if the condition is false.

        They set `completion_type` to itself, or to the message, which the server refuses with error
        1231. The client stops there. If it does not stop at errors (--force, `source`), @go is 0
        and no later statement of the script changes anything.
        """
        message = quote_string(self.message)
        if self.detail:
            message = f"CONCAT({message}, IFNULL(LEFT({self.detail}, {DETAIL_CHARACTERS_MAX}), ''))"
        return (
            *self.tries,
            f"SET @go = @go AND IFNULL(({self.condition}), FALSE);",
            (f"SET SESSION completion_type = IF(@go, @@SESSION.completion_type, {message});"),
        )


# A clock minus an uptime in whole seconds: two readings of one start time may differ by a second.
_MEASURED: Final = re.compile(r"(UTC_TIMESTAMP\(\) - INTERVAL \(.*?\) SECOND <= )'[-0-9: ]{19}'")


def started_by(uptime_question: str, latest: datetime) -> str:
    """Return the condition that a server was started at `latest` (UTC, by its clock) or earlier."""
    start = f"UTC_TIMESTAMP() - INTERVAL ({uptime_question}) SECOND"
    return f"{start} <= {quote_string(f'{latest:%Y-%m-%d %H:%M:%S}')}"


def without_measured(text: str) -> str:
    """Return a condition or script without the values in which two readings of one state differ."""
    return _MEASURED.sub(r"\1?", text)


# In these character sets the second byte of a character may be a backtick or a backslash. A client
# that reads a script in one of them splits it differently than it was written, regardless of SET
# NAMES. The client's initial value is kept for a second run in one session.
KEEP_CLIENT_CHARSET = "SET @client = IFNULL(@client, @@SESSION.character_set_client);"
CLIENT_READS_UTF8 = Guard(
    "@client NOT IN ('big5', 'cp932', 'gb18030', 'gbk', 'sjis')",
    "this client reads the script in another character set than UTF-8: run it with"
    " --default-character-set=utf8mb4",
)
# Older clients remove comments from statements unless --comments is set. Audits compare the text of
# statements.
CLIENT_KEEPS_COMMENTS = Guard(
    "SELECT info LIKE CONCAT('%/', '* kept *', '/%') FROM information_schema.processlist"
    " WHERE id = CONNECTION_ID() /* kept */",
    "this client removes comments from statements, and each audit would report E4: run it with"
    " --comments; nothing was changed",
)
# For a script whose server is not known when it is written; super_read_only exists since 5.7.8.
ACCEPTS_WRITES = Guard(
    "TRUE /*!50708 AND NOT @@GLOBAL.super_read_only */",
    "super_read_only is ON here and refuses what this script writes; set it to OFF, keep read_only"
    " ON, and run this again; nothing was changed",
)
