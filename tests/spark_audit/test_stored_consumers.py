"""Consumers of a stored run: both engines report them as the audit of live servers did."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gtid import GtidSet
from gtid_audit import clock
from gtid_audit.cli import run
from spark_audit.adapters import local
from spark_audit.adapters.local import audit_snapshots_locally
from spark_audit.evaluate_batch import evaluate_rows
from spark_audit.evaluate_cluster import evaluate_records
from spark_audit.run_context import Beside
from tests.consumers import BEFORE, a_consumer, an_unread_consumer
from tests.gtid_audit.build import healthy
from tests.snapshots import A, B
from topology.adapters.parquet import write_snapshots
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.documents.records import Record, audit_to_record, snapshot_to_record
from topology.policy import Policy
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.snapshot import BinaryLog, ClusterSnapshot

BOTH = GtidSet.parse(f"{A}:1-100,{B}:1-50")
PURGED = GtidSet.parse(f"{A}:1-20")
NOW = datetime(2026, 1, 2, 13, tzinfo=UTC)


def shop(name: str, *consumers: ConsumerReading, gone: bool = False) -> ClusterSnapshot:
    """Return a pair in which each server has purged a:1-20, and may list a log that is gone."""
    made = healthy(name)
    logs = (BinaryLog("binlog.000001", 0 if gone else 157),)
    first, last = (
        tuple(replace(each, gtid_purged=PURGED, binary_logs=logs) for each in servers)
        for servers in (made.first, made.last)
    )
    return ClusterSnapshot(name, first, last, consumers=consumers)


CLUSTERS = (
    shop("ahead", a_consumer("cdc", BOTH | GtidSet.parse(f"{A}:101-103"), server="a")),
    shop("behind", a_consumer("cdc", GtidSet.parse(f"{A}:1-5"), server="a", is_fixed=True)),
    shop("gone", a_consumer("cdc", BOTH - GtidSet.parse(f"{A}:100")), gone=True),
    shop("none"),
    shop("unread", an_unread_consumer("cdc")),
    shop("well", a_consumer("cdc", BOTH, server="a")),
)
VERDICTS = {
    "ahead": Verdict.CRITICAL,
    "behind": Verdict.CRITICAL,
    "gone": Verdict.UNKNOWN,
    "none": Verdict.OK,
    "unread": Verdict.UNKNOWN,
    "well": Verdict.OK,
}


def rows_of(snapshot: ClusterSnapshot) -> list[Record]:
    return [snapshot_to_record(each) for each in (*snapshot.first, *snapshot.last)]


def test_the_clusters_are_as_they_should_be() -> None:
    assert {each.cluster: audit_cluster(each).verdict for each in CLUSTERS} == VERDICTS


def test_a_cluster_with_consumers_goes_to_the_rules_although_its_columns_are_clean() -> None:
    """`gone` needs the list of logs, which columns read only where a finding quotes it."""
    beside = Beside.telling(None, None, {each.cluster: each.consumers for each in CLUSTERS})
    rows = [row for each in CLUSTERS for row in rows_of(each)]
    table = table_of_records(rows, SNAPSHOT_SCHEMA)
    found = records_of_table(evaluate_rows(table, policy=Policy(), beside=beside))
    assert found == [audit_to_record(audit_cluster(each)) for each in CLUSTERS]
    without = records_of_table(evaluate_rows(table, policy=Policy()))
    assert {each["verdict"] for each in without} == {"OK"}


@pytest.mark.parametrize("rows_min", [0, 1_000_000])
def test_a_run_gives_the_same_findings_again(
    rows_min: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "COLUMNS_ROWS_MIN", rows_min)
    write_snapshots(tmp_path, CLUSTERS)
    assert audit_snapshots_locally(tmp_path, policy=Policy()) == tuple(
        audit_cluster(each) for each in CLUSTERS
    )


def test_consumers_that_do_not_fit_their_servers_are_unknown_and_not_ok() -> None:
    well = CLUSTERS[-1]
    early = [OfferedReading(BEFORE, BOTH)] * 2
    misplaced = ConsumerReading("cdc", "a", "x", True, *early)
    for consumer in (misplaced, a_consumer("cdc", BOTH, server="z")):
        beside = Beside.telling(None, None, {"well": (consumer,)})
        audit = evaluate_records("well", rows_of(well), policy=Policy(), beside=beside)
        assert audit.verdict is Verdict.UNKNOWN
        assert "cdc" in audit.unknown[0].reason


# -- as a person uses it --------------------------------------------------------------------------

Audit = Callable[..., tuple[int, dict[str, str], list[dict[str, str]]]]


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def audited(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Audit:
    """Return a function that runs `audit`, and returns status, verdicts and what is unknown."""
    monkeypatch.setattr(clock, "now", lambda: NOW)
    if request.param == "spark":
        request.getfixturevalue("spark")

    def audit(*arguments: str) -> tuple[int, dict[str, str], list[dict[str, str]]]:
        status = run(("audit", *arguments, "--engine", request.param, "--json"))
        document = json.loads(capsys.readouterr().out)
        verdicts = {each["cluster"]: each["verdict"] for each in document["clusters"]}
        return status, verdicts, document["unknown"]

    return audit


def test_both_engines_read_the_consumers_of_a_run(audited: Audit, tmp_path: Path) -> None:
    write_snapshots(tmp_path, CLUSTERS)
    status, verdicts, unknown = audited("--snapshots", str(tmp_path))
    assert status == 2
    assert verdicts == {name: verdict.value for name, verdict in VERDICTS.items()}
    assert {(each["cluster"], each["server"], each["fact"]) for each in unknown} == {
        ("gone", "cdc", "whether a serves its set"),
        ("gone", "cdc", "whether b serves its set"),
        ("unread", "cdc", "GTID set of the consumer"),
    }


def test_a_consumer_that_the_run_does_not_have_is_unknown(audited: Audit, tmp_path: Path) -> None:
    """A run that was written before consumers existed is read, and is not OK about them."""
    write_snapshots(tmp_path / "runs", [shop("none")])
    fleet = tmp_path / "fleet.yaml"
    servers = "[{name: a, host: a.example}, {name: b, host: b.example}]"
    fleet.write_text(f"defaults: {{user: u}}\nclusters:\n  - name: none\n    servers: {servers}\n")
    arguments = ("--snapshots", str(tmp_path / "runs"))
    assert audited(*arguments, "--fleet", str(fleet)) == (0, {"none": "OK"}, [])
    with fleet.open("a") as file:
        file.write('    consumers: [{name: cdc, set: "@offset.json"}]\n')
    assert audited(*arguments) == (0, {"none": "OK"}, [])
    status, verdicts, unknown = audited(*arguments, "--fleet", str(fleet))
    assert (status, verdicts) == (3, {"none": "UNKNOWN"})
    assert unknown == [
        {
            "cluster": "none",
            "server": "cdc",
            "fact": "GTID set of the consumer",
            "reason": "the stored run has no reading of this consumer",
        }
    ]


@pytest.mark.parametrize("credentials", ["driver", "executor"])
def test_the_spark_source_leaves_consumers_out_and_says_so(
    credentials: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their commands would run on executors, where neither files nor programs need to be."""
    from spark_audit.adapters.snapshot_source import plan_of
    from spark_audit.adapters.source_options import SourceOptions

    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "defaults: {user: u}\nclusters:\n  - {name: c, servers: [{name: a, host: h}],"
        " consumers: [{name: cdc, command: [touch, x]}]}\n"
    )
    options = SourceOptions.of({"fleet": str(fleet), "credentials": credentials})
    [part] = plan_of(options)
    assert [each.consumers for each in part.clusters] == [()]
    assert "does not read consumers of the fleet file" in capsys.readouterr().err
