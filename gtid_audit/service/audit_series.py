"""The values of the metrics that describe one audited cluster: pure, computed once for each audit.

How it works
------------
`series_of` returns, for each metric, the values by their labels. `METRICS` in metrics.py has the
names and the label names, in the order of the tuples here. One rule decides what is not known:

    the subject exists and its value could not be read    NaN
    the subject does not exist                            no series
    the value was read, and there is none                 0

A server of the cluster is a subject even if it did not answer; a channel is one as soon as the
replica's channels were read, and stays one while one of its two servers does not answer. A finding
is a subject only if it was found; it stays one, as it was last seen, while audits cannot look for
it again (finding_changes.py). How many transactions it is about is NaN if another process found it.
So of a pair a → b where `a` did not answer:

    gtid_audit_server_up{server="a"}                                  0
    gtid_audit_server_executed_transactions{server="a"}               NaN
    gtid_audit_missing_transactions{source="a", replica="b"}          NaN
    gtid_audit_unread_facts{server="a"}                               1

Every comparison with NaN is false, so no alert fires on a value that is not known. The alerts on
`gtid_audit_server_up` and `gtid_audit_unread_facts` fire instead, whatever else was found.

What a replica is missing is the sum of the disjoint parts of edge_facts.py. Holes are the parts
that its channel does not deliver:

    missing = applying + queued + expected + holes
    holes   = purged + bypassed + passed + ignored + dropped for its server_id
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import isnan
from typing import Final, TypeAlias

from gtid import GNO_END, GtidSet
from gtid_audit.service.finding_changes import OpenFinding
from topology.audit_cluster import EVERY_SERVER
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.verdict_table import CATALOGUE
from topology.facts.cluster_facts import ClusterFacts, gather_facts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.runway import deadline_of, needs_of, retention_of, undecided_retention
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, ThreadState

# The values of one metric, by the values of its labels.
Series: TypeAlias = Mapping[tuple[str, ...], float]
# The series of each metric, by its name.
AuditSeries: TypeAlias = Mapping[str, Series]

NOT_KNOWN: Final = float("nan")
KEPT_FOREVER: Final = float("inf")
# Findings about transactions that a channel of the replica does not deliver any more.
HOLE_CODES: Final = frozenset(
    code for code in CATALOGUE if code.startswith("H") and code not in ("H6", "H7")
) | {"P1", "P2"}

_MISSING: Final = "gtid_audit_missing_transactions"

Place: TypeAlias = tuple[str, str, str]  # source, replica, channel; "" where it makes no sense


def series_of(
    audit: ClusterAudit,
    snapshot: ClusterSnapshot,
    policy: Policy,
    *,
    lasting: Sequence[OpenFinding] = (),
    earlier: AuditSeries | None = None,
) -> AuditSeries:
    """Return the series of one audit; `snapshot` is what was audited. Same input, same series.

    `lasting` are findings of earlier audits that this one could not look for. `earlier` are the
    series of the audit before, which show the channels of a server that does not answer now.
    """
    return {
        **_finding_series(audit.cluster, (*audit.findings, *lasting)),
        "gtid_audit_unread_facts": _unread(audit),
        **_server_series(snapshot),
        **_edge_series(audit, snapshot, policy, _not_read_now(earlier or {}, snapshot)),
    }


def _finding_series(cluster: str, findings: Iterable[OpenFinding]) -> AuditSeries:
    transactions: dict[tuple[str, ...], float] = {}
    first_seen: dict[tuple[str, ...], float] = {}
    last_seen: dict[tuple[str, ...], float] = {}
    deadlines: dict[tuple[str, ...], float] = {}
    holes: dict[tuple[str, ...], float] = {}
    for each in findings:
        place = _place(each)
        # One finding has no channel, another one the channel with the empty name: one series.
        labels = (cluster, each.code, each.severity.value, *place)
        found, seen = each.first_seen.timestamp(), each.last_seen.timestamp()
        count = float(each.gtid_set.gtid_count) if isinstance(each, Finding) else NOT_KNOWN
        transactions[labels] = transactions.get(labels, 0.0) + count
        first_seen[labels] = min(first_seen.get(labels, found), found)
        last_seen[labels] = max(last_seen.get(labels, seen), seen)
        if isinstance(each, Finding) and each.deadline is not None:
            until = each.deadline.timestamp()
            deadlines[labels] = min(deadlines.get(labels, until), until)
        if each.code in HOLE_CODES:
            edge = (cluster, *place)
            holes[edge] = min(holes.get(edge, found), found)
    return {
        "gtid_audit_finding_transactions": transactions,
        "gtid_audit_finding_first_seen_timestamp_seconds": first_seen,
        "gtid_audit_finding_last_seen_timestamp_seconds": last_seen,
        "gtid_audit_finding_deadline_timestamp_seconds": deadlines,
        "gtid_audit_hole_first_seen_timestamp_seconds": holes,
    }


def _place(finding: OpenFinding) -> Place:
    return (finding.source or "", finding.replica or "", finding.channel or "")


def _unread(audit: ClusterAudit) -> Series:
    facts = Counter(
        server for server, _ in {(unknown.server, unknown.fact) for unknown in audit.unknown}
    )
    return {
        (audit.cluster, server): float(facts[server]) for server in sorted({*audit.servers, *facts})
    }


# ---- servers ----------------------------------------------------------------------------------


def _server_series(snapshot: ClusterSnapshot) -> AuditSeries:
    series: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in _SERVER_VALUES}
    for server in snapshot.last:
        for name, value_of in _SERVER_VALUES.items():
            series[name][snapshot.cluster, server.name] = value_of(server)
    return series


def _is_up(server: ServerSnapshot) -> float:
    return float(all(fact.fact != "connection" for fact in server.unread))


def _executed(server: ServerSnapshot) -> float:
    executed = server.gtid_executed
    return NOT_KNOWN if executed is None else float(executed.gtid_count)


def _purged(server: ServerSnapshot) -> float:
    purged = server.gtid_purged
    return NOT_KNOWN if purged is None else float(purged.gtid_count)


def _intervals(server: ServerSnapshot) -> float:
    executed = server.gtid_executed
    return NOT_KNOWN if executed is None else float(executed.interval_count)


def _tsids(server: ServerSnapshot) -> float:
    executed = server.gtid_executed
    return NOT_KNOWN if executed is None else float(executed.tsid_count)


def _gno_headroom(server: ServerSnapshot) -> float:
    """Return how many GTIDs the server can still assign, under its fullest TSID.

    It assigns the lowest free number, so what counts is how many are used, not the highest one
    (rules/set_shapes.py, F3).
    """
    if server.gtid_executed is None or server.server_uuid is None:
        return NOT_KNOWN
    own = server.gtid_executed.from_uuid(server.server_uuid)
    used = max((own.from_tsid(tsid).gtid_count for tsid in own.tsids), default=0)
    return float(GNO_END - 1 - used)


_SERVER_VALUES: Final = {
    "gtid_audit_server_up": _is_up,
    "gtid_audit_server_executed_transactions": _executed,
    "gtid_audit_server_purged_transactions": _purged,
    "gtid_audit_server_executed_intervals": _intervals,
    "gtid_audit_server_executed_tsids": _tsids,
    "gtid_audit_server_gno_headroom": _gno_headroom,
}


# ---- channels ---------------------------------------------------------------------------------


def _not_read_now(earlier: AuditSeries, snapshot: ClusterSnapshot) -> Iterator[tuple[str, ...]]:
    """Yield the labels of channels of an earlier audit of which this one could not read an end."""
    read = {each.name: each for each in snapshot.last}
    for labels in earlier.get(_MISSING, {}):
        _, source, replica, _ = labels
        if source in read and replica in read:
            ends = read[source].server_uuid, read[replica].channels
            if None in ends:
                yield labels


def _edge_series(
    audit: ClusterAudit,
    snapshot: ClusterSnapshot,
    policy: Policy,
    not_read: Iterable[tuple[str, ...]],
) -> AuditSeries:
    missing: dict[tuple[str, ...], float] = {}
    errant: dict[tuple[str, ...], float] = {}
    holes: dict[tuple[str, ...], float] = {}
    runway: dict[tuple[str, ...], float] = {}
    for labels in not_read:
        for series in (missing, errant, holes, runway):
            series[labels] = NOT_KNOWN
    if not _is_defect(audit):
        facts = gather_facts(snapshot, policy)
        for edge in facts.graph.edges:
            labels = (audit.cluster, edge.source, edge.replica, edge.channel.name)
            for series in (missing, errant, holes, runway):
                series[labels] = NOT_KNOWN
        for compared in facts.edges:
            labels = (audit.cluster, *_ends(compared))
            missing[labels] = _on_their_way(compared) + _not_delivered(compared)
            errant[labels] = float(_errant(audit, facts, compared).gtid_count)
            holes[labels] = _not_delivered(compared)
        runway |= {(audit.cluster, *place): seconds for place, seconds in _runways(facts)}
    return {
        _MISSING: missing,
        "gtid_audit_errant_transactions": errant,
        "gtid_audit_hole_transactions": holes,
        "gtid_audit_runway_seconds": runway,
    }


def _is_defect(audit: ClusterAudit) -> bool:
    """Return whether our own defect prevented the evaluation: the facts may raise it again."""
    return any((each.server, each.fact) == (EVERY_SERVER, "evaluation") for each in audit.unknown)


def _ends(edge: EdgeFacts) -> Place:
    return (edge.source, edge.replica, edge.channel.name)


def _on_their_way(edge: EdgeFacts) -> float:
    applying = (edge.applying_below, edge.applying_above)
    queued = (edge.queued_below, edge.queued_above)
    return float(sum(part.gtid_count for part in (*applying, *queued, edge.expected)))


def _errant(audit: ClusterAudit, facts: ClusterFacts, edge: EdgeFacts) -> GtidSet:
    """Return what only the replica has, and the source will not receive.

    A channel back to the source delivers it, unless error 1236 ends that channel (P1). While its
    receiver does not run, nothing else arrives by it.
    """
    held = GtidSet()
    for back in facts.edges_into(edge.source):
        refused = [each.gtid_set for each in audit.findings if _is_p1(each, back)]
        if back.source == edge.replica and refused:
            held |= GtidSet.union_of(refused)
            if back.channel.receiver is not ThreadState.RUNNING:
                held |= back.expected | back.bypassed
    others = {each.source for each in facts.edges_into(edge.replica)} - {edge.source}
    sent = GtidSet.union_of(facts.last[name].gtid_executed or GtidSet() for name in sorted(others))
    return edge.errant | (held - sent)


def _is_p1(finding: Finding, edge: EdgeFacts) -> bool:
    return finding.code == "P1" and _place(finding) == _ends(edge)


def _not_delivered(edge: EdgeFacts) -> float:
    parts = (edge.purged, edge.bypassed, edge.passed, edge.ignored, edge.dropped_same_server_id)
    return float(sum(part.gtid_count for part in parts))


def _runways(facts: ClusterFacts) -> Iterator[tuple[Place, float]]:
    """Yield for how long servers keep what others need; of a channel without need, the next ones.

    Seconds from the end of the reading to the earliest deletion. Negative: the next rotation of
    the log deletes it. 0: it is deleted already, and the source refuses the channel (P1).
    """
    ended = facts.snapshot.read_ended
    if ended is None:
        return  # the cluster has no server
    needs = [
        ((need.server, need.needed_by, need.channel or ""), need.gtids) for need in needs_of(facts)
    ]
    needed = {place for place, _ in needs}
    needs += [(_ends(edge), GtidSet()) for edge in facts.edges if _ends(edge) not in needed]
    found: dict[Place, float] = {}
    for place, gtids in needs:
        server = facts.last[place[0]]
        deadline = deadline_of(server, gtids)
        if deadline is not None:
            seconds = (deadline.until - ended) / timedelta(seconds=1)
        else:
            seconds = _without_deadline(server)
        # NaN wins: the other need of the same place may be the shorter one.
        found[place] = seconds if place not in found else _shorter(found[place], seconds)
    found |= {_ends(edge): 0.0 for edge in facts.edges if _is_gone(facts, edge)}
    yield from sorted(found.items())


def _is_gone(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    """Return whether the source has purged what a channel with auto-position has yet to receive."""
    purged = facts.last[edge.source].gtid_purged or GtidSet()
    has = (facts.last[edge.replica].gtid_executed or GtidSet()) | edge.channel.gtid_retrieved
    return edge.channel.auto_position and bool(purged - has)


def _without_deadline(server: ServerSnapshot) -> float:
    """Return the runway if no log has a deadline: for ever, if the settings show exactly that."""
    shown = (server.setting("binlog_expire_logs_seconds"), server.setting("expire_logs_days"))
    is_known = shown != (None, None) and not undecided_retention(server)
    return KEPT_FOREVER if is_known and retention_of(server) is None else NOT_KNOWN


def _shorter(one: float, other: float) -> float:
    return NOT_KNOWN if isnan(one) or isnan(other) else min(one, other)
