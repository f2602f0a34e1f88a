"""The state of a simulated replication topology: servers, channels, transactions, clients.

1. A GTID is a tuple (uuid key, tag, number); `uuid_of` maps the key to a server_uuid. Sets of GTIDs
   are plain Python sets: nothing of the product's algebra is used here.
2. A transaction has a `work` number besides its GTID. Work is what a client wanted. When a GTID is
   reused, the GTID is the same and the work is another: that is the truth that sets do not show.
3. `rows` is one toy table; `applied` lists the transactions that changed it, in commit order, with
   what undoes each. A crash that loses the tail undoes exactly the lost ones.
4. `World.absence` records why a server does not have a GTID that passed it by: the step that caused
   it. Oracles compare the product's conclusion with it; nothing else reads it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple
from uuid import UUID

Gtid = tuple[str, str, int]
Thread = Literal["Yes", "Connecting", "No"]
Key = str

SECOND = 1000  # ticks of the world's clock

# sql/rpl_binlog_sender.cc, check_start_file: the three reasons to refuse a replica.
EXTRA = "Replica has more GTIDs than the source has, using the source's SERVER_UUID."
PURGED = "Cannot replicate because the source purged required binary logs."
NO_FILE = "Could not find first log file name in binary log index file"
BEYOND = "Client requested source to start replication from position > file size"
DIFFERENT_ERRORS = (
    "Query caused different errors on master and slave.     Error on master: message (format)="
    "'Table '%-.192s' already exists' error code=1050 ; Error on slave: actual message='no error',"
    " error code=0. Default database: 'sim'. Query: 'CREATE VIEW sim.seen AS SELECT 1'"
)
COPY = "A replica with the same server_uuid/server_id as this replica has connected to the source"
NO_LOG = "Binary log is not open"
PERMISSIVE = "cannot start in AUTO_POSITION mode: the source has GTID_MODE = ON_PERMISSIVE"
SAME_UUID = "source and replica have equal MySQL server UUIDs"
SAME_ID = "source and replica have equal MySQL server ids"


class Change(NamedTuple):
    """One row that a transaction changes; `new` is None for a delete.

    "create", "alter" and "drop" are DDL: the key is the object, and `new` its definition.
    Two kinds are statements (binlog_format = STATEMENT): what they do depends on the rows of the
    server. "update-where" is `UPDATE t SET v = new WHERE k = key`, "insert-where" is `INSERT INTO t
    SELECT key, new FROM t WHERE k = where`. "fails" is DDL that 5.6 logged with its error.
    """

    kind: Literal[
        "insert",
        "update",
        "delete",
        "create",
        "alter",
        "drop",
        "update-where",
        "insert-where",
        "fails",
    ]
    key: Key
    new: int | None
    where: Key = ""

    @property
    def is_statement(self) -> bool:
        return self.kind in STATEMENTS

    @property
    def keys(self) -> set[Key]:
        """Return the rows that it changes or reads."""
        return {self.key, self.where} if self.where else {self.key}


STATEMENTS = ("update-where", "insert-where", "fails")


def has_statements(changes: tuple[Change, ...]) -> bool:
    """Return whether a change is a statement: asked at nearly every move, and any() takes longer."""
    for each in changes:  # noqa: SIM110 - see above
        if each.kind in STATEMENTS:
            return True
    return False


class Transaction(NamedTuple):
    """A transaction as the binary log holds it."""

    gtid: Gtid
    work: int
    changes: tuple[Change, ...]
    server_id: int  # of the server on which it was first committed
    origin: str  # name of that server
    at: int  # the original commit timestamp
    is_upkeep: bool = False  # a statement that changes no row: DDL of nothing, FLUSH

    @property
    def is_empty(self) -> bool:
        return not self.changes

    @property
    def has_statements(self) -> bool:
        return has_statements(self.changes)

    @property
    def failed_on_source(self) -> bool:
        for each in self.changes:  # noqa: SIM110 - see has_statements
            if each.kind == "fails":
                return True
        return False

    @property
    def keys(self) -> set[Key]:
        """Return the rows that it changes or reads."""
        if len(self.changes) == 1 and not self.changes[0].where:
            return {self.changes[0].key}
        return {key for each in self.changes for key in each.keys}


class Place(NamedTuple):
    """A position in a server's binary log: file number, and entries before it in that file."""

    file: int
    entries: int


@dataclass(slots=True)
class LogFile:
    """One binary log: what Previous_gtids says, and the transactions."""

    number: int
    previous: frozenset[Gtid]
    created_at: int
    entries: list[Transaction] = field(default_factory=list)
    is_lost: bool = False  # deleted by hand: without entries, and not in binlog.index


class Relayed(NamedTuple):
    """A transaction in a relay log, and where the source's log continues behind it."""

    transaction: Transaction
    end: Place


@dataclass(slots=True)
class Work:
    """A transaction with a worker; `logged` once it is in the server's binary log."""

    transaction: Transaction
    place: int  # in the relay log
    since: int
    worker: int
    logged: bool = False
    is_checked: bool = True  # its rows were looked at; not while it waits for a lock
    keys: frozenset[Key] = frozenset()  # the rows that it holds


