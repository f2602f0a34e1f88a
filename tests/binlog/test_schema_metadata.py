"""Definitions made of TABLE_MAP events with full metadata, against what the server shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from binlog.adapters.schema_events import file_events
from binlog.events import Event, TableMap
from binlog.schema.check import misfit
from binlog.schema.metadata import definition_from_table_map, shown_columns
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import CannotFollow, TableDefinition
from binlog.schema.table_history import Place, Source, State, TableKey
from binlog.schema.tracker import SchemaTracker
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server

ALL = (
    "CREATE TABLE x.t (a bit(9) NOT NULL, b decimal(20,5) unsigned, c float, d double unsigned,"
    " e year, f date, g time(6), h datetime, i timestamp(2) NULL, j char(255) character set utf8,"
    " k varbinary(300), l set('a','b','c','d','e','f','g','h','i'), m enum('ü','y''z') NOT NULL,"
    " n geometry, o point, oo geometrycollection, p mediumblob, q tinyint, r smallint unsigned,"
    " s mediumint, t bigint unsigned, u longtext, v varchar(255), w varchar(256) character set"
    " latin1, x char(0), y tinytext, z json, aa vector(3), bb int AS (q + 1), cc int INVISIBLE,"
    " dd binary(7), ee enum('x') character set binary, ff text character set binary,"
    " gg varchar(70) character set utf16, id int NOT NULL, jd varchar(20), PRIMARY KEY (id, jd(3)))"
    " CHARACTER SET utf8mb4"
)


@pytest.fixture(scope="module")
def server(installation97: Installation) -> Iterator[Server]:
    with shapes.single(installation97) as started:
        yield started


def log_of(server: Server, *statements: str) -> list[Event]:
    """What the server logs of these statements."""
    file, position = server.binary_log_position()
    server.execute(*statements)
    path: Path = server.datadir / file
    return [e for e in file_events([path], Place(file, position)) if e.start >= position]


def maps_of(events: list[Event]) -> list[TableMap]:
    return [event.body for event in events if isinstance(event.body, TableMap)]


def without_the_unlogged(definition: TableDefinition) -> TableDefinition:
    """Leave out what no metadata says."""
    columns = tuple(replace(column, is_generated=None) for column in definition.columns)
    return replace(definition, columns=columns, unique_keys=(), charset=None, is_complete=False)


def test_full_metadata_makes_the_definition_the_server_shows(server: Server) -> None:
    events = log_of(
        server,
        "SET GLOBAL binlog_row_metadata = FULL",
        "CREATE DATABASE x",
        ALL,
        "INSERT INTO x.t (a, m, id, jd) VALUES (1, 'ü', 1, 'j')",
        "SET GLOBAL binlog_row_metadata = MINIMAL",
        "UPDATE x.t SET q = 3",
    )
    shown = definition_from_create(server.query("SHOW CREATE TABLE x.t")[0][1], schema="x")
    server.execute("DROP DATABASE x")
    full, minimal = maps_of(events)
    made = definition_from_table_map(full)
    for column, logged in zip(without_the_unlogged(shown).columns, made.columns, strict=True):
        assert column == logged
    assert made == without_the_unlogged(shown)
    assert misfit(shown, full) is None
    assert misfit(shown, minimal) is None
    renamed = replace(shown.columns[4], name="other")
    other = replace(shown, columns=(*shown.columns[:4], renamed, *shown.columns[5:]))
    assert misfit(other, full) == "column 5 is other, and was logged as e"
    assert misfit(other, minimal) is None
    with pytest.raises(CannotFollow, match="binlog_row_metadata is not FULL"):
        definition_from_table_map(minimal)
    assert shown_columns(full) == tuple((each.name, each.type_text) for each in made.columns)
    vague = dict(shown_columns(minimal))
    assert (vague["@2"], vague["@10"], vague["@13"]) == (
        "decimal(20,5) unsigned",
        "char(255)",
        "enum",
    )


def test_an_unknown_table_is_known_from_its_first_full_table_map_on(server: Server) -> None:
    server.execute("CREATE DATABASE y", "CREATE TABLE y.t (a int, b int)")
    events = log_of(
        server,
        "INSERT INTO y.t VALUES (1, 2)",
        "SET GLOBAL binlog_row_metadata = FULL",
        "INSERT INTO y.t VALUES (3, 4)",
        "ALTER TABLE y.t ADD c int FIRST",
        "INSERT INTO y.t VALUES (5, 6, 7)",
        "ALTER TABLE y.t ADD d varchar(3)",
        "INSERT INTO y.t VALUES (5, 6, 7, 'd')",
        "SET GLOBAL binlog_row_metadata = MINIMAL",
    )
    server.execute("DROP DATABASE y")
    tracker = SchemaTracker(facts=SchemaFacts())
    entries = [entry for event in events for entry in tracker.take(event)]
    assert {entry.key for entry in entries} == {TableKey("y", "t")}
    told = [
        (e.state, e.source, [c.name for c in e.definition.columns] if e.definition else None)
        for e in entries
    ]
    assert told == [
        (State.UNKNOWN, Source.TABLE_MAP, None),
        (State.KNOWN, Source.TABLE_MAP, ["a", "b"]),
        (State.KNOWN, Source.STATEMENT, ["c", "a", "b"]),
        # The metadata does not name the character set of columns to come.
        (State.UNKNOWN, Source.STATEMENT, None),
        (State.KNOWN, Source.TABLE_MAP, ["c", "a", "b", "d"]),
    ]
