"""The one reader of SHOW CREATE, on answers of a server and of a proxy."""

from collections.abc import Sequence
from typing import Any, Self

import pymysql
import pytest

from binlog.adapters.shown_definitions import show_create_table, shown_definition

Row = dict[str, Any]


class Answering:
    """A connection that answers each statement with the same rows or the same error."""

    def __init__(self, answer: Sequence[Row] | Exception) -> None:
        self._answer = answer
        self.sent: list[str] = []

    def cursor(self, _kind: object) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str) -> None:
        self.sent.append(statement)
        if isinstance(self._answer, Exception):
            raise self._answer

    def fetchall(self) -> Sequence[Row]:
        assert not isinstance(self._answer, Exception)
        return self._answer


def shown(answer: Sequence[Row] | Exception, statement: str = "SHOW CREATE TABLE `a`.`b`") -> Any:
    connection: Any = Answering(answer)
    return shown_definition(connection, statement)


def test_a_table_has_its_text() -> None:
    assert shown([{"Table": "b", "Create Table": "CREATE TABLE `b` ()"}]).table_text == (
        "CREATE TABLE `b` ()"
    )
    assert show_create_table("a`", "b") == "SHOW CREATE TABLE `a```.`b`"


def test_a_view_is_there_and_no_table() -> None:
    found = shown([{"View": "b", "Create View": "CREATE VIEW …"}])
    assert (found.table_text, found.absent) == (None, "")
    assert found.row["create view"] == "CREATE VIEW …"


@pytest.mark.parametrize("number", [1049, 1146, 1305, 1347, 1360, 1539])
def test_an_object_is_absent_if_the_server_says_so(number: int) -> None:
    found = shown(pymysql.ProgrammingError(number, "no such thing"))
    assert (dict(found.row), found.absent) == ({}, f"error {number}: no such thing")


@pytest.mark.parametrize("number", [1142, 1356, 2013])
def test_any_other_error_is_not_an_absent_object(number: int) -> None:
    with pytest.raises(pymysql.MySQLError):
        shown(pymysql.OperationalError(number, "denied"))


@pytest.mark.parametrize("rows", [[], [{"Create Table": "1"}, {"Create Table": "2"}]])
def test_no_row_is_not_an_absent_object(rows: list[Row]) -> None:
    with pytest.raises(ValueError, match="unpack"):
        shown(rows)
