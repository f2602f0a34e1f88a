"""Compares the contents of one live cluster where that is due.

The modules for comparing, and those for the rows that plans undo, are imported only if something is
due: `pair` must be fast.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from topology.facts.accepted import AcceptedRepair
from topology.questions.contents_to_compare import (
    QUERY_SECONDS_MAX,
    Bootstrap,
    Looked,
    Remembered,
    bootstraps_due,
    held_by_two,
    looked_back,
    suspects_now,
)
from topology.questions.known_differences import known_gtids, known_of_others, still_known
from topology.questions.reported_losses import reported_here
from topology.readings.contents import UnreadContent
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

NOTHING_REMEMBERED: Final = Remembered()


def look_at_contents(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    chosen: bool | None,
    *,
    say: Callable[[str], None],
    accepted: Sequence[AcceptedRepair] = (),
    remembered: Remembered = NOTHING_REMEMBERED,
    seconds_max: float = QUERY_SECONDS_MAX,
) -> Looked:
    """Compare contents if that is due.

    Args:
        snapshot: the cluster as it was just read.
        targets: its servers.
        chosen: True for --content, False for --no-content, None if neither was given.
        say: shows progress.
        accepted: plans that have run; the rows that they undo are read.
        remembered: what earlier audits stored.
        seconds_max: for one query to a server.
    """
    back = looked_back(snapshot, chosen, remembered.looks)
    # Of all clusters, because a cluster may have been renamed.
    suspects = held_by_two(snapshot, GtidSet.union_of(remembered.suspects.values()))
    suspects |= reported_here(snapshot, remembered.reported)
    suspects |= suspects_now(snapshot, chosen)
    suspects |= known_gtids(still_known(snapshot, remembered.every_difference))
    suspects |= known_of_others(snapshot, remembered)
    bootstraps = bootstraps_due(snapshot, chosen, remembered.looks)
    if not back and not suspects and not bootstraps:
        return Looked(None)
    from topology.adapters.compare_contents import read_contents

    say("comparing the content of transactions")
    of_groups, unread = _first_of_groups(snapshot, targets, bootstraps, seconds_max)
    suspects |= of_groups
    looked = read_contents(
        snapshot,
        targets,
        back=back,
        suspects=suspects,
        newest=chosen is True,
        seconds_max=seconds_max,
    )
    if unread:  # the next audit looks there again
        looked = looked.with_unread(unread, snapshot)
        again = looked.look_again | {each.server for each in unread}
        looked = replace(looked, look_again=again)
    if looked.reading is None or not any(each.undone for each in accepted):
        return looked
    from repair.adapters.undone_rows import with_equal_rows

    reading = with_equal_rows(looked.reading, accepted, targets, seconds_max=seconds_max)
    return replace(looked, reading=reading)


def _first_of_groups(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    bootstraps: Sequence[Bootstrap],
    seconds_max: float,
) -> tuple[GtidSet, tuple[UnreadContent, ...]]:
    if not bootstraps:
        return GtidSet(), ()
    from topology.adapters.group_bootstrap import first_of_groups

    ways = {target.name: target for target in targets}
    return first_of_groups(snapshot, ways, bootstraps, seconds_max=seconds_max)
