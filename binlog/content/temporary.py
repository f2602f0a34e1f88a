"""Compares statements that drop temporary tables, which servers log in different wordings.

With binlog_format=ROW, a 5.6 replica adds IF EXISTS and the schema of the session (verified on
5.6.24). Such a statement changes no permanent row.
"""

import re
from typing import Final

_DROPPED: Final = re.compile(
    rb"DROP TEMPORARY TABLE (?:IF EXISTS )?(?P<names>[^/]+?)\s*(?:/\*.*\*/)?$",
    re.IGNORECASE | re.DOTALL,
)


def drop_the_same_temporary(left: bytes, right: bytes) -> bool:
    """Return whether both drop the same temporary tables, with or without their schema."""
    ours, theirs = _dropped(left), _dropped(right)
    return bool(ours) and len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _dropped(sql: bytes) -> list[list[bytes]]:
    """Return the parts of each dropped name; an empty list for any other statement."""
    found = _DROPPED.match(b" ".join(sql.replace(b"`", b"").split()))
    if found is None:
        return []
    return [name.strip().split(b".") for name in found["names"].split(b",")]


def _is_same(one: list[bytes], other: list[bytes]) -> bool:
    return one[-1] == other[-1] and (len(one) != len(other) or one == other)
