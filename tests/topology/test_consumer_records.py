"""Consumers as a text and back, and beside a stored run."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gtid import GtidSet
from tests.consumers import a_consumer, an_unread_consumer
from tests.snapshots import A, a_cluster, a_server
from topology.adapters.parquet import read_snapshots, write_snapshots
from topology.adapters.stored_consumers import CONSUMERS, consumers_of_run
from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.consumer_records import SHAPES, consumers_from_text, consumers_to_text
from topology.documents.record_codec import MalformedRecord
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.snapshot import ClusterSnapshot

SET = GtidSet.parse(f"{A}:1-5:dba:1")
READ = {
    "ö/orders": (a_consumer("backup", SET, is_fixed=True), a_consumer("cdc", SET, server="a")),
    "billing": (an_unread_consumer("cdc"),),
}


def test_consumers_come_back_as_they_went_in_any_order() -> None:
    text = consumers_to_text(READ)
    assert consumers_from_text(text) == READ
    assert consumers_to_text(dict(reversed(READ.items()))) == text


def test_no_field_is_forgotten() -> None:
    assert {shape.make for shape in SHAPES} == {ConsumerReading, OfferedReading}
    for shape in SHAPES:
        assert isinstance(shape.make, type)
        assert list(shape.fields) == [each.name for each in dataclasses.fields(shape.make)]


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda found: found.update(layout=2), "layout"),
        (lambda found: found.update(clusters=[]), "clusters"),
        (lambda found: found["clusters"]["billing"][0].pop("server"), r"billing\[0\].server"),
        (
            lambda found: found["clusters"]["billing"][0]["first"].update(unread=""),
            r"billing\[0\].first",
        ),
        (
            lambda found: found["clusters"]["ö/orders"][1]["last"].update(gtid_set="7"),
            r"ö/orders\[1\].last.gtid_set",
        ),
    ],
)
def test_what_is_not_ours_is_refused_with_the_place(
    spoil: Callable[[dict[str, Any]], object], place: str
) -> None:
    found = json.loads(consumers_to_text(READ))
    spoil(found)
    with pytest.raises(MalformedRecord, match=f"^{place}: "):
        consumers_from_text(json.dumps(found))


def test_text_that_is_no_document_is_refused() -> None:
    for text in ("", "[]", "null", "[" * 100_000):
        with pytest.raises(MalformedRecord):
            consumers_from_text(text)


def shop(*consumers: ConsumerReading) -> ClusterSnapshot:
    return replace(a_cluster("shop", a_server("a", A, SET)), consumers=consumers)


def test_a_run_keeps_the_consumers_of_its_clusters(tmp_path: Path) -> None:
    run = write_snapshots(tmp_path, [shop(*READ["ö/orders"])])
    assert consumers_of_run(run) == {"shop": READ["ö/orders"]}
    [read] = read_snapshots(run)
    assert read.consumers == READ["ö/orders"]
    (run / CONSUMERS).unlink()
    with pytest.raises(UnreadableSnapshots, match=r"the file _consumers\.json is missing"):
        read_snapshots(run)


def test_a_run_without_consumers_has_no_file_for_them(tmp_path: Path) -> None:
    run = write_snapshots(tmp_path, [shop()])
    assert not (run / CONSUMERS).exists()
    assert consumers_of_run(run) == {}
    [read] = read_snapshots(run)
    assert read.consumers == ()


def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / CONSUMERS).write_bytes(b"\xff")
    with pytest.raises(UnreadableSnapshots, match=CONSUMERS):
        consumers_of_run(tmp_path)
    (tmp_path / CONSUMERS).write_text("{}")
    with pytest.raises(UnreadableSnapshots, match="expected consumers of layout 1"):
        consumers_of_run(tmp_path)
