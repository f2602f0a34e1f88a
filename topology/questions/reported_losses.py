"""Keeps what an audit reported as lost until a comparison shows what became of it. Pure.

How it works
------------
An audit reports GTIDs that servers have and their origin lost, or has not reached (REUSED). Later
the origin commits other transactions under them. Then all sets are equal and no finding reports
them, although the rows differ. The comparison of contents finds that (E4), unless the servers that
had them first have them in no binary log: they purged the log, or do not log what they receive. So
an audit with a memory (compared_restarts.py)

1. keeps the GTIDs of such findings, accepted ones too, by the server_uuid of each server that has
   them: its *holders*;
2. compares them as soon as a server has them that is no holder, and no finding reports them;
3. forgets them once a comparison with such a server answered: it showed a difference, or one of the
   two is their origin. What other holders have came before the loss: that they agree shows nothing
   of what the origin commits afterwards. A server that agrees with a holder, where neither is the
   origin, got them from it: it is a holder from then on;
4. otherwise says that the contents are not known, so the verdict is UNKNOWN. It stays so until an
   accepted finding (E4 of this server) has the GTIDs, or the operator says that the rows are equal
   (`history --forget`). A plan is no proof that it ran, nor that the rows are as it left them.

A holder may lose its GTIDs for a while (RESET, then the former gtid_purged): they are kept. A
server with another server_uuid is another server, and nothing is kept of it; what the cluster has
is compared once (known_differences.py).

Benign causes that look the same: the transactions were redone on the origin, by hand, under the
same GTIDs; or a holder was rebuilt and kept its server_uuid. The logs do not show it, so it is
UNKNOWN, not E4.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted_findings import ANY_SERVER, severity_before
from topology.facts.memberships import group_uuids
from topology.policy import Policy
from topology.questions.contents_to_compare import Looked, gtids_apart
from topology.readings.contents import UnreadContent
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

# The origin of these GTIDs assigns them to other transactions, sooner or later.
REUSED: Final = frozenset({"E3", "E6", "H7", "J3"})
_TEXT: Final = (
    "an earlier audit reported {gtids} as lost by another server, or unknown to it. Servers have"
    " them now under equal sets, and what {name} has was not compared with that of their origin,"
    " often because a log is purged. Compare the rows (gtid-audit repair check-data). When they are"
    " equal, run `gtid-audit history PLACE --forget SET --server {uuid}` (PLACE: the file of"
    " --history, or the directory of --out), or accept E4 of this set, with severity critical"
)


def reported_by(snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> dict[UUID, GtidSet]:
    """Return what findings report, by the server_uuid of each server that has it.

    An accepted finding counts: what is accepted is the loss, not what its origin makes of it.
    """
    lost = GtidSet.union_of(
        gtids_apart(snapshot, each)
        for each in findings
        if each.code in REUSED and severity_before(each) is not Severity.INFO
    )
    held = ((each.server_uuid, lost & (each.gtid_executed or GtidSet())) for each in snapshot.last)
    return {uuid: gtids for uuid, gtids in held if uuid is not None and gtids}


def reported_here(snapshot: ClusterSnapshot, reported: Mapping[UUID, GtidSet]) -> GtidSet:
    """Return what a holder and a server that is none both have: it is to be compared."""
    held = GtidSet.union_of(
        gtids & (server.gtid_executed or GtidSet())
        for server, _, gtids in _known_servers(snapshot, reported)
    )
    return held & _of_no_holders(snapshot, reported)


def still_open(
    snapshot: ClusterSnapshot, looked: Looked, reported: Mapping[UUID, GtidSet]
) -> dict[UUID, GtidSet]:
    """Return what stays to be kept of the servers of a snapshot, after a comparison."""
    answers = _Answers(snapshot, looked, reported)
    kept = {
        uuid: gtids - answers.about(server.name)
        for server, uuid, gtids in _known_servers(snapshot, reported)
    }
    for server in snapshot.last:
        if server.server_uuid is not None and (alike := answers.like_a_holder(server.name, kept)):
            before = kept.get(server.server_uuid, GtidSet())
            kept[server.server_uuid] = before | alike
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
        each.gtid_set for each in present if severity_before(each) is not Severity.INFO
    )
    kept, elsewhere = still_open(snapshot, looked, reported), _of_no_holders(snapshot, reported)
    found = []
    for server, uuid, _ in _known_servers(snapshot, reported):
        left = kept[uuid] & (server.gtid_executed or GtidSet()) & elsewhere
        left -= shown | _accepted(policy, server)
        if left:
            text = _TEXT.format(gtids=left.shortened(), name=server.name, uuid=uuid)
            found.append(UnreadContent(server.name, text))
    return tuple(found)


def _of_no_holders(snapshot: ClusterSnapshot, reported: Mapping[UUID, GtidSet]) -> GtidSet:
    """Return what servers have that are no holders of it."""
    holders = {each.name: gtids for each, _, gtids in _known_servers(snapshot, reported)}
    return GtidSet.union_of(
        (each.gtid_executed or GtidSet()) - holders.get(each.name, GtidSet())
        for each in snapshot.last
    )


def _known_servers(
    snapshot: ClusterSnapshot, reported: Mapping[UUID, GtidSet]
) -> Iterator[tuple[ServerSnapshot, UUID, GtidSet]]:
    for server in snapshot.last:
        uuid = server.server_uuid
        if uuid is not None and uuid in reported:
            yield server, uuid, reported[uuid]


class _Answers:
    """What a comparison showed of servers that have reported GTIDs."""

    def __init__(
        self, snapshot: ClusterSnapshot, looked: Looked, reported: Mapping[UUID, GtidSet]
    ) -> None:
        self._answered = looked.answered
        self._holders = {each.name: gtids for each, _, gtids in _known_servers(snapshot, reported)}
        self._uuids = {each.name: each.server_uuid for each in snapshot.last}
        self._groups = group_uuids(snapshot.last)
        self._unlike: dict[tuple[str, str], GtidSet] = {}
        for each in () if looked.reading is None else looked.reading.differences:
            one, other = sorted((each.source.server, each.replica.server))
            found = self._unlike.get((one, other), GtidSet())
            self._unlike[one, other] = found | GtidSet.of([each.gtid])

    def about(self, name: str) -> GtidSet:
        """Return what was compared between a server and one that shows the later content."""
        return GtidSet.union_of(
            (gtids - self._held_by(other))
            & (self._assigned_by(other, gtids) | self._assigned_by(name, gtids) | unlike)
            for other, gtids, unlike in self._pairs(name)
        )

    def like_a_holder(self, name: str, kept: Mapping[UUID, GtidSet]) -> GtidSet:
        """Return what a server has as a holder has it, and was not compared with the later content.

        `kept` has nothing of a holder that it and this server differ about, or that either assigns.
        """
        alike = GtidSet.union_of(
            gtids & kept.get(uuid, GtidSet())
            for other, gtids, _ in self._pairs(name)
            if (uuid := self._uuids.get(other)) is not None
        )
        return alike - self.about(name)

    def _pairs(self, name: str) -> Iterator[tuple[str, GtidSet, GtidSet]]:
        for pair, gtids in self._answered.items():
            if name in pair:
                [other] = {*pair} - {name}
                yield other, gtids, self._unlike.get(pair, GtidSet())

    def _held_by(self, name: str) -> GtidSet:
        return self._holders.get(name, GtidSet())

    def _assigned_by(self, name: str, gtids: GtidSet) -> GtidSet:
        """Return the GTIDs that a server assigns itself; those of a group, each member assigns."""
        own = (self._uuids.get(name), *self._groups)
        return GtidSet.union_of(gtids.from_uuid(each) for each in own if each is not None)


def _accepted(policy: Policy, server: ServerSnapshot) -> GtidSet:
    """Return what was accepted as E4 of a server. An entry counts until its last day."""
    day = server.read_ended.astimezone(UTC).date()
    return GtidSet.union_of(
        each.gtid_set
        for each in policy.accepted_findings
        if each.code == "E4"
        and each.severity is Severity.CRITICAL  # two contents may be under them
        and each.cluster in (None, server.cluster)
        and {server.name, ANY_SERVER} & {each.source, each.replica}
        and day <= each.expires
    )
