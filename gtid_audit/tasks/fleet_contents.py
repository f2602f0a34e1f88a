"""Compares contents in the clusters of a fleet where that is due, and reports progress.

1. The modules for comparing are imported only if something is due.
2. A defect of ours in one cluster makes that cluster UNKNOWN, and does not affect the others.
3. It reads servers. compared_restarts.py reads and writes what one audit keeps for the next.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from gtid import GtidSet
from gtid_audit.tasks.cluster_contents import look_at_contents
from topology.adapters.collect_fleet import Say
from topology.audit_cluster import EVERY_SERVER, audit_or_unknown
from topology.catalogue.findings import Finding
from topology.policy import Policy
from topology.questions.contents_to_compare import (
    QUERY_SECONDS_MAX,
    Looked,
    Remembered,
    suspects_in,
)
from topology.questions.known_differences import not_here, still_known, with_known
from topology.questions.reported_losses import (
    not_compared,
    reported_by,
    still_open,
)
from topology.readings.contents import ContentReading, UnreadContent
from topology.readings.snapshot import ClusterSnapshot
from topology.readings.target import ServerTarget

# Clusters that are compared at the same time: the work is waiting for servers.
CONTENTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class FleetContents:
    """The comparisons by cluster (None: --no-content), and what to remember."""

    readings: dict[str, ContentReading] | None
    remembered: Remembered


def compare_contents(
    targets: Mapping[str, Sequence[ServerTarget]],
    snapshots: Sequence[ClusterSnapshot],
    chosen: bool | None,
    *,
    policy: Policy,
    remembered: Remembered | None,
    say: Say | None = None,
    seconds_max: float = QUERY_SECONDS_MAX,
) -> FleetContents:
    """Compare contents where that is due.

    Several clusters at once; each server gets one query at a time.

    Args:
        targets: the servers, by cluster.
        snapshots: the clusters as they were just read.
        chosen: as in contents_to_compare.py.
        policy: what is accepted.
        remembered: what earlier audits stored; None: they are unknown.
        say: shows progress.
        seconds_max: for one query to a server.
    """
    known = remembered or Remembered()

    def look(snapshot: ClusterSnapshot) -> Looked:
        ways = targets.get(snapshot.cluster, ())
        return _look(
            *(snapshot, ways, chosen),
            remembered=known,
            policy=policy,
            say=say,
            seconds_max=seconds_max,
        )

    present: dict[str, tuple[Finding, ...]] = {}
    if remembered is not None:
        present = {each.cluster: audit_or_unknown(each, policy).findings for each in snapshots}
    looks: list[tuple[ClusterSnapshot, Looked]] = []
    differences = dict(known.differences)
    if chosen is not False:
        differences = {
            cluster: not_here(snapshots, found) for cluster, found in known.differences.items()
        }
        with ThreadPoolExecutor(CONTENTS_AT_ONCE) as pool:
            for each, looked in zip(snapshots, pool.map(look, snapshots), strict=True):
                before = still_known(each, known.every_difference)
                with_all, here = with_known(looked, each, before)
                unread = not_compared(
                    *(each, with_all, known.reported),
                    present=present.get(each.cluster, ()),
                    policy=policy,
                )
                if unread:
                    with_all = with_all.with_unread(unread, each)
                differences[each.cluster] = (*differences.get(each.cluster, ()), *here)
                looks.append((each, with_all))
    readings = {each.cluster: look.reading for each, look in looks if look.reading is not None}
    kept = (
        known
        if remembered is None
        else _remembered(replace(known, differences=differences), snapshots, looks, present)
    )
    return FleetContents(None if chosen is False else readings, kept)


def _remembered(
    known: Remembered,
    snapshots: Sequence[ClusterSnapshot],
    looks: Sequence[tuple[ClusterSnapshot, Looked]],
    present: Mapping[str, Sequence[Finding]],
) -> Remembered:
    """Return what the next audit must know. Clusters that were not read now keep their entries.

    `present`: by cluster, the findings before contents were compared.
    """
    done = {uuid: at for each, looked in looks for uuid, at in _done(each, looked).items()}
    settled = GtidSet.union_of(looked.settled for _, looked in looks)
    suspects = {cluster: gtids - settled for cluster, gtids in known.suspects.items()}
    reported = dict(known.reported)
    for each, looked in looks:
        reported |= still_open(each, looked, known.reported)
    for each in snapshots:
        found = suspects_in(each, present[each.cluster])
        suspects[each.cluster] = suspects.get(each.cluster, GtidSet()) | found
        for uuid, gtids in reported_by(each, present[each.cluster]).items():
            reported[uuid] = reported.get(uuid, GtidSet()) | gtids
    return Remembered(
        {**known.looks, **done},
        {cluster: gtids for cluster, gtids in suspects.items() if gtids},
        {cluster: found for cluster, found in known.differences.items() if found},
        {uuid: gtids for uuid, gtids in reported.items() if gtids},
    )


def _look(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    chosen: bool | None,
    *,
    remembered: Remembered,
    policy: Policy,
    say: Say | None,
    seconds_max: float,
) -> Looked:
    """Compare contents in one cluster where that is due. Never raises."""

    def say_here(text: str) -> None:
        if say is not None:
            say(f"{snapshot.cluster}: {text}")

    try:
        return look_at_contents(
            snapshot,
            targets,
            chosen,
            say=say_here,
            accepted=policy.accepted,
            remembered=remembered,
            seconds_max=seconds_max,
        )
    except Exception as error:  # noqa: BLE001 - it is reported for this cluster
        reason = f"defect of the auditor: {type(error).__name__}: {error}"
        for target in targets:
            reason = target.password.hidden_in(reason)
        names = frozenset(server.name for server in snapshot.last)
        return Looked(None, names).with_unread([UnreadContent(EVERY_SERVER, reason)], snapshot)


def _done(snapshot: ClusterSnapshot, look: Looked) -> dict[UUID, datetime]:
    """Return the servers that need no further comparison, and up to when they were read."""
    return {
        server.server_uuid: server.read_started
        for server in snapshot.last_read.values()
        if server.uptime_seconds is not None and server.name not in look.look_again
    }
