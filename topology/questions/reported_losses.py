"""Keeps what an audit reported as lost until a comparison shows what became of it. Pure.

How it works
------------
An audit reports GTIDs that a server has and their origin lost, or has not reached (REUSED). Later
the origin commits other transactions under them. Then all sets are equal and no finding reports
them, although the rows differ. The comparison of contents finds that (E4), unless the server that
had them first has them in no binary log: it purged the log, or does not log what it receives. So an
audit with a memory (compared_restarts.py)

1. keeps the GTIDs of such findings, by the server_uuid of the server that has them;
2. compares them as soon as another server has them and no finding reports them;
3. forgets them once a comparison with any server answered, or once this server does not have them;
4. otherwise says that the contents are not known, so the verdict is UNKNOWN. It stays so while no
   accepted finding (E4 of this server) and no record of a repair has the GTIDs.

A server that was rebuilt has another server_uuid, and nothing is kept of it.

Benign cause that looks the same: the transactions were redone on the origin, by hand, under the
same GTIDs. The logs do not show it, so it is UNKNOWN, not E4.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted_findings import ANY_SERVER
from topology.policy import Policy
from topology.questions.contents_to_compare import Looked
from topology.readings.contents import UnreadContent
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

# The origin of these GTIDs assigns them to other transactions, sooner or later.
REUSED: Final = frozenset({"E3", "E6", "H7", "J3"})
_TEXT: Final = (
    "an earlier audit reported {gtids} as lost by another server, or unknown to it. Servers have"
    " them now under equal sets, and the logs of {name} do not have them: the contents were not"
    " compared. Compare the rows (gtid-audit repair check-data), then accept E4 of this set"
)


def reported_by(snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> dict[UUID, GtidSet]:
    """Return what findings report, by the server_uuid of the server that has it."""
    uuids = {each.name: each.server_uuid for each in snapshot.last}
    found: dict[UUID, GtidSet] = {}
    for each in findings:
        uuid = uuids.get(each.replica or "")
        if each.code in REUSED and each.severity is not Severity.INFO and uuid is not None:
            found[uuid] = found.get(uuid, GtidSet()) | each.gtid_set
    return found


def reported_here(snapshot: ClusterSnapshot, reported: Mapping[UUID, GtidSet]) -> GtidSet:
    """Return all that was reported of servers of a snapshot."""
    return GtidSet.union_of(gtids for _, _, gtids in _known_servers(snapshot, reported))


def still_open(
    snapshot: ClusterSnapshot, looked: Looked, reported: Mapping[UUID, GtidSet]
) -> dict[UUID, GtidSet]:
    """Return what stays to be kept of the servers of a snapshot, after a comparison."""
    kept: dict[UUID, GtidSet] = {}
    for server, uuid, gtids in _known_servers(snapshot, reported):
        held = gtids if server.gtid_executed is None else gtids & server.gtid_executed
        kept[uuid] = held - _answered(looked, server.name)
    return kept


def not_compared(
    snapshot: ClusterSnapshot,
    looked: Looked,
    reported: Mapping[UUID, GtidSet],
    *,
    present: Iterable[Finding],
    policy: Policy,
) -> tuple[UnreadContent, ...]:
    """Return what was reported, is in equal sets now, and could not be compared.

    `present`: the findings about the sets of the same snapshot.
    """
    shown = GtidSet.union_of(
        each.gtid_set for each in present if each.severity is not Severity.INFO
    )
    kept = still_open(snapshot, looked, reported)
    found = []
    for server, uuid, _ in _known_servers(snapshot, reported):
        others = GtidSet.union_of(
            each.gtid_executed or GtidSet() for each in snapshot.last if each is not server
        )
        left = kept[uuid] & others - shown - _accepted(policy, server, uuid)
        if left:
            text = _TEXT.format(gtids=left.shortened(), name=server.name)
            found.append(UnreadContent(server.name, text))
    return tuple(found)


def _known_servers(
    snapshot: ClusterSnapshot, reported: Mapping[UUID, GtidSet]
) -> Iterator[tuple[ServerSnapshot, UUID, GtidSet]]:
    for server in snapshot.last:
        uuid = server.server_uuid
        if uuid is not None and uuid in reported:
            yield server, uuid, reported[uuid]


def _answered(looked: Looked, name: str) -> GtidSet:
    return GtidSet.union_of(gtids for pair, gtids in looked.answered.items() if name in pair)


def _accepted(policy: Policy, server: ServerSnapshot, uuid: UUID) -> GtidSet:
    """Return what was accepted on a server: as E4 of it, or by the record of a repair.

    An entry counts until its last day, and a record for the servers that the plan knew.
    """
    by_plans = (
        gtids
        for plan in policy.accepted
        if uuid in plan.seen
        for _, gtids in (*plan.emptied, *plan.undone)
    )
    day = server.read_ended.astimezone(UTC).date()
    by_entries = (
        each.gtid_set
        for each in policy.accepted_findings
        if each.code == "E4"
        and each.cluster in (None, server.cluster)
        and {server.name, ANY_SERVER} & {each.source, each.replica}
        and day <= each.expires
    )
    return GtidSet.union_of((*by_plans, *by_entries))
