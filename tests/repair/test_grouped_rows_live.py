"""Rows that share an INSERT, by the real client: as safe as one statement for each row."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from compose.native.server import Server
from repair.sql.replay_script import Direction
from repair.sql.written_rows import LENIENT_SQL_MODE, SQL_MODE
from tests.repair.row_rounds import (
    SESSION,
    checksums,
    definitions,
    execute,
    executed,
    query,
    replayed,
    run,
    script,
)

ROW_COUNT = 600
ROWS = ", ".join(
    f"({number}, {number // 2 or 'NULL'}, REPEAT('text {number} ', 9), {number} / 7)"
    for number in range(1, ROW_COUNT + 1)
)


@pytest.fixture(params=["mysql56", "mysql97"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Run a server with tables whose rows refer to earlier rows of the same table."""
    server: Server = request.getfixturevalue(request.param)
    execute(
        server,
        "CREATE DATABASE grouped",
        "CREATE TABLE grouped.t (id INT PRIMARY KEY, parent INT, a VARCHAR(200), f FLOAT,"
        " FOREIGN KEY (parent) REFERENCES grouped.t (id)) ENGINE=InnoDB",
        "CREATE TABLE grouped.auto (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9))",
    )
    yield server
    execute(server, "DROP DATABASE grouped")


def _both(server: Server, *statements: str) -> tuple[str, str]:
    start = executed(server)
    execute(server, *SESSION, "BEGIN", *statements, "COMMIT")
    wanted, known = executed(server) - start, definitions(server, "grouped")
    redo = script(Direction.REDO, replayed(server, wanted, Direction.REDO, known))
    return redo, script(Direction.UNDO, replayed(server, wanted, Direction.UNDO, known))


def test_many_rows_go_there_and_back(server: Server) -> None:
    before = checksums(server, "grouped")
    redo, undo = _both(
        server,
        f"INSERT INTO grouped.t VALUES {ROWS}",
        "INSERT INTO grouped.auto VALUES (0, 'zero'), (5, 'five'), (NULL, 'next')",
    )
    after = checksums(server, "grouped")
    assert redo.count("INSERT INTO `grouped`.`t`") < ROW_COUNT // 20
    run(server, undo)
    assert checksums(server, "grouped") == before
    run(server, redo)
    assert checksums(server, "grouped") == after
    back, again = _both(server, "SET foreign_key_checks = 0", "DELETE FROM grouped.t")
    run(server, again)
    assert checksums(server, "grouped") == after
    run(server, back)
    assert query(server, "SELECT COUNT(*) FROM grouped.t") == [(0,)]


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_one_row_that_is_there_keeps_all_of_them_out(
    server: Server, options: tuple[str, ...]
) -> None:
    redo, undo = _both(server, f"INSERT INTO grouped.t VALUES {ROWS}")
    run(server, undo)
    execute(server, "INSERT INTO grouped.t VALUES (400, NULL, 'of another client', 1)")
    done = server.client(redo, "--binary-mode", *options)
    assert "Duplicate entry '400'" in done.stderr
    assert "\ndone\n" not in done.stdout
    assert query(server, "SELECT id, a FROM grouped.t") == [(400, "of another client")]


def test_only_in_the_strict_mode_several_rows_are_checked_like_one(server: Server) -> None:
    """Why a row that needs the lenient sql_mode is inserted alone."""
    execute(server, "CREATE TABLE grouped.n (id INT PRIMARY KEY, a INT NOT NULL)")
    several = "INSERT INTO grouped.n VALUES (1, 5), (2, NULL)"
    strict = f"SET sql_mode = '{SQL_MODE}'"
    lenient = f"SET sql_mode = '{LENIENT_SQL_MODE}'"
    for mode, statement in (
        (strict, several),
        (strict, "INSERT INTO grouped.n VALUES (2, NULL)"),
        (lenient, "INSERT INTO grouped.n VALUES (2, NULL)"),
    ):
        with pytest.raises(pymysql.IntegrityError, match="cannot be null"):
            execute(server, mode, statement)
    assert query(server, "SELECT COUNT(*) FROM grouped.n") == [(0,)]
    execute(server, lenient, several)
    assert query(server, "SELECT id, a FROM grouped.n ORDER BY id") == [(1, 5), (2, 0)]


def test_a_missing_parent_keeps_all_of_them_out(server: Server) -> None:
    execute(server, "INSERT INTO grouped.t VALUES (9000, NULL, 'the parent', 1)")
    redo, undo = _both(
        server, "INSERT INTO grouped.t VALUES (1, NULL, 'a', 1), (2, 9000, 'b', 2), (3, 2, 'c', 3)"
    )
    run(server, undo)
    execute(server, "DELETE FROM grouped.t WHERE id = 9000")
    done = server.client(redo, "--binary-mode")
    assert "a foreign key constraint fails" in done.stderr
    assert query(server, "SELECT COUNT(*) FROM grouped.t") == [(0,)]
