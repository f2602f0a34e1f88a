"""What statements do to tables, and which tables error texts are about."""

import pytest

from binlog.schema.table_history import TableKey
from topology.tracing.table_effects import (
    WHOLE_SCHEMA,
    EffectKind,
    effects_of,
    member_in_text,
    tables_in_text,
)

T, U = TableKey("d", "t"), TableKey("e", "u")
CREATES, REMOVES, ALTERS = EffectKind.CREATES, EffectKind.REMOVES, EffectKind.ALTERS


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (id INT)", [(T, CREATES)]),
        ("CREATE TABLE e.u LIKE t", [(U, CREATES)]),
        ("CREATE TEMPORARY TABLE t (id INT)", []),
        ("DROP TABLE t, e.u", [(T, REMOVES), (U, REMOVES)]),
        ("DROP TEMPORARY TABLE t", []),
        ("RENAME TABLE t TO e.u", [(T, REMOVES), (U, CREATES)]),
        ("ALTER TABLE t ADD x INT", [(T, ALTERS)]),
        ("ALTER TABLE t RENAME TO e.u", [(T, ALTERS), (T, REMOVES), (U, CREATES)]),
        ("CREATE INDEX k ON t (x)", [(T, ALTERS)]),
        ("CREATE DATABASE d", [(TableKey("d", WHOLE_SCHEMA), CREATES)]),
        ("DROP DATABASE d", [(TableKey("d", WHOLE_SCHEMA), REMOVES)]),
        ("ALTER DATABASE d CHARACTER SET utf8mb4", []),
        ("TRUNCATE TABLE t", []),
        ("INSERT INTO t VALUES (1)", []),
        ("CREATE VIEW t AS SELECT 1", [(T, CREATES)]),
        (
            "CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `e`.`u` AS SELECT 1",
            [(U, CREATES)],
        ),
        ("DROP VIEW t, e.u", [(T, REMOVES), (U, REMOVES)]),
        ("CREATE DEFINER=`a`@`%` PROCEDURE p() CREATE VIEW t AS SELECT 1", []),
        ("CREATE TABLE t (view INT)", [(T, CREATES)]),
        ("DROP TABLE t /* view */", [(T, REMOVES)]),
        ("ALTER VIEW t AS SELECT 1", []),
        ("ALTER TABLE t FROBNICATE THE COLUMNS", [(T, ALTERS)]),
        ("CREATE SOMETHING NEW", []),
    ],
)
def test_effects(sql: str, expected: list[tuple[TableKey, EffectKind]]) -> None:
    assert [(each.table, each.kind) for each in effects_of(sql, schema="d")] == expected


@pytest.mark.parametrize(
    ("sql", "is_conditional"),
    [
        ("CREATE TABLE t (id INT)", False),
        ("CREATE TABLE IF NOT EXISTS t (id INT)", True),
        ("CREATE TABLE IF NOT EXISTS t LIKE u", True),
        ("DROP TABLE t", False),
        ("DROP TABLE IF EXISTS t", True),
        ("CREATE DATABASE d", False),
        ("CREATE DATABASE IF NOT EXISTS d", True),
        ("DROP DATABASE d", False),
        ("DROP DATABASE IF EXISTS d", True),
        ("CREATE VIEW t AS SELECT 1", False),
        ("CREATE VIEW IF NOT EXISTS t AS SELECT 1", True),
        ("CREATE OR REPLACE VIEW t AS SELECT 1", True),
        ("DROP VIEW t", False),
        ("DROP VIEW IF EXISTS t", True),
        ("ALTER TABLE t ADD x INT", False),
    ],
)
def test_which_effects_depend_on_what_was_there(sql: str, *, is_conditional: bool) -> None:
    [effect] = effects_of(sql, schema="d")
    assert effect.is_conditional is is_conditional


@pytest.mark.parametrize(
    ("actions", "added", "removed"),
    [
        ("ADD X INT, ADD KEY K (x)", {"x", "k"}, set()),
        ("ADD KEY (x)", set(), set()),
        ("DROP COLUMN X, DROP KEY k", set(), {"x", "k"}),
        ("CHANGE x y INT", {"y"}, {"x"}),
        ("CHANGE x X BIGINT", set(), set()),
        ("MODIFY x BIGINT", set(), set()),
        ("RENAME COLUMN x TO y, RENAME KEY k TO l", {"y", "l"}, {"x", "k"}),
        ("DROP CONSTRAINT c", set(), {"c"}),
        ("DROP PRIMARY KEY", set(), {"primary"}),
    ],
)
def test_columns_and_keys_of_an_alter(actions: str, added: set[str], removed: set[str]) -> None:
    [effect] = effects_of(f"ALTER TABLE t {actions}", schema="d")
    assert (set(effect.added), set(effect.removed)) == (added, removed)


def test_which_table_an_effect_concerns() -> None:
    [drop] = effects_of("DROP DATABASE D", schema="")
    [create] = effects_of("CREATE DATABASE d", schema="")
    [alter] = effects_of("ALTER TABLE D.T ADD x INT", schema="")
    whole = TableKey("d", WHOLE_SCHEMA)
    assert [drop.concerns(T), create.concerns(T), alter.concerns(T)] == [True, False, True]
    assert [drop.concerns(whole), create.concerns(whole), alter.concerns(whole)] == [
        True,
        True,
        False,
    ]
    assert not any(each.concerns(U) for each in (drop, create, alter))
    assert not alter.concerns(TableKey("d", "u"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error executing row event: 'Table 'd.t' doesn't exist'", [T]),
        ("Could not execute Write_rows event on table d.t; Duplicate entry '2'", [T]),
        ("Error 'Unknown table 'd.t,e.u'' on query. Default database: ''.", [T, U]),
        ("Error 'Table 't' already exists' on query. Default database: 'd'. Query: 'x'", [T]),
        ("Error 'Table 't' already exists' on query. Default database: ''. Query: 'x'", []),
        ("Column 1 of table 'd.t' cannot be converted from type 'int' to", [T]),
        ("Unknown column 'x' in 'd.t'", [T]),
        ("Unknown column 'x' in 'field list'", []),
        ("Error 'Unknown database 'd'' on query.", [TableKey("d", WHOLE_SCHEMA)]),
        ("Can't drop database 'd'; database doesn't exist", [TableKey("d", WHOLE_SCHEMA)]),
        ("Table 'd.t' doesn't exist; on table d.t; Table 'd.t' doesn't exist", [T]),
        ("Lock wait timeout exceeded", []),
    ],
)
def test_tables_of_a_text(text: str, expected: list[TableKey]) -> None:
    assert list(tables_in_text(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Unknown column 'X' in 't'", "x"),
        ("Unknown column 't.x' in 'where clause'", "x"),
        ("Duplicate column name 'y'", "y"),
        ("Duplicate key name 'k'", "k"),
        ("Can't DROP 'x'; check that column/key exists", "x"),
        ("Table 'd.t' doesn't exist", ""),
    ],
)
def test_columns_and_keys_of_a_text(text: str, expected: str) -> None:
    assert member_in_text(text) == expected
