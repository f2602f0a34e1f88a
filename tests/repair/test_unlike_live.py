"""Starts of a stopped channel where the replica's definitions do not fit what waits."""

import pytest

from compose.faults import await_applier_stopped, commit, move_past
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from repair import Plan
from tests.repair.live import examine, executed, left_by, rows, run_plan, run_step, wait_until

pytestmark = pytest.mark.slow  # a rare shape: make nightly

_TABLES = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE d.big (id INT PRIMARY KEY, v BIGINT)",
    "CREATE TABLE d.word (id INT PRIMARY KEY, w VARCHAR(9) CHARACTER SET utf8mb4)",
    "CREATE TABLE d.kind (id INT PRIMARY KEY, e ENUM('a', 'b', 'c'))",
    "CREATE TABLE d.more (id INT PRIMARY KEY, v INT CHECK (v > 0)) PARTITION BY HASH (id)",
)
# What was changed on the replica, behind sql_log_bin = 0; what waits; why it is not started; and
# how the replica is as its source again. All of these stopped the applier (1050, 1051, 1061, 1146,
# 1526, 3819, 13146), or wrote another member, when they were started (9.7.4).
_UNLIKE = {
    "index": (
        "CREATE INDEX iv ON d.t (v)",
        "CREATE INDEX iv ON d.t (v)",
        "changes definitions (`CREATE INDEX iv ON d.t (v)`)",
        "DROP INDEX iv ON d.t",
    ),
    "table to be dropped": (
        "DROP TABLE d.t",
        "DROP TABLE d.t",
        "d.t is not there",
        "CREATE TABLE d.t (id INT)",
    ),
    "table to be created": (
        "CREATE TABLE d.t (id INT)",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        "d.t exists already",
        "DROP TABLE d.t",
    ),
    "table of a row": (
        "RENAME TABLE d.t TO d.u",
        "INSERT INTO d.t VALUES (1, 1)",
        "d.t is not there",
        "RENAME TABLE d.u TO d.t",
    ),
    "type": (
        "ALTER TABLE d.big MODIFY v INT",
        "INSERT INTO d.big VALUES (1, 1)",
        "d.big: v is int; the log has type 8",
        "ALTER TABLE d.big MODIFY v BIGINT",
    ),
    "character set": (
        "ALTER TABLE d.word MODIFY w VARCHAR(9) CHARACTER SET latin1",
        "INSERT INTO d.word VALUES (1, 'w')",
        "d.word: w is varchar(9); the log has type 15",
        "ALTER TABLE d.word MODIFY w VARCHAR(9) CHARACTER SET utf8mb4",
    ),
    "members": (
        "ALTER TABLE d.kind MODIFY e ENUM('a', 'c', 'b')",
        "INSERT INTO d.kind VALUES (1, 'b')",
        "d.kind: the members of e differ from the log",
        "ALTER TABLE d.kind MODIFY e ENUM('a', 'b', 'c')",
    ),
    "check": (
        "ALTER TABLE d.big ADD CONSTRAINT low CHECK (v < 10)",
        "INSERT INTO d.big VALUES (2, 20)",
        "d.big has a CHECK ((`v` < 10)) that its source does not have",
        "ALTER TABLE d.big DROP CHECK low",
    ),
    "foreign key": (
        "ALTER TABLE d.t ADD CONSTRAINT bound FOREIGN KEY (id) REFERENCES d.kind (id)",
        "INSERT INTO d.t VALUES (3, 3)",
        "d.t has a FOREIGN KEY (`id`) REFERENCES `kind` (`id`) that its source does not have",
        "ALTER TABLE d.t DROP FOREIGN KEY bound",
    ),
    "partitions": (
        "ALTER TABLE d.more PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (5))",
        "INSERT INTO d.more VALUES (5, 5)",
        "d.more has a PARTITION BY RANGE (`id`)",
        "ALTER TABLE d.more PARTITION BY HASH (id)",
    ),
    "unique key of an expression": (
        "ALTER TABLE d.t ADD UNIQUE twice ((v + v))",
        "INSERT INTO d.t VALUES (10, 1)",
        "d.t has a UNIQUE KEY (((`v` + `v`))) that its source does not have",
        "ALTER TABLE d.t DROP KEY twice",
    ),
}
# The same on 5.6 and 9.7. The first stored 0 in place of NULL without an error; the others stopped
# the applier (1062) or, with other rows, changed another row (9.7.4).
_KEYED = (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE d.word (w VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_bin PRIMARY KEY, v INT)",
    "CREATE TABLE d.place (id INT PRIMARY KEY, g GEOMETRY)",
)
_STRICTER = {
    "not null": (
        "ALTER TABLE d.t MODIFY v INT NOT NULL",
        "INSERT INTO d.t VALUES (1, NULL)",
        "d.t: v is NOT NULL, but may be NULL on its source",
        "ALTER TABLE d.t MODIFY v INT",
    ),
    "unique key": (
        "ALTER TABLE d.t ADD UNIQUE only_here (v)",
        "INSERT INTO d.t VALUES (2, 2)",
        "d.t has a UNIQUE KEY (`v`) that its source does not have",
        "ALTER TABLE d.t DROP KEY only_here",
    ),
    "collation": (
        (
            "ALTER TABLE d.word MODIFY w VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_general_ci"
            " NOT NULL"
        ),
        "INSERT INTO d.word VALUES ('b', 1)",
        "d.word: w is part of a key and has utf8mb3_general_ci; on its source it has utf8mb3_bin",
        "ALTER TABLE d.word MODIFY w VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL",
    ),
    "shape": (
        "ALTER TABLE d.place MODIFY g POINT",
        "INSERT INTO d.place VALUES (1, ST_GeomFromText('LINESTRING(0 0,1 1)'))",
        "d.place: g is point; on its source it is geometry",
        "ALTER TABLE d.place MODIFY g GEOMETRY",
    ),
    "engine": (
        "ALTER TABLE d.t ENGINE = BLACKHOLE",
        "INSERT INTO d.t VALUES (9, 9)",
        "d.t has ENGINE=BLACKHOLE, which keeps no rows",
        "ALTER TABLE d.t ENGINE = InnoDB",
    ),
}


