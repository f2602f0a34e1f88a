"""Reads what `schema versions` and `schema drift` need of the servers of a cluster.

Each server is read in a thread of its own: one reading of its replication state, then a digest of
every definition. The readers stay open: definitions that differ are read in full later.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from gtid import GtidSet
from gtid_audit.operands.cluster_to_read import ClusterToRead
from topology.adapters.definition_reads import DefinitionReader
from topology.adapters.inventory.targets import dsn_of
from topology.adapters.mysql import MysqlReader
from topology.definitions.compared_pairs import ConnectedServer
from topology.definitions.event_statements import event_status_on
from topology.definitions.schema_objects import ObjectKey, ServerObjects
from topology.readings.snapshot import ReadServer, UnreadFact, UnreadReason, as_read
from topology.readings.target import ServerTarget

DEFINITION_SECONDS_MAX: Final = 60.0  # for one answer: 5.6 opens every table file for some
_NEEDED: Final = ("channels", "version")
_INCOMPLETE: Final = UnreadFact("replication state", UnreadReason.ERROR, "it is not complete")


@dataclass(slots=True)
class DefinitionServer:
    """One server: its replication state and its objects; None if they could not be read."""

    target: ServerTarget
    reader: DefinitionReader
    state: ReadServer | None = None
    objects: ServerObjects | None = None
    unread: list[UnreadFact] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.target.name

    @property
    def dsn(self) -> str:
        """Return the server's DSN, without a password."""
        return dsn_of(self.target)

    @property
    def held(self) -> GtidSet:
        """Return what the server's binary logs have, as far as it is known now."""
        if self.state is None:
            return GtidSet()
        executed = self.state.gtid_executed
        if self.objects is not None:
            executed |= self.objects.sets.after
        return executed - self.state.gtid_purged

    def has(self, key: ObjectKey) -> bool:
        """Return whether it has an object. Names are compared as this server compares them."""
        if self.objects is None:
            return False
        return key in self.objects.objects or (
            self.objects.folds_names
            and key.folded() in {each.folded() for each in self.objects.objects}
        )

    def connected(self) -> ConnectedServer:
        """Return the server with its channels."""
        assert self.state is not None
        channels = self.state.channels
        if channels is None:  # it may receive from any server
            return ConnectedServer(self.name, self.state.server_uuid, (), ("not read",))
        return ConnectedServer(
            self.name,
            self.state.server_uuid,
            tuple(each.source_uuid for each in channels if each.source_uuid is not None),
            tuple(f"{c.source_host}:{c.source_port}" for c in channels if c.source_uuid is None),
        )

    def event_status(self, *, has_channel: bool) -> str:
        """Return the status that SQL gives an event here: it runs on the source only.

        `has_channel`: from the server with which this one is compared.
        """
        version = self.reader.version
        assert self.state is not None
        assert version is not None
        if self.state.group is not None:
            is_replica = self.state.group.member_role == "SECONDARY"
        else:
            is_replica = has_channel or bool(self.state.channels)
        return event_status_on(version, is_replica=is_replica)

    def close(self) -> None:
        """Close the connection."""
        self.reader.close()


@contextmanager
def definition_servers(
    cluster: ClusterToRead,
    schemas: Sequence[str],
    *,
    seconds_max: float,
    say: Callable[[str], None],
    states: Mapping[str, ReadServer] | None = None,
) -> Iterator[list[DefinitionServer]]:
    """Provide the servers of a cluster, read, with open readers; close them at the end.

    `states` are the replication states of these servers, by name, if they were just read. A server
    that is not in it is left out: the reader of the states reports why.
    """
    servers = [
        DefinitionServer(each, DefinitionReader(each, seconds_max=seconds_max))
        for each in cluster.targets
        if states is None or each.name in states
    ]
    try:
        say(f"reading definitions of {len(servers)} servers")
        for each in servers:
            each.state = None if states is None else states[each.name]
        with ThreadPoolExecutor(len(servers) or 1) as pool:
            list(pool.map(lambda each: _read(each, cluster, schemas), servers))
        _note_equal_uuids(servers)
        _note_absent_schemas(servers, schemas)
        yield servers
    finally:
        for each in servers:
            each.close()


def _read(server: DefinitionServer, cluster: ClusterToRead, schemas: Sequence[str]) -> None:
    if server.state is None:
        _read_state(server, cluster)
    if server.state is None:
        return
    server.objects = server.reader.read_objects(schemas)
    server.unread += server.reader.unread
    if server.objects is not None:
        server.unread += server.objects.unread
    answered = server.reader.settings.get("server_uuid", "")
    if server.objects is not None and answered != str(server.state.server_uuid):
        why = f"another server answers at its address now: its server_uuid is {answered}"
        server.unread.append(UnreadFact("server_uuid", UnreadReason.ERROR, why))
        server.objects = None


def _read_state(server: DefinitionServer, cluster: ClusterToRead) -> None:
    state_reader = MysqlReader(
        server.target,
        cluster=cluster.name,
        timeout_seconds_max=cluster.limits.server_seconds_max,
    )
    try:
        state = as_read(state_reader.read(phase=1))
    finally:
        state_reader.close()
    if isinstance(state, ReadServer):
        server.state = state
    server.unread += [each for each in state.unread if each.fact in _NEEDED]
    if server.state is None:
        server.unread += state.unread or (_INCOMPLETE,)
        server.unread = list(dict.fromkeys(server.unread))


def _note_equal_uuids(servers: Sequence[DefinitionServer]) -> None:
    """Note servers that answer with the server_uuid of another one.

    They are one server under two names, or the copy of a data directory with its auto.cnf. Then
    which of them a channel leads to is not known.
    """
    names: dict[UUID, str] = {}
    for each in servers:
        if each.state is None:
            continue
        first = names.setdefault(each.state.server_uuid, each.name)
        if first != each.name:
            why = f"{first} and {each.name} answer with the same server_uuid: list a server once"
            each.unread.append(UnreadFact("server_uuid", UnreadReason.UNSUPPORTED, why))
            each.state = None


def _note_absent_schemas(servers: Sequence[DefinitionServer], schemas: Sequence[str]) -> None:
    """Note the requested schemas that no server shows: a wrong name would be alike everywhere."""
    read = [each.objects for each in servers if each.objects is not None]
    shown = {key.schema.casefold() for each in read for key in each.objects}
    for name in schemas:
        if read and name.casefold() not in shown:
            why = "no server shows a schema of this name"
            servers[0].unread.append(UnreadFact(f"schema {name}", UnreadReason.ERROR, why))
