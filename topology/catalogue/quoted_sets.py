"""The GTID sets that an error text quotes, and what two of them in one text amount to.

1. A set that was truncated is left out, and then nothing is computed from the other one.
2. Two sets of one text are of the same moment: what only one of them has is exact.

Sources: find_missing_gtids of sql/rpl_binlog_sender.cc, plugin/group_replication (8.0), sql/share
messages of 5.6 to 9.7.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from gtid import GtidSet, MalformedText

QuotedSet: TypeAlias = tuple[str, GtidSet]
"""What a set is, and the set."""

FAILED: Final = "transaction that failed"
SENT: Final = "sent by the replica"
_MISSING: Final = "missing transactions"
MEMBER: Final = "transactions of the member"
_GROUP: Final = "transactions of the group"
_BEFORE, _AFTER = "before the change", "after the change"
EXTRA: Final = "only the member has"

_UUID: Final = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_SET: Final = rf"((?:{_UUID}(?: ?: ?[0-9A-Za-z_-]+)+(?: ?, ?)?)+)"  # whitespace is folded
# A description of each set, and the pattern that captures it.
QUOTED_SETS: Final[tuple[tuple[str, str], ...]] = (
    (SENT, r"GTID set sent by the (?:slave|replica) is '([^']*)'"),
    (_MISSING, r"missing transactions are '([^']*)'"),
    (FAILED, r"failed executing transaction '([^']*)'"),
    (MEMBER, rf"Local transactions: {_SET}? > Group"),
    (_GROUP, rf"Group transactions: {_SET}"),
    (_BEFORE, r"was changed from '([^']*)' to"),
    (_AFTER, r"was changed from '[^']*' to '([^']*)'"),
)


class SetComparison(NamedTuple):
    """What two quoted sets of one text amount to: each result has a description."""

    first: str
    second: str
    results: tuple[tuple[str, Callable[[GtidSet, GtidSet], GtidSet]], ...]


def _beside(sent: GtidSet, missing: GtidSet) -> GtidSet:
    return GtidSet.union_of(sent.from_uuid(uuid) for uuid in missing.uuids)


_COMPARISONS: Final = (
    SetComparison(
        SENT,
        _MISSING,
        (
            ("missing on the replica", lambda sent, missing: missing - sent),
            ("the replica has of the same UUIDs", _beside),
        ),
    ),
    SetComparison(
        MEMBER,
        _GROUP,
        (
            (EXTRA, lambda member, group: member - group),
            ("missing on the member", lambda member, group: group - member),
        ),
    ),
    SetComparison(
        _BEFORE,
        _AFTER,
        (
            ("added", lambda before, after: after - before),
            ("removed", lambda before, after: before - after),
        ),
    ),
)


def quoted_sets(text: str) -> tuple[QuotedSet, ...]:
    """Return the sets that a text quotes, without any that was truncated."""
    found = []
    for label, pattern in QUOTED_SETS:
        quoted = re.search(pattern, text)
        if quoted is not None:
            try:
                found.append((label, GtidSet.parse(quoted[1] or "")))
            except MalformedText:
                continue
    return tuple(found)


def compared_sets(quoted: tuple[QuotedSet, ...]) -> tuple[QuotedSet, ...]:
    """Return what the quoted sets of one text amount to; nothing if only one was read."""
    known = dict(quoted)
    return tuple(
        (what, computed(known[each.first], known[each.second]))
        for each in _COMPARISONS
        if each.first in known and each.second in known
        for what, computed in each.results
    )
