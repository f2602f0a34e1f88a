"""A redo has the definitions and the form in the log that the work had the first time."""

import json

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from gtid_audit.cli import run
from repair.render import render_files
from tests.repair.live import examine, executed, rows, run_plan

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow


@pytest.fixture(params=["pair97", "pair56"])
def one_way(request: pytest.FixtureRequest) -> Pair:
    """A source and its replica."""
    pair: Pair = request.getfixturevalue(request.param)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    return pair


def redone_alike(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """Do errant work again on the source; expect that no audit sees a difference."""
    a, b = pair.a, pair.b
    plan = examine(pair).plan({"E1": "redo_on_source"})
    assert plan.steps, plan.not_planned
    run_plan(pair, plan)
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    capsys.readouterr()
    run(["pair", a.dsn, b.dsn, "--content", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [each["severity"] for each in found if each["code"] == "E4"] in ([], ["info"]), found


def definition(server: Server, table: str) -> object:
    return server.query(f"SHOW CREATE TABLE {table}")


def test_a_table_is_made_again_without_a_generated_primary_key(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """An applier does not look at the variable either."""
    a, b = pair97.a, pair97.b
    a.execute(
        a.dialect.stop_replica,
        a.dialect.reset_replica,
        "SET GLOBAL sql_generate_invisible_primary_key = ON",
    )
    b.execute(
        "CREATE DATABASE e",
        "CREATE TABLE e.t (id INT, s VARCHAR(20) DEFAULT 'a')",
        "INSERT INTO e.t (id) VALUES (1), (2)",
    )
    redone_alike(pair97, capsys)
    assert definition(a, "e.t") == definition(b, "e.t")
    assert rows(a, "e.t") == [(1, "a"), (2, "a")]


TABLES = (
    "CREATE DATABASE d",
    (
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, m INT, at DATETIME DEFAULT CURRENT_TIMESTAMP,"
        " moved TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)"
    ),
    "CREATE TABLE d.keyless (n INT, m INT, at DATETIME)",
    "CREATE TABLE d.plain (id INT PRIMARY KEY, n INT, at TIMESTAMP NULL, doc TEXT)",
    "INSERT INTO d.t (id, n, m) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    "INSERT INTO d.keyless VALUES (1, 1, NULL), (1, 1, NULL)",
    "INSERT INTO d.plain VALUES (1, 1, NULL, 'x'), (2, 2, '2020-01-01', 'y')",
)
UPDATES = (
    "UPDATE d.t SET n = 7 WHERE id = 1",
    "UPDATE d.t SET moved = moved, n = 8 WHERE id = 2",
    "UPDATE d.t SET id = id, m = 9, n = n WHERE id = 3",
    "UPDATE d.plain SET n = 2 WHERE id = 1",
    "UPDATE d.plain SET n = n, id = 3, doc = doc WHERE id = 2",
    "UPDATE d.keyless SET n = n, m = 2 LIMIT 1",
)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL"])
def test_an_update_logs_the_columns_again_that_it_had_logged(
    one_way: Pair, capsys: pytest.CaptureFixture[str], image: str
) -> None:
    a, b = one_way.a, one_way.b
    a.execute(*TABLES)
    one_way.settle()
    a.execute(f"SET GLOBAL binlog_row_image = '{image}'")
    b.execute(f"SET SESSION binlog_row_image = '{image}'", *UPDATES)
    redone_alike(one_way, capsys)
    for table in ("d.t", "d.plain", "d.keyless"):
        assert rows(a, table) == rows(b, table)


@pytest.mark.parametrize("binlog_format", ["MIXED", "STATEMENT"])
def test_rows_are_logged_as_rows_where_others_are_logged_as_statements(
    one_way: Pair, capsys: pytest.CaptureFixture[str], binlog_format: str
) -> None:
    a, b = one_way.a, one_way.b
    a.execute(*TABLES)
    one_way.settle()
    a.execute(f"SET GLOBAL binlog_format = '{binlog_format}'")
    b.execute("SET SESSION binlog_format = 'ROW'", *UPDATES[:3], "INSERT INTO d.t (id) VALUES (9)")
    redone_alike(one_way, capsys)


@pytest.mark.parametrize(
    "changed", ["binlog_row_image = 'MINIMAL'", "binlog_row_value_options = 'PARTIAL_JSON'"]
)
def test_a_form_of_rows_that_the_plan_did_not_see_stops_the_script(
    pair97: Pair, changed: str
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, *TABLES)
    wait_for(b, executed(a))
    b.execute(*UPDATES[:1])
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    [step] = plan.steps
    before = executed(a)
    script = render_files(plan)[step.file_name]
    done = a.client(script, f"--init-command=SET {changed}")
    assert done.returncode != 0
    assert f"with another {changed.partition(' ')[0]}" in done.stderr
    assert executed(a) == before
    assert a.client(script).returncode == 0
