"""DDL of binary logs, as every part that compares definitions takes it.

Some statements are logged outside BEGIN as DDL is, and change no definition: account management,
FLUSH, ANALYZE, TRUNCATE, and temporary tables. They are no schema version, and explain nothing.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gtid import Gtid

COMMENT: Final = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
_NO_DEFINITION: Final = re.compile(
    r"^\s*(?:GRANT|REVOKE|FLUSH|ANALYZE|OPTIMIZE|REPAIR|TRUNCATE|SET"
    r"|(?:CREATE|ALTER|DROP|RENAME)\s+(?:USER|ROLE)"
    r"|(?:CREATE|DROP)\s+TEMPORARY)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LoggedDdl:
    """One transaction that may define something; `is_unread`: its content could not be read."""

    gtid: Gtid
    committed_at: datetime | None  # by the clock of the server that committed it first
    statement: str
    is_unread: bool = False

    @property
    def defines(self) -> bool:
        """Return whether it is DDL: not account management, FLUSH, ANALYZE or the like."""
        text = COMMENT.sub(" ", self.statement)
        return bool(text) and _NO_DEFINITION.match(text) is None
