"""The local engine's results: what is written, since when, and that nothing is written over."""

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from spark_audit.adapters.local_results import write_results_locally
from spark_audit.adapters.result_place import ResultPlace, ResultsDiffer
from spark_audit.result_records import LocalResults
from spark_audit.summary import FleetSummary, policy_digest
from tests.spark_audit.audits import UUID_A, an_audit, night, run_of, with_gtids
from tests.topology.test_accepted import REPAIR
from tests.topology.test_accepted_findings import HOLE
from topology.catalogue.findings import ClusterAudit
from topology.finding_history import CARRIED_DAYS_MAX
from topology.policy import Policy


def audit_night(directory: Path, number: int, *audits: ClusterAudit) -> LocalResults:
    return write_results_locally(
        audits, directory=directory, run=run_of(number), policy=Policy(), contents_compared=None
    )


def since(results: LocalResults) -> dict[str, object]:
    return {
        f"{one.cluster} {one.code}": one.first_seen
        for audit in results.audits
        for one in audit.findings
    }


OTHERWISE: dict[str, Any] = {
    "allowed_uuids": frozenset({UUID(int=7)}),
    "lock_wait_seconds_max": 11,
    "stall_seconds_max": 61,
    "runway_seconds_min": 1,
    "outage_seconds_max": 1,
    "clock_seconds_max": 1,
    "dead_uuids_max": 5,
    "intervals_max": 100,
    "ddl_wait_seconds_max": 1,
    "definitions": True,
    "levels": (("C5", "warning"),),
    "reconcile": ("refetch",),
    "external_sources": frozenset({"elsewhere.example:3306"}),
    "accepted": (REPAIR,),
    "accepted_findings": (HOLE,),
}


def test_every_part_of_a_policy_is_in_its_digest() -> None:
    assert OTHERWISE.keys() == {each.name for each in fields(Policy)}
    policies = [Policy(), *(Policy(**{name: value}) for name, value in OTHERWISE.items())]
    policies.append(Policy(accepted=(REPAIR, replace(REPAIR, plan_id="another"))))
    policies.append(Policy(accepted_findings=(replace(HOLE, reason="another"),)))
    assert len({policy_digest(each) for each in policies}) == len(policies)


def test_a_table_of_an_earlier_version_is_an_error_with_its_place(tmp_path: Path) -> None:
    results = audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",)))
    [file] = (Path(results.place) / "findings").glob("*.parquet")
    pq.write_table(pq.read_table(file).drop(["deadline"]), file)
    with pytest.raises(OSError, match=r"/findings: .*deadline"):
        audit_night(tmp_path, 1, an_audit("a", at=night(1), codes=("H1",)))


def test_a_finding_that_lasts_keeps_its_first_seen_and_a_new_one_begins(tmp_path: Path) -> None:
    audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",)))
    grown = with_gtids(an_audit("a", at=night(1), codes=("H1", "E1")), "51-60")
    assert since(audit_night(tmp_path, 1, grown)) == {"a H1": night(0), "a E1": night(1)}
    audit_night(tmp_path, 2, an_audit("a", at=night(2)))  # it looked, and found nothing
    third = audit_night(tmp_path, 3, an_audit("a", at=night(3), codes=("H1",)))
    assert since(third) == {"a H1": night(3)}


@pytest.mark.parametrize("looked", ["unread", "absent"])
def test_a_run_that_could_not_look_carries_what_was_known(tmp_path: Path, looked: str) -> None:
    audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",)))
    seen = [an_audit("other", at=night(1))]
    if looked == "unread":
        seen.append(an_audit("a", at=night(1), unread=("channels",)))
    carried = audit_night(tmp_path, 1, *seen).carried
    assert [(one.cluster, one.code) for one in carried] == [("a", "H1")]
    found = audit_night(tmp_path, 2, an_audit("a", at=night(2), codes=("H1",)))
    assert since(found) == {"a H1": night(0)}
    assert found.carried == ()


def test_contents_are_carried_although_the_cluster_was_read_and_forgotten_in_time(
    tmp_path: Path,
) -> None:
    audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("E4", "H1")))
    carried = audit_night(tmp_path, 1, an_audit("a", at=night(1))).carried
    assert [one.code for one in carried] == ["E4"]
    late = CARRIED_DAYS_MAX + 1
    assert audit_night(tmp_path, late, an_audit("a", at=night(late))).carried == ()


def test_the_same_again_changes_nothing_and_another_finding_is_refused(tmp_path: Path) -> None:
    first = audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",)))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",))) == first
    with pytest.raises(ResultsDiffer, match=r"results differ .*clusters.*results are kept"):
        audit_night(tmp_path, 0, an_audit("a", at=night(0)))
    with pytest.raises(ResultsDiffer, match="another policy"):
        write_results_locally(
            [],
            directory=tmp_path,
            run=run_of(0),
            policy=Policy(stall_seconds_max=7),
            contents_compared=None,
        )
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_what_is_kept_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_storage: object, *_given: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(ResultPlace, "publish", full)
        with pytest.raises(OSError, match="No space"):
            audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    place = Path(audit_night(tmp_path, 0, an_audit("a", at=night(0), codes=("H1",))).place)
    assert {path.name for path in place.iterdir()} == {
        *("_SUCCESS", "_summary.json", "carried", "clusters", "findings", "unknown")
    }
    summary = FleetSummary.from_text((place / "_summary.json").read_text())
    assert summary.audited_at == night(0)
    assert summary.digest_by == "local"
    (row,) = pq.read_table(place / "findings").to_pylist()
    assert row["gtid_set"] == f"{UUID_A}:51-53"
    assert row["first_seen"] == night(0)


def test_a_page_has_the_worst_first(tmp_path: Path) -> None:
    results = audit_night(
        tmp_path,
        0,
        an_audit("b", at=night(0), codes=("C3", "T2")),
        an_audit("a", at=night(0), codes=("C3",)),
        an_audit("c", at=night(0) + timedelta(seconds=1), codes=("H1",)),
        an_audit("d", at=night(0), unread=("channels",)),
    )
    assert [(one.cluster, one.code) for one in results.worst_findings(9)] == [
        ("c", "H1"), ("a", "C3"), ("b", "C3"),
    ]  # fmt: skip
    assert len(results.worst_findings(2)) == 2
    assert [one.cluster for one in results.summary.worst] == ["c", "d", "a", "b"]
    assert [one.fact for one in results.first_unknown(5)] == ["channels"]
