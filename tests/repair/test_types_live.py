"""A redo on a server whose columns would store other values, without an error."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair, Topology, wait_for
from gtid import GtidSet
from gtid_audit.cli import run
from repair.render import render_files
from tests.repair.live import examine, executed, rows

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow

# Logged as, stored as, a value that would be another one.
TYPES = {
    "rounded": ("DECIMAL(10, 2)", "DECIMAL(10, 1)", "1.25"),
    "without microseconds": ("DATETIME(6)", "DATETIME", "'2020-01-01 00:00:00.6'"),
    "whole": ("DOUBLE", "INT", "1.5"),
    "less exact": ("DOUBLE", "FLOAT", "0.1"),
    "fewer digits": ("TIME(3)", "TIME(1)", "'10:00:00.123'"),
    "without spaces": ("VARCHAR(10)", "CHAR(10)", "'a  '"),
    "with zeros": ("VARBINARY(10)", "BINARY(10)", "'a'"),
    "another character set": (
        "VARCHAR(9) CHARACTER SET utf8",
        "VARCHAR(9) CHARACTER SET latin1",
        "'e'",
    ),
    "in another zone": ("DATETIME", "TIMESTAMP", "'2020-01-01'"),
}


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_are_not_done_again_in_columns_of_other_types(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d")
    for at, (logged, stored, value) in enumerate(TYPES.values()):
        a.execute(f"CREATE TABLE d.t{at} (id INT PRIMARY KEY, v {logged})")
        wait_for(b, executed(a))
        a.execute("SET SESSION sql_log_bin = 0", f"ALTER TABLE d.t{at} MODIFY v {stored}")
        b.execute(f"INSERT INTO d.t{at} VALUES (1, {value})")
        plan = examine(pair).plan({"E1": "redo_on_source"})
        assert plan.steps == (), logged
        [left] = [each for each in plan.not_planned if each.code == "E1"]
        assert "the rows may be different" in left.why, (logged, left.why)
        assert f"d.t{at}: v is" in left.why, left.why
        b.execute("SET SESSION sql_log_bin = 0", f"DROP TABLE d.t{at}")
        # Nothing of this round is left to the next one.
        a.execute(
            "SET SESSION sql_log_bin = 0",
            f"DROP TABLE d.t{at}",
            "SET SESSION sql_log_bin = 1",
            *_emptied(executed(b), executed(a)),
        )


def _emptied(wanted: str, has: str) -> list[str]:
    statements = []
    for gtid in (GtidSet.parse(wanted) - GtidSet.parse(has)).gtids():
        statements += [f"SET SESSION gtid_next = '{gtid}'", "BEGIN", "COMMIT"]
    return [*statements, "SET SESSION gtid_next = 'AUTOMATIC'"]


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("MODIFY v INT FIRST", "its columns or their order differ"),
        ("ADD COLUMN more INT DEFAULT 7", "has more columns than the log: more"),
    ],
)
def test_rows_are_not_done_again_in_other_columns(
    shape: str, change: str, words: str, request: pytest.FixtureRequest
) -> None:
    """They would be logged with their columns in other places: each replica applies them by these."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    table = "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d", table)
    wait_for(b, executed(a))
    b.execute("INSERT INTO d.t VALUES (1, 2)")
    found = examine(pair)
    [step] = found.plan({"E1": "redo_on_source"}).steps
    script = render_files(found.plan({"E1": "redo_on_source"}))[step.file_name]
    a.execute("SET SESSION sql_log_bin = 0", f"ALTER TABLE d.t {change}")
    plan = examine(pair).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    assert any(words in each.why for each in plan.not_planned), plan.not_planned
    done = a.client(script)
    assert done.returncode != 0
    assert "d.t has other columns than the log" in done.stderr
    assert rows(a, "d.t") == []


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_column_that_was_changed_after_the_plan_stops_the_script(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    tables = [
        f"CREATE TABLE d.t{at} (id INT PRIMARY KEY, v {logged})"
        for at, (logged, _, _) in enumerate(TYPES.values())
    ]
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d", *tables)
    wait_for(b, executed(a))
    values = enumerate(value for _, _, value in TYPES.values())
    b.execute(*(f"INSERT INTO d.t{at} VALUES (1, {value})" for at, value in values))
    plan = examine(pair).plan({"E1": "redo_on_source"})
    [step] = plan.steps
    script = render_files(plan)[step.file_name]
    before = executed(a)
    for at, (logged, stored, _) in enumerate(TYPES.values()):
        a.execute("SET SESSION sql_log_bin = 0", f"ALTER TABLE d.t{at} MODIFY v {stored}")
        done = a.client(script)
        assert done.returncode != 0, logged
        assert f"d.t{at} has a column of another type than the log" in done.stderr, done.stderr
        assert executed(a) == before
        a.execute("SET SESSION sql_log_bin = 0", f"ALTER TABLE d.t{at} MODIFY v {logged}")
    assert a.client(script).returncode == 0
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    for at in range(len(TYPES)):
        assert rows(a, f"d.t{at}") == rows(b, f"d.t{at}")


def reused(pair: Pair, tables: Sequence[str], lost: Sequence[str], new: Sequence[str]) -> None:
    """Let the source give the GTIDs of rows that only its replica has to other rows."""
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE d", *tables)
    pair.settle()
    faults.lost_tail_crash(pair, statements=lost)
    a.execute(*new, "CREATE DATABASE later")
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))


