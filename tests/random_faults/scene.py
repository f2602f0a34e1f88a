"""The servers of one case while it runs: what the functions that inject faults work with."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from compose.faults import await_status, commit
from compose.native.server import Server
from compose.native.shapes import Link, Topology, wait_for
from gtid import GtidSet
from tests.random_faults.cases import Case
from tests.random_faults.writers import Writers

SCHEMA = "work"
_LARGE_ROWS = 3_000
_TAGS_SINCE = (8, 3)


@dataclass
class Scene:
    """One topology, with its load, around one edge."""

    case: Case
    topology: Topology
    writers: Writers
    stack: ExitStack  # what a fault holds until the end of the case: sessions, frozen servers
    dice: random.Random
    delayed: frozenset[str] = frozenset()  # replicas that lag on purpose
    key: int = field(default=1000)  # of the last row: no two transactions have the same key

    @property
    def here(self) -> Server:
        """Return the source of the edge."""
        return self.topology[self.case.edge[0]]

    @property
    def there(self) -> Server:
        """Return the replica of the edge."""
        return self.topology[self.case.edge[1]]

    @property
    def ends(self) -> dict[str, str]:
        """Return the edge as the functions of compose take it."""
        return {"source": self.here.name, "replica": self.there.name}

    @property
    def primary(self) -> Server:
        """Return a server to which clients write, and which the source has or is."""
        names = [link.source for link in self.topology.links]
        below = {link.replica for link in self.topology.links}
        tops = [name for name in names if name not in below]
        return self.topology[tops[0]] if tops else self.here

    # ---- transactions

    def work(self, server: Server, count: int | None = None, *, tag: bool | None = None) -> str:
        """Commit transactions of random content on a server; return their GTIDs."""
        with self.writers.held(server.name):
            return commit(server, *self.statements(server, count, tag=tag))

    def statements(
        self, server: Server, count: int | None = None, *, tag: bool | None = None
    ) -> list[str]:
        """Return statements that commit `count` transactions of random content."""
        is_tagged = self.case.has_tags if tag is None else tag
        made = []
        if is_tagged and server.version >= _TAGS_SINCE:
            made.append("SET SESSION gtid_next = 'AUTOMATIC:fault'")
        for _ in range(self.case.count if count is None else count):
            made += self._transaction()
        return made

    def _transaction(self) -> list[str]:
        self.key += 1
        insert = f"INSERT INTO {SCHEMA}.t (id, note) VALUES ({self.key}, 'of the fault')"
        match self.dice.choice(("insert", "insert", "both", "table", "large", "none")):
            case "both":
                # The row is its own, so that no later transaction depends on it.
                update = f"UPDATE {SCHEMA}.t SET note = 'changed' WHERE id = {self.key}"
                return ["BEGIN", insert, update, "COMMIT"]
            case "table":
                return [f"CREATE TABLE {SCHEMA}.made{self.key} (id INT PRIMARY KEY)"]
            case "large":
                rows = ", ".join(
                    f"({self.key * 10_000 + each}, 'of the fault')" for each in range(500)
                )
                return [f"INSERT INTO {SCHEMA}.t (id, note) VALUES {rows}"]
            case "none":
                # A statement without rows, which takes a GTID all the same.
                return [f"CREATE TABLE IF NOT EXISTS {SCHEMA}.t (id INT)"]
        return [insert]

    # ---- moments

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold every writer, with all servers equal at the beginning."""
        with self.writers.held():
            self.settle()
            yield

    def settle(self) -> None:
        """Wait until every replica that does not lag on purpose has what its source has."""
        for _ in self.topology.servers:
            for link in self.topology.links:
                if link.replica not in self.delayed:
                    wait_for(self.topology[link.replica], executed(self.topology[link.source]))

    def hold(self, server: Server) -> None:
        """Let the writer of a server wait until the end of the case."""
        self.stack.enter_context(self.writers.held(server.name))

    def is_mutual(self) -> bool:
        """Return whether the source of the edge also replicates from its replica."""
        return Link(source=self.there.name, replica=self.here.name) in self.topology.links

    # ---- what happens before the fault

    def happen(self, event: str) -> None:
        """Do something that servers see on an ordinary day."""
        match event:
            case "rotate source":
                self.here.execute("FLUSH BINARY LOGS")
            case "rotate replica":
                self.there.execute("FLUSH BINARY LOGS")
            case "restart replica":
                self._restart(self.there)
            case "restart source":
                self._restart(self.here)
            case "purge source":
                self.purge_what_all_have()
            case "stop and start":
                self.there.execute(self.there.dialect.stop_replica)
                self.work(self.primary, 2)
                self.there.execute(self.there.dialect.start_replica)
            case "large transaction":
                self.key += 1
                rows = ", ".join(
                    f"({self.key * 10_000 + each}, 'large')" for each in range(_LARGE_ROWS)
                )
                with self.writers.held(self.primary.name):
                    self.primary.execute(f"INSERT INTO {SCHEMA}.t (id, note) VALUES {rows}")
            case "create and drop":
                self.key += 1
                name = f"{SCHEMA}.short{self.key}"
                with self.writers.held(self.primary.name):
                    self.primary.execute(f"CREATE TABLE {name} (id INT)", f"DROP TABLE {name}")
            case _:
                raise ValueError(event)

    def _restart(self, server: Server) -> None:
        with self.writers.held(server.name):
            if self.dice.random() < 0.25:
                server.restart()  # takes up to 10 s while replicas reconnect
            else:
                server.kill()  # loses nothing: sync_binlog is 1
                server.start()
        for link in self.topology.links:
            if server.name in (link.source, link.replica):
                await_status(
                    self.topology[link.replica],
                    lambda status: status["Replica_IO_Running"] == "Yes",
                )

    def purge_what_all_have(self) -> None:
        """Purge the logs of the source, after every server has what they have."""
        self.here.execute("FLUSH BINARY LOGS")
        with self.quiet():
            if not self.delayed:
                file = self.here.binary_log_position()[0]
                self.here.execute(f"PURGE BINARY LOGS TO '{file}'")


