"""Brings together what audits with one memory remember, of which none knows of the others.

Two audits of one fleet may run at the same time: one of them waits for a server that does not
answer, and ends last. What it writes must not take back what the other one has remembered since:

    audit 1 reads    suspects {}
    audit 2 reads    suspects {}
    audit 2 writes   suspects {c: A:7}     added: A:7 of c
    audit 1 writes   suspects {}           no change              all: {c: A:7}

So what an audit changed is applied to what is stored by then, GTID by GTID, and difference by
difference. Of two looks at one server the later one counts.
"""

from collections.abc import Mapping
from typing import TypeVar

from gtid import GtidSet
from topology.questions.contents_to_compare import KnownDifference, Remembered

Key = TypeVar("Key")


def merged(before: Remembered, after: Remembered, stored: Remembered) -> Remembered:
    """Return what is stored, with the changes of one audit.

    Args:
        before: what the audit read.
        after: what it remembers now.
        stored: what is stored by now.
    """
    looks = dict(stored.looks)
    for server, at in after.looks.items():
        looks[server] = max(at, looks.get(server, at))
    return Remembered(
        looks,
        _sets(before.suspects, after.suspects, stored.suspects),
        _differences(before.differences, after.differences, stored.differences),
        _sets(before.reported, after.reported, stored.reported),
    )


def _sets(
    before: Mapping[Key, GtidSet], after: Mapping[Key, GtidSet], stored: Mapping[Key, GtidSet]
) -> dict[Key, GtidSet]:
    nothing, found = GtidSet(), {}
    for key in {**before, **after, **stored}:
        was, now = before.get(key, nothing), after.get(key, nothing)
        gtids = (stored.get(key, nothing) - (was - now)) | (now - was)
        if gtids:
            found[key] = gtids
    return found


def _differences(
    before: Mapping[str, tuple[KnownDifference, ...]],
    after: Mapping[str, tuple[KnownDifference, ...]],
    stored: Mapping[str, tuple[KnownDifference, ...]],
) -> dict[str, tuple[KnownDifference, ...]]:
    found = {}
    for cluster in {**before, **after, **stored}:
        was, now = before.get(cluster, ()), after.get(cluster, ())
        kept = [each for each in stored.get(cluster, ()) if each not in was or each in now]
        kept += [each for each in now if each not in was and each not in kept]
        if kept:
            found[cluster] = tuple(kept)
    return found
