"""What servers log differently and is the same, or not the fault it looks like: no false alarm."""

import json
from typing import Any

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit.cli import run


def compared(capsys: pytest.CaptureFixture[str], pair: Pair) -> dict[str, Any]:
    """Compare all that both live servers hold."""
    capsys.readouterr()
    status = run(["binlog", "compare", pair.a.dsn, pair.b.dsn, "--everywhere", "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}[found["verdict"]]
    return found


def apply_with(replica: Server, setting: str) -> None:
    replica.execute(replica.dialect.stop_replica, setting, replica.dialect.start_replica)


def test_one_commit_worded_anew_by_the_replica_is_the_same(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    key_of_its_own = "CHANGE REPLICATION SOURCE TO REQUIRE_TABLE_PRIMARY_KEY_CHECK = "
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    a.execute("INSERT INTO d.t VALUES (1), (2)")
    a.execute("SET SESSION binlog_format = 'MIXED'", "CREATE TABLE d.taken AS SELECT * FROM d.t")
    pair97.settle()
    apply_with(b, f"{key_of_its_own} GENERATE")
    a.execute("CREATE TABLE d.keyless (n INT)", "INSERT INTO d.keyless VALUES (1), (1)")
    a.execute("CREATE TABLE d.taken_too AS SELECT * FROM d.t", "UPDATE d.keyless SET n = 2")
    pair97.settle()
    apply_with(b, f"{key_of_its_own} STREAM")
    found = compared(capsys, pair97)
    assert (found["findings"], found["gtid_count"]) == ([], 8)
    # Rows beside a key of its own, or behind a statement, are not comparable: that is reported.
    reasons = sorted(each["reason"].partition("one commit")[2] for each in found["unknown"])
    assert reasons == [
        " by its time, and one version was logged as statements and the other as rows",
        " by its time, and the rows were logged in different forms",
        " by its time, and the statements differ",
    ]
    assert (found["compared"]["compared_count"], found["compared"]["undecided_count"]) == (4, 4)
    # The commit times alone exclude that a GTID was reused: for an audit it is a remark.
    assert run(["pair", a.dsn, b.dsn, "--content", "--json"]) == 0
    audit = json.loads(capsys.readouterr().out)
    assert (audit["findings"], audit["unknown"]) == ([], [])


def test_rows_that_had_drifted_apart_are_told_from_a_number_given_twice(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, note VARCHAR(20))")
    a.execute("INSERT INTO d.t VALUES (1, 'one'), (2, 'two')")
    pair97.settle()
    b.execute("SET SESSION sql_log_bin = 0", "UPDATE d.t SET note = 'written here' WHERE id = 2")
    a.execute("UPDATE d.t SET note = 'later' WHERE id = 1", "DELETE FROM d.t WHERE id = 2")
    pair97.settle()
    found = compared(capsys, pair97)
    [finding] = found["findings"]
    assert (finding["code"], finding["severity"], finding["grade"]) == ("E4", "warning", "likely")
    assert finding["gtid_count"] == 1
    assert "No GTID was reused" in finding["explanation"]
    [difference] = found["differences"]
    assert difference["difference"] == "one commit, applied to other rows"
    assert [each["content"] for each in difference["versions"]] == [
        "d.t: deleted (2, 'two')",
        "d.t: deleted (2, 'written here')",
    ]

    unlogged = "SET SESSION sql_log_bin = 0"
    a.execute(unlogged, "RENAME TABLE d.t TO d.elsewhere")
    b.execute(unlogged, "RENAME TABLE d.t TO d.elsewhere", "CREATE VIEW d.t AS SELECT 1 AS id")
    unread = compared(capsys, pair97)["rows"]["unread"]
    assert "d.t: its definition was not read: it is a view" in unread
    assert (
        "d.t: its rows cannot be found: its key is not known (no SELECT privilege on it?)" in unread
    )
    b.execute(unlogged, "DROP VIEW d.t")
    unread = compared(capsys, pair97)["rows"]["unread"]
    assert any("d.t: its definition was not read: error 1146: " in each for each in unread)


def test_statements_that_5_6_words_anew_are_not_called_different(
    pair56: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair56.a, pair56.b
    apply_with(b, "SET GLOBAL binlog_format = 'ROW'")
    a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (n INT)",
        "SET SESSION binlog_format = 'STATEMENT'",
        "CREATE TEMPORARY TABLE d.passing (n INT)",
        "INSERT INTO d.passing VALUES (1), (2)",
        "INSERT INTO d.t SELECT n FROM d.passing",
        "CREATE TABLE d.alike LIKE d.passing",
        "DROP TEMPORARY TABLE d.passing",
    )
    pair56.settle()
    found = compared(capsys, pair56)
    assert found["findings"] == []
    reasons = " ".join(each["reason"] for each in found["unknown"])
    assert "a statement is worded differently" in reasons
    assert "one version was logged as statements and the other as rows" in reasons


def test_other_row_images_on_the_replica_are_no_alarm(
    pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, note VARCHAR(20) DEFAULT 'none', doc JSON)",
        "CREATE TABLE d.plain (n INT DEFAULT 7, m INT DEFAULT 8)",
    )
    pair97.settle()
    apply_with(b, "SET GLOBAL binlog_row_image = 'MINIMAL'")
    apply_with(b, "SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
    a.execute(
        "INSERT INTO d.t (id, doc) VALUES (1, '{\"a\": 1}'), (2, NULL)",
        "INSERT INTO d.plain () VALUES (), ()",
        "UPDATE d.t SET doc = JSON_SET(doc, '$.a', 2) WHERE id = 1",
        "UPDATE d.plain SET m = 9",
        "DELETE FROM d.t WHERE id = 2",
        "DELETE FROM d.plain LIMIT 1",
    )
    pair97.settle()
    found = compared(capsys, pair97)
    assert found["findings"] == []
    assert all("different forms" in each["reason"] for each in found["unknown"])
    assert run(["pair", a.dsn, b.dsn, "--content", "--json"]) == 0
    audit = json.loads(capsys.readouterr().out)
    assert (audit["findings"], audit["unknown"]) == ([], [])
