"""Which members of a JSON document have a text that does not tell their type."""

from unittest.mock import MagicMock

import pytest

from repair.adapters.typed_documents import MEMBERS_MAX, unshown_paths, with_types
from repair.sql.row_literals import CannotRender


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a": 1.10, "b": [null, true, -0.0, 18446744073709551615, "2020"]}', []),
        ('"2020-01-01"', ["$"]),
        ('["x", "2020-01-01 10:00:00.500000", "-10:00:00.500000"]', ["$[1]", "$[2]"]),
        ('{"a b": {"c\\"": "base64:type15:AP8="}}', ['$."a b"."c\\""']),
    ],
)
def test_dates_and_bytes_look_like_strings(text: str, paths: list[str]) -> None:
    assert unshown_paths(text) == paths


def test_a_document_without_such_members_needs_no_question() -> None:
    connection = MagicMock()
    assert with_types(connection, "t", "id = 1", {"j": "[1]"}) == {"j": "[1]"}
    connection.cursor.assert_not_called()


def test_types_are_part_of_what_is_compared() -> None:
    connection = MagicMock()
    cursor = connection.cursor.return_value.__enter__.return_value
    cursor.fetchone.return_value = ("DATE",)
    documents = {"j": '"2020-01-01"', "k": "1"}
    found = with_types(connection, "`d`.`t`", "id = 1", documents)
    assert found == {"j": '"2020-01-01", $ is DATE', "k": "1"}
    [(sql,)] = [call.args for call in cursor.execute.call_args_list]
    assert sql == "SELECT JSON_TYPE(JSON_EXTRACT(`j`, '$')) FROM `d`.`t` WHERE id = 1 LIMIT 1"


def test_too_many_of_them_are_not_compared() -> None:
    text = str(["2020-01-01"] * (MEMBERS_MAX + 1)).replace("'", '"')
    with pytest.raises(CannotRender, match="they were not compared"):
        with_types(MagicMock(), "t", "id = 1", {"j": text})
