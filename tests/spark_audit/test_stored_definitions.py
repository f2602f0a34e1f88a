"""Compared definitions of a stored run: both engines report them as the live audit did."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gtid import GtidSet
from gtid_audit import clock
from gtid_audit.cli import run
from spark_audit.adapters import local
from spark_audit.adapters.local import audit_snapshots_locally
from spark_audit.evaluate_batch import evaluate_rows
from spark_audit.run_context import Beside
from tests.definitions import a_compared_pair, a_ddl, a_reading, an_object
from tests.gtid_audit.build import healthy
from tests.snapshots import A
from topology.adapters.parquet import write_snapshots
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.adapters.stored_definitions import definitions_beside
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.documents.records import audit_to_record, snapshot_to_record
from topology.policy import Policy
from topology.readings.definition_reading import DefinitionReading

NOW = datetime(2026, 1, 2, 13, tzinfo=UTC)
DDL = a_ddl(f"{A}:100")
FILTERED = an_object(is_proved=False, is_filtered=True)
UNSEARCHED = an_object(is_proved=False, is_searched=False)
# Every field of a reading that a rule may report something about, on its own.
READINGS: dict[str, DefinitionReading] = {
    "ahead": a_reading(a_compared_pair(is_mutual=True, ahead=(DDL,))),
    "alike": a_reading(a_compared_pair()),
    "behind": a_reading(a_compared_pair(behind=(DDL,))),
    "differs": a_reading(a_compared_pair(differing=(an_object(is_severe=True),))),
    "filtered": a_reading(a_compared_pair(differing=(FILTERED,))),
    "nothing": a_reading(),
    "unread": a_reading(a_compared_pair(), unread=("triggers",)),
    "unsearched": a_reading(a_compared_pair(unsearched="purged")),
    "waits": a_reading(a_compared_pair(differing=(UNSEARCHED,))),
}
VERDICTS = {
    "ahead": Verdict.OK,
    "alike": Verdict.OK,
    "behind": Verdict.OK,
    "differs": Verdict.CRITICAL,
    "filtered": Verdict.OK,
    "nothing": Verdict.OK,
    "unread": Verdict.UNKNOWN,
    "unsearched": Verdict.UNKNOWN,
    "waits": Verdict.UNKNOWN,
}
CLUSTERS = tuple(healthy(name).with_definitions(READINGS[name]) for name in sorted(READINGS))


def test_the_clusters_are_as_they_should_be() -> None:
    assert {each.cluster: audit_cluster(each).verdict for each in CLUSTERS} == VERDICTS
    codes = {each.cluster: [one.code for one in audit_cluster(each).findings] for each in CLUSTERS}
    assert codes["ahead"] == codes["behind"] == ["S1"]
    assert codes["differs"] == codes["filtered"] == ["S2"]
    silent = {name for name, each in READINGS.items() if each.is_silent}
    assert silent == {"alike", "nothing"}


def test_a_cluster_with_something_to_say_goes_to_the_rules_although_its_columns_are_clean() -> None:
    rows = [snapshot_to_record(each) for one in CLUSTERS for each in (*one.first, *one.last)]
    table = table_of_records(rows, SNAPSHOT_SCHEMA)
    beside = Beside.telling(None, definitions=READINGS)
    assert beside.clusters == sorted(READINGS.keys() - {"alike", "nothing"})
    found = records_of_table(evaluate_rows(table, policy=Policy(), beside=beside))
    assert found == [audit_to_record(audit_cluster(each)) for each in CLUSTERS]
    without = records_of_table(evaluate_rows(table, policy=Policy()))
    assert {each["verdict"] for each in without} == {"OK"}


@pytest.mark.parametrize("rows_min", [0, 1_000_000])
def test_a_run_gives_the_same_findings_again(
    rows_min: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "COLUMNS_ROWS_MIN", rows_min)
    write_snapshots(tmp_path, CLUSTERS, beside=definitions_beside(READINGS))
    expected = tuple(audit_cluster(each) for each in CLUSTERS)
    assert audit_snapshots_locally(tmp_path, policy=Policy()) == expected


@pytest.mark.spark
def test_spark_gives_the_same_findings(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    spark: object,
) -> None:
    assert spark is not None
    monkeypatch.setattr(clock, "now", lambda: NOW)
    write_snapshots(tmp_path / "runs", CLUSTERS, beside=definitions_beside(READINGS))
    documents = []
    for engine in ("local", "spark"):
        options = ("--snapshots", str(tmp_path / "runs"), "--engine", engine, "--json")
        assert run(("audit", *options)) == 2
        documents.append(json.loads(capsys.readouterr().out))
    for each in documents:
        each.pop("engine")
    assert documents[0] == documents[1]
    assert [each["cluster"] for each in documents[0]["definitions"]] == sorted(READINGS)


@pytest.mark.parametrize(
    ("policy", "compared", "verdict"),
    [("false", False, "OK"), ("true", False, "UNKNOWN"), ("true", True, "OK")],
)
def test_a_policy_that_asks_for_definitions_makes_a_run_without_them_unknown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    policy: str,
    compared: bool,
    verdict: str,
) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    made = healthy("shop")
    beside = definitions_beside({"shop": READINGS["alike"]} if compared else None)
    write_snapshots(tmp_path / "runs", [made], beside=beside)
    servers = "".join(
        f"      - {{name: {each.name}, host: {each.host}, port: {each.port}}}\n"
        for each in made.last
    )
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        f"defaults: {{user: audit}}\npolicy: {{definitions: {policy}}}\n"
        f"clusters:\n  - name: shop\n    servers:\n{servers}"
    )
    run(("audit", "--snapshots", str(tmp_path / "runs"), "--fleet", str(fleet), "--json"))
    found = json.loads(capsys.readouterr().out)
    facts = [each["fact"] for each in found["unknown"]]
    assert (found["verdict"], facts) == (verdict, ["definitions"] if verdict != "OK" else [])


def test_the_definitions_are_gtid_sets_of_the_run() -> None:
    """The readings of this module concern GTIDs that the healthy pair has."""
    assert GtidSet.of([DDL.gtid]) <= GtidSet.union_of(
        each.gtid_executed or GtidSet() for each in CLUSTERS[0].last
    )
