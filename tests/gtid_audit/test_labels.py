"""The labels of a cluster: which names are labels, and that they are in every output."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit.cli import run
from gtid_audit.service.metrics import METRICS
from gtid_audit.tasks import fleet_reading
from gtid_audit.tasks.fleet_audit import answer_of_fleet
from gtid_audit.views.report import Engine
from spark_audit.evaluate_batch import evaluate_rows
from spark_audit.evaluate_cluster import evaluate_records
from spark_audit.run_context import Beside
from tests.gtid_audit.build import healthy, holed
from tests.gtid_audit.scraped import states_of, text_of
from topology.adapters.inventory.fleet import Fleet
from topology.adapters.inventory.fleet_file import parse_fleet
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.adapters.stored_labels import labels_in, labels_of_run
from topology.adapters.stored_runs import UnreadableSnapshots, latest_run
from topology.audit_cluster import audit_cluster
from topology.documents.records import audit_from_record, snapshot_to_record
from topology.policy import Policy

LABELS = {"hole": (("env", "production"), ("team", "pay ä")), "well": (("team", "stock"),)}
FLEET = """\
clusters:
  - name: hole
    labels: {team: "pay ä", env: production}
    servers: [{name: a, host: 10.0.0.1, user: x}, {name: b, host: 10.0.0.2, user: x}]
  - name: plain
    servers: [{name: a, host: 10.0.1.1, user: x}, {name: b, host: 10.0.1.2, user: x}]
  - name: well
    labels: {team: stock}
    servers: [{name: a, host: 10.0.2.1, user: x}, {name: b, host: 10.0.2.2, user: x}]
"""
SNAPSHOTS = (holed("hole"), healthy("plain"), healthy("well"))


def fleet_of(text: str) -> Fleet:
    return parse_fleet(text, name="fleet.yaml", environment={}, warn=lambda _text: None)


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(fleet_reading, "collect_fleet", lambda *_a, **_k: iter(SNAPSHOTS))
    return fleet_of(FLEET)


def labels_of(document: dict[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        each["cluster"]: tuple((one["name"], one["value"]) for one in each["labels"])
        for each in document["clusters"]
    }


def test_a_fleet_file_has_labels() -> None:
    assert fleet_of(FLEET).labels == LABELS
    assert fleet_of(FLEET).only("well").labels == {"well": LABELS["well"]}


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("te-am: x", "is not a label name"),
        ("1team: x", "is not a label name"),
        ('"": x', "is not a label name"),
        ("__team: x", "is not a label name"),
        ("tëam: x", "is not a label name"),
        ("cluster: x", "is a label of the metrics already"),
        ("team: 7", "string"),
        ('team: ""', "is empty"),
        ('team: "a\\tb"', "control character"),
    ],
)
def test_a_wrong_label_is_reported_with_its_line(label: str, said: str) -> None:
    with pytest.raises(InventoryProblem, match="line 3: ") as refused:
        fleet_of(FLEET.replace('team: "pay ä"', label))
    assert said in str(refused.value)


def test_live_documents_and_stored_runs_have_them(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {**LABELS, "plain": ()}
    with answer_of_fleet(fleet, engine=Engine.LOCAL, out=None, content=False) as answer:
        assert labels_of(json.loads("".join(answer.document()))) == expected
    with answer_of_fleet(fleet, engine=Engine.LOCAL, out=tmp_path, content=False) as answer:
        live = "".join(answer.document())
    assert labels_of(json.loads(live)) == expected
    assert labels_of_run(latest_run(tmp_path)) == LABELS
    stored = ("audit", "--snapshots", str(tmp_path), "--max-age", "none", "--json")
    assert run(stored) == 2
    assert labels_of(json.loads(capsys.readouterr().out)) == expected
    assert run((*stored[:3], "--max-age", "1m", "--json")) == 3
    assert labels_of(json.loads(capsys.readouterr().out)) == expected, "of a run that is too old"
    [file] = (tmp_path / "audits").rglob("clusters/*.parquet")
    rows = pq.read_table(file, columns=["cluster", "labels"]).to_pylist()
    assert {row["cluster"]: len(row["labels"]) for row in rows} == {
        "hole": 2,
        "plain": 0,
        "well": 1,
    }


def test_a_cluster_that_is_absent_from_the_run_has_those_of_the_fleet_file(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answer_of_fleet(fleet, engine=Engine.LOCAL, out=tmp_path, content=False):
        pass
    more = FLEET + FLEET.partition("clusters:\n")[2].replace("10.0", "10.1").replace(
        "name: hole", "name: new"
    ).replace("name: plain", "name: p2").replace("name: well", "name: w2")
    (tmp_path / "fleet.yaml").write_text(more)
    arguments = ("--snapshots", str(tmp_path), "--fleet", str(tmp_path / "fleet.yaml"))
    assert run(("audit", *arguments, "--max-age", "none", "--json")) == 2
    assert labels_of(json.loads(capsys.readouterr().out))["new"] == LABELS["hole"]


def test_columns_and_rules_give_the_same_labels() -> None:
    beside = Beside.telling(None, labels=LABELS)
    assert beside.clusters == [], "labels alone send no cluster to the rules"
    rows = {one.cluster: [*map(snapshot_to_record, (*one.first, *one.last))] for one in SNAPSHOTS}
    one_by_one = [
        evaluate_records(name, rows[name], policy=Policy(), beside=beside) for name in sorted(rows)
    ]
    table = evaluate_rows(
        table_of_records([row for each in rows.values() for row in each], SNAPSHOT_SCHEMA),
        policy=Policy(),
        beside=beside,
    )
    assert [*map(audit_from_record, records_of_table(table))] == one_by_one
    assert {audit.cluster: audit.labels for audit in one_by_one} == {**LABELS, "plain": ()}


def _samples() -> Iterator[Any]:
    for family in text_string_to_metric_families(text_of(states_of(*SNAPSHOTS, labels=LABELS))):
        yield from family.samples


def test_every_series_of_a_cluster_has_its_labels() -> None:
    samples = [each for each in _samples() if "cluster" in each.labels]
    assert {each.name for each in samples} == METRICS.keys() - {
        "gtid_audit_build_info",
        "gtid_audit_finding_deadline_timestamp_seconds",
    }
    expected = {
        "hole": ("pay ä", "production"), "plain": ("", ""), "well": ("stock", "")
    }  # fmt: skip
    for each in samples:
        found = (each.labels.get("team", ""), each.labels.get("env", ""))
        assert found == expected[each.labels["cluster"]]


def test_the_first_audit_that_found_it_is_a_metric() -> None:
    name = "gtid_audit_finding_first_seen_timestamp_seconds"
    [sample] = [each for each in _samples() if each.name == name]
    [finding] = audit_cluster(holed("hole")).findings
    assert sample.value == finding.first_seen.timestamp()
    assert (sample.labels["code"], sample.labels["replica"]) == ("H1", "b")


@pytest.mark.parametrize("text", ["", "[]", '{"layout": 2, "clusters": {}}', '{"layout": 1}'])
def test_a_damaged_file_of_labels_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableSnapshots, match=r"/run/_labels\.json: "):
        labels_in(text, place="/run/_labels.json")
