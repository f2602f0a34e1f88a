"""Random changes on real tables, and what it takes to do them again and to take them back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from binlog.adapters.log_files import FileLogs
from binlog.adapters.row_decoder import RowDecoder
from binlog.rows.values import logged_rows_of, rows_of_group
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import TableDefinition
from compose.native.server import Server
from gtid import GtidSet
from repair.sql.event_texts import EventTexts
from repair.sql.redo_sql import redo, redo_lines, rows_way
from repair.sql.replay import Replayed
from repair.sql.replay_script import Direction, script_lines
from repair.sql.undo_sql import UNDO_ROWS, undo, undo_lines
from tests.binlog.row_values import Kind

SESSION = (
    "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'",
    "SET NAMES utf8",
)


@contextmanager
def session(server: Server) -> Iterator[Cursor]:
    """Open a session without TLS, whose context alone takes longer than most of what is asked."""
    connection = pymysql.connect(
        host=server.host, port=server.port, user="root", ssl_disabled=True, autocommit=True
    )
    with closing(connection), connection.cursor() as cursor:
        yield cursor


def execute(server: Server, *statements: str) -> None:
    with session(server) as cursor:
        for statement in statements:
            cursor.execute(statement)


def query(server: Server, sql: str) -> list[tuple[Any, ...]]:
    with session(server) as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def executed(server: Server) -> GtidSet:
    [[text]] = query(server, "SELECT @@GLOBAL.gtid_executed")
    return GtidSet.parse(text)


def definitions(server: Server, schema: str) -> dict[str, TableDefinition]:
    found = {}
    with session(server) as cursor:
        cursor.execute(f"SHOW FULL TABLES IN `{schema}` WHERE table_type = 'BASE TABLE'")
        for table, _type in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE `{schema}`.`{table}`")
            [(_name, create)] = cursor.fetchall()
            found[table] = definition_from_create(create, schema=schema)
    return found


def replayed(
    server: Server,
    wanted: GtidSet,
    direction: Direction,
    known: dict[str, TableDefinition] | None = None,
    *,
    keeps_gtids: bool = False,
) -> list[Replayed]:
    """Return transactions as SQL, and assert that columns and functions write the same."""
    names = [str(row[0]) for row in query(server, "SHOW BINARY LOGS")]
    read = RowDecoder()
    write = undo if direction is Direction.UNDO else partial(redo, keeps_gtid=keeps_gtids)
    way = UNDO_ROWS if direction is Direction.UNDO else rows_way(keeps_gtid=keeps_gtids)
    texts = (EventTexts(way, read), EventTexts(way, read, rows_before_functions=0))
    found = []
    for group in FileLogs([server.datadir / name for name in names]).events_of(wanted):

        def definition_of(_schema: str, table: str) -> TableDefinition | None:
            return (known or {}).get(table)

        done = write(group, rows_of_group(group, read, definition_of=definition_of))
        found.append(done)
        for each in () if done.problem else texts:
            items = logged_rows_of(group.events, definition_of=definition_of)
            if direction is Direction.UNDO:
                lines = undo_lines(done.label, items, each.write)
            else:
                lines = redo_lines(done.label, items, each.write, keeps_gtid=keeps_gtids)
            assert "\n".join(lines) == "\n".join(done.lines)
    return found


def script(direction: Direction, transactions: Sequence[Replayed]) -> str:
    assert [each.problem for each in transactions if each.problem] == []
    return "\n".join(script_lines(direction, transactions)) + "\n"


def run(server: Server, text: str) -> None:
    done = server.client(text, "--binary-mode")
    assert done.returncode == 0, done.stderr
    assert "\ndone\n" in done.stdout


def checksums(server: Server, schema: str) -> dict[str, object]:
    """Checksum and rows of every table, the rows as their columns' bytes."""
    found: dict[str, object] = {}
    for table, definition in definitions(server, schema).items():
        name = f"`{schema}`.`{table}`"
        columns = ", ".join(
            f"HEX(CONCAT('', `{column.name}`))"
            if column.base_type != "vector"
            else f"HEX(`{column.name}`)"
            for column in definition.columns
        )
        with session(server) as cursor:
            for statement in SESSION:
                cursor.execute(statement)
            cursor.execute(f"CHECKSUM TABLE {name}")
            checksum = cursor.fetchall()[0][1]
            cursor.execute(f"SELECT {columns} FROM {name}")
            rows = sorted(cursor.fetchall(), key=repr)
        found[table] = (checksum, rows)
    return found


def copy_schema(server: Server, source: str, target: str) -> None:
    """Copy tables and rows. Foreign keys are not copied by LIKE, which is as it must be here."""
    statements = [f"DROP DATABASE IF EXISTS `{target}`", f"CREATE DATABASE `{target}`"]
    for table, definition in definitions(server, source).items():
        names = ", ".join(f"`{c.name}`" for c in definition.columns if c.is_generated is None)
        statements += [
            f"CREATE TABLE `{target}`.`{table}` LIKE `{source}`.`{table}`",
            f"INSERT INTO `{target}`.`{table}` ({names}) SELECT {names} FROM `{source}`.`{table}`",
        ]
    execute(server, *SESSION, *statements)


def put_back(server: Server, source: str, target: str) -> None:
    """Make the rows of `target` those of `source`, and keep its tables."""
    statements = ["SET foreign_key_checks = 0"]
    for table, definition in definitions(server, source).items():
        names = ", ".join(f"`{c.name}`" for c in definition.columns if c.is_generated is None)
        statements += [
            f"DELETE FROM `{target}`.`{table}`",
            f"INSERT INTO `{target}`.`{table}` ({names}) SELECT {names} FROM `{source}`.`{table}`",
        ]
    execute(server, *SESSION, *statements)


@dataclass
class Changes:
    """Random DML over tables whose columns are `kinds`, besides an `id`."""

    random: random.Random
    schema: str
    tables: Sequence[str]
    kinds: Sequence[Kind]
    has_id: dict[str, bool]
    next_id: int = 1000
    extra: Callable[[], Iterator[str]] | None = field(default=None)

    def value(self, kind: Kind) -> str:
        return self.random.choice((*kind.values, *kind.values, "NULL"))

    def some(self, count: int) -> list[Kind]:
        return self.random.sample(list(self.kinds), min(count, len(self.kinds)))

    def statement(self) -> str:
        table = self.random.choice(self.tables)
        name = f"`{self.schema}`.`{table}`"
        kinds = self.some(6)
        number = self.random.random()
        if number < 0.45:
            names, values = (
                [f"`{kind.name}`" for kind in kinds],
                [self.value(kind) for kind in kinds],
            )
            if self.has_id[table]:
                self.next_id += 1
                names, values = ["id", *names], [str(self.next_id), *values]
            return f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join(values)})"
        limit = self.random.randint(1, 3)
        if number < 0.8:
            settings = ", ".join(f"`{kind.name}` = {self.value(kind)}" for kind in kinds)
            return f"UPDATE {name} SET {settings} ORDER BY RAND({self.random.randint(0, 99)}) LIMIT {limit}"
        return f"DELETE FROM {name} ORDER BY RAND({self.random.randint(0, 99)}) LIMIT {limit}"

    def transactions(self, count: int) -> list[str]:
        statements: list[str] = []
        for _ in range(count):
            statements.append("BEGIN")
            statements += [self.statement() for _ in range(self.random.randint(1, 5))]
            if self.extra is not None:
                statements += self.extra()
            statements.append("COMMIT")
        return statements