def _plan_of_what_waits(pair: Pair, changed: str, waits: str) -> Plan:
    pair.b.execute(pair.b.dialect.stop_replica)
    _unlogged(pair.b, changed)
    commit(pair.a, waits)
    return examine(pair).plan()


def _go_on(pair: Pair, undone: str) -> None:
    _unlogged(pair.b, undone)
    pair.b.execute(pair.b.dialect.start_replica)
    wait_for(pair.b, executed(pair.a))


def _unlogged(server: Server, statement: str) -> None:
    server.execute("SET SESSION sql_log_bin = 0", statement)


def test_what_definitions_do_not_fit_is_not_started_unasked(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, *_TABLES)
    wait_for(b, executed(a))
    for name, (changed, waits, words, undone) in _UNLIKE.items():
        plan = _plan_of_what_waits(pair97, changed, waits)
        assert plan.steps == (), name
        [left] = left_by(plan)
        assert left.code == "A7", name
        assert words in left.why, (name, left.why)
        assert "then choose with --strategy A7=NAME: start_channel" in left.why
        _go_on(pair97, undone)
    b.execute(b.dialect.stop_replica)
    a.execute(
        "CREATE DATABASE made",
        "CREATE TABLE made.t (id INT PRIMARY KEY)",
        "INSERT INTO made.t VALUES (1)",
        "INSERT INTO d.more VALUES (6, 6)",
        "TRUNCATE TABLE d.kind",
        "DROP TABLE d.word",
        "CREATE TABLE d.word (id INT PRIMARY KEY)",
        "INSERT INTO d.word VALUES (4)",
        "DROP TABLE IF EXISTS d.word",
    )
    run_plan(pair97, examine(pair97).plan())
    assert rows(b, "made.t") == [(1,)]


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_what_a_stricter_table_may_change_or_refuse_is_not_started_unasked(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica, *_KEYED)
    wait_for(pair.b, executed(pair.a))
    for name, (changed, waits, words, undone) in _STRICTER.items():
        plan = _plan_of_what_waits(pair, changed, waits)
        assert plan.steps == (), name
        [left] = left_by(plan)
        assert left.code == "A7", name
        assert words in left.why, (name, left.why)
        _go_on(pair, undone)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_a_table_that_is_written_otherwise_and_means_the_same_is_started(
    shape: str, request: pytest.FixtureRequest
) -> None:
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute(
        *(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d"),
        (
            "CREATE TABLE d.t (w VARCHAR(9), v INT NOT NULL, UNIQUE words (w), UNIQUE two (v, w))"
            " DEFAULT CHARACTER SET utf8 COLLATE utf8_bin"
        ),
    )
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica)
    for each in (
        "ALTER TABLE d.t DEFAULT CHARACTER SET latin1",
        "ALTER TABLE d.t ADD COLUMN number BIGINT AUTO_INCREMENT PRIMARY KEY",
        "ALTER TABLE d.t DROP KEY words, ADD UNIQUE other_name (w), ADD UNIQUE wider (w, v)",
        "ALTER TABLE d.t DROP KEY two, ADD KEY (v), COMMENT 'UNIQUE KEY (`v`)'",
    ):
        _unlogged(b, each)
    a.execute("INSERT INTO d.t VALUES ('a', 1), ('A', 2), (NULL, 3), (NULL, 4)")
    run_plan(pair, examine(pair).plan())
    wait_for(b, executed(a))
    assert b.query("SELECT COUNT(*) FROM d.t") == [(4,)]


