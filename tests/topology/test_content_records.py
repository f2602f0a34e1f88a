"""What was compared, as a text and back: nothing is lost, and what is not ours is refused."""

import dataclasses
import json
from pathlib import Path

import pytest

from binlog.content.server_starts import ServerStart
from tests.contents import alike, differing, unread
from topology.adapters.stored_contents import CONTENTS, contents_of_run, kept_beside
from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.content_records import SHAPES, contents_from_text, contents_to_text
from topology.documents.record_codec import MalformedRecord
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    TransactionVersion,
    UnreadContent,
)

COMPARED = {"ö/orders": differing(7, 12), "billing": alike(), "c": unread()}


def test_contents_come_back_as_they_went_in_any_order() -> None:
    text = contents_to_text(COMPARED)
    assert contents_from_text(text) == COMPARED
    assert contents_to_text(dict(reversed(COMPARED.items()))) == text
    assert contents_from_text(contents_to_text({})) == {}


def test_no_field_is_forgotten() -> None:
    kinds = {ContentReading, ContentDifference, TransactionVersion, ServerStart, UnreadContent}
    assert {shape.make for shape in SHAPES} == kinds
    for shape in SHAPES:
        assert isinstance(shape.make, type)
        assert list(shape.fields) == [each.name for each in dataclasses.fields(shape.make)]


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda found: found.update(layout=0), "layout"),
        (lambda found: found.update(clusters=[]), "clusters"),
        (lambda found: found["clusters"]["c"].pop("is_cut"), "c.is_cut"),
        (
            lambda found: found["clusters"]["ö/orders"]["differences"][1].update(gtid="7"),
            r"ö/orders.differences\[1\].gtid",
        ),
    ],
)
def test_what_is_not_ours_is_refused_with_the_place(spoil: object, place: str) -> None:
    found = json.loads(contents_to_text(COMPARED))
    assert callable(spoil)
    spoil(found)
    with pytest.raises(MalformedRecord, match=f"^{place}: "):
        contents_from_text(json.dumps(found))


def test_a_run_tells_nobody_looked_from_nothing_was_due(tmp_path: Path) -> None:
    assert kept_beside(None) == {}
    assert contents_of_run(tmp_path) is None
    for contents in ({}, COMPARED):
        for name, text in kept_beside(contents).items():
            (tmp_path / name).write_text(text)
        assert contents_of_run(tmp_path) == contents
    (tmp_path / CONTENTS).write_text("{")
    with pytest.raises(UnreadableSnapshots, match=f"{CONTENTS}: .*not JSON"):
        contents_of_run(tmp_path)
