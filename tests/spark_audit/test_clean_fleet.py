"""The short cut by whole columns says what the rules say of a fleet, in any company.

Apart from test_clean.py, whose tests take a fraction of the time and notice most of what is wrong.
"""

import random
from dataclasses import replace

import pytest

from spark_audit.evaluate_batch import evaluate_rows, whole_clusters
from spark_audit.evaluated_rows import evaluated_rows
from spark_audit.result_columns import AUDIT_SCHEMA
from tests.simulation.history import generate
from tests.simulation.log_answers import with_answers
from tests.simulation.reading import read
from tests.spark_audit.clean_cases import POLICY, audits_of, evaluated, fleet, in_columns
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.documents.records import Record, snapshot_to_record


@pytest.fixture(scope="module")
def clusters() -> dict[str, list[Record]]:
    return fleet(400)


@pytest.fixture(scope="module")
def expected(clusters: dict[str, list[Record]]) -> list[Record]:
    """Return what the rules say of each cluster, in order of name."""
    return evaluated(clusters)


@pytest.mark.long
def test_the_columns_and_the_rules_agree_on_every_cluster(
    clusters: dict[str, list[Record]], expected: list[Record]
) -> None:
    rows = [row for name in clusters for row in clusters[name]]
    found = in_columns(rows)
    assert found == expected
    verdicts = [record["verdict"] for record in found]
    assert verdicts.count("OK") > 50
    assert verdicts.count("CRITICAL") > 20


@pytest.mark.long
def test_the_columns_and_the_rules_agree_on_simulated_histories() -> None:
    """These have settings, filters, groups and evidence; one in three moves while it is read.

    The columns called what the appliers of the first three had passed a delay: they did not see
    replica_preserve_commit_order.
    """
    clusters = {}
    for seed in (777000046, 779000614, 779001909, *range(120)):
        history, _ = generate(seed)
        world = history.play()
        snapshot = read(world, history.reading)
        if seed % 2:
            snapshot = with_answers(world, history.reading, snapshot, POLICY)
        name = f"history-{seed:09}"
        servers = (*snapshot.first, *snapshot.last)
        clusters[name] = [snapshot_to_record(replace(each, cluster=name)) for each in servers]
    assert in_columns([row for rows in clusters.values() for row in rows]) == evaluated(clusters)


@pytest.mark.long
def test_company_and_order_change_nothing(
    clusters: dict[str, list[Record]], expected: list[Record]
) -> None:
    names = sorted(clusters)[:60]
    of_names = expected[: len(names)]
    rows = [row for name in names for row in clusters[name]]
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert in_columns(rows) == of_names
    alone = [record for name in names for record in in_columns(clusters[name])]
    assert alone == of_names


@pytest.mark.slow  # make nightly
def test_batches_are_cut_between_clusters(
    clusters: dict[str, list[Record]], expected: list[Record]
) -> None:
    rows = [row for name in sorted(clusters) for row in clusters[name]]
    table = table_of_records(rows, SNAPSHOT_SCHEMA)
    for size in (1, 7, 1_000, 100_000):
        pieces = list(whole_clusters(iter(table.to_batches(max_chunksize=size))))
        found = [record for piece in pieces for record in audits_of(piece)]
        assert found == expected
        assert sum(piece.num_rows for piece in pieces) == table.num_rows


def test_what_is_written_of_evaluations(clusters: dict[str, list[Record]]) -> None:
    names = sorted(clusters)[:40]
    rows = [row for name in names for row in clusters[name]]
    audits = evaluate_rows(table_of_records(rows, SNAPSHOT_SCHEMA), policy=POLICY)
    written = records_of_table(evaluated_rows(audits))
    for audit, row in zip(records_of_table(audits), written, strict=True):
        findings, unknown = audit["findings"], audit["unknown"]
        assert isinstance(findings, list)
        assert isinstance(unknown, list)
        severities = [each["severity"] for each in findings if isinstance(each, dict)]
        copied = ("cluster", "verdict", "servers", "read_at", "labels")
        assert row == {
            **{name: audit[name] for name in copied},
            "server_count": len(audit["servers"] or ()),  # type: ignore[arg-type]
            "critical_count": severities.count("critical"),
            "warning_count": severities.count("warning"),
            "info_count": severities.count("info"),
            "unknown_count": len(unknown),
            "findings": findings or None,
            "unknown": unknown or None,
        }
    assert {row["verdict"] for row in written} >= {"OK", "CRITICAL"}
    assert evaluated_rows(AUDIT_SCHEMA.empty_table()).num_rows == 0