def _set(server: Server, *options: str) -> None:
    for option in options:
        server.execute(f"CHANGE REPLICATION SOURCE TO {option}")


def test_a_channel_whose_settings_may_refuse_what_waits_is_started_when_selected(
    pair97: Pair,
) -> None:
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica, "CREATE DATABASE d")
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica, "SET SESSION sql_log_bin = 0", "CREATE USER low")
    commit(a, "CREATE DATABASE made")
    for option, usual, shown in (
        ("PRIVILEGE_CHECKS_USER = low@'%'", "PRIVILEGE_CHECKS_USER = NULL", "'low'@'%'"),
        ("REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON", "REQUIRE_TABLE_PRIMARY_KEY_CHECK = STREAM", "ON"),
        ("REQUIRE_ROW_FORMAT = 1", "", "YES"),
    ):
        _set(b, option)
        plan = examine(pair97).plan()
        [step] = plan.steps
        done = run_step(pair97, plan, step)
        assert done.returncode == 1
        assert f"select A7=start_channel: {option.split()[0]} = {shown}" in done.stderr
        assert not b.query("SHOW DATABASES LIKE 'made'")
        _set(b, *filter(None, [usual]))
    run_plan(pair97, examine(pair97).plan({"A7": "start_channel"}))
    assert b.query("SHOW DATABASES LIKE 'made'")


def test_what_is_applied_in_another_database_is_not_started_unasked(pair97: Pair) -> None:
    """A leftover copy has the rows as before; replication writes the newer ones elsewhere."""
    a, b = pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    a.execute("INSERT INTO d.t VALUES (1, 1)")
    wait_for(b, executed(a))
    b.execute(b.dialect.stop_replica, "SET SESSION sql_log_bin = 0", "CREATE DATABASE e")
    _unlogged(b, "CREATE TABLE e.t AS SELECT * FROM d.t")
    _unlogged(b, "ALTER TABLE e.t ADD PRIMARY KEY (id)")
    b.execute("CHANGE REPLICATION FILTER REPLICATE_REWRITE_DB = ((d, e))")
    commit(a, "UPDATE d.t SET v = 2 WHERE id = 1")
    _unlogged(b, "UPDATE e.t SET v = 9 WHERE id = 1")
    plan = examine(pair97).plan()
    assert plan.steps == ()
    [left] = left_by(plan)
    assert "in other databases than the log has (Replicate_Rewrite_DB=(d,e))" in left.why
    chosen = examine(pair97).plan({"A7": "start_channel"})
    assert any("in other databases" in each for each in chosen.warnings), chosen

    _unlogged(b, "INSERT INTO e.t VALUES (50, 5)")
    gtid = commit(a, "INSERT INTO d.t VALUES (50, 0)")
    b.execute(b.dialect.start_replica)
    wait_until(lambda: examine(pair97).codes[:1] == ["A2"])
    plan = examine(pair97).plan({"A2": "resolve_conflict"})
    assert plan.steps == ()
    assert any("Replicate_Rewrite_DB" in each.why for each in plan.not_planned), plan
    assert gtid not in executed(b)


