"""How rows and values are written: what a reader of a script sees, without a server."""

from __future__ import annotations

from decimal import Decimal

import pytest

from binlog.rows.images import BIT, ENUM, FLOAT, GEOMETRY, JSON, SET, STRING, VARCHAR
from binlog.rows.json_values import (
    DiffKind,
    JsonDecimal,
    JsonDiff,
    JsonDiffs,
    JsonDocument,
    JsonObject,
    JsonTemporal,
    JsonUnsigned,
)
from binlog.rows.tables import LONG, Origin, RowColumn, RowTable
from binlog.rows.temporal import TemporalKind
from binlog.rows.values import ABSENT, RowChange, Value
from repair.sql.row_literals import CannotRender, condition, literal
from repair.sql.row_sql import redo_row, undo_row

LATIN = RowColumn(VARCHAR, 9, "v", charset="latin1")
UTF8 = RowColumn(VARCHAR, 9, "v", charset="utf8mb4")
BINARY = RowColumn(VARCHAR, 9, "v", charset="binary")
INTEGER = RowColumn(LONG, 0, "n", is_unsigned=False)
DOCUMENT = RowColumn(JSON, 4, "j")


@pytest.mark.parametrize(
    ("column", "value", "sql"),
    [
        (INTEGER, None, "NULL"),
        (INTEGER, -5, "-5"),
        (RowColumn(LONG, 0, "n"), 5, "5"),
        (RowColumn(BIT, 0, "b"), 5, "5"),
        (RowColumn(FLOAT, 4, "f"), 1.100000023841858, "1.100000023841858e0"),
        (RowColumn(FLOAT, 4, "f"), 1e100, "1e+100"),
        (RowColumn(246, 0, "d"), Decimal("1E-9"), "0.000000001"),
        (RowColumn(10, 0, "d"), "0000-00-00", "'0000-00-00'"),
        (LATIN, b"plain", "'plain'"),
        (LATIN, b"", "''"),
        (LATIN, b"\xfc", "_latin1 0xfc"),
        (LATIN, b"it's", "'it''s'"),
        (LATIN, b"a\\b", "_latin1 0x615c62"),
        (UTF8, "ü😀".encode(), "'ü😀'"),
        (UTF8, b"a\nb", "_utf8mb4 0x610a62"),
        (UTF8, b"\xff", "0xff"),
        (BINARY, b"plain", "'plain'"),
        (BINARY, b"\0", "0x00"),
        (RowColumn(STRING, 0, "s", charset="ucs2"), b"\0a", "_ucs2 0x0061"),
        (RowColumn(STRING, 0, "s"), b"plain", "'plain'"),
        (RowColumn(GEOMETRY, 4, "g"), b"abc", "0x616263"),
        (DOCUMENT, JsonDocument((1, "x", None)), "CAST('[1, \"x\", null]' AS JSON)"),
        (DOCUMENT, JsonDocument(JsonUnsigned(1 << 63)), "CAST('9223372036854775808' AS JSON)"),
        (
            DOCUMENT,
            JsonDocument(JsonObject((("a", JsonUnsigned(1)), ("b", 1.5)))),
            "JSON_OBJECT('a', CAST(CAST(1 AS UNSIGNED) AS JSON), 'b', CAST('1.5' AS JSON))",
        ),
        (
            DOCUMENT,
            JsonDocument((JsonDecimal(Decimal("1.10"), 5, 2),)),
            "JSON_ARRAY(CAST(CAST(1.10 AS DECIMAL(5,2)) AS JSON))",
        ),
        (
            DOCUMENT,
            JsonDocument(JsonTemporal(TemporalKind.TIME, "-10:00:00.500000")),
            "CAST(CAST('-10:00:00.500000' AS TIME(6)) AS JSON)",
        ),
    ],
)
def test_literals(column: RowColumn, value: Value, sql: str) -> None:
    assert literal(column, value) == sql


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        (RowColumn(LONG, 0, "n"), -1, "column n may be signed or unsigned"),
        (RowColumn(VARCHAR, 9, "v"), b"\xfc", "the character set of column v is not known"),
    ],
)
def test_what_is_not_known_is_not_written(column: RowColumn, value: Value, why: str) -> None:
    with pytest.raises(CannotRender, match=why):
        literal(column, value)


def test_conditions() -> None:
    assert condition(LATIN, "`v`", None, is_key=False) == "`v` IS NULL"
    assert condition(LATIN, "`v`", b"a", is_key=False) == "CAST(`v` AS BINARY) = 'a'"
    assert condition(LATIN, "`v`", b"a", is_key=True) == "`v` = 'a'"
    assert condition(INTEGER, "`n`", 1, is_key=False) == "`n` = 1"
    wide = RowColumn(SET, 8, "s")
    assert condition(wide, "`s`", 1 << 63, is_key=False) == f"(`s` | 0) = {1 << 63}"
    assert condition(RowColumn(ENUM, 1, "e"), "`e`", 0, is_key=False) == "`e` = 0"


