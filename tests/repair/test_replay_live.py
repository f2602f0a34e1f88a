"""What redo and undo meet on real servers besides plain rows, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from binlog.schema.table_definitions import TableDefinition
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from repair.sql.replay import Replayed
from repair.sql.replay_script import Direction
from tests.repair.row_rounds import (
    SESSION,
    checksums,
    copy_schema,
    definitions,
    execute,
    executed,
    put_back,
    query,
    replayed,
    run,
    script,
)

SCHEMA = "odd"


@dataclass
class Round:
    """Changes that were made on a server, and the rows before and after."""

    server: Server
    wanted: GtidSet
    known: dict[str, TableDefinition] | None
    before: dict[str, object]
    after: dict[str, object]

    def replayed(self, direction: Direction) -> list[Replayed]:
        return replayed(self.server, self.wanted, direction, self.known)

    def problems(self, direction: Direction) -> list[str]:
        return [each.problem for each in self.replayed(direction) if each.problem]

    def rewind(self) -> None:
        put_back(self.server, f"{SCHEMA}_before", SCHEMA)
        assert checksums(self.server, SCHEMA) == self.before

    def redo(self) -> None:
        self.rewind()
        run(self.server, script(Direction.REDO, self.replayed(Direction.REDO)))
        assert checksums(self.server, SCHEMA) == self.after

    def undo(self) -> None:
        run(self.server, script(Direction.UNDO, self.replayed(Direction.UNDO)))
        assert checksums(self.server, SCHEMA) == self.before


@pytest.fixture
def modern(mysql97: Server) -> Iterator[Server]:
    yield from _with_schema(mysql97)


@pytest.fixture(params=["mysql56", "mysql97"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from _with_schema(request.getfixturevalue(request.param))


def _with_schema(server: Server) -> Iterator[Server]:
    execute(server, f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA} CHARSET utf8")
    yield server
    execute(server, f"DROP DATABASE {SCHEMA}", f"DROP DATABASE IF EXISTS {SCHEMA}_before")


def play(
    server: Server, before: Sequence[str], statements: Sequence[str], *, is_known: bool = True
) -> Round:
    """Prepare tables, keep a copy, and change them; SQL speaks of the schema as the default one."""
    execute(server, f"USE {SCHEMA}", *SESSION, *before)
    copy_schema(server, SCHEMA, f"{SCHEMA}_before")
    rows = checksums(server, SCHEMA)
    start = executed(server)
    execute(server, f"USE {SCHEMA}", *SESSION, *statements)
    wanted = executed(server) - start
    known = definitions(server, SCHEMA) if is_known else None
    return Round(server, wanted, known, rows, checksums(server, SCHEMA))


T = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b TEXT, n INT)"
ROWS = "INSERT INTO t VALUES (1, 'one', 'long', 10), (2, 'two', NULL, 20), (3, 'three', '', NULL)"


def test_minimal_images_can_be_redone_and_name_what_undo_lacks(server: Server) -> None:
    changed = [
        "SET binlog_row_image = 'MINIMAL'",
        "UPDATE t SET a = 'new', n = NULL WHERE id < 3",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO t (id, a) VALUES (4, 'four')",
    ]
    played = play(server, [T, ROWS], changed)
    played.redo()
    update, delete = played.problems(Direction.UNDO)
    assert "the log does not have the value before the update of a, n: " in update
    assert "the log does not have the row a, b, n: " in delete
    assert "binlog_row_image=MINIMAL" in delete


def test_a_key_that_is_generated_finds_the_row_of_a_minimal_image(modern: Server) -> None:
    table = "CREATE TABLE g (a INT, b INT, twice INT AS (a * 2) STORED, PRIMARY KEY (twice))"
    rows = "INSERT INTO g (a, b) VALUES (1, 1), (2, 2)"
    changed = ["UPDATE g SET b = 5 WHERE a = 1", "UPDATE g SET a = 7, b = 6 WHERE a = 2"]
    played = play(modern, [table, rows], changed)
    played.redo()
    played.undo()
    execute(modern, f"DROP TABLE {SCHEMA}.g")
    changed = ["SET binlog_row_image = 'MINIMAL'", *changed, "DELETE FROM g WHERE a = 1"]
    play(modern, [table, rows], changed).redo()


def test_images_without_blobs_can_be_undone_where_the_blob_is_untouched(server: Server) -> None:
    changed = ["SET binlog_row_image = 'NOBLOB'", "UPDATE t SET a = 'new', n = n + 1 WHERE id < 3"]
    played = play(server, [T, ROWS], changed)
    played.redo()
    played.undo()


def test_equal_rows_without_a_key_are_taken_one_by_one(server: Server) -> None:
    table = "CREATE TABLE k (a VARCHAR(9), f FLOAT) CHARSET utf8"
    rows = "INSERT INTO k VALUES ('a', 1.1), ('A', 1.1), ('a', 1.1), ('á', 1.1), ('a ', 1.1)"
    changed = [
        "DELETE FROM k WHERE BINARY a = 'a' LIMIT 1",
        "UPDATE k SET f = 1.3 WHERE BINARY a = 'A'",
        "UPDATE k SET a = 'b' WHERE BINARY a = 'a '",
    ]
    played = play(server, [table, rows], changed)
    played.redo()
    played.undo()


def test_columns_that_set_themselves_and_zero_in_auto_increment(server: Server) -> None:
    table = (
        "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, n INT, e ENUM('x'),"
        " u TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
        " d DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"
    )
    rows = "INSERT INTO s VALUES (0, 1, 'x', '0000-00-00', NULL), (5, 2, 'x', '2001-01-01', NULL)"
    changed = [
        "UPDATE s SET n = 7, u = u, d = d",
        "UPDATE s SET n = 8 WHERE id = 5",
        "UPDATE s SET e = 0 WHERE id = 0",
        "DELETE FROM s WHERE id = 0",
    ]
    played = play(server, [table, rows], changed)
    played.redo()
    played.undo()


def test_keys_that_move(server: Server) -> None:
    rows = "INSERT INTO t (id) VALUES (4), (5)"
    changed = ["UPDATE t SET id = id + 1 ORDER BY id DESC", "UPDATE t SET id = id - 2 ORDER BY id"]
    played = play(server, [T, ROWS, rows], changed)
    played.redo()
    played.undo()


def test_partial_json(modern: Server) -> None:
    table = "CREATE TABLE j (id INT PRIMARY KEY, d JSON, o JSON)"
    rows = 'INSERT INTO j VALUES (1, \'{"a": [1, 2, 3], "b": "text", "c": {"d": 1}}\', \'[1]\')'
    changed = [
        "SET binlog_row_value_options = 'PARTIAL_JSON'",
        "UPDATE j SET d = JSON_REPLACE(d, '$.a[1]', 77, '$.b', 'T')",
        "UPDATE j SET d = JSON_REMOVE(d, '$.a[0]', '$.c.d'), o = JSON_ARRAY_INSERT(o, '$[0]', 1.5)",
        "UPDATE j SET d = JSON_SET(d, '$.new', CAST('1.10' AS DECIMAL(5,2)), '$.a[0]', TRUE)",
    ]
    played = play(modern, [table, rows], changed)
    played.redo()
    played.undo()
    minimal = ["SET binlog_row_image = 'MINIMAL'", *changed]
    execute(modern, f"DROP TABLE {SCHEMA}.j")
    played = play(modern, [table, rows], minimal)
    played.redo()
    assert all(
        "the value before the update of d" in each for each in played.problems(Direction.UNDO)
    )


def test_json_that_no_literal_makes_is_refused(modern: Server) -> None:
    played = play(
        modern,
        [
            "CREATE TABLE j (id INT PRIMARY KEY, b BIT(3), d JSON)",
            "INSERT INTO j VALUES (1, 5, NULL)",
        ],
        ["UPDATE j SET d = CAST(b AS JSON)"],
    )
    [problem] = played.problems(Direction.REDO)
    assert "bytes of column type 16" in problem


def test_full_metadata_needs_no_definition(modern: Server) -> None:
    execute(modern, "SET GLOBAL binlog_row_metadata = 'FULL'")
    try:
        played = play(modern, [T, ROWS], ["UPDATE t SET a = 'x'", "DELETE FROM t"], is_known=False)
        played.redo()
        played.undo()
        generated = "CREATE TABLE g (id INT PRIMARY KEY, twice INT AS (id * 2))"
        hidden = play(modern, [generated], ["INSERT INTO g (id) VALUES (1)"], is_known=False)
    finally:
        execute(modern, "SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    stopped = modern.client(script(Direction.UNDO, hidden.replayed(Direction.UNDO)))
    assert stopped.returncode != 0
    assert (
        "odd.g has generated columns: make the script again with the table's definition"
        in stopped.stderr
    )


def test_without_names_there_is_no_script(server: Server) -> None:
    played = play(server, [T, ROWS], ["DELETE FROM t"], is_known=False)
    [problem] = played.problems(Direction.UNDO)
    assert problem.startswith("odd.t: the names of the columns are not known")


def test_a_generated_invisible_key(modern: Server) -> None:
    table = ["SET sql_generate_invisible_primary_key = ON", "CREATE TABLE i (a INT)"]
    played = play(modern, table, ["INSERT INTO i VALUES (1), (1)", "UPDATE i SET a = 2 LIMIT 1"])
    assert "`my_row_id`" in script(Direction.REDO, played.replayed(Direction.REDO))
    played.redo()
    played.undo()


def test_compressed_transactions(modern: Server) -> None:
    changed = ["SET binlog_transaction_compression = ON", "UPDATE t SET a = 'z'", "DELETE FROM t"]
    played = play(modern, [T, ROWS], changed)
    played.redo()
    played.undo()


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_row_that_changed_since_stops_the_undo_and_nothing_stays(
    server: Server, options: tuple[str, ...]
) -> None:
    changed = ["BEGIN", "UPDATE t SET a = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2", "COMMIT"]
    played = play(server, [T, ROWS], changed)
    execute(server, f"UPDATE {SCHEMA}.t SET n = 99 WHERE id = 1")
    now = checksums(server, SCHEMA)
    done = server.client(script(Direction.UNDO, played.replayed(Direction.UNDO)), *options)
    assert "a row is not as it should be; nothing of this transaction is undone" in done.stderr
    assert checksums(server, SCHEMA) == now
    if not options:
        assert done.returncode != 0
    else:
        assert "NOT done" in done.stdout


def test_behind_a_failed_guard_no_statement_changes_anything(server: Server) -> None:
    """DDL is written as it was logged, and a client with --force goes on to it."""
    played = play(server, [T, ROWS], ["UPDATE t SET a = 'x'", "CREATE TABLE made (id INT)"])
    text = script(Direction.REDO, played.replayed(Direction.REDO))
    execute(
        server,
        f"DROP TABLE {SCHEMA}.made",
        f"CREATE TRIGGER {SCHEMA}.fires BEFORE UPDATE ON {SCHEMA}.t FOR EACH ROW SET NEW.n = 1",
    )
    now = executed(server)
    done = server.client(text, "--force")
    assert "odd.t has triggers, which would fire again" in done.stderr
    assert "NOT done" in done.stdout
    assert executed(server) == now


def test_triggers_would_fire_again(server: Server) -> None:
    trigger = "CREATE TRIGGER fires BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = 1"
    played = play(server, [T, ROWS], ["UPDATE t SET a = 'x'", trigger])
    for direction in Direction:
        transactions = [each for each in played.replayed(direction) if each.tables]
        stopped = server.client(script(direction, transactions))
        assert stopped.returncode != 0
        assert "odd.t has triggers, which would fire again" in stopped.stderr
    assert checksums(server, SCHEMA) == played.after


@pytest.mark.parametrize(
    "changes",
    [
        ["DELETE FROM p WHERE id = 1", "INSERT INTO p VALUES (4)"],
        ["UPDATE p SET id = 9 WHERE id = 1"],
    ],
)
def test_foreign_keys(server: Server, changes: list[str]) -> None:
    tables = [
        "CREATE TABLE p (id INT PRIMARY KEY)",
        (
            "CREATE TABLE c (id INT PRIMARY KEY, parent INT,"
            " FOREIGN KEY (parent) REFERENCES p (id)"
            " ON DELETE CASCADE ON UPDATE CASCADE)"
        ),
        "INSERT INTO p VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 1), (2, 1), (3, 2)",
    ]
    played = play(server, tables, changes)
    played.redo()
    undo = script(Direction.UNDO, played.replayed(Direction.UNDO))
    if server.installation.version >= (9, 6):
        run(server, undo)
        assert checksums(server, SCHEMA) == played.before
    else:
        stopped = server.client(undo)
        assert stopped.returncode != 0
        assert "foreign keys of odd.p change other tables" in stopped.stderr
        assert checksums(server, SCHEMA) == played.after


def test_statements_run_again_as_they_ran(server: Server) -> None:
    table = (
        "CREATE TABLE s (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(99) CHARACTER SET utf8,"
        " r DOUBLE, w DATETIME, l INT)"
    )
    changed = [
        "SET SESSION binlog_format = 'STATEMENT', time_zone = '+05:00', sql_mode = 'ANSI_QUOTES'",
        "SET auto_increment_increment = 7, timestamp = 1700000000",
        "SET @text = 'ü;', @number = -5, @double = 0.1e0, @nothing = NULL",
        "INSERT INTO \"s\" (a, r, w) VALUES (CONCAT(@text, 'x;\\'y'), RAND(), NOW())",
        "INSERT INTO s (a, r, l) VALUES (@nothing, @double + @number, LAST_INSERT_ID())",
        "SET NAMES latin1",
        "INSERT INTO s (a, w) VALUES ('\N{LATIN SMALL LETTER U WITH DIAERESIS}', FROM_UNIXTIME(86400))",
        "INSERT INTO s (a) VALUES ('line\r\nend')",
        "BEGIN",
        "UPDATE s SET r = RAND(3) WHERE id > 0",
        "SAVEPOINT here",
        "DELETE FROM s WHERE a IS NULL",
        "COMMIT",
    ]
    played = play(server, [table], changed)
    assert played.before != played.after
    played.redo()
    problems = played.problems(Direction.UNDO)
    assert len(problems) == 5
    assert all("the log has a statement, and not what it changed" in each for each in problems)


def test_what_was_rolled_back_is_rolled_back_again(server: Server) -> None:
    tables = [T, "CREATE TABLE m (a INT) ENGINE=MyISAM"]
    changed = [
        "SET SESSION binlog_format = 'STATEMENT'",
        *("BEGIN", "INSERT INTO m VALUES (1)", "ROLLBACK"),
        *("BEGIN", "INSERT INTO t (id) VALUES (9)", "SAVEPOINT s", "INSERT INTO t (id) VALUES (8)"),
        *("ROLLBACK TO s", "COMMIT"),
    ]
    played = play(server, tables, changed)
    played.redo()
    assert played.problems(Direction.UNDO)


def test_ddl_can_be_redone_and_not_undone(server: Server) -> None:
    procedure = "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 'a;b'; END"
    view = "CREATE VIEW v AS SELECT id FROM t"
    # 5.6 allows no CREATE TABLE … SELECT with GTIDs.
    is_old = server.installation.version < (8, 0)
    create = ["CREATE TABLE n (one INT, x CHAR(1))", "INSERT INTO n VALUES (1, 'x')"]
    create = create if is_old else ["CREATE TABLE n SELECT 1 AS one, 'x' AS x"]
    played = play(server, [T], [*create, procedure, view])
    problems = played.problems(Direction.UNDO)
    assert any(each.startswith("DDL cannot be undone: CREATE") for each in problems)
    execute(server, f"DROP TABLE {SCHEMA}.n", f"DROP PROCEDURE {SCHEMA}.p", f"DROP VIEW {SCHEMA}.v")
    run(server, script(Direction.REDO, played.replayed(Direction.REDO)))
    assert query(server, f"SELECT * FROM {SCHEMA}.n") == [(1, "x")]
    assert query(server, f"CALL {SCHEMA}.p()") == [(1,)]
    execute(server, f"DROP VIEW {SCHEMA}.v", f"DROP PROCEDURE {SCHEMA}.p")


def test_xa(modern: Server) -> None:
    changed = [
        *("XA START 'one'", "UPDATE t SET a = 'xa'", "XA END 'one'", "XA PREPARE 'one'"),
        "XA COMMIT 'one'",
        *(
            "XA START 'two'",
            "DELETE FROM t WHERE id = 1",
            "XA END 'two'",
            "XA COMMIT 'two' ONE PHASE",
        ),
    ]
    played = play(modern, [T, ROWS], changed)
    played.redo()
    assert all("XA transaction" in each for each in played.problems(Direction.UNDO))


def test_what_a_5_6_did_can_be_done_by_a_9_7_under_the_same_gtids(
    mysql56: Server, installation97: Installation
) -> None:
    execute(mysql56, "DROP DATABASE IF EXISTS odd")
    start = executed(mysql56)
    text = "INSERT INTO odd.t VALUES (1, 'ü', 'long', 10), (2, 'two', NULL, 20)"
    changed = [T.replace("TABLE t", "TABLE odd.t"), text, "DELETE FROM odd.t WHERE id = 2"]
    execute(mysql56, "SET NAMES utf8", "CREATE DATABASE odd CHARSET utf8", *changed)
    wanted = executed(mysql56) - start
    known = definitions(mysql56, "odd")
    again = script(
        Direction.REDO,
        replayed(mysql56, wanted, Direction.REDO, known, keeps_gtids=True),
    )
    rows = query(mysql56, "SELECT id, HEX(a), b, n FROM odd.t")
    execute(mysql56, "DROP DATABASE odd")
    with shapes.single(installation97) as modern:
        run(modern, again)
        assert query(modern, "SELECT id, HEX(a), b, n FROM odd.t") == rows
        assert wanted <= executed(modern)
        twice = modern.client(again)
        assert twice.returncode != 0
        assert "has been executed here" in twice.stderr