@pytest.mark.parametrize("shape", ["pair97", "pair56"])
def test_no_row_is_written_where_its_key_is_not_unique(
    shape: str, request: pytest.FixtureRequest
) -> None:
    """The replica lost its primary key, and has the row twice: a repair would write both."""
    pair: Pair = request.getfixturevalue(shape)
    a, b = pair.a, pair.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    a.execute("INSERT INTO d.t VALUES (1, 1), (2, 2)")
    pair.settle()
    b.execute(
        "SET SESSION sql_log_bin = 0",
        "ALTER TABLE d.t DROP PRIMARY KEY",
        "UPDATE d.t SET v = 9 WHERE id = 1",
        "INSERT INTO d.t VALUES (1, 9)",
    )
    a.execute("DELETE FROM d.t WHERE id = 1")
    await_applier_stopped(b)
    before = rows(b, "d.t")
    plan = examine(pair).plan({"A2": "resolve_conflict"})
    assert plan.steps == ()
    [left] = [each for each in left_by(plan) if each.code == "A2"]
    assert "it has no unique key on id here" in left.why
    assert rows(b, "d.t") == before == [(1, 9), (1, 9), (2, 2)]


def _renaming(pair: Pair) -> None:
    """Let b apply d as e, and have a d of its own, with other rows."""
    a, b = pair.a, pair.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    b.execute(
        b.dialect.stop_replica,
        "CHANGE REPLICATION FILTER REPLICATE_REWRITE_DB = ((d, e))",
        "SET SESSION sql_log_bin = 0",
        "CREATE DATABASE e",
        "CREATE TABLE e.t (id INT PRIMARY KEY, v INT)",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        b.dialect.start_replica,
    )
    _unlogged(a, "CREATE DATABASE d")
    _unlogged(a, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    a.execute("INSERT INTO d.t VALUES (1, 1), (2, 2)")
    wait_for(b, executed(a))


def test_rows_that_are_elsewhere_are_not_taken_for_those_of_a_gap(pair97: Pair) -> None:
    """The d.t of b has the rows of the gap; what replication writes is e.t, which has not."""
    _renaming(pair97)
    a, b = pair97.a, pair97.b
    _unlogged(b, "INSERT INTO d.t VALUES (1, 10), (2, 2), (3, 3)")
    b.execute(b.dialect.stop_replica)
    a.execute("INSERT INTO d.t VALUES (3, 3)", "UPDATE d.t SET v = 10 WHERE id = 1")
    move_past(a, b)
    later = commit(a, "INSERT INTO d.t VALUES (4, 4)")
    wait_for(b, later)
    found = examine(pair97)
    assert "H1" in found.codes
    plan = found.plan()
    assert plan.steps == ()
    whys = [each.why for each in plan.not_planned if each.code == "H1"]
    assert any("a table of the same name may be another one" in each for each in whys), whys


def test_what_was_written_elsewhere_is_not_redone_by_name(pair97: Pair) -> None:
    """The errant row is in the d.t of b, which has nothing to do with the d.t of a."""
    _renaming(pair97)
    b = pair97.b
    _unlogged(b, "INSERT INTO d.t VALUES (1, 1)")
    b.execute("UPDATE d.t SET v = 99 WHERE id = 1")
    before = rows(pair97.a, "d.t")
    plan = examine(pair97).plan({"E1": "redo_on_source"})
    assert plan.steps == ()
    [left] = left_by(plan)
    assert "a table of the same name may be another one" in left.why
    assert rows(pair97.a, "d.t") == before
    undo = examine(pair97).plan({"E1": "undo_on_replica"})
    assert [each.action for each in undo.steps][:1] == ["UndoRows"], "its own log and rows"
