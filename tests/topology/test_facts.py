"""The algebra of an edge, on any snapshot whatever: parts, names, and no crash."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet, Tsid
from tests.hypothesis_profiles import laws
from tests.snapshots import NOON, a_channel, a_cluster, a_server, with_facts
from topology.audit_cluster import (
    EVERY_SERVER,
    UNEXPLAINED,
    audit_cluster,
    audit_or_unknown,
    not_evaluated,
)
from topology.catalogue.findings import (
    ClusterAudit,
    Evidence,
    Finding,
    Grade,
    Severity,
    Unknown,
    Verdict,
    verdict_of,
    worst_verdict,
)
from topology.facts.cluster_facts import ClusterFacts, gather_facts, severe_differences
from topology.facts.edge_facts import EdgeFacts
from topology.policy import Policy
from topology.readings.snapshot import (
    ALWAYS_READ,
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

LAWS = laws()
NAMES = ("a", "b", "c")
UUIDS = {name: UUID(int=ord(name)) for name in (*NAMES, "x")}

# -- any snapshot ---------------------------------------------------------------------------------

ERRORS = [
    *[(0, "")] * 4,
    (0, "caused different errors on source and replica"),
    (1062, "a duplicate"),
    (1236, "gone"),
]
MAY_BE_UNREAD = ["channels", "gtid_executed", "gtid_owned", "log_end"]


STATES = (
    "",
    "Replica has read all relay log; waiting for more updates",
    "Waiting for an event from Coordinator",
    "Waiting for table metadata lock",
    "Executing event",
)


class Dice(random.Random):
    """Chance, for snapshots: a seed is quicker than drawing every field, and shows as an example."""

    def gtids(self) -> GtidSet:
        runs = [
            (
                Tsid(self.choice(sorted(UUIDS.values())), self.choice(["", "dba"])),
                self.randint(1, 8),
            )
            for _ in range(self.randint(0, 4))
        ]
        return GtidSet.from_intervals((tsid, gno, gno + self.randint(1, 4)) for tsid, gno in runs)

    def place(self) -> LogPosition | None:
        offset = self.randint(0, 3)
        return LogPosition.of(file="binlog.000001", position=offset) if offset else None

    def channel(self, name: str, source: str) -> ChannelSnapshot:
        receiver_errno, receiver_error = self.choice(ERRORS)
        applier_errno, applier_error = self.choice(ERRORS)
        working = self.gtids().first(self.choice([0, 0, 2])).gtids()
        return ChannelSnapshot(
            name=name,
            source_host=source,
            source_port=3306,
            source_uuid=self.choice([None, UUIDS[source], UUIDS[source], UUIDS["x"]]),
            auto_position=self.random() < 0.7,
            gtid_retrieved=self.gtids(),
            receiver=self.choice(list(ThreadState)),
            receiver_errno=receiver_errno,
            receiver_error=receiver_error,
            receiver_error_at="",
            applier=self.choice(list(ThreadState)),
            applier_errno=applier_errno,
            applier_error=applier_error,
            applier_error_at="",
            received_to=self.place(),
            applied_to=self.place(),
            lag_seconds=self.choice([None, 7, 70]),
            workers=tuple(
                WorkerSnapshot(
                    number,
                    self.choice([GtidSet(), GtidSet.of(gtid)]),
                    applier_errno,
                    applier_error,
                    state=self.choice(STATES),
                    applying_seconds=self.choice([None, 0, 11, 61]),
                    last_applied=self.gtids().first(1),
                )
                for number, gtid in enumerate(working, start=1)
            ),
            applier_state=self.choice(STATES),
            relay_applied_to=self.place(),
        )

    def server(self, name: str, uuid: UUID | None, phase: int) -> ServerSnapshot:
        executed = self.gtids()
        sources = self.sample([other for other in UUIDS if other != name], k=self.randint(0, 2))
        started = NOON + timedelta(seconds=phase)
        made = ServerSnapshot(
            cluster="c",
            name=name,
            host=name,
            port=3306,
            phase=phase,
            read_started=started,
            read_ended=started,
            server_uuid=uuid,
            server_id=self.choice([None, 1, 1, 2]),
            version=self.choice([None, ServerVersion(5, 6, 24), ServerVersion(9, 7, 4)]),
            uptime_seconds=self.choice([None, 1, 2]),
            gtid_executed=executed,
            gtid_purged=self.gtids() & executed,
            gtid_owned=self.gtids(),
            log_end=self.place(),
            channels=tuple(
                self.channel(f"channel {number}", source) for number, source in enumerate(sources)
            ),
        )
        if self.random() < 0.05:
            changes: dict[str, Any] = {self.choice(MAY_BE_UNREAD): None}
            unread = tuple(UnreadFact(fact, UnreadReason.PRIVILEGE, "denied") for fact in changes)
            made = replace(made, unread=unread, **changes)
        return made

    def snapshot(self) -> ClusterSnapshot:
        first: list[ServerSnapshot] = []
        last: list[ServerSnapshot] = []
        for name in NAMES:
            uuid = UUIDS[name] if self.random() < 0.95 else self.choice([None, UUIDS["a"]])
            before, after = self.server(name, uuid, 1), self.server(name, uuid, 2)
            whole = before.gtid_executed is not None and after.gtid_executed is not None
            if whole and self.random() < 0.95:  # else it may have shrunk: a torn reading
                assert before.gtid_executed is not None
                assert after.gtid_executed is not None
                grown = before.gtid_executed | after.gtid_executed
                after = replace(after, gtid_executed=grown, uptime_seconds=None)
            first.append(before)
            last.append(after)
        return ClusterSnapshot("c", tuple(first), tuple(last))


def snapshots() -> st.SearchStrategy[ClusterSnapshot]:
    return st.integers(0, 2**32 - 1).map(lambda seed: Dice(seed).snapshot())


@LAWS
@given(snapshots())
def test_the_parts_of_what_is_missing_are_disjoint_and_complete(snapshot: ClusterSnapshot) -> None:
    facts = gather_facts(snapshot, Policy())
    for edge in facts.edges:
        source, replica = facts.first[edge.source], facts.last[edge.replica]
        assert source.gtid_executed is not None
        assert replica.gtid_executed is not None
        assert replica.server_uuid is not None
        missing = (source.gtid_executed - replica.gtid_executed).without_uuid(replica.server_uuid)
        parts = missing_parts(edge)
        assert GtidSet.union_of(parts) == missing
        assert sum(part.gtid_count for part in parts) == missing.gtid_count, "disjoint"


def missing_parts(edge: EdgeFacts) -> list[GtidSet]:
    return [
        *(edge.applying_below, edge.applying_above, edge.queued_below, edge.queued_above),
        *(edge.purged, edge.bypassed, edge.expected, edge.passed, edge.dropped_same_server_id),
    ]


@LAWS
@given(snapshots())
def test_what_is_missing_is_told_whole_unless_its_thread_is_stopped(
    snapshot: ClusterSnapshot,
) -> None:
    """No silence: every part is in a finding of its edge, before one explains another."""
    from topology.rules import RULES

    facts = gather_facts(snapshot, Policy())
    found = [finding for rule in RULES for finding in rule(facts)]
    for edge in facts.edges:
        here = (edge.source, edge.replica)
        told = [one for one in found if (one.source, one.replica) == here]
        shown = GtidSet.union_of(one.gtid_set for one in told)
        rest = GtidSet.union_of(missing_parts(edge)) - shown - edge.dropped_same_server_id
        if rest:
            assert rest <= edge.expected
            assert {one.code for one in told} & {"A4", "A1", "A2", "A3"}, "the error is the story"
        # Once: of several sources, and of a stopped channel that would bring it, one is enough.
        untold = edge.errant - GtidSet.union_of(one.gtid_set for one in found)
        if untold:
            assert explained_by_a_failed_channel(untold, facts=facts, found=found)


def explained_by_a_failed_channel(
    gtids: GtidSet, *, facts: ClusterFacts, found: list[Finding]
) -> bool:
    """Return whether a set waits at a channel that is stopped by hand and has a finding of its own.

    Where its applier has failed as well, the error is the story of that channel: there is no A7.
    """
    return any(
        not other.edge.is_open
        and gtids <= other.expected | other.queued_above | other.queued_below
        and (one.source, one.replica, one.channel)
        == (other.source, other.replica, other.channel.name)
        and one.code in ("A1", "A2", "A3")
        for other in facts.edges
        for one in found
    )


@pytest.mark.parametrize("seed", [53, 13114])
def test_what_waits_at_a_failed_channel_that_was_stopped_by_hand_is_told(seed: int) -> None:
    test = test_what_is_missing_is_told_whole_unless_its_thread_is_stopped
    test.hypothesis.inner_test(Dice(seed).snapshot())  # type: ignore[attr-defined]


@LAWS
@given(snapshots(), st.frozensets(st.sampled_from(sorted(UUIDS.values()))))
def test_what_a_replica_has_too_much_is_claimed_by_the_order_of_reading(
    snapshot: ClusterSnapshot, allowed: frozenset[UUID]
) -> None:
    facts = gather_facts(snapshot, Policy(allowed_uuids=allowed))
    for edge in facts.edges:
        holder, source = facts.first[edge.replica], facts.last[edge.source]
        assert holder.gtid_executed is not None
        assert source.gtid_executed is not None
        assert edge.errant | edge.allowed <= holder.gtid_executed - source.gtid_executed
        assert edge.errant.is_disjoint(edge.allowed)
        assert set(edge.allowed.uuids) <= allowed
        assert edge.errant.is_disjoint(source.gtid_retrieved)
    for lost in facts.lost:
        holder, origin = facts.first[lost.holder], facts.last[lost.origin]
        assert holder.gtid_executed is not None
        assert origin.gtid_executed is not None
        assert origin.server_uuid is not None
        assert lost.lost.is_disjoint(lost.leading)
        beyond = (holder.gtid_executed | holder.gtid_retrieved) - origin.gtid_executed
        assert lost.lost | lost.leading == beyond.from_uuid(origin.server_uuid)


@LAWS
@given(snapshots())
def test_any_snapshot_is_evaluated_and_the_evaluation_holds_together(
    snapshot: ClusterSnapshot,
) -> None:
    audit = audit_cluster(snapshot)
    assert repr(audit) == repr(audit_cluster(snapshot))
    assert list(audit.findings) == sorted(audit.findings, key=lambda one: one.order)
    readings = (*snapshot.first, *snapshot.last)
    unread = {server.name for server in readings if server.unread or server.unexplained}
    torn = {name for name, _ in gather_facts(snapshot, Policy()).torn}
    assert {one.server for one in audit.unknown} == unread | torn | {
        one.replica for one in audit.findings if one.code in ("J4", "U4")
    }
    if audit.unknown:
        assert audit.verdict in (Verdict.UNKNOWN, Verdict.CRITICAL)
    if audit.verdict is Verdict.OK:
        assert {one.severity for one in audit.findings} <= {Severity.INFO}


def renamed(snapshot: ClusterSnapshot, names: dict[str, str]) -> ClusterSnapshot:
    def one(servers: tuple[ServerSnapshot, ...]) -> tuple[ServerSnapshot, ...]:
        changed = [replace(server, name=names[server.name]) for server in servers]
        return tuple(sorted(changed, key=lambda server: server.name))

    return ClusterSnapshot(snapshot.cluster, one(snapshot.first), one(snapshot.last))


def core(audit: ClusterAudit, names: dict[str, str]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            *(one.code, one.severity.value, one.grade.value),
            names.get(one.source or "", ""),
            names.get(one.replica or "", ""),
            *(one.channel or "", str(one.gtid_set)),
        )
        for one in audit.findings
    )


@pytest.mark.long
@LAWS
@given(snapshots(), st.permutations(NAMES))
def test_names_decide_nothing(snapshot: ClusterSnapshot, others: list[str]) -> None:
    names = dict(zip(NAMES, others, strict=True))
    same = {name: name for name in NAMES}
    before, after = audit_cluster(snapshot), audit_cluster(renamed(snapshot, names))
    if gather_facts(snapshot, Policy()).twins:  # which of two twins is named first, names decide
        assert before.verdict is after.verdict is Verdict.CRITICAL
        return
    assert before.verdict is after.verdict
    assert core(before, names) == core(after, same)


@LAWS
@given(snapshots())
def test_grave_is_what_a_critical_difference_is_made_of(snapshot: ClusterSnapshot) -> None:
    from topology.rules import RULES

    facts = gather_facts(snapshot, Policy())
    found = {finding.code for rule in RULES for finding in rule(facts)}
    assert bool(severe_differences(facts)) == bool(
        found & {"H1", "H7", "H8", "E1", "E2", "E3", "E6", "P1", "T4", "A5", "A8"}
    )


# -- shapes that cannot be ------------------------------------------------------------------------


def one(name: str = "a", **changes: Any) -> ServerSnapshot:
    made = ServerSnapshot("c", name, name, 3306, 1, NOON, NOON)
    return replace(made, **changes)


def test_a_snapshot_that_contradicts_itself_is_refused() -> None:
    later = NOON + timedelta(seconds=1)
    a = one(read_ended=later)
    with pytest.raises(ValueError, match="not of the same servers"):
        ClusterSnapshot("c", (a,), (one("b", read_started=later, read_ended=later),))
    with pytest.raises(ValueError, match="a server name appears twice"):
        ClusterSnapshot("c", (a, a), (a, a))
    with pytest.raises(ValueError, match="not in order of name"):
        ClusterSnapshot("c", (one("b"), one("a")), (one("b"), one("a")))
    with pytest.raises(ValueError, match="second reading of a began before the first readings"):
        ClusterSnapshot("c", (a,), (one(phase=2),))
    with pytest.raises(ValueError, match="cannot end before it began"):
        one(read_ended=NOON - timedelta(seconds=1))
    with pytest.raises(ValueError, match="phase 3 is neither"):
        one(phase=3)


def test_an_empty_cluster_is_unknown_and_has_no_time() -> None:
    audit = audit_cluster(ClusterSnapshot("c", (), ()))
    assert (audit.verdict, audit.findings, audit.read_at) == (Verdict.UNKNOWN, (), None)
    assert [one.reason for one in audit.unknown] == ["the cluster has no server"]


@pytest.mark.parametrize("phase", [1, 2])
@pytest.mark.parametrize("name", ALWAYS_READ)
def test_a_fact_that_is_absent_without_a_reason_is_unknown(name: str, phase: int) -> None:
    whole = a_cluster("c", a_server("a", UUIDS["a"], ""), a_server("b", UUIDS["b"], ""))
    absent: dict[str, Any] = {name: None}
    if name == "notable_settings":  # which is made of them
        absent["settings"] = None
    first, last = (
        tuple(
            with_facts(one, **absent) if (one.name, one.phase) == ("b", phase) else one
            for one in servers
        )
        for servers in (whole.first, whole.last)
    )
    audit = audit_cluster(ClusterSnapshot("c", first, last))
    assert Unknown("c", "b", name, UNEXPLAINED) in audit.unknown
    assert audit.verdict is Verdict.UNKNOWN


def test_a_channel_that_points_at_its_own_server_is_no_edge_by_uuid() -> None:
    from topology.facts.graph import build_graph

    own = a_channel("elsewhere", UUIDS["a"])
    a = one(server_uuid=UUIDS["a"], channels=(own,))
    graph = build_graph(ClusterSnapshot("c", (a,), (a,)))
    assert (graph.edges, graph.outside) == ((), (("a", own),))


def test_channels_from_servers_that_were_not_read_are_in_order_of_name() -> None:
    """So two audits of one state have one order, however a server lists its channels."""
    from topology.facts.graph import build_graph

    far, near = (a_channel("elsewhere", None, name=name) for name in ("far", "near"))
    for channels in ((far, near), (near, far)):
        a = one(server_uuid=UUIDS["a"], channels=channels)
        assert build_graph(ClusterSnapshot("c", (a,), (a,))).outside == (("a", far), ("a", near))


@pytest.mark.parametrize(
    ("file", "expected"),
    [("", None), ("binlog", None), ("binlog.00000x", None), ("binlog.²", None)],
)
def test_a_file_without_a_number_is_no_place(file: str, expected: None) -> None:
    assert LogPosition.of(file=file, position=4) is expected


def test_places_order_by_number_not_by_text() -> None:
    early = LogPosition.of(file="binlog.999999", position=500)
    late = LogPosition.of(file="binlog.1000000", position=4)
    assert early is not None
    assert late is not None
    assert early < late
    assert str(late) == "binlog.1000000:4"


# -- an evaluation that fails ----------------------------------------------------------------------


def test_a_defect_of_ours_leaves_the_cluster_unknown_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = ClusterSnapshot("c", (one(),), (one(phase=2),))
    assert audit_or_unknown(snapshot) == audit_cluster(snapshot)

    def broken(_facts: ClusterFacts) -> Iterator[Finding]:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("topology.audit_cluster.RULES", (broken,))
    audit = audit_or_unknown(snapshot)
    assert (audit.verdict, audit.findings, audit.servers) == (Verdict.UNKNOWN, (), ("a",))
    assert audit.read_at == NOON
    assert [unknown.reason for unknown in audit.unknown] == [
        "defect of the auditor: ZeroDivisionError: ours"
    ]


def test_a_cluster_nobody_could_read_is_unknown_for_the_reasons_given() -> None:
    reasons = {Unknown("c", name, "readings", "gone") for name in ("b", EVERY_SERVER)}
    audit = not_evaluated("c", reasons)
    assert (audit.verdict, audit.servers, audit.read_at) == (Verdict.UNKNOWN, ("b",), None)
    assert set(audit.unknown) == reasons
    with pytest.raises(AssertionError, match="UNKNOWN has a reason"):
        not_evaluated("c", ())


# -- verdicts -------------------------------------------------------------------------------------


def finding(code: str, severity: Severity) -> Finding:
    return Finding(
        code=code,
        name="",
        severity=severity,
        grade=Grade.PROVED,
        cluster="c",
        source=None,
        replica=None,
        channel=None,
        gtid_set=GtidSet(),
        first_seen=NOON,
        last_seen=NOON,
        evidence=(Evidence("f", "v", "a", NOON),),
        explanation="",
        strategies=(),
    )


@pytest.mark.parametrize(
    ("findings", "unknown", "expected"),
    [
        ([], False, Verdict.OK),
        ([("T1", Severity.INFO)], False, Verdict.OK),
        ([("C3", Severity.WARNING), ("T1", Severity.INFO)], False, Verdict.WARNING),
        ([("C3", Severity.WARNING)], True, Verdict.UNKNOWN),
        ([], True, Verdict.UNKNOWN),
        ([("U1", Severity.CRITICAL)], True, Verdict.UNKNOWN),
        ([("E1", Severity.CRITICAL)], True, Verdict.CRITICAL),
    ],
)
def test_the_verdict_is_the_worst_that_is_known(
    findings: list[tuple[str, Severity]], unknown: bool, expected: Verdict
) -> None:
    unread = [Unknown("c", "a", "channels", "privilege")] if unknown else []
    assert verdict_of(findings=[finding(*one) for one in findings], unknown=unread) is expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Verdict.OK),
        ([Verdict.OK, Verdict.WARNING], Verdict.WARNING),
        ([Verdict.WARNING, Verdict.UNKNOWN], Verdict.UNKNOWN),
        ([Verdict.UNKNOWN, Verdict.CRITICAL, Verdict.OK], Verdict.CRITICAL),
    ],
)
def test_clusters_together_are_as_bad_as_the_worst(
    verdicts: list[Verdict], expected: Verdict
) -> None:
    assert worst_verdict(verdicts) is expected


def test_a_finding_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="a finding E1 without evidence"):
        replace(finding("E1", Severity.CRITICAL), evidence=())


def test_a_finding_keeps_its_identity_while_its_size_and_time_change() -> None:
    before = finding("E1", Severity.CRITICAL)
    after = replace(
        before, gtid_set=GtidSet.parse(f"{UUIDS['a']}:1-9"), last_seen=NOON + timedelta(hours=1)
    )
    assert before.id == after.id
    assert before.id != replace(before, channel="").id  # no channel is not the default channel
