"""Every type and its edge values, read from the binlog and held against the server's SELECT."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from binlog.adapters.log_files import FileLogs
from binlog.adapters.row_decoder import RowDecoder
from binlog.events import TableMap
from binlog.rows.geometry_text import geometry_text
from binlog.rows.json_values import JsonDocument, json_text
from binlog.rows.tables import Origin, RowTable
from binlog.rows.values import Image, RowChanges, Value, rows_of_group
from binlog.scan import EventGroup
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import TableDefinition
from compose.native.server import Server
from gtid import GtidSet
from tests.binlog.row_values import KINDS_56, KINDS_97, Kind, Oracle

_SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


def groups_of(server: Server, wanted: GtidSet) -> Iterator[EventGroup]:
    names = [str(row[0]) for row in server.query("SHOW BINARY LOGS")]
    return FileLogs([server.datadir / name for name in names]).events_of(wanted)


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


@dataclass(frozen=True)
class Logged:
    """The rows a server has logged, and what it says of them when asked."""

    kinds: tuple[Kind, ...]
    definition: TableDefinition
    groups: tuple[EventGroup, ...]
    answers: dict[int, tuple[Any, ...]]

    def images(self, definition: TableDefinition | None) -> Iterator[tuple[RowTable, Image]]:
        read = RowDecoder()
        for group in self.groups:
            for each in rows_of_group(group, read, definition_of=lambda _s, _t: definition):
                if isinstance(each, RowChanges):
                    for row in each.rows:
                        assert row.after is not None
                        yield each.table, row.after


def _log(server: Server, schema: str, kinds: tuple[Kind, ...]) -> Logged:
    columns = ", ".join(f"`{kind.name}` {kind.type}" for kind in kinds)
    server.execute(f"CREATE DATABASE {schema}")
    server.execute(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC CHARSET=utf8"
    )
    before = executed(server)
    values = [(kind.name, value) for kind in kinds for value in ("NULL", *kind.values)]
    inserts = [
        f"INSERT INTO {schema}.t (id, `{name}`) VALUES ({number}, {value})"
        for number, (name, value) in enumerate(values)
    ]
    server.execute(_SESSION, "SET NAMES utf8", "BEGIN", *inserts, "COMMIT")
    asked = ", ".join(kind.oracle.value.format(f"`{kind.name}`") for kind in kinds)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(_SESSION)
        cursor.execute(f"SELECT id, {asked} FROM {schema}.t")
        answers = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute(f"SHOW CREATE TABLE {schema}.t")
        create = cursor.fetchone()[1]
    assert len(answers) == len(values)
    return Logged(
        kinds,
        definition_from_create(create, schema=schema),
        tuple(groups_of(server, executed(server) - before)),
        answers,
    )


@pytest.fixture(scope="module")
def logged97(mysql97: Server) -> Logged:
    return _log(mysql97, "rows97", KINDS_97)


@pytest.fixture(scope="module")
def logged56(mysql56: Server) -> Logged:
    return _log(mysql56, "rows56", KINDS_56)


@pytest.fixture(params=["logged56", "logged97"])
def logged(request: pytest.FixtureRequest) -> Logged:
    found: Logged = request.getfixturevalue(request.param)
    return found


def _comparable(kind: Kind, value: Value) -> str | float | None:
    match value:
        case None:
            return None
        case JsonDocument(root):
            return json_text(root)
        case bytes():
            assert kind.oracle is Oracle.HEX
            return value.hex().upper()
        case float():
            assert kind.oracle is Oracle.DOUBLE
            return value
        case int() | Decimal() | str():
            return str(value) if not isinstance(value, Decimal) else f"{value:f}"
    raise AssertionError(value)


def test_every_value_is_the_servers(logged: Logged) -> None:
    read = 0
    wrong = []
    for table, image in logged.images(logged.definition):
        assert table.mismatch is None
        assert table.key == (0,)
        number = image[0]
        assert isinstance(number, int)
        for at, (kind, theirs) in enumerate(
            zip(logged.kinds, logged.answers[number], strict=True), start=1
        ):
            ours = _comparable(kind, image[at])
            expected = (
                float(theirs) if kind.oracle is Oracle.DOUBLE and theirs is not None else theirs
            )
            if ours != expected:
                wrong.append((kind.name, ours, expected))
            read += ours is not None
    assert wrong == []
    assert read == sum(len(kind.values) for kind in logged.kinds)


def test_without_a_definition_nothing_is_named(logged: Logged) -> None:
    with_definition = list(logged.images(logged.definition))
    without = list(logged.images(None))
    for (named, _), (table, _image) in zip(with_definition, without, strict=True):
        assert (named.origin, table.origin) == (Origin.DEFINITION, Origin.NOWHERE)
        assert {column.name for column in table.columns} == {None}
        assert table.key is None
        signs = {
            column.is_unsigned for column in table.columns if column.type_code in {1, 2, 3, 8, 9}
        }
        has_metadata = any(
            isinstance(event.body, TableMap) and event.body.optional_metadata
            for event in logged.groups[0].events
        )
        assert signs == ({True, False} if has_metadata else {None})


def test_a_definition_of_another_time_is_not_used(logged: Logged) -> None:
    whole = logged.definition
    shorter = TableDefinition(whole.schema, whole.table, whole.columns[:-1], whole.primary_key)
    [reason] = {table.mismatch for table, _ in logged.images(shorter)}
    assert reason == (
        "Column count doesn't match value count: the definition has"
        f" {len(whole.columns) - 1} columns, the rows have {len(whole.columns)}"
    )
    swapped = TableDefinition(whole.schema, whole.table, (*whole.columns[1:], whole.columns[0]))
    [reason] = {table.mismatch for table, _ in logged.images(swapped)}
    assert reason is not None
    assert "the log has type" in reason


GEOMETRIES = (
    "POINT(1.5 -2)",
    "LINESTRING(0 0, 1 1, 2.25 1e100)",
    "POLYGON((0 0, 10 0, 10 10, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT((1 1), (2 2))",
    "MULTILINESTRING((0 0, 1 1), (2 2, 3 3))",
    "MULTIPOLYGON(((0 0, 10 0, 10 10, 0 0)), ((0 0, 1 0, 1 1, 0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1e-15 123456789012345678))",
    "GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(0.1 0)), GEOMETRYCOLLECTION())",
)


def test_geometries_are_shown_as_the_server_shows_them(mysql97: Server, mysql56: Server) -> None:
    for written in GEOMETRIES:
        made = f"ST_GeomFromText('{written}')"
        [(bytes_, text)] = mysql97.query(f"SELECT {made}, ST_AsText({made})")
        assert geometry_text(bytes_) == text
    for srid in (3857, 4326):
        made = f"ST_GeomFromText('POINT(1 2)', {srid})"
        [(bytes_, text)] = mysql97.query(f"SELECT {made}, ST_AsText({made}, 'axis-order=long-lat')")
        assert geometry_text(bytes_) == f"SRID={srid};{text}"
    for written in ("POINT(1 -2)", "POLYGON((0 0,10 0,10 10,0 0))"):
        [(bytes_,)] = mysql56.query(f"SELECT GeomFromText('{written}')")
        assert geometry_text(bytes_) == written


def _document(dice: random.Random, depth: int) -> Any:
    kind = dice.randrange(8 if depth < 5 else 5)
    if kind == 0:
        return dice.choice((None, True, False))
    if kind == 1:
        edges = (0, -1, 32767, 32768, -32769, 65536, 2**31, -(2**31) - 1, 2**63 - 1, 2**64 - 1)
        return dice.choice((*edges, dice.randrange(-(2**63), 2**64)))
    if kind == 2:
        return dice.choice((dice.random(), 10 ** dice.uniform(-300, 300), float(dice.randrange(9))))
    if kind in (3, 4):
        length = dice.choice((0, 1, 5, 127, 128, 300, 9000 if dice.random() < 0.05 else 3))
        return "".join(dice.choice('aü€😀"\\\n\t/ \x01\x7f') for _ in range(length))
    if kind == 5:
        return [_document(dice, depth + 1) for _ in range(dice.randrange(8))]
    keys = ("".join(dice.choice('abcü"\\') for _ in range(dice.randrange(6))) for _ in range(8))
    return {key: _document(dice, depth + 1) for key in keys}


def test_random_documents_are_printed_as_the_server_prints_them(mysql97: Server) -> None:
    dice = random.Random(11)
    documents = [json.dumps(_document(dice, 0), ensure_ascii=False) for _ in range(100)]
    mysql97.execute("CREATE DATABASE documents", "CREATE TABLE documents.t (j JSON)")
    before = executed(mysql97)
    with mysql97.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.executemany("INSERT INTO documents.t VALUES (%s)", [(each,) for each in documents])
        cursor.execute("SELECT CAST(j AS CHAR) FROM documents.t")
        theirs = [row[0] for row in cursor.fetchall()]
    logged = groups_of(mysql97, executed(mysql97) - before)
    ours = [
        json_text(value.root)
        for group in logged
        for each in rows_of_group(group, RowDecoder())
        if isinstance(each, RowChanges)
        for row in each.rows
        for value in row.after or ()
        if isinstance(value, JsonDocument)
    ]
    mysql97.execute("DROP DATABASE documents")
    assert len(ours) == len(documents)
    assert ours == theirs
