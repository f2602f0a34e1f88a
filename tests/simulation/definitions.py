"""Definitions of tables and views: DDL, and what an audit with --definitions reads of them.

1. The toy world has one table and one view that DDL makes, changes and drops. A row of the world
   stands for the definition: its value decides the type of a column.
2. The comparison is that of the product (gtid_audit/tasks/cluster_definitions.py). What it asks of
   live servers is answered here: objects, SHOW CREATE, filters, DDL in the binary logs. The world
   moves while it asks.
3. The reading is made on a copy: other oracles compare the world as it was after the last look.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from gtid import Gtid as ProductGtid
from gtid import GtidSet
from gtid_audit.tasks import (
    cluster_definitions,
    ddl_of_others,
    definition_servers,
    drift_comparison,
    drift_directions,
)
from gtid_audit.tasks.definition_servers import DefinitionServer
from tests.simulation import replication as act
from tests.simulation.reading import Reading, gtids, members_of, moment
from tests.simulation.state import Change, Gtid, Key, Server, Transaction, World, uuid_of
from tests.simulation.steps import Args, perform, some_primary, some_server, step
from topology.adapters.definition_reads import ReadDefinitions
from topology.definitions.canonical import CanonicalDefinition, canonical_definition
from topology.definitions.ddl_searches import DdlSearch
from topology.definitions.schema_objects import (
    ObjectDigest,
    ObjectKey,
    ObjectKind,
    ServerObjects,
    SetsAround,
)
from topology.definitions.visibility import Visibility
from topology.readings.definition_reading import DefinitionReading
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.replication_filters import ServerFilters
from topology.readings.snapshot import ClusterSnapshot, UnreadFact
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

ALTER, UNLOGGED = "alter-table", "table-unlogged"
STEPS = (ALTER, UNLOGGED)
DRAWN = (
    ALTER,
    ALTER,
    UNLOGGED,
    "create-table",
    "create-table",
    "drop-table",
    "create-view",
    "view-unlogged",
    "write-empty",
)

OBJECTS: dict[Key, ObjectKey] = {
    act.TABLE: ObjectKey(ObjectKind.TABLE, "sim", "made"),
    act.VIEW: ObjectKey(ObjectKind.VIEW, "sim", "seen"),
}
_SCHEMA = ObjectKey(ObjectKind.SCHEMA, "sim")
_SEES_ALL = Visibility(frozenset({"SELECT", "SHOW VIEW", "TRIGGER", "EVENT"}))
_MOVES_MAX = 12


# -- the steps ------------------------------------------------------------------------------------


def _choose_altered(world: World, dice: random.Random) -> Args | None:
    return some_primary(world, dice) if dice.random() < 0.8 else some_server(world, dice)


@step(ALTER, _choose_altered)
def alter_table(world: World, name: str) -> bool:
    """ALTER TABLE made MODIFY v VARCHAR(n), another n each time."""
    change = Change("alter", act.TABLE, world.works + 1)
    return act.write(world, world[name], (change,)) is not None


def _choose_unlogged(world: World, dice: random.Random) -> Args | None:
    name = dice.choice(sorted(world.servers))
    if act.TABLE not in world[name].rows:
        return (name, "create")
    return (name, dice.choice(("alter", "alter", "drop")))


@step(UNLOGGED, _choose_unlogged)
def table_unlogged(world: World, name: str, kind: str) -> bool:
    """CREATE TABLE, ALTER TABLE or DROP TABLE with sql_log_bin=0."""
    rows = world[name].rows
    if act.TABLE in world[name].locked_keys or (kind == "create") == (act.TABLE in rows):
        return False
    if kind == "drop":
        del rows[act.TABLE]
    else:
        world.works += 1
        rows[act.TABLE] = world.works if kind == "alter" else 0
    world.drifted.add(act.TABLE)
    return True


# -- what servers show ----------------------------------------------------------------------------


def definition_of(server: Server, key: Key) -> str:
    """Return what SHOW CREATE prints of an object; "" if the server does not have it."""
    if key not in server.rows:
        return ""
    if key == act.VIEW:
        return "CREATE ALGORITHM=UNDEFINED VIEW `sim`.`seen` AS select 1 AS `1`"
    return (
        "CREATE TABLE `made` (\n  `id` int NOT NULL,\n"
        f"  `v` varchar({length_of(server.rows[key])}) DEFAULT NULL,\n"
        "  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=latin1"
    )


def length_of(value: int) -> int:
    """Return the length of the column for which a row of the world stands."""
    return 100 + value


def statement_of(made: Transaction) -> str:
    """Return the statement of DDL as the binary log has it; "" for another transaction."""
    if made.is_empty:
        return "DROP VIEW IF EXISTS `sim`.`nothing`" if made.is_upkeep else ""
    change = made.changes[0]
    if change.kind not in act.DDL:
        return ""
    if change.key == act.VIEW:
        return "CREATE VIEW sim.seen AS SELECT 1"
    return {
        "create": "CREATE TABLE sim.made (id INT PRIMARY KEY, v VARCHAR(100))",
        "alter": f"ALTER TABLE sim.made MODIFY v VARCHAR({length_of(change.new or 0)})",
        "drop": "DROP TABLE `sim`.`made`",
    }[change.kind]


def _sets(server: Server) -> GtidSet:
    return gtids(server.executed)


@dataclass
class _Reader:
    """Stands for topology/adapters/definition_reads.py: reads one server of the world."""

    world: World
    name: str
    move: Callable[[], None]

    @property
    def server(self) -> Server:
        return self.world[self.name]

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "gtid_mode": "ON_PERMISSIVE" if self.server.permissive else "ON",
            "replica_type_conversions": "",
            "server_uuid": str(uuid_of(self.server.uuid)),
        }

    @property
    def version(self) -> ServerVersion:
        return ServerVersion(*self.server.version)

    @property
    def unread(self) -> tuple[UnreadFact, ...]:
        return ()

    def read_objects(self) -> ServerObjects:
        before = _sets(self.server)
        self.move()
        shown = {
            key: ObjectDigest(definition_of(self.server, row))
            for row, key in OBJECTS.items()
            if row in self.server.rows
        }
        self.move()
        after = gtids(self.server.executed | self.server.owned)
        objects = {_SCHEMA: ObjectDigest("sim"), **shown}
        return ServerObjects(self.name, _SEES_ALL, SetsAround(before, after), objects=objects)

    def read_definitions(self, keys: Sequence[ObjectKey]) -> ReadDefinitions:
        rows = {key: row for row, key in OBJECTS.items()}
        before = _sets(self.server)
        found: dict[ObjectKey, CanonicalDefinition | None] = {}
        for key in keys:
            self.move()
            text = definition_of(self.server, rows[key])
            found[key] = canonical_definition(key.kind, text, {}) if text else None
        self.move()
        after = gtids(self.server.executed | self.server.owned)
        return ReadDefinitions(found, SetsAround(before, after))


def definitions_of(
    world: World, reading: Reading, snapshot: ClusterSnapshot
) -> DefinitionReading | None:
    """Return the comparison of definitions after a reading; None if it makes none."""
    if not reading.definitions:
        return None
    asked = world.copy()
    dice = random.Random(f"definitions {reading.seed}")

    def move() -> None:
        if reading.moving and dice.random() < 0.5:
            perform(asked, ("load", dice.randint(1, _MOVES_MAX), dice.randrange(10**6)))

    def pause(_seconds: float) -> None:
        perform(asked, ("flow", dice.choice((5, 40)), dice.randrange(10**6)))

    def ddl_of(target: ServerTarget, wanted: GtidSet, *, held: GtidSet, **_: object) -> DdlSearch:
        return _search(asked, target.name, wanted, held)

    @contextmanager
    def servers(*_: object, **__: object) -> Iterator[list[DefinitionServer]]:
        yield _servers(asked, snapshot, move)

    with (
        mock.patch.object(definition_servers, "definition_servers", servers),
        # Imported above: its first import within this block would keep `servers` for ever.
        mock.patch.object(drift_directions, "definition_servers", servers),
        mock.patch.object(ddl_of_others, "ddl_of", ddl_of),
        mock.patch.object(drift_comparison, "filters_of", mock.Mock(return_value=ServerFilters())),
        mock.patch.object(drift_comparison, "time", SimpleNamespace(sleep=pause)),
    ):
        found = cluster_definitions.look_at_definitions(
            snapshot, cast("Any", None), say=lambda _text: None
        )
    return replace(found, read_at=moment(asked.clock))


def _servers(
    world: World, snapshot: ClusterSnapshot, move: Callable[[], None]
) -> list[DefinitionServer]:
    found = []
    for name, state in sorted(snapshot.last_read.items()):
        reader = _Reader(world, name, move)
        target = ServerTarget(name, name, 3306, "auditor")
        objects = reader.read_objects()
        found.append(DefinitionServer(target, cast("Any", reader), state, objects))
    definition_servers._note_equal_uuids(found)
    return found


def _search(world: World, name: str, wanted: GtidSet, held: GtidSet) -> DdlSearch:
    """Search the logs of a server as topology/adapters/ddl_reads.py does."""
    server, here = world[name], wanted & held
    if server.permissive or not server.log_bin:
        return DdlSearch(name, GtidSet(), why_unread=f"{name}: it sends nothing by GTID")
    members = members_of(here, world)
    logged = [each for log in server.files for each in log.entries if each.gtid in members]
    done = gtids(each.gtid for each in logged)
    why = "" if here == wanted else "the logs of these servers do not have all of them"
    if not here <= done:
        why = why or f"{name}: the limit of 20 s was reached"
    found = (each for each in logged if statement_of(each))
    return DdlSearch(name, done, tuple(map(_logged, found)), why)


def _logged(made: Transaction) -> LoggedDdl:
    return LoggedDdl(_gtid(made.gtid), moment(made.at), statement_of(made))


def _gtid(gtid: Gtid) -> ProductGtid:
    (tsid, start, _), *_ = gtids([gtid]).intervals()
    return ProductGtid(tsid, start)