def planned(pair: Pair, capsys: pytest.CaptureFixture[str], folder: Path) -> dict[str, Any]:
    capsys.readouterr()
    targets = ("--pair", pair.a.dsn, pair.b.dsn)
    options = ("--strategy", "E4=data_repair", "--json", "--out", str(folder))
    run(["repair", "plan", *targets, *options])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_rows_of_another_type_are_not_made_alike(
    shape: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The script once wrote a third value, found that it was not the goal, and so for ever."""
    pair: Pair = request.getfixturevalue(shape)
    table = "CREATE TABLE d.t (id INT PRIMARY KEY, v DECIMAL(10, 2))"
    reused(pair, [table], ["INSERT INTO d.t VALUES (1, 7)"], ["INSERT INTO d.t VALUES (1, 1.25)"])
    pair.b.execute("SET SESSION sql_log_bin = 0", "ALTER TABLE d.t MODIFY v DECIMAL(10, 1)")
    plan = planned(pair, capsys, tmp_path / "plan")
    assert plan["steps"] == []
    [left] = [each for each in plan["not_planned"] if each["code"] == "E4"]
    assert "d.t: v is decimal(10,1)" in left["why"]


def test_vectors_are_read(pair97: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Their bytes claim to be text, which ended the connection: no other table was read either."""
    a, b = pair97.a, pair97.b
    reused(
        pair97,
        [
            "CREATE TABLE d.a (id INT PRIMARY KEY, v VECTOR(3))",
            "CREATE TABLE d.z (id INT PRIMARY KEY)",
        ],
        ["INSERT INTO d.a VALUES (1, TO_VECTOR('[1e-5,2,3]'))", "INSERT INTO d.z VALUES (1)"],
        ["INSERT INTO d.a VALUES (1, TO_VECTOR('[-1e-5,2,3]'))", "INSERT INTO d.z VALUES (2)"],
    )
    plan = planned(pair97, capsys, tmp_path / "plan")
    assert [each for each in plan["warnings"] if "not read" in each] == []
    for file in sorted((tmp_path / "plan").glob("0*.sql")):
        server = b if "sql_log_bin = 0" in file.read_text() else a  # a check of the source
        done = server.client(file)
        assert done.returncode == 0, done.stderr
    assert rows(a, "d.z") == rows(b, "d.z") == [(2,)]
    assert a.value("HEX(v) FROM d.a") == b.value("HEX(v) FROM d.a")


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_column_that_the_transactions_add_is_no_other_column(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    table = "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)"
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d", table)
    wait_for(b, executed(a))
    b.execute(
        "ALTER TABLE d.t ADD COLUMN more INT DEFAULT 7",
        "INSERT INTO d.t (id, v) VALUES (1, 2)",
        "CREATE TABLE d.u (id INT PRIMARY KEY)",
        "INSERT INTO d.u VALUES (1)",
    )
    plan = examine(pair).plan({"E1": "redo_on_source"})
    assert any("types of the columns were not compared" in each for each in plan.warnings)
    [step] = plan.steps
    script = render_files(plan)[step.file_name]
    other = "SET SESSION sql_log_bin = 0", "ALTER TABLE d.t ADD COLUMN between_them INT AFTER id"
    a.execute(*other)
    done = a.client(script)
    assert done.returncode != 0
    assert "d.t has other columns than the log" in done.stderr
    a.execute(other[0], "ALTER TABLE d.t DROP COLUMN between_them")
    assert a.client(script).returncode == 0
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    assert rows(a, "d.t") == rows(b, "d.t") == [(1, 2, 7)]


@pytest.mark.parametrize("other", ["middle", "last"])
def test_rows_are_not_undone_in_columns_of_other_types(chain97: Topology, other: str) -> None:
    """What is there is as it was left, and what was there before has no room any more."""
    first, middle = chain97["first"], chain97["middle"]
    first.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v DECIMAL(10, 2))",
        "INSERT INTO d.t VALUES (1, 1.25)",
    )
    chain97.settle()
    middle.execute("UPDATE d.t SET v = 2")
    chain97.settle()
    chain97[other].execute("SET SESSION sql_log_bin = 0", "ALTER TABLE d.t MODIFY v DECIMAL(10, 1)")
    plan = examine(chain97).plan({"E1": "undo_on_replica"})
    assert plan.steps == ()
    words = "its key is not known" if other == "middle" else "d.t: v is decimal(10,1)"
    [left] = [each for each in plan.not_planned if each.code == "E1"]
    assert words in left.why


