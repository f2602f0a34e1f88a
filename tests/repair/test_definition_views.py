"""Views that a replica does not have, and what no script is written for, without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.definition_parts import DifferingDefinition, collation_of, index_of, view_of
from repair.strategies.definition_changes import changes_of
from repair.strategies.definition_scenarios import Handling
from repair.strategies.planned_definition import DATA_BYTES_MAX
from tests.repair.build import NEW, OLD
from tests.repair.test_definition_changes import (
    ENDS,
    ID,
    INNODB,
    KEY,
    PRIMARY,
    C,
    D,
    changes,
    differing,
    only,
    table,
)
from topology.catalogue.findings import Grade, Severity
from topology.definitions.canonical import CanonicalDefinition, canonical_definition
from topology.definitions.drift_classes import DriftClass
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.row_effects import APPLIED
from topology.definitions.schema_objects import ObjectKey, ObjectKind

VIEW = ObjectKey(ObjectKind.VIEW, "app", "w")
TEXT = "CREATE ALGORITHM=UNDEFINED DEFINER=`r`@`%` SQL SECURITY DEFINER VIEW `app`.`w` AS select 1"
SESSION = {
    "character_set_client": "utf8mb4",
    "collation_connection": "utf8mb4_0900_ai_ci",
}


def a_view(text: str = TEXT, **session: str) -> CanonicalDefinition:
    return canonical_definition(ObjectKind.VIEW, text, {}, session={**SESSION, **session})


def alone(
    key: ObjectKey,
    drift_class: DriftClass,
    source: CanonicalDefinition | None,
    replica: CanonicalDefinition | None = None,
) -> ObjectDrift:
    """Return an object that one side has, or that differs as a whole."""
    return ObjectDrift(
        key=key,
        classes=(drift_class,),
        changes=(),
        source=source,
        replica=replica,
        grade=Grade.PROVED,
        severity=Severity.WARNING,
        rows=APPLIED,
        statements=(),
    )


def fewer(view: CanonicalDefinition, goal: str | None = "1:7") -> DifferingDefinition:
    drift = alone(VIEW, DriftClass.OTHER_FEWER, view)
    return DifferingDefinition(drift, {view_of(VIEW): (goal, "0:0")})


def test_a_view_is_created_as_it_was() -> None:
    found = only(changes_of(fewer(a_view()), ENDS))
    assert (found.handling, found.is_of_table) == (Handling.AUTOMATIC, False)
    assert found.action is not None
    assert found.action.statement == TEXT
    assert found.action.session == ("SET SESSION collation_connection = utf8mb4_0900_ai_ci;",)
    assert found.action.undo == "DROP VIEW `app`.`w`"
    [part] = found.action.parts
    assert (part.seen, part.goal) == ("0:0", "1:7")


@pytest.mark.parametrize(
    ("each", "why"),
    [
        (fewer(a_view(f"{TEXT} AS `a\\b`")), "a backslash"),
        (fewer(a_view(character_set_client="latin1")), "a session with utf8mb4"),
        (fewer(a_view(collation_connection="x; DROP")), "a session with utf8mb4"),
        (fewer(a_view(), goal="0:0"), "the goal cannot be checked"),
        (fewer(a_view(), goal=None), "the goal cannot be checked"),
    ],
)
def test_another_view_is_not(each: DifferingDefinition, why: str) -> None:
    found = only(changes_of(each, ENDS))
    assert (found.action, why in found.why) == (None, True)


def test_a_view_of_another_version_is_not() -> None:
    other = replace(ENDS, source_version=OLD)
    assert "print views differently" in only(changes_of(fewer(a_view()), other)).why


@pytest.mark.parametrize(
    ("drift", "why"),
    [
        (alone(VIEW, DriftClass.OTHER_DIFFERENT, a_view(), a_view()), "run the SQL of"),
        (alone(VIEW, DriftClass.OTHER_MORE, None, a_view()), "drop it by hand"),
        (alone(KEY, DriftClass.TABLE_FEWER, table(ID, PRIMARY)), "copy it with its rows"),
        (alone(KEY, DriftClass.TABLE_MORE, None, table(ID, PRIMARY)), "drop it by hand"),
        (
            replace(
                alone(KEY, DriftClass.TABLE_RENAMED, table(ID), table(ID)),
                replica_key=replace(KEY, name="u"),
            ),
            "rename it by hand",
        ),
    ],
)
def test_what_is_alone_stays(drift: ObjectDrift, why: str) -> None:
    found = only(changes_of(DifferingDefinition(drift), ENDS))
    assert (found.handling, found.action, why in found.why) == (Handling.BY_HAND, None, True)


def test_an_index_that_does_not_use_a_column_that_stays_is_added() -> None:
    source = table(ID, D, "`c` int NOT NULL", PRIMARY, "KEY `k` (`d`)")
    column, index = changes(source, table(ID, D, PRIMARY))
    assert (column.action, index.handling) == (None, Handling.AUTOMATIC)


def test_a_large_index_is_not_replaced() -> None:
    first, second = (table(ID, C, PRIMARY, f"KEY `k` ({each})") for each in ("`c`", "`c`,`id`"))
    large = replace(differing(first, second), data_bytes=DATA_BYTES_MAX + 1)
    assert "1,024 MiB" in only(changes_of(large, ENDS)).why
    odd = table(ID, C, PRIMARY, "FULLTEXT KEY `k` (`c`)")
    assert only(changes(first, odd)).handling is Handling.BY_HAND
    assert only(changes(odd, first)).handling is Handling.BY_HAND
    unanswered = replace(differing(first, second), answers={index_of(KEY, "k", NEW): (None, "1:2")})
    assert only(changes_of(unanswered, ENDS)).action is None


def test_a_collation_has_the_name_that_the_server_knows() -> None:
    source = table(ID, C, PRIMARY, options=f"{INNODB} COLLATE=utf8mb3_bin")
    each = differing(source, table(ID, C, PRIMARY))
    for version, name in ((NEW, "utf8mb3_bin"), (OLD, "utf8_bin")):
        ends = replace(ENDS, version=version, source_version=version)
        action = only(changes_of(each, ends)).action
        assert action is not None
        assert f"DEFAULT COLLATE {name}," in action.statement
    alike = replace(each, answers={collation_of(KEY): ("x", "x")})
    assert only(changes_of(alike, ENDS)).action is None
    assert "name collations differently" in (
        only(changes_of(each, replace(ENDS, source_version=OLD))).why
    )
