"""An applier that stops at a table because of a filter, on real servers: the filter is named."""

import pytest

from compose import faults
from compose.faults_content import restart_with
from compose.native.shapes import Pair
from tests.topology.test_faults_live import audited

pytestmark = pytest.mark.mysql


def stop_at(pair: Pair, option: str, *statements: str) -> str:
    """Restart b with a filter, execute statements on a; return the explanation of b's A3."""
    restart_with(pair.b, option)
    with pair.a.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
    faults.await_applier_stopped(pair.b)
    [found] = [each for each in audited(pair).findings if each.code == "A3"]
    return found.explanation


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_ddl_counts_by_the_default_database(shape: str, request: pytest.FixtureRequest) -> None:
    """The CREATE TABLE is left out, and the row is applied."""
    text = stop_at(
        request.getfixturevalue(shape),
        "--replicate-do-db=app",
        "CREATE DATABASE app",
        "CREATE DATABASE other",
        "USE other",
        "CREATE TABLE app.t (id INT PRIMARY KEY)",
        "SET SESSION binlog_format = ROW",
        "INSERT INTO app.t VALUES (1)",
    )
    assert "(error 1146)" in text
    assert " A filter of the channel (Replicate_Do_DB=app) applies the rows of table app.t," in text
    assert "DDL on it with another default database may be missing on b." in text


@pytest.mark.slow
def test_a_table_that_is_left_out_is_missing_for_another(pair97: Pair) -> None:
    text = stop_at(
        pair97,
        "--replicate-ignore-table=app.parent",
        "CREATE DATABASE app",
        "CREATE TABLE app.parent (id INT PRIMARY KEY)",
        "CREATE TABLE app.child LIKE app.parent",
    )
    assert "(error 1146)" in text
    assert (
        " A filter of the channel leaves out the changes of table app.parent"
        " (Replicate_Ignore_Table=app.parent): b may not have its DDL and its rows."
    ) in text