@dataclass(slots=True)
class Channel:
    """The path by which one server receives from another."""

    name: str
    source: str  # the server at the address that is configured
    auto_position: bool = True
    receiver: Thread = "No"
    receiver_error: tuple[int, str] = (0, "")
    source_uuid: str | None = None  # known since the first connection
    source_server_id: int = 0
    read_to: Place | None = None
    excluded: frozenset[Gtid] = frozenset()  # what the connection said it has
    retrieved: set[Gtid] = field(default_factory=set)
    relay: list[Relayed] = field(default_factory=list)
    relay_at: int = 0  # the coordinator's place
    relay_number: int = 1
    last_queued: Transaction | None = None
    last_applied_at: int = 0
    applier: Thread = "No"
    applier_error: tuple[int, str] = (0, "")
    failed: Transaction | None = None
    working: list[Work] = field(default_factory=list)
    # By worker, the last one: until the applier starts again.
    done_by: dict[int, Transaction] = field(default_factory=dict)
    workers: int = 1
    commit_order: bool = True
    delay: int = 0  # ticks
    skip_counter: int = 0
    skipped_at: int | None = None  # the place in the relay log that a crash returns to
    ignored_keys: frozenset[Key] = frozenset()
    is_reset: bool = False  # by RESET REPLICA, and the receiver was not started since

    def copy(self) -> Channel:
        made = Channel(self.name, self.source)
        for each in _CHANNEL_FIELDS:
            setattr(made, each, getattr(self, each))
        made.retrieved = set(self.retrieved)
        made.relay = list(self.relay)
        made.working = [
            Work(w.transaction, w.place, w.since, w.worker, w.logged, w.is_checked, w.keys)
            for w in self.working
        ]
        made.done_by = dict(self.done_by)
        return made

    @property
    def low_water(self) -> int:
        """Return the place in the relay log before which all is applied."""
        return min((each.place for each in self.working), default=self.relay_at)

    @property
    def runs(self) -> bool:
        return self.receiver != "No" and self.applier == "Yes"

    def clear_relay(self) -> None:
        """Delete the relay logs: performance_schema forgets what was queued last (seen on 9.7.4)."""
        self.relay = []
        self.last_queued = None
        self.relay_at = 0
        self.skipped_at = None
        self.relay_number += 1
        self.retrieved = set()


@dataclass(slots=True)
class Server:
    """One server."""

    name: str
    uuid: str
    server_id: int
    version: tuple[int, int, int] = (9, 7, 4)
    files: list[LogFile] = field(default_factory=list)
    executed: set[Gtid] = field(default_factory=set)
    purged: set[Gtid] = field(default_factory=set)
    owned: set[Gtid] = field(default_factory=set)
    next_free: dict[str, int] = field(default_factory=dict)  # by tag
    rows: dict[Key, int] = field(default_factory=dict)
    applied: list[tuple[Transaction, tuple[tuple[Key, int | None], ...]]] = field(
        default_factory=list
    )
    works: Counter[int] = field(default_factory=Counter)
    pending: list[Transaction] = field(default_factory=list)  # clients', in the log
    locked_keys: set[Key] = field(default_factory=set)  # rows of transactions under way
    channels: list[Channel] = field(default_factory=list)
    started_at: int = -1000 * SECOND
    server_id_set_at: int = -2000 * SECOND  # by SET GLOBAL
    gtid_mode_set_at: int = -2000 * SECOND
    log_bin: bool = True
    log_replica_updates: bool = True
    idempotent: bool = False  # replica_exec_mode
    skips_errors: bool = False  # replica_skip_errors = all
    relay_log_recovery: bool = True
    permissive: bool = False  # gtid_mode = ON_PERMISSIVE
    # The queue of Group Replication; None outside a group. It is not in SHOW REPLICA STATUS.
    group_applier: Channel | None = None
    lock: str = ""  # the kind of lock that a session holds
    lock_since: int = 0
    session_owns: Gtid | None = None
    is_up: bool = True

    def copy(self) -> Server:
        made = Server(self.name, self.uuid, self.server_id)
        for each in _SERVER_FIELDS:
            setattr(made, each, getattr(self, each))
        made.files = [
            LogFile(f.number, f.previous, f.created_at, list(f.entries), f.is_lost)
            for f in self.files
        ]
        for each in ("executed", "purged", "owned", "locked_keys"):
            setattr(made, each, set(getattr(self, each)))
        made.next_free, made.rows = dict(self.next_free), dict(self.rows)
        made.applied, made.pending = list(self.applied), list(self.pending)
        made.works = Counter(self.works)
        made.channels = [each.copy() for each in self.channels]
        if self.group_applier is not None:
            made.group_applier = self.group_applier.copy()
        return made

    def channel(self, name: str) -> Channel | None:
        return next((each for each in self.channels if each.name == name), None)

    @property
    def sources(self) -> list[str]:
        return [each.source for each in self.channels]

    @property
    def end(self) -> Place:
        return Place(self.files[-1].number, len(self.files[-1].entries))

    def file(self, number: int) -> LogFile | None:
        at = number - self.files[0].number
        found = self.files[at] if 0 <= at < len(self.files) else None
        return None if found is not None and found.is_lost else found

    @property
    def listed(self) -> list[LogFile]:
        """Return the binary logs that are there, as SHOW BINARY LOGS lists them."""
        return [each for each in self.files if not each.is_lost]

    def logged(self) -> set[Gtid]:
        return {each.gtid for log in self.files for each in log.entries}

    def logged_version(self, gtid: Gtid) -> Transaction | None:
        """Return the transaction that this server's binary log holds under a GTID."""
        for log in self.files:
            for each in log.entries:
                if each.gtid == gtid:
                    return each
        return None


