"""Compared definitions as a text and back, and beside a stored run."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gtid import GtidSet
from tests.definitions import a_compared_pair, a_ddl, a_reading, an_object
from tests.snapshots import A, a_cluster, a_server
from topology.adapters.parquet import write_snapshots
from topology.adapters.stored_definitions import (
    DEFINITIONS,
    definitions_beside,
    definitions_of_run,
)
from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.definition_records import (
    SHAPES,
    definitions_from_text,
    definitions_to_text,
)
from topology.documents.record_codec import MalformedRecord
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
    UnreadDefinitions,
)
from topology.readings.logged_ddl import LoggedDdl

DDL = a_ddl(f"{A}:5", text="ALTER TABLE `ö`.t COMMENT 'it''s'")
PAIR = a_compared_pair(
    differing=(
        an_object(pending=GtidSet.parse(f"{A}:5"), made_by=(DDL,)),
        an_object("", schema="x"),
    ),
    behind=(DDL, a_ddl(f"{A}:6", at=None)),
    unsearched="a: the limit was reached",
)
READ = {"ö/orders": a_reading(PAIR, unread=("triggers",)), "billing": a_reading()}


def test_definitions_come_back_as_they_went_in_any_order() -> None:
    text = definitions_to_text(READ)
    assert definitions_from_text(text) == READ
    assert definitions_to_text(dict(reversed(READ.items()))) == text


def test_no_field_is_forgotten() -> None:
    made = {LoggedDdl, DifferingObject, ComparedDefinitions, UnreadDefinitions, DefinitionReading}
    assert {shape.make for shape in SHAPES} == made
    for shape in SHAPES:
        assert isinstance(shape.make, type)
        assert list(shape.fields) == [each.name for each in dataclasses.fields(shape.make)]


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (lambda found: found.update(layout=2), "layout"),
        (lambda found: found["clusters"]["billing"].pop("pairs"), "billing.pairs"),
        (
            lambda found: found["clusters"]["ö/orders"]["pairs"][0]["behind"][0].update(gtid="7"),
            r"ö/orders.pairs\[0\].behind\[0\].gtid",
        ),
        (
            lambda found: found["clusters"]["ö/orders"]["pairs"][0]["differing"][0].update(new=1),
            r"ö/orders.pairs\[0\].differing\[0\].new",
        ),
    ],
)
def test_what_is_not_ours_is_refused_with_the_place(
    spoil: Callable[[dict[str, Any]], object], place: str
) -> None:
    found = json.loads(definitions_to_text(READ))
    spoil(found)
    with pytest.raises(MalformedRecord, match=f"^{place}: "):
        definitions_from_text(json.dumps(found))


def test_a_run_keeps_what_was_compared(tmp_path: Path) -> None:
    cluster = a_cluster("shop", a_server("a", A, f"{A}:1-5"))
    run = write_snapshots(tmp_path, [cluster], beside=definitions_beside(READ))
    assert definitions_of_run(run) == READ
    (run / DEFINITIONS).write_text("{}")
    with pytest.raises(UnreadableSnapshots, match=DEFINITIONS):
        definitions_of_run(run)


def test_a_run_that_compared_none_has_none(tmp_path: Path) -> None:
    cluster = a_cluster("shop", a_server("a", A, f"{A}:1-5"))
    run = write_snapshots(tmp_path, [cluster], beside=definitions_beside(None))
    assert definitions_of_run(run) is None
