"""One cluster evaluated from its records: the rules' own answer, or UNKNOWN with the reason."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from spark_audit.adapters.local import audit_snapshots_locally
from spark_audit.evaluate_cluster import evaluate_records
from topology import audit_cluster as evaluating
from topology.audit_cluster import EVERY_SERVER, NAMELESS_SERVER, audit_cluster
from topology.catalogue.findings import Unknown, Verdict
from topology.documents.records import Record, snapshot_to_record
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

POLICY = Policy()


def records_of(snapshot: ClusterSnapshot) -> list[Record]:
    return [snapshot_to_record(server) for server in (*snapshot.first, *snapshot.last)]


def named(fleet: tuple[ClusterSnapshot, ...], cluster: str) -> ClusterSnapshot:
    (found,) = (snapshot for snapshot in fleet if snapshot.cluster == cluster)
    return found


def test_every_cluster_gets_the_rules_own_answer(fleet: tuple[ClusterSnapshot, ...]) -> None:
    for snapshot in fleet:
        expected = audit_cluster(snapshot, POLICY)
        assert evaluate_records(snapshot.cluster, records_of(snapshot), policy=POLICY) == expected


def test_the_fleet_has_something_of_everything(
    stored: Path, fleet: tuple[ClusterSnapshot, ...]
) -> None:
    audits = {audit.cluster: audit for audit in audit_snapshots_locally(stored, policy=POLICY)}
    assert list(audits) == sorted(snapshot.cluster for snapshot in fleet)
    codes = {cluster: {one.code for one in audit.findings} for cluster, audit in audits.items()}
    assert audits["healthy"].verdict is Verdict.OK
    assert not codes["healthy"]
    for cluster, code in {
        "hole": "H8",
        "tagged": "H8",
        "errant": "E1",
        "purged": "P1",
        "by-position": "C3",
        "stopped": "A2",
        "copied": "C1",
        "hung": "U1",
        "denied": "U1",
    }.items():
        assert code in codes[cluster], cluster
    assert {audit.verdict for audit in audits.values()} == set(Verdict)
    assert any(one.gtid_set.gtid_count > 2**63 for one in audits["vast"].findings)


def test_the_policy_reaches_the_rules(fleet: tuple[ClusterSnapshot, ...]) -> None:
    errant = named(fleet, "errant")
    ours = errant.last[1].server_uuid
    assert ours is not None
    lenient = Policy(allowed_uuids=frozenset({ours}))
    strict = evaluate_records("errant", records_of(errant), policy=POLICY)
    allowed = evaluate_records("errant", records_of(errant), policy=lenient)
    assert strict.verdict is Verdict.CRITICAL
    assert "E1" not in {one.code for one in allowed.findings}


def test_records_may_come_in_any_order(fleet: tuple[ClusterSnapshot, ...]) -> None:
    hole = named(fleet, "hole")
    expected = audit_cluster(hole, POLICY)
    for order in permutations(records_of(hole)):
        assert evaluate_records("hole", order, policy=POLICY) == expected


@pytest.mark.parametrize(
    ("row", "changes", "unknown"),
    [
        (
            3,
            {"gtid_executed": "1-2-3"},
            Unknown("hole", "db2", "gtid_executed", "unparseable: expected a UUID"),
        ),
        (0, {"port": None}, Unknown("hole", "db1", "port", "unparseable: expected a whole number")),
        (
            0,
            {"name": None},
            Unknown("hole", NAMELESS_SERVER, "name", "unparseable: expected a text"),
        ),
        (0, {"phase": 7}, Unknown("hole", "db1", "reading", "unparseable: db1: phase 7")),
        (
            0,
            {"cluster": "other"},
            Unknown(
                "hole", EVERY_SERVER, "readings", "unparseable: hole: a reading of cluster other"
            ),
        ),
        (
            0,
            {"name": "db9"},
            Unknown(
                "hole", EVERY_SERVER, "readings", "unparseable: hole: the two readings are not"
            ),
        ),
    ],
)
def test_a_damaged_row_makes_its_cluster_unknown_and_says_why(
    fleet: tuple[ClusterSnapshot, ...], row: int, changes: dict[str, Any], unknown: Unknown
) -> None:
    records = records_of(named(fleet, "hole"))
    records[row] |= changes
    audit = evaluate_records("hole", records, policy=POLICY)
    assert audit.verdict is Verdict.UNKNOWN
    assert audit.findings == ()
    (said,) = audit.unknown
    assert (said.cluster, said.server, said.fact) == (unknown.cluster, unknown.server, unknown.fact)
    assert said.reason.startswith(unknown.reason)
    assert set(audit.servers) <= {"db1", "db2", "db9"}


def test_a_defect_of_ours_is_never_taken_for_health(
    fleet: tuple[ClusterSnapshot, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object) -> None:
        raise AssertionError("one fact, one finding")

    monkeypatch.setattr(evaluating, "audit_cluster", broken)
    healthy = named(fleet, "healthy")
    audit = evaluate_records("healthy", records_of(healthy), policy=POLICY)
    reason = "defect of the auditor: AssertionError: one fact, one finding"
    assert audit.verdict is Verdict.UNKNOWN
    assert audit.unknown == (Unknown("healthy", EVERY_SERVER, "evaluation", reason),)
    assert audit.servers == ("db1", "db2")
    assert audit.read_at == healthy.read_ended


def test_no_records_at_all_are_not_health() -> None:
    audit = evaluate_records("ghost", [], policy=POLICY)
    assert audit.servers == ()
    assert audit.read_at is None
    assert audit.verdict is Verdict.UNKNOWN