_CHANNEL_FIELDS = tuple(Channel.__slots__)
_SERVER_FIELDS = tuple(Server.__slots__)


@dataclass(slots=True)
class Acknowledged:
    """What a client knows: its work was committed here, under this GTID."""

    server: str
    transaction: Transaction


@dataclass(slots=True)
class Group:
    """A replication group in single-primary mode: who is a member, and as what."""

    uuid: str  # the group's name, under which it commits
    names: tuple[str, ...]  # of the servers that are configured for it
    online: set[str] = field(default_factory=set)
    expelled: set[str] = field(default_factory=set)
    primary: str = ""
    bootstrapped_at: int = -1_000_000

    def copy(self) -> Group:
        return replace(self, online=set(self.online), expelled=set(self.expelled))


@dataclass(slots=True)
class Consumer:
    """A program, or a backup, that reads binary logs: what it has read, and what it has stored."""

    name: str
    server: str  # from which it is configured to read; "": any server may serve it
    is_fixed: bool  # a backup: its set is written in the fleet file
    read: set[Gtid]
    stored: set[Gtid]
    earlier: set[Gtid]  # what it had stored before: a restored position

    def copy(self) -> Consumer:
        return replace(
            self, read=set(self.read), stored=set(self.stored), earlier=set(self.earlier)
        )


@dataclass(slots=True)
class World:
    """All servers of a topology, seen by the auditor or not."""

    servers: dict[str, Server] = field(default_factory=dict)
    clock: int = 0
    works: int = 0
    primaries: set[str] = field(default_factory=set)  # clients write here
    acknowledged: list[Acknowledged] = field(default_factory=list)
    absence: dict[tuple[str, Gtid], str] = field(default_factory=dict)
    by_hand: dict[Gtid, str] = field(default_factory=dict)  # hand-made GTIDs: where
    drifted: set[Key] = field(default_factory=set)  # rows changed without the binary log
    backups: dict[str, Server] = field(default_factory=dict)
    steps_done: list[str] = field(default_factory=list)
    group: Group | None = None
    consumers: dict[str, Consumer] = field(default_factory=dict)

    def copy(self) -> World:
        return World(
            servers={name: each.copy() for name, each in self.servers.items()},
            clock=self.clock,
            works=self.works,
            primaries=set(self.primaries),
            acknowledged=list(self.acknowledged),
            absence=dict(self.absence),
            by_hand=dict(self.by_hand),
            drifted=set(self.drifted),
            backups=self.backups,
            steps_done=list(self.steps_done),
            group=self.group.copy() if self.group is not None else None,
            consumers={name: each.copy() for name, each in self.consumers.items()},
        )

    def __getitem__(self, name: str) -> Server:
        return self.servers[name]

    def paths(self) -> list[tuple[Server, Channel]]:
        return [(each, channel) for each in self.servers.values() for channel in each.channels]

    def replicas_of(self, name: str) -> list[tuple[Server, Channel]]:
        return [(server, channel) for server, channel in self.paths() if channel.source == name]

    def owner_of(self, uuid: str) -> Server | None:
        return next((each for each in self.servers.values() if each.uuid == uuid), None)

    def upstream(self, name: str) -> set[str]:
        """Return every server from which a path of channels leads here."""
        found: set[str] = set()
        frontier = [name]
        while frontier:
            reached = frontier.pop()
            for source in (*self.peers_of(reached), *self.servers[reached].sources):
                if source not in found:
                    found.add(source)
                    frontier.append(source)
        return found

    def peers_of(self, name: str) -> set[str]:
        """Return the other online members of a server's group."""
        if self.group is None or name not in self.group.online:
            return set()
        return self.group.online - {name}


_UUIDS: dict[str, UUID] = {}


def uuid_of(key: str) -> UUID:
    """Return the server_uuid that a key stands for."""
    if key not in _UUIDS:
        _UUIDS[key] = UUID(int=int.from_bytes(key.encode().ljust(16, b"\0"), "big"))
    return _UUIDS[key]


def new_server(name: str, server_id: int, *, version: tuple[int, int, int]) -> Server:
    """Return a server as it is after initialisation."""
    server = Server(name, uuid=name, server_id=server_id, version=version)
    server.files = [LogFile(1, frozenset(), 0)]
    return server


def gtid_text(gtid: Gtid) -> str:
    """Return a GTID as a person reads it: `a:7`, `a:dba:2`."""
    uuid, tag, number = gtid
    return f"{uuid}:{tag}:{number}" if tag else f"{uuid}:{number}"