def test_a_document_whose_text_does_not_hold_its_types_is_not_written(
    pair97: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A DATETIME within JSON would be written as a string, which looks the same."""
    tables = [f"CREATE TABLE d.{name} (id INT PRIMARY KEY, v JSON)" for name in ("a", "z")]
    reused(
        pair97,
        tables,
        ["INSERT INTO d.a VALUES (1, '{}')", "INSERT INTO d.z VALUES (1, '{}')"],
        [
            "INSERT INTO d.a VALUES (1, JSON_OBJECT('at', CAST('2024-01-02' AS DATETIME)))",
            """INSERT INTO d.z VALUES (1, '{"at": "2024-01-02"}')""",
        ],
    )
    plan = planned(pair97, capsys, tmp_path / "plan")
    assert any('v: $."at" is a DATETIME' in each for each in plan["warnings"]), plan["warnings"]
    for file in sorted((tmp_path / "plan").glob("0*.sql")):
        is_check = "sql_log_bin = 0" not in file.read_text()
        done = (pair97.a if is_check else pair97.b).client(file)
        assert done.returncode == 0, done.stderr
    assert pair97.b.value("JSON_TYPE(v->'$.at') FROM d.z") == "STRING"
    assert pair97.b.value("v FROM d.a") == "{}"


def test_rows_are_not_done_again_where_a_column_is_generated_by_another_expression(
    pair97: Pair,
) -> None:
    """The redo would log another value of that column: two contents of one GTID for good."""
    a, b = pair97.a, pair97.b
    table = "CREATE TABLE d.t (id INT PRIMARY KEY, v INT, g INT AS (v * 2) STORED)"
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d", table)
    wait_for(b, executed(a))
    b.execute("INSERT INTO d.t (id, v) VALUES (1, 2)")
    assert examine(pair97).plan({"E1": "redo_on_source"}).steps
    a.execute(
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE d.t DROP COLUMN g, ADD COLUMN g INT AS (v * 3) STORED",
    )
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    whys = [each.why for each in plan.not_planned if each.code == "E1"]
    assert any("d.t: g is generated by another expression" in each for each in whys), whys
