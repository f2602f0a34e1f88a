"""A redo beside PARTIAL_JSON: every later audit compares the two commits under one GTID."""

import json
import re

import pytest

from compose.native.shapes import Topology, wait_for
from gtid_audit.cli import run
from tests.repair.live import examine, executed, rows, run_plan

pytestmark = pytest.mark.slow  # a rare shape: make nightly

DOCUMENT = 'CONCAT(\'{"a": 1, "b": "\', REPEAT(\'x\', 200), \'", "c": [1, 2, 3], "d": {"e": 1}}\')'
CHANGES = (
    "JSON_REPLACE(doc, '$.a', 7)",
    "JSON_SET(doc, '$.new', 7)",
    "JSON_SET(doc, '$.c[3]', 7)",
    "JSON_SET(doc, '$.c[10]', 7)",
    "JSON_SET(doc, '$.a[1]', 3)",
    "JSON_SET(JSON_REMOVE(doc, '$.c[0]'), '$.a', 2, '$.d.f', 3, '$.d.f', 4)",
    "JSON_SET(JSON_REMOVE(doc, '$.c[0]', '$.c[0]', '$.c[0]'), '$.c[0]', 7)",
    "JSON_SET(JSON_SET(doc, '$.a', 3), '$.a', 1)",
    "JSON_SET(doc, '$.b', REPEAT('y', 300))",
    "doc, n = 2",
)
OPTION = "binlog_row_value_options"


def errant(star: Topology, option: str) -> None:
    """Change rows on a replica, logged with this option."""
    source, replica = star["source"], star["replica1"]
    source.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON, n INT)",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (1, 1)",
        *(f"INSERT INTO d.j VALUES ({number}, {DOCUMENT}, 1)" for number in range(len(CHANGES))),
    )
    star.settle()
    replica.execute(
        f"SET SESSION {OPTION} = '{option}'",
        *(f"UPDATE d.j SET doc = {each} WHERE id = {at}" for at, each in enumerate(CHANGES)),
        "UPDATE d.t SET n = 2",
    )


def redone_alike(star: Topology, capsys: pytest.CaptureFixture[str]) -> None:
    source, replica = star["source"], star["replica1"]
    run_plan(star, examine(star).plan({"E1": "redo_on_source"}))
    wait_for(star["replica2"], executed(replica))
    assert rows(source, "d.j") == rows(replica, "d.j") == rows(star["replica2"], "d.j")
    capsys.readouterr()
    assert run(["pair", source.dsn, replica.dsn, "--content", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["severity"]) == ("E4", "info")
    assert "with equal content" in found["explanation"]


@pytest.mark.parametrize(("had", "here"), [("PARTIAL_JSON", ""), ("", "PARTIAL_JSON")])
def test_updates_are_redone_only_with_the_option_that_they_had(
    star97: Topology, capsys: pytest.CaptureFixture[str], had: str, here: str
) -> None:
    source = star97["source"]
    errant(star97, had)
    source.execute(f"SET GLOBAL {OPTION} = '{here}'")
    plan = examine(star97).plan({"E1": "redo_on_source"})
    [left] = plan.not_planned
    assert plan.steps == ()
    assert f"source would log them with '{here}'" in left.why
    [statement] = re.findall("`(SET GLOBAL [^`]+)`", left.why)
    source.execute(statement)
    redone_alike(star97, capsys)


@pytest.mark.parametrize("option", ["", "PARTIAL_JSON"])
def test_a_document_that_was_changed_in_place_is_not_redone_whole(
    star97: Topology, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """Its unused bytes are in the log of the replica, and would not be in that of the source."""
    source, replica = star97["source"], star97["replica1"]
    source.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON)",
        f"INSERT INTO d.j VALUES (1, {DOCUMENT})",
    )
    star97.settle()
    source.execute(f"SET GLOBAL {OPTION} = '{option}'")
    replica.execute(
        f"SET SESSION {OPTION} = '{option}'", "UPDATE d.j SET doc = JSON_SET(doc, '$.b', NULL)"
    )
    plan = examine(star97).plan({"E1": "redo_on_source"})
    if option:
        redone_alike(star97, capsys)
    else:
        [left] = plan.not_planned
        assert plan.steps == ()
        assert "changed in place (JSON_SET, JSON_REPLACE, JSON_REMOVE)" in left.why


def test_documents_of_every_kind_that_were_written_whole_are_redone(
    star97: Topology, capsys: pytest.CaptureFixture[str]
) -> None:
    source, replica = star97["source"], star97["replica1"]
    source.execute("CREATE DATABASE d", "CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON)")
    star97.settle()
    documents = (
        *("'7'", "'null'", "'\"\"'", "'[]'", "'{}'", "'[[], {}, [1, [2, {\"a\": null}]]]'"),
        '\'{"a": 70000, "bb": -5000000000, "c": 1.5e300, "d": true, "ü": "ü"}\'',
        "JSON_ARRAY(CAST(1.10 AS DECIMAL(5, 2)), CAST('2020-02-29' AS DATE), 18446744073709551615)",
        "JSON_OBJECT('t', CAST('12:34:56.7' AS TIME(1)), 's', REPEAT('x', 200))",
        "JSON_ARRAY(REPEAT('x', 70000), 70000, -70000, 1, '')",  # the large format
        "JSON_ARRAY(1.50, -0.5, .5, 7., 0.00, 1234567890.1, ROUND(1.555, 2), -2.50 * 2)",
        "JSON_ARRAY(CAST(12345678901 AS DECIMAL(20, 2)), CAST(0 AS DECIMAL(3, 3)))",
    )
    replica.execute(
        *(f"INSERT INTO d.j VALUES ({at}, {each})" for at, each in enumerate(documents)),
        "UPDATE d.j SET doc = JSON_ARRAY(doc, doc)",
    )
    redone_alike(star97, capsys)


@pytest.mark.parametrize("column", ["price", "seen"])
def test_a_document_with_a_value_of_a_column_is_not_redone(star97: Topology, column: str) -> None:
    """The log has the DECIMAL with the precision of the column, and a TIMESTAMP as one."""
    source, replica = star97["source"], star97["replica1"]
    source.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.c (id INT PRIMARY KEY, price DECIMAL(10, 2), seen TIMESTAMP)",
        "INSERT INTO d.c VALUES (1, 1.50, '2026-01-01 10:00:00')",
        "CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON)",
    )
    star97.settle()
    replica.execute(f"INSERT INTO d.j SELECT 1, JSON_ARRAY({column}) FROM d.c")
    plan = examine(star97).plan({"E1": "redo_on_source"})
    [left] = plan.not_planned
    assert plan.steps == ()
    assert "contains a DECIMAL or TIMESTAMP of a column" in left.why
