"""The texts of errors in reports."""

import pymysql
import pytest

from binlog.adapters.server_errors import server_words
from binlog.errors import StatementRefused


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (pymysql.OperationalError(1290, "read-only"), "error 1290: read-only"),
        (pymysql.OperationalError(2013, "Lost connection"), "error 2013: Lost connection"),
        (pymysql.InterfaceError("closed"), "closed"),
        (OSError(111, "Connection refused"), "[Errno 111] Connection refused"),
        (FileNotFoundError(2, "No such file", "/log"), "[Errno 2] No such file: '/log'"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (
            StatementRefused(code=1227, text="denied"),
            "the server answered with error 1227: denied",
        ),
    ],
)
def test_only_numbers_of_mysql_are_errors_with_a_number(error: Exception, words: str) -> None:
    assert server_words(error) == words