def _table(*, key: tuple[int, ...] | None) -> RowTable:
    columns = (
        RowColumn(LONG, 0, "id", is_unsigned=True),
        RowColumn(VARCHAR, 9, "a`b", charset="utf8mb4"),
        RowColumn(LONG, 0, "twice", is_unsigned=True, is_generated=True),
        RowColumn(17, 0, "changed_at"),
    )
    return RowTable("d", "t", columns, key, Origin.DEFINITION)


BEFORE = (1, b"x", 2, "2024-01-01 00:00:00")
AFTER = (1, b"y", 2, "2024-01-01 00:00:00")


def test_rows_with_a_key() -> None:
    table = _table(key=(0,))
    assert redo_row(table, RowChange(None, BEFORE)) == (
        "INSERT INTO `d`.`t` (`id`, `a``b`, `changed_at`) VALUES (1, 'x', '2024-01-01 00:00:00');"
    )
    where = "`id` = 1 AND CAST(`a``b` AS BINARY) = 'x' AND `changed_at` = '2024-01-01 00:00:00'"
    assert redo_row(table, RowChange(BEFORE, None)) == f"DELETE FROM `d`.`t` WHERE {where};"
    # A column that may set itself is set to itself.
    assert redo_row(table, RowChange(BEFORE, AFTER)) == (
        f"UPDATE `d`.`t` SET `a``b` = 'y', `changed_at` = `changed_at` WHERE {where};"
    )
    assert undo_row(table, RowChange(AFTER, BEFORE)) == redo_row(table, RowChange(BEFORE, AFTER))
    assert undo_row(table, RowChange(None, BEFORE)) == redo_row(table, RowChange(BEFORE, None))
    assert undo_row(table, RowChange(BEFORE, None)) == redo_row(table, RowChange(None, BEFORE))
    assert redo_row(table, RowChange(BEFORE, BEFORE)) is None


def test_a_key_of_text_is_compared_as_it_is_and_by_its_bytes() -> None:
    """So that the server finds the row by its index, and only that row."""
    where = "`a``b` = 'x' AND CAST(`a``b` AS BINARY) = 'x' AND `id` = 1 AND `changed_at` = '2024-01-01 00:00:00'"
    deleted = redo_row(_table(key=(1,)), RowChange(BEFORE, None))
    assert deleted == f"DELETE FROM `d`.`t` WHERE {where};"


@pytest.mark.parametrize("key", [(), None])
def test_rows_without_a_key_are_limited(key: tuple[int, ...] | None) -> None:
    statement = redo_row(_table(key=key), RowChange(BEFORE, None))
    assert statement is not None
    assert statement.endswith("LIMIT 1;")
    partial = (1, ABSENT, ABSENT, ABSENT)
    with pytest.raises(
        CannotRender, match="no key of the table is logged or known: a`b, changed_at"
    ):
        redo_row(_table(key=key), RowChange(partial, None))


def test_zero_and_minus_zero_are_two_values() -> None:
    table = RowTable("d", "t", (RowColumn(FLOAT, 4, "f"),), (), Origin.DEFINITION)
    assert redo_row(table, RowChange((0.0,), (-0.0,))) == (
        "UPDATE `d`.`t` SET `f` = -0.0e0 WHERE `f` = 0.0e0 LIMIT 1;"
    )


def test_what_is_inserted_into_a_document_is_assigned_as_it_is_logged_in_part() -> None:
    """JSON_SET is; JSON_INSERT and JSON_ARRAY_INSERT are not. It must not replace anything."""
    table = RowTable("d", "t", (INTEGER, DOCUMENT), (0,), Origin.DEFINITION)
    start, seven = JsonDocument(JsonObject((("a", (1,)),))), JsonDocument(7)
    steps = (
        JsonDiff(DiffKind.REPLACE, "$.a[0]", seven),
        JsonDiff(DiffKind.INSERT, "$.a[1]", seven),
        JsonDiff(DiffKind.REMOVE, "$.a[0]", None),
        JsonDiff(DiffKind.INSERT, "$.b", seven),
    )
    change = RowChange((1, start), (1, JsonDiffs(steps)))
    value = "CAST('7' AS JSON)"
    first = f"JSON_REPLACE(`j`, '$.a[0]', {value})"
    grown = f"JSON_SET({first}, '$.a[1]', {value})"
    assert redo_row(table, change) == (
        f"UPDATE `d`.`t` SET `j` = JSON_SET(JSON_REMOVE({grown}, '$.a[0]'), '$.b', {value})"
        f" WHERE NOT JSON_CONTAINS_PATH({first}, 'one', '$.a[1]')"
        f" AND NOT JSON_CONTAINS_PATH(JSON_REMOVE(JSON_ARRAY_INSERT({first}, '$.a[1]', {value}),"
        " '$.a[0]'), 'one', '$.b')"
        " AND `n` = 1 AND `j` = CAST('{\"a\": [1]}' AS JSON);"
    )
    # What is compared is no assignment: exactly what the difference says.
    undone = undo_row(table, change)
    assert undone is not None
    assert "JSON_INSERT(JSON_REMOVE(JSON_ARRAY_INSERT(" in undone
    assert "JSON_SET" not in undone
