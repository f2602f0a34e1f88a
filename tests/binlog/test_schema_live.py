"""The tracker against real servers: after each statement of a long list it knows what they show.

The same log is then followed into a store that is killed between any two changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pymysql
import pytest

from binlog.adapters.schema_events import file_events
from binlog.adapters.schema_follow import Follower, starting_place
from binlog.adapters.schema_store import Followed, SchemaStore
from binlog.events import Event, FormatDescription, TableMap
from binlog.schema.check import misfit
from binlog.schema.column_types import Timestamps
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import Catalogue, Entry, Place, Source, State, TableKey
from binlog.schema.tracker import SchemaTracker
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from tests.binlog.schema_material import STATEMENTS
from tests.binlog.stores import content

SERVER = UUID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaff")


@dataclass(frozen=True)
class Snapshot:
    """What a server showed right after a statement."""

    statement: str
    end: tuple[str, int]
    tables: dict[TableKey, TableDefinition]


@dataclass(frozen=True)
class Told:
    """A server's log, and what it showed while it wrote it."""

    events: tuple[Event, ...]
    snapshots: tuple[Snapshot, ...]
    facts: SchemaFacts
    paths: tuple[Path, ...]
    skipped: int


def shown(cursor: Any) -> dict[TableKey, TableDefinition]:
    cursor.execute(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_type = 'BASE TABLE' AND table_schema IN ('x', 'x2')"
    )
    found = {}
    for schema, table in cursor.fetchall():
        quoted = table.replace("`", "``")
        cursor.execute(f"SHOW CREATE TABLE `{schema}`.`{quoted}`")
        found[TableKey(schema, table)] = definition_from_create(cursor.fetchone()[1], schema=schema)
    return found


def tell(server: Server) -> Told:
    snapshots: list[Snapshot] = []
    skipped = 0
    is_old = server.version < (8,)
    with (
        server.connect() as connection,
        server.connect() as other,
        connection.cursor() as cursor,
        other.cursor() as looking,
    ):
        for statement in STATEMENTS:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError:
                skipped += 1
            looking.execute(server.dialect.binary_log_status)
            row = looking.fetchone()
            assert row is not None
            defines = not snapshots or not statement.startswith(("INSERT", "SET "))
            tables = shown(looking) if defines else snapshots[-1].tables
            snapshots.append(Snapshot(statement, (row[0], int(row[1])), tables))
    paths = tuple(server.datadir / str(row[0]) for row in server.query("SHOW BINARY LOGS"))
    events = tuple(file_events(paths, Place(paths[0].name, 0)))
    facts = SchemaFacts(Timestamps.NOT_NULL if is_old else Timestamps.UNKNOWN)
    return Told(events, tuple(snapshots), facts, paths, skipped)


@pytest.fixture(scope="module", params=["installation56", "installation97"])
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation) as server:
        yield tell(server)


def present(catalogue: Catalogue) -> dict[TableKey, TableDefinition | None]:
    return {
        key: entry.definition
        for key, entry in catalogue.entries.items()
        if entry.state is not State.ABSENT
    }


def test_after_each_statement_the_tracker_knows_what_the_server_shows(told: Told) -> None:
    tracker = SchemaTracker(facts=told.facts)
    entries: list[Entry] = []
    at = 0
    for snapshot in told.snapshots:
        while at < len(told.events) and (
            (told.events[at].file, told.events[at].end) <= snapshot.end
        ):
            entries += tracker.take(told.events[at])
            at += 1
        assert present(tracker.catalogue) == snapshot.tables, snapshot.statement
    assert at == len(told.events)
    # No row contradicted a definition, and nothing had to be asked for.
    assert {entry.source for entry in entries} == {Source.STATEMENT}
    assert len(entries) > 60
    assert told.skipped < len(told.snapshots) / 4


def test_every_row_event_fits_the_definition_of_its_time(told: Told, tmp_path: Path) -> None:
    with SchemaStore(tmp_path / "store.sqlite") as store:
        follow(store, told)
        checked = 0
        for event in told.events:
            if not isinstance(event.body, TableMap):
                continue
            key = TableKey(event.body.schema, event.body.table)
            place = Place(event.file, event.start)
            definition = store.definition_at(SERVER, key, place)
            assert misfit(definition, event.body) is None
            if definition.column_count > 1:
                shorter = TableDefinition(key.schema, key.table, definition.columns[1:])
                assert "Column count doesn't match" in str(misfit(shorter, event.body))
            checked += 1
        assert checked >= 12


def follow(store: SchemaStore, told: Told, *, facts: SchemaFacts | None = None) -> None:
    """Follow as the command does: from where the store stands."""
    head = told.events[0]
    assert isinstance(head.body, FormatDescription)
    created_at = head.header.timestamp_seconds
    place = starting_place(
        store.followed(SERVER),
        [path.name for path in told.paths],
        created_at=lambda _file: created_at,
    )
    tracker = SchemaTracker(store.catalogue(SERVER), facts=facts or told.facts)
    follower = Follower(store, SERVER, tracker, created_at=created_at, entries_per_save=1)
    events = file_events(told.paths, place)
    follower.follow(events, place)


class Killed(BaseException):
    """Stands for the end of the process."""


class MortalStore(SchemaStore):
    """A store whose process dies at one of its saves, before or after it is done."""

    saves_left = 10**9
    is_dead = False

    def save(self, server: UUID, entries: Any, catalogue: Catalogue, followed: Followed) -> None:
        if self.is_dead:
            return
        if self.saves_left == 0:
            self.is_dead = True
            raise Killed
        self.saves_left -= 1
        super().save(server, entries, catalogue, followed)


def test_a_follower_killed_between_any_two_changes_goes_on_to_the_same_store(
    told: Told, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.sqlite"
    with SchemaStore(whole) as store:
        follow(store, told)
    expected = content(whole)
    assert len(expected[3]) > 60
    deaths = 0
    with MortalStore(tmp_path / "mortal.sqlite") as mortal:
        while deaths < len(told.events):
            mortal.saves_left, mortal.is_dead = 1, False
            try:
                follow(mortal, told)
            except Killed:
                deaths += 1
                continue
            break
    assert deaths > 50
    assert content(tmp_path / "mortal.sqlite") == expected
    with SchemaStore(whole) as store:
        follow(store, told)  # at the end already: nothing is made twice
    assert content(whole) == expected
