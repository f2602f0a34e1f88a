"""A condition that a script must find true to go on, and the message where it is not.

A condition that is NULL does not hold. This is the only SQL here: steps and replayed transactions
are both made of it.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from topology.quoting import quote_string

# The text of error 1231 shows 200 characters of the refused value (share/errmsg-utf8.txt, seen on
# 5.6.24 and 9.7.4). Error 1772 shows as many on 5.6, and only about 25 on 9.7.
GUARD_CHARACTERS_MAX = 200
# Of them, what the server itself adds to a message.
DETAIL_CHARACTERS_MAX = 110
_CUT = "..."

# A statement that cannot be prepared from a text (CREATE PROCEDURE), or whose bytes must stay as
# they are, is written as it is. In a session that only reads the server refuses whatever a log can
# hold, DDL and GRANT too: error 1792 (seen on 5.6.24 and 9.7.4). A session that reconnected has no
# @go. The other way round it undoes what an earlier script left in the session (`source`).
ONLY_READ_UNLESS_GO = (
    "SET @access = CONCAT('SET SESSION TRANSACTION READ ', IF(@go, 'WRITE', 'ONLY'));",
    "PREPARE access FROM @access;",
    "EXECUTE access;",
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must be true for the script to go on, and what to say if it is not."""

    condition: str  # an SQL expression
    message: str
    detail: str = ""  # an SQL expression, whose text is put behind the message
    # Statements without effect that are run before. One that fails ends the script with the
    # server's own error; with --force the condition is what ends it.
    tries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limit = GUARD_CHARACTERS_MAX - (DETAIL_CHARACTERS_MAX if self.detail else 0)
        if len(self.message) > limit:
            object.__setattr__(self, "message", self.message[: limit - len(_CUT)] + _CUT)

    def statements(self) -> tuple[str, ...]:
        """Return the statements that end the script if the condition does not hold.

        `completion_type` is set to itself, or to the message, which the server refuses with error
        1231. The client stops there. Where it was told not to stop (--force, `source`), @go is 0
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


# A clock minus an uptime in whole seconds: two readings of one start may be a second apart.
_MEASURED: Final = re.compile(r"(UTC_TIMESTAMP\(\) - INTERVAL \(.*?\) SECOND <= )'[-0-9: ]{19}'")


def started_by(uptime_question: str, latest: datetime) -> str:
    """Return the condition that a server was started at `latest` (UTC, by its clock) or before."""
    start = f"UTC_TIMESTAMP() - INTERVAL ({uptime_question}) SECOND"
    return f"{start} <= {quote_string(f'{latest:%Y-%m-%d %H:%M:%S}')}"


def without_measured(text: str) -> str:
    """Return a condition or a script without what two readings of an equal state disagree on."""
    return _MEASURED.sub(r"\1?", text)


# In these character sets the second byte of a character may be a backtick or a backslash. A client
# that reads a script in one of them cuts the script elsewhere than it was written, whatever SET
# NAMES tells the server. What the client began with is kept, for a second run in one session.
KEEP_CLIENT_CHARSET = "SET @client = IFNULL(@client, @@SESSION.character_set_client);"
CLIENT_READS_UTF8 = Guard(
    "@client NOT IN ('big5', 'cp932', 'gb18030', 'gbk', 'sjis')",
    "this client reads the script in another character set than UTF-8: run it with"
    " --default-character-set=utf8mb4",
)
# Older clients take comments out of statements unless --comments is set. A statement's text
# is compared by audits.
CLIENT_KEEPS_COMMENTS = Guard(
    "SELECT info LIKE CONCAT('%/', '* kept *', '/%') FROM information_schema.processlist"
    " WHERE id = CONNECTION_ID() /* kept */",
    "this client takes comments out of statements, and each audit would report E4: run it with"
    " --comments; nothing was changed",
)
