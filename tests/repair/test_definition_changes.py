"""Which differences of definitions are repaired by default, without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from repair.content.definition_parts import DifferingDefinition, columns_of, questions_of
from repair.strategies.added_columns import only_default_or_comment, value_condition
from repair.strategies.definition_changes import changes_of
from repair.strategies.definition_scenarios import SCENARIOS, Handling
from repair.strategies.planned_definition import DATA_BYTES_MAX, DefinitionChange, Ends
from tests.repair.build import NEW, OLD, gtids
from topology.definitions.canonical import CanonicalDefinition, canonical_definition
from topology.definitions.ddl_searches import on_the_way
from topology.definitions.definition_scope import DefinitionScope
from topology.definitions.drift_classes import DriftClass
from topology.definitions.object_drift import ObjectDrift, ObjectPair, PairFacts, ServerSide
from topology.definitions.pair_drift import drift_between
from topology.definitions.schema_objects import (
    ObjectDigest,
    ObjectKey,
    ObjectKind,
    ServerObjects,
    SetsAround,
)
from topology.definitions.visibility import Visibility

KEY = ObjectKey(ObjectKind.TABLE, "app", "t")
ENDS = Ends(
    source="a",
    replica="b",
    source_version=NEW,
    version=NEW,
    has_one_source=True,
    has_below=False,
    logs_rows=True,
    executed=gtids("a:1-5"),
)
ID = "`id` int NOT NULL"
C = "`c` int DEFAULT NULL"
D = "`d` varchar(9) NOT NULL DEFAULT 'x'"
PRIMARY = "PRIMARY KEY (`id`)"
INNODB = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"


def table(*clauses: str, options: str = INNODB) -> CanonicalDefinition:
    text = "CREATE TABLE `t` (\n  " + ",\n  ".join(clauses) + f"\n{options}"
    return canonical_definition(ObjectKind.TABLE, text, {"utf8mb4": "utf8mb4_0900_ai_ci"})


def side(name: str, definition: CanonicalDefinition | None) -> ServerSide:
    objects = {} if definition is None else {KEY: ObjectDigest(name)}
    read = ServerObjects(
        server=name,
        visibility=Visibility.of_grants(["GRANT ALL PRIVILEGES ON *.* TO `r`@`%`"]),
        sets=SetsAround(GtidSet(), GtidSet()),
        folds_names=False,
        objects=objects,
    )
    return ServerSide(read, {KEY: definition}, conversions="")


def drift_of(source: CanonicalDefinition, replica: CanonicalDefinition) -> ObjectDrift:
    facts = PairFacts(on_the_way(GtidSet(), ()))
    pairs = (ObjectPair(KEY, KEY),)
    [found] = drift_between(side("a", source), side("b", replica), pairs, facts).differences
    return found


def differing(
    source: CanonicalDefinition, replica: CanonicalDefinition, *, has_values: bool | None = False
) -> DifferingDefinition:
    """Return an object whose parts the two servers answered differently."""
    drift = drift_of(source, replica)
    columns = columns_of(KEY, NEW)
    counts = [sum(line.startswith("`") for line in each.lines) for each in (source, replica)]
    answers: dict[str, tuple[str | None, str | None]] = dict.fromkeys(
        questions_of(drift, NEW), ("1:7", "0:0")
    )
    answers[columns] = (f"{counts[0]}:7", f"{counts[1]}:8")
    return DifferingDefinition(drift, answers, 4096, has_values, gtids("a:1-6"))


def changes(
    source: CanonicalDefinition, replica: CanonicalDefinition, ends: Ends = ENDS
) -> tuple[DefinitionChange, ...]:
    return changes_of(differing(source, replica), ends)


def only(found: tuple[DefinitionChange, ...]) -> DefinitionChange:
    [change] = found
    return change


def test_every_class_has_a_code_of_its_own() -> None:
    codes = [each.code for each in SCENARIOS.values()]
    assert codes == sorted(set(codes), key=lambda each: int(each[1:]))
    assert all(
        bool(each.statement) is (each.handling is not Handling.BY_HAND)
        for each in SCENARIOS.values()
    )


def test_columns_are_added_in_the_order_of_the_source() -> None:
    found = only(changes(table(ID, D, C, PRIMARY), table(ID, PRIMARY)))
    assert found.handling is Handling.AUTOMATIC
    assert found.action is not None
    assert found.action.statement == (
        f"ALTER TABLE `app`.`t` ADD COLUMN {D}, ADD COLUMN {C}, ALGORITHM=INSTANT"
    )
    assert found.action.rows_at == gtids("a:1-6")
    assert found.action.undo == "ALTER TABLE `app`.`t` DROP COLUMN `d`, DROP COLUMN `c`"
    old = replace(ENDS, version=OLD, source_version=OLD)
    answers = {columns_of(KEY, OLD): ("2:7", "1:8")}
    each = replace(differing(table(ID, C, PRIMARY), table(ID, PRIMARY)), answers=answers)
    action = only(changes_of(each, old)).action
    assert action is not None
    assert action.statement.endswith("ALGORITHM=INPLACE")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"has_values": None}, "the rows of a were not read"),
        ({"has_values": True}, "rows of a have values in `c`"),
        ({"rows_at": gtids("a:1-4")}, "a has not executed "),
        ({"ends": {"has_one_source": False}}, "b has other sources"),
        ({"ends": {"logs_rows": False}}, "a logs statements"),
        ({"ends": {"has_below": True}}, "servers below b do not get the column"),
    ],
)
def test_a_column_whose_values_may_be_missing_is_only_selected(
    changed: dict[str, object], reason: str
) -> None:
    each = differing(table(ID, C, PRIMARY), table(ID, PRIMARY))
    ends = replace(ENDS, **changed.pop("ends", {}))  # type: ignore[arg-type]
    found = only(changes_of(replace(each, **changed), ends))  # type: ignore[arg-type]
    assert (found.handling, found.why.startswith(reason)) == (Handling.SELECTED, True)
    assert found.warning == found.why
    assert found.action is not None
    assert found.action.rows_at is None, "the operator has decided"


@pytest.mark.parametrize(
    ("source", "replica", "reason"),
    [
        (table(ID, C, D, PRIMARY), table(ID, D, PRIMARY), "is not the last column"),
        (table(ID, "`c` int NOT NULL", PRIMARY), table(ID, PRIMARY), "would get no constant"),
        (
            table(ID, "`c` datetime DEFAULT CURRENT_TIMESTAMP", PRIMARY),
            table(ID, PRIMARY),
            "would get no constant",
        ),
        (
            table(ID, "`c` int GENERATED ALWAYS AS (1) VIRTUAL", PRIMARY),
            table(ID, PRIMARY),
            "would get no constant",
        ),
        *(
            (
                table(ID, f"`c` {kind} DEFAULT '16777216'", PRIMARY),
                table(ID, PRIMARY),
                "would get no constant",
            )
            for kind in ("float", "double", "double(9,2) unsigned")
        ),
        (table(ID, PRIMARY), table(ID, C, PRIMARY), "drop it by hand"),
        (table(ID, C, D, PRIMARY), table(ID, D, C, PRIMARY), "values went to other columns"),
        (table(ID, C, PRIMARY), table(ID, "`c` bigint DEFAULT NULL", PRIMARY), "change values"),
        (
            table(ID, C, PRIMARY),
            table(ID, "`c` int NOT NULL DEFAULT '0'", PRIMARY),
            "more differs than its default",
        ),
        (
            table(ID, "`c` varchar(9) DEFAULT 'a\\\\b'", PRIMARY),
            table(ID, PRIMARY),
            "a backslash",
        ),
        (
            table(ID, C, PRIMARY),
            table(ID, PRIMARY, options=INNODB.replace("InnoDB", "MyISAM")),
            "its engine is not InnoDB",
        ),
        (
            table(ID, C, PRIMARY, options=INNODB.replace("utf8mb4", "latin1")),
            table(ID, PRIMARY),
            "the default character sets of the tables differ",
        ),
    ],
)
def test_what_may_change_rows_stays(
    source: CanonicalDefinition, replica: CanonicalDefinition, reason: str
) -> None:
    found = changes(source, replica)[0]
    assert (found.handling, found.action) == (Handling.BY_HAND, None)
    assert reason in found.why


def test_an_index_is_added_and_never_dropped_by_default() -> None:
    with_index, without = table(ID, C, PRIMARY, "KEY `k` (`c`)"), table(ID, C, PRIMARY)
    added = only(changes(with_index, without))
    assert added.handling is Handling.AUTOMATIC
    assert added.action is not None
    assert added.action.statement == (
        "ALTER TABLE `app`.`t` ADD KEY `k` (`c`), ALGORITHM=INPLACE, LOCK=NONE"
    )
    assert added.action.rows_at is None
    assert only(changes(without, with_index)).handling is Handling.SELECTED
    other = table(ID, C, PRIMARY, "KEY `k` (`c`,`id`)")
    assert only(changes(with_index, other)).handling is Handling.SELECTED
    unique = table(ID, C, PRIMARY, "UNIQUE KEY `k` (`c`)")
    assert only(changes(unique, without)).handling is Handling.SELECTED
    several = replace(ENDS, has_one_source=False)
    assert only(changes(unique, without, several)).handling is Handling.SELECTED
    for odd in ("FULLTEXT KEY `k` (`c`)", "KEY `k` ((`c` + 1))"):
        assert only(changes(table(ID, C, PRIMARY, odd), without)).handling is Handling.BY_HAND
    assert only(changes(table(ID, C, PRIMARY), table(ID, C))).handling is Handling.BY_HAND


def test_an_index_waits_for_its_column() -> None:
    source = table(ID, "`c` int NOT NULL", PRIMARY, "KEY `k` (`c`)")
    column, index = changes(source, table(ID, PRIMARY))
    assert "would get no constant" in column.why
    assert (index.action, index.why) == (None, "it needs a column that is not added")


def test_a_large_table_and_a_cause_that_may_go_away_stay() -> None:
    each = differing(table(ID, C, PRIMARY, "KEY `k` (`c`)"), table(ID, C, PRIMARY))
    for size, is_planned in ((DATA_BYTES_MAX, True), (DATA_BYTES_MAX + 1, False), (None, False)):
        found = only(changes_of(replace(each, data_bytes=size), ENDS))
        assert (found.action is not None) is is_planned
    doubtful = replace(each, drift=replace(each.drift, causes=("a filter leaves it out",)))
    assert only(changes_of(doubtful, ENDS)).why == "a filter leaves it out"
    assert only(changes_of(replace(each, unread="not read"), ENDS)).why == "not read"
    alike = replace(each, answers=dict.fromkeys(each.answers, ("1:7", "1:7")))
    assert only(changes_of(alike, ENDS)).action is None


def test_hidden_columns_and_other_versions_are_not_scripted() -> None:
    each = differing(table(ID, C, PRIMARY), table(ID, PRIMARY))
    hidden = replace(each, answers={**each.answers, columns_of(KEY, NEW): ("3:7", "1:8")})
    assert "some are hidden" in only(changes_of(hidden, ENDS)).why
    other = replace(ENDS, source_version=OLD)
    assert "print columns differently" in only(changes_of(each, other)).why


def test_types_with_more_values_are_selected() -> None:
    narrow, wide = table(ID, C, PRIMARY), table(ID, "`c` bigint DEFAULT NULL", PRIMARY)
    found = only(changes(wide, narrow))
    assert found.handling is Handling.SELECTED
    assert found.action is not None
    assert found.action.statement.endswith("ALGORITHM=COPY")
    assert found.action.blocks_writes
    renamed = only(changes(narrow, table(ID, "`z` int DEFAULT NULL", PRIMARY)))
    assert (renamed.handling, "another column" in renamed.why) == (Handling.SELECTED, True)


def test_the_default_of_a_table_and_of_a_column() -> None:
    found = only(
        changes(
            table(ID, C, PRIMARY, options=f"{INNODB} COLLATE=utf8mb4_bin"), table(ID, C, PRIMARY)
        )
    )
    assert found.handling is Handling.AUTOMATIC
    assert found.action is not None
    assert "DEFAULT COLLATE utf8mb4_bin, ALGORITHM=INPLACE" in found.action.statement
    source = table(ID, "`c` int DEFAULT '4' COMMENT 'one'", PRIMARY)
    assert only(changes(source, table(ID, C, PRIMARY))).handling is Handling.AUTOMATIC


def test_values_are_compared_as_bytes() -> None:
    assert value_condition("`c`", C) == "`c` IS NOT NULL"
    assert value_condition("`c`", "`c` text COMMENT ' DEFAULT ''x'''") == "`c` IS NOT NULL"
    assert value_condition("`d`", D) == (
        "NOT (CAST(`d` AS BINARY) <=> CAST(DEFAULT(`d`) AS BINARY))"
    )
    assert only_default_or_comment("`c` int DEFAULT '1'", "`c` int DEFAULT NULL COMMENT 'x'")
    assert not only_default_or_comment("`c` int NOT NULL", "`c` int DEFAULT NULL")


@pytest.mark.parametrize(
    ("scope", "key", "is_in"),
    [
        (DefinitionScope("app"), KEY, True),
        (DefinitionScope("APP", "T"), KEY, True),
        (DefinitionScope("app", "u"), KEY, False),
        (DefinitionScope("other", "t"), KEY, False),
        (DefinitionScope("app", "t"), ObjectKey(ObjectKind.PROCEDURE, "app", "t"), False),
        (DefinitionScope("app"), ObjectKey(ObjectKind.PROCEDURE, "app", "t"), True),
    ],
)
def test_a_scope_includes_its_objects(scope: DefinitionScope, key: ObjectKey, is_in: bool) -> None:
    assert scope.includes(key, None) is is_in
    assert DriftClass.TABLE_FEWER in SCENARIOS