def executed(server: Server) -> str:
    """Return gtid_executed of a server."""
    return str(server.value("@@GLOBAL.gtid_executed")).replace("\n", "")


def gtids(text: str) -> GtidSet:
    """Return a set from MySQL's text."""
    return GtidSet.parse(text)


def prepare(scene: Scene) -> None:
    """Create the table of the faults, set the workers, start the load, and let things happen."""
    for name, variable, value in scene.case.log_settings:
        scene.topology[name].execute(f"SET GLOBAL {variable} = {value}")
    scene.primary.execute(
        f"CREATE DATABASE {SCHEMA}",
        f"CREATE TABLE {SCHEMA}.t (id BIGINT PRIMARY KEY, note VARCHAR(60))",
        f"INSERT INTO {SCHEMA}.t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    )
    for link in scene.topology.links:
        replica = scene.topology[link.replica]
        prefix = replica.dialect.words.replica_variable_prefix
        statements = [f"SET GLOBAL {prefix}parallel_workers = {scene.case.workers}"]
        if scene.case.shape != "pair56":
            order = "ON" if scene.case.keeps_commit_order else "OFF"
            statements.append(f"SET GLOBAL {prefix}preserve_commit_order = {order}")
        # Of 5.6.24, a receiver that is stopped and started at once sometimes reads nothing.
        replica.execute(replica.dialect.stop_applier, *statements, replica.dialect.start_applier)
    scene.settle()
    if scene.case.has_lag:
        sibling = next(
            link.replica for link in scene.topology.links if link.replica != scene.there.name
        )
        delay(scene.topology[sibling])
        scene.delayed = frozenset({sibling})
    if scene.case.has_load:
        scene.writers.start()
        time.sleep(0.2)
    for event in scene.case.before:
        scene.happen(event)


def delay(replica: Server, seconds: int = 3600) -> None:
    """Set SOURCE_DELAY."""
    words = replica.dialect.words
    replica.execute(
        replica.dialect.stop_replica,
        f"{words.change_source} {words.option_prefix}DELAY = {seconds}",
        replica.dialect.start_replica,
    )


def by_hand(server: Server, texts: Sequence[str], *statements: str) -> None:
    """Commit the statements, or empty transactions, under GTIDs that are given."""
    for text in texts:
        server.execute(
            f"SET SESSION gtid_next = '{text}'",
            *(statements or ("BEGIN", "COMMIT")),
            "SET SESSION gtid_next = 'AUTOMATIC'",
        )
