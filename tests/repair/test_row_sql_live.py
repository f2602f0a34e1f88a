"""Redo and undo by the real client: what it does again is equal, what it takes back is gone."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from compose.native.server import Server
from repair.sql.replay_script import Direction
from tests.binlog.row_values import KINDS_56, KINDS_97, Kind
from tests.repair.row_rounds import (
    SESSION,
    Changes,
    checksums,
    copy_schema,
    definitions,
    execute,
    executed,
    put_back,
    replayed,
    run,
    script,
)


def _tables(schema: str, kinds: tuple[Kind, ...], *, is_modern: bool) -> list[str]:
    columns = ", ".join(f"`{kind.name}` {kind.type}" for kind in kinds)
    tables = [
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.keyed (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC",
        f"CREATE TABLE {schema}.keyless ({columns}) ROW_FORMAT=DYNAMIC",
    ]
    if is_modern:
        tables.append(
            f"CREATE TABLE {schema}.generated (id INT PRIMARY KEY, {columns}, hidden INT INVISIBLE,"
            " stored_twice BIGINT AS (i32 * 2) STORED, virtual_twice BIGINT AS (i16 * 2) VIRTUAL,"
            " UNIQUE KEY (hidden))"
        )
    return tables


def _fill(changes: Changes) -> list[str]:
    rows = []
    for table in ("keyed", "keyless"):
        for kind in changes.kinds:
            for value in kind.values:
                changes.next_id += 1
                names, values = [f"`{kind.name}`"], [value]
                if changes.has_id[table]:
                    names, values = ["id", *names], [str(changes.next_id), *values]
                rows.append(
                    f"INSERT INTO `{changes.schema}`.`{table}` ({', '.join(names)})"
                    f" VALUES ({', '.join(values)})"
                )
    return ["BEGIN", *rows, "COMMIT"]


def _there_and_back(server: Server, schema: str, statements: list[str]) -> None:
    """Change, do it again on a copy of before, take it back: equal after, equal before."""
    copy_schema(server, schema, f"{schema}_before")
    before = checksums(server, schema)
    start = executed(server)
    execute(server, *SESSION, *statements)
    wanted = executed(server) - start
    known = definitions(server, schema)
    after = checksums(server, schema)
    assert before != after
    forwards = script(Direction.REDO, replayed(server, wanted, Direction.REDO, known))
    backwards = script(Direction.UNDO, replayed(server, wanted, Direction.UNDO, known))
    put_back(server, f"{schema}_before", schema)
    assert checksums(server, schema) == before
    run(server, forwards)
    assert checksums(server, schema) == after
    run(server, backwards)
    assert checksums(server, schema) == before


CASES = (
    pytest.param(("mysql56", KINDS_56), marks=pytest.mark.slow, id="mysql56"),
    pytest.param(("mysql97", KINDS_97), id="mysql97"),
)


@pytest.fixture(params=CASES)
def changes(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Changes]]:
    name, kinds = request.param
    server: Server = request.getfixturevalue(name)
    schema = "replay"
    is_modern = name == "mysql97"
    execute(server, f"DROP DATABASE IF EXISTS {schema}")
    execute(server, *_tables(schema, kinds, is_modern=is_modern))
    tables = ["keyed", "keyless", *(["generated"] if is_modern else [])]
    has_id = {table: table != "keyless" for table in tables}
    yield server, Changes(random.Random(7), schema, tables, kinds, has_id)
    execute(server, f"DROP DATABASE {schema}", f"DROP DATABASE IF EXISTS {schema}_before")


def test_every_value_and_random_changes_go_there_and_back(changes: tuple[Server, Changes]) -> None:
    server, what = changes
    _there_and_back(server, what.schema, [*_fill(what), *what.transactions(5)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_more_random_changes_go_there_and_back(changes: tuple[Server, Changes], seed: int) -> None:
    server, what = changes
    what.random = random.Random(seed)
    execute(server, *SESSION, *_fill(what))
    _there_and_back(server, what.schema, what.transactions(150))
