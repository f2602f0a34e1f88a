"""Objects that a redo creates and that then act by themselves: events and triggers.

How it works
------------
The log of the server that has the transactions contains the rows that its events and triggers
wrote. An event writes them in its own transactions, a trigger next to the rows that fired it.

    CREATE TRIGGER … AFTER INSERT ON t … INSERT INTO seen …     1
    INSERT INTO t: the log has a row of t and a row of seen     2

If the redo executes them in this order, 2 writes its row of seen and fires the trigger, which
writes the row a second time. An applier does not fire triggers for row events, and creates an event
disabled on its server. A client session does neither. So triggers come last, and the operator
creates events manually.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NAME = rb"(?:`(?:[^`]|``)+`|[^\s`.()]+)"
_PART = rb"(?:`(?:[^`]|``)*`|'[^']*'|[^\s@`']+)"
# A server logs these statements with their DEFINER.
_CREATES = re.compile(
    rb"\s*CREATE\s+(?:OR\s+REPLACE\s+)?"
    rb"(?P<definer>DEFINER\s*=\s*" + _PART + rb"(?:\s*@\s*" + _PART + rb")?\s+)?"
    rb"(?P<what>\w*)",
    re.IGNORECASE,
)
_ON_TABLE = re.compile(
    rb"\bON\s+(?:(?P<schema>"
    + _NAME
    + rb")\s*\.\s*)?(?P<table>"
    + _NAME
    + rb")\s+FOR\s+EACH\s+ROW\b",
    re.IGNORECASE,
)
_EVENT, _TRIGGER = b"EVENT", b"TRIGGER"
# These may have a DEFINER as well, and they do nothing until they are called.
_PASSIVE = frozenset({b"PROCEDURE", b"FUNCTION", b"AGGREGATE", b"VIEW", b"SQL", b"LIBRARY"})


@dataclass(frozen=True, slots=True)
class Acting:
    """An event, or a trigger and the table on which it fires; empty if the table is not known."""

    statement: str  # for the operator
    is_event: bool
    schema: str = ""
    table: str = ""

    def fires_on(self, tables: Sequence[tuple[str, str]]) -> bool:
        """Return whether a write to one of these tables may fire it."""
        if self.is_event:
            return False
        return bool(tables) and (
            not self.table
            or _folded(self.schema, self.table) in {_folded(*each) for each in tables}
        )


def acting(schema: str, sql: bytes, shown: str) -> Acting | None:
    """Return what a statement creates that acts by itself; None if it creates no such object."""
    created = _CREATES.match(sql)
    if created is None:
        return None
    what = created["what"].upper()
    if what == _TRIGGER:
        found = _ON_TABLE.search(sql, created.end())
        if found is None:
            return Acting(shown, is_event=False)
        of_schema = _plain(found["schema"]) if found["schema"] else schema
        return Acting(shown, is_event=False, schema=of_schema, table=_plain(found["table"]))
    is_unknown = created["definer"] is not None and what not in _PASSIVE
    return Acting(shown, is_event=True) if what == _EVENT or is_unknown else None


def _plain(name: bytes) -> str:
    text = name.decode("utf-8", errors="surrogateescape")
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _folded(schema: str, table: str) -> tuple[str, str]:
    """Return names in lower case: with lower_case_table_names, letter case does not matter."""
    return schema.casefold(), table.casefold()
