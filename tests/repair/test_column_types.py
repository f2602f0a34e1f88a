"""Conditions on the type of a column, by what rows were logged with."""

import pytest

from binlog.rows.tables import RowColumn
from repair.sql.column_type_guards import has_type
from repair.sql.table_questions import has_types


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        (RowColumn(3, 0), "data_type = 'int'"),
        (
            RowColumn(8, 0, is_unsigned=True),
            "data_type = 'bigint' AND column_type LIKE '%unsigned%'",
        ),
        (
            RowColumn(1, 0, is_unsigned=False),
            "data_type = 'tinyint' AND column_type NOT LIKE '%unsigned%'",
        ),
        (RowColumn(5, 8, is_unsigned=False), "data_type = 'double'"),
        (RowColumn(13, 0), "data_type = 'year'"),
        (
            RowColumn(246, 10 << 8 | 2),
            "data_type = 'decimal' AND numeric_precision = 10 AND numeric_scale = 2",
        ),
        (RowColumn(18, 6), "data_type = 'datetime' AND datetime_precision = 6"),
        (RowColumn(12, 0), "data_type = 'datetime' AND IFNULL(datetime_precision, 0) = 0"),
        (RowColumn(16, 1 << 8 | 2), "data_type = 'bit' AND numeric_precision = 10"),
        (
            RowColumn(15, 40),
            "data_type IN ('varchar', 'varbinary') AND character_octet_length = 40",
        ),
        (
            RowColumn(254, 0xFE << 8 | 9),
            "data_type IN ('char', 'binary') AND character_octet_length = 9",
        ),
        (
            RowColumn(254, (0xFE ^ 0x30) << 8 | 252),  # CHAR(255) of four bytes each
            "data_type IN ('char', 'binary') AND character_octet_length = 1020",
        ),
        (
            RowColumn(252, 2, charset="utf8"),
            (
                "data_type IN ('text', 'blob') AND IF(IFNULL(character_set_name, 'binary') = 'utf8',"
                " 'utf8mb3', IFNULL(character_set_name, 'binary')) = 'utf8mb3'"
            ),
        ),
        (RowColumn(252, 3), "data_type IN ('mediumtext', 'mediumblob')"),
        (RowColumn(247, 1), "data_type IN ('enum')"),
        (RowColumn(247, 1, charset="utf8"), "data_type IN ('enum')"),  # its values are numbers
        (RowColumn(252, 9, charset="utf8"), ""),
        (RowColumn(200, 0), ""),
    ],
)
def test_the_logged_type_is_what_a_column_must_have(column: RowColumn, condition: str) -> None:
    assert has_type(column) == condition


def test_every_column_is_asked_for_by_its_name() -> None:
    asked = has_types("d", "t", [("a'b", "data_type = 'int'"), ("c", "data_type = 'year'")])
    assert asked.startswith("NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE")
    assert "LOWER(column_name) = LOWER('a''b') AND NOT (data_type = 'int')" in asked
    assert " OR LOWER(column_name) = LOWER('c') AND NOT (data_type = 'year')" in asked
