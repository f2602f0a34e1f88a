"""Servers as sets, and what replication does on them by itself.

1. The model has sets and channels, and no SQL. actions.py simulates a step on it before it is
   written.
2. After every action, replication runs to its end: what a running channel would deliver without
   intervention is delivered. The model has no time. invariants.py explains how it works.
3. It is pessimistic about what is unknown: a channel that the source would refuse delivers nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from operator import is_not
from types import MappingProxyType
from typing import Any
from uuid import UUID
from weakref import ref

from gtid import GtidSet
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion


@dataclass(frozen=True, slots=True)
class ModelChannel:
    """The state of a channel that decides what arrives."""

    name: str
    source: str | None  # None: not in the snapshot, delivers nothing here
    auto_position: bool
    running: bool
    retrieved: GtidSet = field(default_factory=GtidSet)
    # The source has it, and the file position is after it: not sent while auto_position is off.
    bypassed: GtidSet = field(default_factory=GtidSet)
    # Stops the applier when it is delivered.
    doomed: GtidSet = field(default_factory=GtidSet)
    # Received, and passed by the applier. The source sends it again only after the relay log is
    # deleted, as by CHANGE … AUTO_POSITION = 1.
    passed: GtidSet = field(default_factory=GtidSet)
    # The part that its relay log holds was passed: another channel's applier has passed it too.
    passed_beside: GtidSet = field(default_factory=GtidSet)
    # The receiver drops it: it carries the replica's server_id under another UUID (C2).
    dropped: GtidSet = field(default_factory=GtidSet)
    # What it received may be from a log that the source no longer has (RESET there, a crash).
    may_be_former: bool = False
    is_loss_shown: bool = False  # and no commit by hand on its server explains these signs
    # Committed on its server by a session, and otherwise on its source (committed_by_hand.py).
    by_hand: GtidSet = field(default_factory=GtidSet)
    # Received, and neither executed nor on the source: its relay log may be the last copy.
    orphaned: GtidSet = field(default_factory=GtidSet)
    # Received; the source restarted between their commits, perhaps after a crash.
    around_start: GtidSet = field(default_factory=GtidSet)
    # The applier stopped before an event that it cannot apply.
    is_stuck: bool = False
    # The GTIDs of that event, if skipping them helps: once they are executed, a restarted applier
    # continues after them. Empty for an event whose expected error differs (A1): a start does not
    # help, even if the GTID is executed (seen on 5.6.24 and 9.7.4).
    stuck_at: GtidSet = field(default_factory=GtidSet)
    until: str = ""  # the condition of the START REPLICA UNTIL that started the applier
    is_connected: bool = False  # its receiver: a source refuses only new connections
    # Why no start helps its receiver, or a start harms another one; "" if nothing shows that.
    fails: str = ""
    # Why its source no longer has its file position; "" if it has, or if none is requested.
    lost_place: str = ""
    # Why another server may be at its address (topology/facts/graph.py); "" if nothing shows that.
    doubt: str = ""
    # Replicate_Rewrite_DB, as SHOW REPLICA STATUS lists it: what arrives is applied elsewhere.
    rewrites: str = ""
    # Where the log of its source has a transaction without a GTID that it has not applied: with
    # auto-position it is never sent. Or where one is that it may have applied, or why that log was
    # not read. "" if there is none.
    without_gtid_at: str = ""
    without_gtid_maybe_at: str = ""
    without_gtid_unread: str = ""
    # SOURCE_DELAY, if only the applier is stopped: what was received waits for an operator.
    held_back_seconds: int = 0
    hides_waiting: bool = False  # its relay log has events that are in no set (5.6)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """One server. Invariant: purged <= executed; simulation keeps it, invariants.py checks it."""

    name: str
    server_uuid: UUID
    version: ServerVersion
    executed: GtidSet
    purged: GtidSet
    channels: tuple[ModelChannel, ...] = ()
    server_id: int | None = None
    group_name: UUID | None = None  # of the group it is a member of
    has_log: bool = True  # log_bin, and not closed after an error (A9)
    logs_received: bool = True  # log_replica_updates
    sends_by_sets: bool = True  # gtid_mode is ON: replicas may use auto-position
    log_filters: tuple[tuple[str, str], ...] = ()  # binlog_do_db and binlog_ignore_db, if set
    logs_rows: bool = True  # binlog_format is ROW
    row_image: str = "FULL"  # binlog_row_image
    logs_partial_json: bool = False  # binlog_row_value_options
    are_settings_known: bool = True  # if False, these are the defaults
    committing: GtidSet = field(default_factory=GtidSet)  # gtid_owned, as read
    # gtid_owned in both readings: the commits may wait for a semi-synchronous replica, which has
    # received them and may have applied them.
    long_committing: GtidSet = field(default_factory=GtidSet)
    vendor: Vendor | None = None
    skips_next: bool = False  # sql_replica_skip_counter: the next transaction is not applied
    had_unread_channels: bool = False  # at the first reading: what its appliers passed is unknown
    torn_below: str = ""  # a server that receives from it and was reset or restarted meanwhile
    # The part of `executed` that it had not applied when it was read, and that its channels
    # deliver. It may stay in a relay log for the whole duration of the plan: a delay, a lock, a
    # long backlog.
    due: GtidSet = field(default_factory=GtidSet)
    without_event: GtidSet = field(default_factory=GtidSet)  # not purged, and in none of its logs

    @property
    def available(self) -> GtidSet:
        """Return what the server can still send."""
        return self.executed - self.purged - self.without_event

    def channel(self, name: str) -> ModelChannel | None:
        """Return a channel by name."""
        return next((each for each in self.channels if each.name == name), None)

    def with_channel(self, name: str, **changes: Any) -> "ModelServer":  # noqa: ANN401 - fields
        """Return this server with one channel changed."""
        assert self.channel(name) is not None, f"{self.name} has no channel {name!r}"
        return replace(
            self,
            channels=tuple(
                replace(each, **changes) if each.name == name else each for each in self.channels
            ),
        )

    def started(self, name: str, *, retried: GtidSet | None = None) -> "ModelServer":
        """Return this server with one channel started.

        `retried`: what stopped its applier and can be applied now. If that, or what it executed
        since, is all that stopped it, the applier continues.
        """
        channel = self.channel(name)
        assert channel is not None, "strategies refer to existing channels"
        passable = self.executed | (retried or GtidSet())
        is_free = bool(channel.stuck_at) and channel.stuck_at <= passable
        return self.with_channel(
            name,
            running=True,
            is_connected=False,
            is_stuck=channel.is_stuck and not is_free,
            stuck_at=GtidSet() if is_free else channel.stuck_at,
        )

    def with_executed(self, gtids: GtidSet, *, purged: bool) -> "ModelServer":
        """Return this server after it has executed more; `purged`: its logs do not keep it."""
        more = gtids if purged else GtidSet()
        return replace(self, executed=self.executed | gtids, purged=self.purged | more)


@dataclass(frozen=True, slots=True)
class _Links:
    """What stays the same while sets and threads change: it is computed once for many models."""

    # By source, its replicas with the number of the channel there, in order.
    receivers: Mapping[str, tuple[tuple[str, int], ...]]
    # By server_id, the UUIDs of its servers, without those of groups.
    uuids: Mapping[int | None, tuple[UUID, ...]]
    groups: frozenset[UUID | None]
    names: Mapping[int | None, tuple[str, ...]]  # by server_id

    @classmethod
    def of(cls, servers: Mapping[str, ModelServer]) -> "_Links":
        groups = frozenset(each.group_name for each in servers.values())
        receivers: dict[str, list[tuple[str, int]]] = {}
        uuids: dict[int | None, list[UUID]] = {}
        names: dict[int | None, list[str]] = {}
        for server in servers.values():
            names.setdefault(server.server_id, []).append(server.name)
            if server.server_uuid not in groups:
                uuids.setdefault(server.server_id, []).append(server.server_uuid)
            for number, channel in enumerate(server.channels):
                if channel.source is not None:
                    receivers.setdefault(channel.source, []).append((server.name, number))
        return cls(
            {name: tuple(each) for name, each in receivers.items()},
            {server_id: tuple(each) for server_id, each in uuids.items()},
            groups,
            {server_id: tuple(each) for server_id, each in names.items()},
        )


@dataclass(frozen=True)  # without slots: it keeps its links, and whether it is at rest
class Model:
    """All servers of a cluster, by name.

    A model that `settle` (settled_model.py) returned is at rest. What `replace` makes of it knows
    the servers replaced since. So `settle` looks only at these, and at what receives from them.
    """

    servers: Mapping[str, ModelServer]

    def __post_init__(self) -> None:
        ordered = {name: self.servers[name] for name in sorted(self.servers)}
        object.__setattr__(self, "servers", MappingProxyType(ordered))

    def __getitem__(self, name: str) -> ModelServer:
        return self.servers[name]

    def replace(self, server: ModelServer) -> "Model":
        """Return the model with one server changed."""
        old = self.servers.get(server.name)
        changed = self.copied() | {server.name: server}
        if old is None or _linked(old) != _linked(server):
            return Model(changed)
        moved = None if self.moved is None else self.moved | {server.name}
        return Model.linked_as(self, changed, moved)

    @classmethod
    def linked_as(
        cls, other: "Model", servers: dict[str, ModelServer], moved: frozenset[str] | None
    ) -> "Model":
        """Return a model with the names and links of another one. It refers to `servers`."""
        model = cls.__new__(cls)
        found = {"servers": MappingProxyType(servers), "links": other.links, "moved": moved}
        model.__dict__.update(found)
        return model

    def copied(self) -> dict[str, ModelServer]:
        """Return the servers in a dictionary that may be changed, much faster than `dict` does."""
        assert isinstance(self.servers, MappingProxyType), "every model is made with one"
        return self.servers.copy()

    @cached_property
    def links(self) -> _Links:
        """Return who receives from whom, and whose transactions a receiver drops."""
        return _Links.of(self.servers)

    @cached_property
    def _changed(self) -> tuple["ref[Model] | None", tuple[str, ...]]:
        """Return the last answer of `changed_since`, and for which model (not kept alive)."""
        return None, ()

    @cached_property
    def moved(self) -> frozenset[str] | None:
        """Return the servers replaced since the model was at rest; None: it may never have been."""
        return None

    def replicas_of(self, name: str) -> tuple[tuple[ModelServer, ModelChannel], ...]:
        """Return the servers that receive from a server, with their channels."""
        found = ((self[replica], number) for replica, number in self.links.receivers.get(name, ()))
        return tuple((server, server.channels[number]) for server, number in found)

    def changed_since(self, before: "Model") -> tuple[str, ...]:
        """Return the servers that are not as in an earlier model of the same servers, in order."""
        last, changed = self._changed
        if last is not None and last() is before:  # every invariant asks for the same step
            return changed
        now, then = self.servers, before.servers
        if self.links is before.links:  # the same names, in the same order
            changed = tuple(compress(now, map(is_not, now.values(), then.values())))
        else:
            changed = tuple(name for name, server in now.items() if server is not then.get(name))
        object.__setattr__(self, "_changed", (ref(before), changed))
        return changed


def _linked(server: ModelServer) -> tuple[object, ...]:
    """Return what `_Links` has of a server."""
    sources = [each.source for each in server.channels]
    return server.server_uuid, server.server_id, server.group_name, sources


def upstream(model: Model, name: str) -> set[str]:
    """Return every server from which a server receives, over running or stopped channels."""
    found: set[str] = set()
    frontier = [name]
    while frontier:
        for channel in model[frontier.pop()].channels:
            source = channel.source
            if source is not None and source in model.servers and source not in found:
                found.add(source)
                frontier.append(source)
    return found


def below(model: Model, name: str, *, running: bool = False) -> tuple[str, ...]:
    """Return every server that receives from a server, over running or stopped channels.

    `running`: only over running channels, regardless of the sets. A busy replica is read ahead of
    its source, which would refuse it (`refused`) if it connected now.
    """
    found: dict[str, None] = {}
    frontier = [name]
    while frontier:
        for replica, channel in model.replicas_of(frontier.pop()):
            if running and (channel.is_stuck or not channel.running):
                continue
            if replica.name not in found and replica.name != name:
                found[replica.name] = None
                frontier.append(replica.name)
    return tuple(found)


def refused(source: ModelServer, replica: ModelServer, channel: ModelChannel) -> GtidSet:
    """Return why a source would refuse an auto-position connection; empty if it would not.

    sql/rpl_binlog_sender.cc, check_start_file: what the replica sends must contain all that the
    source has purged (1789). It must contain no GTID of the source's own UUID that is missing on
    the source (1885).
    """
    if not channel.auto_position:
        return GtidSet()
    sent = replica.executed | channel.retrieved
    beyond = sent.from_uuid(source.server_uuid) - source.executed
    return (source.purged - sent) | beyond


def is_same_server(source: ModelServer, replica: ModelServer) -> bool:
    """Return whether a receiver refuses its source because it seems to be itself (13117, 1593).

    sql/rpl_replica.cc, get_master_version_and_clock and get_master_uuid.
    """
    if source.server_uuid == replica.server_uuid:
        return True
    return source.server_id is not None and source.server_id == replica.server_id


def can_connect(source: ModelServer, replica: ModelServer, channel: ModelChannel) -> bool:
    """Return whether a receiver connects, as far as settings decide it; see also `refused`.

    With auto-position it stops unless gtid_mode is ON on the source (sql/rpl_replica.cc,
    get_master_version_and_clock).
    """
    if not source.has_log or is_same_server(source, replica):
        return False
    return source.sends_by_sets or not channel.auto_position
