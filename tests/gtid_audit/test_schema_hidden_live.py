"""Differences that information_schema does not show, and SQL that a plain MODIFY cannot do."""

import pytest

from compose.native.shapes import Pair, wait_for
from tests.gtid_audit.test_schema_drift_live import (
    differences,
    drift,
    executed,
    not_logged,
    repair,
    versions,
)

pytestmark = pytest.mark.slow  # a rare shape: make nightly

SAME = (
    "CREATE DATABASE app",
    "CREATE TABLE app.t (a INT)",
    "CREATE TABLE app.one (id INT) ENGINE=MyISAM",
    "CREATE TABLE app.two (id INT) ENGINE=MyISAM",
)
# What differs: on the source, and on the replica.
HIDDEN = {
    "table app.f": (
        "CREATE TABLE app.f (x TEXT, FULLTEXT KEY k (x) WITH PARSER ngram)",
        "CREATE TABLE app.f (x TEXT, FULLTEXT KEY k (x))",
    ),
    "table app.m": (
        "CREATE TABLE app.m (id INT) ENGINE=MERGE UNION=(app.one)",
        "CREATE TABLE app.m (id INT) ENGINE=MERGE UNION=(app.two)",
    ),
    "table app.p": (
        "CREATE TABLE app.p (a INT) PARTITION BY KEY ALGORITHM=1 (a) PARTITIONS 2",
        "CREATE TABLE app.p (a INT) PARTITION BY KEY (a) PARTITIONS 2",
    ),
    "table app.i": (
        "CREATE TABLE app.i (a INT, KEY k (a))",
        "CREATE TABLE app.i (a INT, KEY k (a) INVISIBLE)",
    ),
    "table app.v": (
        "CREATE TABLE app.v (a INT, b INT AS (a + 1) VIRTUAL, c INT)",
        "CREATE TABLE app.v (a INT, b INT AS (a + 1) STORED, c INT)",
    ),
}
FIRST = "CREATE TRIGGER app.b_first BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 1"
SECOND = "CREATE TRIGGER app.a_second BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 2"


@pytest.fixture
def alike(pair97: Pair) -> Pair:
    pair97.a.execute(*SAME)
    wait_for(pair97.b, executed(pair97.a))
    return pair97


def test_what_no_table_shows_is_compared_and_repaired(alike: Pair) -> None:
    for ours, theirs in HIDDEN.values():
        not_logged(alike.a, ours)
        not_logged(alike.b, theirs)
    status, found = drift(alike.a, alike.b)
    by_name = differences(found)
    assert by_name.keys() == HIDDEN.keys()
    assert status == 1
    assert {each["grade"] for each in by_name.values()} == {"proved"}
    assert versions(alike.a, alike.b)[0] == 1
    repair_without_missing(alike, by_name)
    assert differences(drift(alike.a, alike.b)[1]) == {}


def test_the_order_of_triggers_is_compared_and_repaired(alike: Pair) -> None:
    not_logged(alike.a, FIRST, SECOND)
    not_logged(alike.b, SECOND, FIRST)
    status, found = drift(alike.a, alike.b)
    by_name = differences(found)
    assert status == 1
    assert by_name.keys() == {"trigger app.a_second", "trigger app.b_first"}
    repair_without_missing(alike, by_name)
    assert differences(drift(alike.a, alike.b)[1]) == {}
    for server in (alike.a, alike.b):
        not_logged(server, "INSERT INTO app.t VALUES (0)")
        assert server.query("SELECT a FROM app.t") == [(2,)]


@pytest.mark.slow
def test_equal_order_is_no_difference(alike: Pair) -> None:
    for server in (alike.a, alike.b):
        not_logged(server, FIRST, SECOND, *(ours for ours, _ in HIDDEN.values()))
    status, found = drift(alike.a, alike.b)
    assert (status, differences(found)) == (0, {})
    assert versions(alike.a, alike.b)[0] == 0


@pytest.mark.slow
def test_a_primary_key_that_the_replica_generates_stops_nothing(alike: Pair) -> None:
    alike.b.execute(
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO REQUIRE_TABLE_PRIMARY_KEY_CHECK = GENERATE",
        "START REPLICA",
    )
    alike.a.execute(
        "CREATE TABLE app.g (a INT, b INT)",
        "INSERT INTO app.g VALUES (1, 2), (3, 4)",
        "UPDATE app.g SET b = 5 WHERE a = 1",
    )
    wait_for(alike.b, executed(alike.a))
    assert sorted(alike.b.query("SELECT a, b FROM app.g")) == [(1, 5), (3, 4)]
    assert "my_row_id" in str(alike.b.query("SHOW CREATE TABLE app.g"))
    status, found = drift(alike.a, alike.b)
    assert (status, differences(found)) == (0, {})
    # Another difference of the same table is still one.
    not_logged(alike.b, "ALTER TABLE app.g MODIFY b BIGINT")
    status, found = drift(alike.a, alike.b)
    assert (status, differences(found)["table app.g"]["classes"]) == (2, ["column type"])
    assert differences(found)["table app.g"]["rows"]["errno"] == 1677


def repair_without_missing(pair: Pair, by_name: dict[str, dict[str, object]]) -> None:
    """Run what is shown."""
    not_logged(pair.b, "CREATE DATABASE gone")
    repair(pair.b, by_name)
    not_logged(pair.b, "DROP DATABASE gone")
