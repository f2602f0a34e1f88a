"""A small world of servers that commit, send, receive and apply, and a reader that looks at it.

1. Every step is one that a server takes under its locks, so any order of steps is a history that
   could happen: a client's commit is owned, then in the log, then executed; a receiver reads what is
   in the log, executed or not (semi-synchronous replication acknowledges there); workers own a
   transaction, log it, execute it, each in any order among themselves.
2. A reading is a sequence of looks in the order of the live adapter, and the world moves between
   any two of them. The barrier between the phases is the only thing the reader is sure of.
3. The faults at the end do to the world what they do in life. They say what the truth is; nothing
   here evaluates.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from gtid import GtidSet, Tsid
from topology.readings.snapshot import (
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
READ_ALL = "Replica has read all relay log; waiting for more updates"
READING = "Reading event from the relay log"
NO_WORK, AT_WORK = "Waiting for an event from Coordinator", "Executing event"
Transaction = tuple[str, str, int]  # origin, tag, number

# Who receives from whom: replica -> sources.
SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "pair": {"a": ("b",), "b": ("a",)},
    "star": {"a": (), "b": ("a",), "c": ("a",)},
    "chain": {"a": (), "b": ("a",), "c": ("b",), "d": ("c",)},
    "ring": {"a": ("c",), "b": ("a",), "c": ("b",)},
    "multi-source": {"a": (), "b": (), "c": ("a", "b")},
    "diamond": {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")},
    "pair and replica of one": {"a": ("b",), "b": ("a",), "c": ("a",)},
    "pair and replica of both": {"a": ("b",), "b": ("a",), "c": ("a", "b")},
    "triangle of primaries": {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")},
    "fed from within and from above": {"a": (), "b": ("a",), "c": ("a", "b")},
}


@dataclass
class Channel:
    """The path by which one server receives from another."""

    source: "Server"
    replica: "Server"
    auto_position: bool = True
    receiver: ThreadState = ThreadState.RUNNING
    receiver_error: tuple[int, str] = (0, "")
    read_to: int = 0  # how many entries of the source's log have been read
    excluded: set[Transaction] = field(default_factory=set)  # what the connection said it has
    retrieved: set[Transaction] = field(default_factory=set)
    relay: list[Transaction] = field(default_factory=list)  # received, not yet given to a worker
    working: list[Transaction] = field(default_factory=list)  # with the workers, in order
    logged: set[Transaction] = field(default_factory=set)  # of those, already in the replica's log
    passed: int = 0  # how many entries of the relay log the coordinator has left behind
    worker_count: int = 1
    commit_order: bool = True

    def receive(self) -> bool:
        if self.receiver is not ThreadState.RUNNING or self.read_to >= len(self.source.log):
            return False
        entry = self.source.log[self.read_to]
        self.read_to += 1
        # What comes home is dropped: it carries the server_id of the one who receives it.
        if entry is not None and entry not in self.excluded and entry[0] != self.replica.name:
            self.retrieved.add(entry)
            self.relay.append(entry)
        return True

    def take(self) -> bool:
        """Return the next of the relay log to a worker; skip what the server has already."""
        if not self.relay or len(self.working) >= self.worker_count:
            return False
        entry = self.relay[0]
        if entry in self.replica.executed:
            self.relay.pop(0)
            self.passed += 1
            return True
        if entry in self.replica.owned:  # another channel is applying it: wait
            return False
        self.relay.pop(0)
        self.passed += 1
        self.replica.owned.add(entry)
        self.working.append(entry)
        return True

    def _ready(self, dice: random.Random, waiting: list[Transaction]) -> Transaction | None:
        if not waiting:
            return None
        return waiting[0] if self.commit_order else dice.choice(waiting)

    def flush(self, dice: random.Random) -> bool:
        entry = self._ready(dice, [one for one in self.working if one not in self.logged])
        if entry is None:
            return False
        self.logged.add(entry)
        self.replica.log.append(entry)
        return True

    def commit(self, dice: random.Random) -> bool:
        entry = self._ready(dice, [one for one in self.working if one in self.logged])
        if entry is None or (self.commit_order and entry != self.working[0]):
            return False
        self.working.remove(entry)
        self.logged.remove(entry)
        self.replica.commit(entry)
        return True

    def disconnect(self) -> bool:
        if self.receiver is not ThreadState.RUNNING:
            return False
        self.receiver = ThreadState.CONNECTING
        return True

    def connect(self) -> bool:
        """Connect again. With auto-position the source is told what is here, and starts over."""
        if self.receiver is not ThreadState.CONNECTING:
            return False
        self.receiver = ThreadState.RUNNING
        if self.auto_position:
            self.excluded = self.replica.executed | self.retrieved
            assert self.source.purged <= self.excluded, "a healthy source purges what it may"
            self.read_to = self.source.log_start
        return True


@dataclass
class Server:
    """One server: its log, its sets, its channels."""

    name: str
    tags: tuple[str, ...] = ("",)
    log: list[Transaction | None] = field(default_factory=list)  # None: the log was rotated here
    log_start: int = 0  # entries before it are purged
    executed: set[Transaction] = field(default_factory=set)
    purged: set[Transaction] = field(default_factory=set)
    owned: set[Transaction] = field(default_factory=set)
    committing: list[Transaction] = field(default_factory=list)  # clients', in the log
    channels: list[Channel] = field(default_factory=list)

    @property
    def uuid(self) -> UUID:
        return UUID(int=ord(self.name))

    @property
    def commit_order(self) -> str:
        return "ON" if all(channel.commit_order for channel in self.channels) else "OFF"

    def write(self, dice: random.Random) -> bool:
        """Flush stage: a number is drawn, owned, and the transaction is in the log."""
        tag = dice.choice(self.tags)
        number = 1
        while (self.name, tag, number) in self.executed | self.owned:
            number += 1
        entry = (self.name, tag, number)
        self.owned.add(entry)
        self.log.append(entry)
        self.committing.append(entry)
        return True

    def finish(self, dice: random.Random) -> bool:
        """Commit stage: after a semi-synchronous wait of any length, in any order."""
        if not self.committing:
            return False
        entry = dice.choice(self.committing)
        self.committing.remove(entry)
        self.commit(entry)
        return True

    def commit(self, entry: Transaction) -> None:
        self.owned.remove(entry)
        self.executed.add(entry)

    def rotate(self) -> bool:
        self.log.append(None)
        return True

    def purge(self, world: "World") -> bool:
        """Drop the files that every replica has read and whose transactions are executed."""
        if not world.purges:
            return False
        limit = min(
            (channel.read_to for channel in world.channels if channel.source is self),
            default=len(self.log),
        )
        kept = [
            channel.replica.executed | channel.retrieved
            for channel in world.channels
            if channel.source is self
        ]
        return self.purge_up_to(limit, received=kept)

    def purge_up_to(self, limit: int, *, received: Iterable[set[Transaction]] = ()) -> bool:
        end = max((at + 1 for at, one in enumerate(self.log[:limit]) if one is None), default=0)
        gone = {one for one in self.log[self.log_start : end] if one is not None}
        if end <= self.log_start or not all(gone <= sure for sure in (self.executed, *received)):
            return False
        self.purged |= gone
        self.log_start = end
        return True

    def position(self, entries: int) -> LogPosition:
        """Return the place in the log after so many entries."""
        rotations = [at for at, one in enumerate(self.log[:entries]) if one is None]
        start = rotations[-1] + 1 if rotations else 0
        place = LogPosition.of(
            file=f"binlog.{len(rotations) + 1:06}", position=4 + 100 * (entries - start)
        )
        assert place is not None
        return place


class World:
    """Servers and channels, and chance."""

    def __init__(self, shape: dict[str, tuple[str, ...]], dice: random.Random) -> None:
        self.dice = dice
        self.clock = NOON
        self.purges = True
        self.servers = {
            name: Server(name, tags=dice.choice([("",), ("", "dba")])) for name in sorted(shape)
        }
        for replica, sources in shape.items():
            for source in sources:
                channel = Channel(self.servers[source], self.servers[replica])
                channel.worker_count = dice.choice([1, 2, 4, 8])
                channel.commit_order = dice.random() < 0.3
                self.servers[replica].channels.append(channel)
        # Not everybody is written to: at least those who receive from nobody are.
        self.written = {
            server.name
            for server in self.servers.values()
            if not server.channels or server.name in self._circle()
        }
        self._pace = {
            (kind, who): dice.choice([0.02, 0.3, 1.0, 1.0, 3.0])
            for kind in ("write", "finish", "receive", "take", "flush", "commit")
            for who in range(len(self.channels) + len(self.servers))
        }

    @property
    def channels(self) -> list[Channel]:
        return [channel for server in self.servers.values() for channel in server.channels]

    def upstream(self, name: str) -> set[str]:
        found: set[str] = set()
        frontier = [name]
        while frontier:
            for channel in self.servers[frontier.pop()].channels:
                if channel.source.name not in found:
                    found.add(channel.source.name)
                    frontier.append(channel.source.name)
        return found

    def _circle(self) -> set[str]:
        return {name for name in self.servers if name in self.upstream(name)}

    def step(self) -> None:
        """Let one thing happen."""
        self.clock += timedelta(milliseconds=1)
        moves: list[tuple[float, Any]] = []
        for who, server in enumerate(self.servers.values()):
            if server.name in self.written:
                moves.append((self._pace["write", who], lambda one=server: one.write(self.dice)))
            moves.append((self._pace["finish", who], lambda one=server: one.finish(self.dice)))
            moves.append((0.05, server.rotate))
            moves.append((0.05, lambda one=server: one.purge(self)))
        for place, path in enumerate(self.channels):
            who = len(self.servers) + place
            moves.append((self._pace["receive", who], path.receive))
            moves.append((self._pace["take", who], path.take))
            moves.append((self._pace["flush", who], lambda one=path: one.flush(self.dice)))
            moves.append((self._pace["commit", who], lambda one=path: one.commit(self.dice)))
            moves.append((0.03, path.disconnect))
            moves.append((0.2, path.connect))
        weights, actions = zip(*moves, strict=True)
        self.dice.choices(actions, weights)[0]()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def settle(self) -> None:
        """Let everything that can arrive arrive, without new writes."""
        moved = True
        while moved:
            moved = any(
                [
                    *(server.finish(self.dice) for server in self.servers.values()),
                    *(path.connect() for path in self.channels),
                    *(path.receive() for path in self.channels),
                    *(path.take() for path in self.channels),
                    *(path.flush(self.dice) for path in self.channels),
                    *(path.commit(self.dice) for path in self.channels),
                ]
            )

    # -- reading ------------------------------------------------------------------------------

    def snapshot(self, *, restless: bool = True) -> ClusterSnapshot:
        """Read all, barrier, read all; the world moves before every look unless it rests."""
        return ClusterSnapshot(
            "world", self._phase(1, restless=restless), self._phase(2, restless=restless)
        )

    def _phase(self, phase: int, *, restless: bool) -> tuple[ServerSnapshot, ...]:
        self.clock += timedelta(milliseconds=1)
        readings = {name: self._looks(server, phase) for name, server in self.servers.items()}
        done: dict[str, ServerSnapshot] = {}
        while readings:
            if restless:
                self.run(self.dice.choice([0, 0, 1, 1, 2, 5, 20]))
            name = self.dice.choice(sorted(readings))
            finished = next(readings[name])
            if finished is not None:
                done[name] = finished
                del readings[name]
        return tuple(done[name] for name in sorted(done))

    def _looks(self, server: Server, phase: int) -> Iterator[ServerSnapshot | None]:
        """Look at one server in the order of the live adapter; None while it is not done."""
        started = self.clock
        yield None
        owned = gtids(server.owned)
        yield None
        purged = gtids(server.purged)
        yield None
        executed = gtids(server.executed)
        yield None
        rows = [self._status(channel) for channel in server.channels]
        yield None
        channels = [
            self._with_workers(row, channel)
            for row, channel in zip(rows, server.channels, strict=True)
        ]
        yield None
        log_end = server.position(len(server.log))
        yield ServerSnapshot(
            cluster="world",
            name=server.name,
            host=server.name,
            port=3306,
            phase=phase,
            read_started=started,
            read_ended=self.clock,
            server_uuid=server.uuid,
            server_id=ord(server.name),
            version=ServerVersion(9, 7, 4),
            version_text="9.7.4",
            vendor=Vendor.MYSQL,
            uptime_seconds=int((self.clock - NOON).total_seconds()) + 1000,
            gtid_executed=executed,
            gtid_purged=purged,
            gtid_owned=owned,
            log_end=log_end,
            channels=tuple(sorted(channels, key=lambda channel: channel.name)),
            binary_logs=(),
            settings=(("replica_preserve_commit_order", server.commit_order),),
        )

    def _status(self, channel: Channel) -> ChannelSnapshot:
        errno, error = channel.receiver_error
        return ChannelSnapshot(
            name="" if len(channel.replica.channels) == 1 else f"from_{channel.source.name}",
            source_host=channel.source.name,
            source_port=3306,
            source_uuid=channel.source.uuid,
            auto_position=channel.auto_position,
            gtid_retrieved=gtids(channel.retrieved),
            receiver=channel.receiver,
            receiver_errno=errno,
            receiver_error=error,
            receiver_error_at="",
            applier=ThreadState.RUNNING,
            applier_errno=0,
            applier_error="",
            applier_error_at="",
            received_to=channel.source.position(channel.read_to),
            applied_to=None,
            lag_seconds=None,
            applier_state=READING if channel.relay else READ_ALL,
            relay_applied_to=LogPosition.of(file="relay.000001", position=channel.passed),
        )

    def _with_workers(self, row: ChannelSnapshot, channel: Channel) -> ChannelSnapshot:
        work = [gtids([entry]) for entry in channel.working]
        work += [GtidSet()] * (channel.worker_count - len(work))
        workers = tuple(
            WorkerSnapshot(number, gtid, 0, "", state=AT_WORK if gtid else NO_WORK)
            for number, gtid in enumerate(work, start=1)
        )
        return ChannelSnapshot(
            **{
                name: getattr(row, name)
                for name in ChannelSnapshot.__dataclass_fields__
                if name != "workers"
            },
            workers=workers,
        )

    # -- what people do, and what goes wrong --------------------------------------------------

    def repoint(self, channel: Channel, source: Server) -> bool:
        """Let a replica follow another server, if that one would take it.

        The relay log goes with the old source, and with it the retrieved set.
        """
        own = {one for one in channel.replica.executed if one[0] == source.name}
        if (
            channel.working
            or source is channel.replica
            or not source.purged <= channel.replica.executed
            or not own <= source.executed | source.owned
        ):
            return False
        channel.source = source
        channel.relay.clear()
        channel.retrieved.clear()
        channel.receiver = ThreadState.CONNECTING
        return channel.connect()

    def bypass(self, channel: Channel, count: int) -> set[Transaction]:
        """Move a channel past the next entries of its source's log. Return what it will lack."""
        channel.auto_position = False
        skipped = channel.source.log[channel.read_to :][:count]
        channel.read_to += len(skipped)
        self.settle()
        return {
            one
            for one in skipped
            if one is not None
            and one not in channel.replica.executed
            and one[0] != channel.replica.name
        }

    def pass_by(self, channel: Channel, count: int) -> set[Transaction]:
        """Skip the next entries of a relay log. Return what the replica will never apply."""
        skipped = channel.relay[:count]
        del channel.relay[:count]
        channel.passed += len(skipped)
        self.settle()
        return {one for one in skipped if one not in channel.replica.executed}

    def lose_tail(self, server: Server, count: int) -> set[Transaction]:
        """Crash: the last entries of the log were never on the disk. Return its own among them."""
        kept = max(server.log_start, len(server.log) - count)
        tail = {one for one in server.log[kept:] if one is not None}
        lost = {one for one in tail if one[0] == server.name}
        del server.log[kept:]
        # Recovery commits what is in the log and prepared in the engine, and nothing else.
        server.executed = server.purged | {one for one in server.log if one is not None}
        server.owned.clear()
        server.committing.clear()
        for channel in server.channels:
            channel.working.clear()
            channel.logged.clear()
            channel.relay.clear()
            channel.retrieved = set()
            if channel.receiver is ThreadState.RUNNING:
                channel.disconnect()
            channel.connect()
        for channel in self.channels:
            if channel.source is server:
                # sql/rpl_binlog_sender.cc: more of the source's own than the source has: refused.
                has = channel.replica.executed | channel.retrieved
                if {one for one in has if one[0] == server.name} <= server.executed:
                    channel.receiver = ThreadState.CONNECTING
                    channel.connect()
                else:
                    channel.receiver = ThreadState.STOPPED
                    channel.receiver_error = (13114, "Replica has more GTIDs than the source has")
                channel.read_to = min(channel.read_to, len(server.log))
        return lost

    def purge_too_much(self, server: Server, channel: Channel) -> set[Transaction]:
        """Purge what a stopped replica still needs, and let it try. Return what it needs."""
        channel.receiver = ThreadState.STOPPED
        channel.receiver_error = (13114, "the source purged required binary logs")
        server.write(self.dice)
        while server.committing:
            server.finish(self.dice)
        for each in server.channels:
            while each.flush(self.dice) or each.commit(self.dice):
                pass
        server.rotate()
        server.purge_up_to(len(server.log))
        return {
            one
            for one in server.purged - channel.replica.executed - channel.replica.owned
            if one[0] != channel.replica.name
            and not any(one in each.retrieved for each in channel.replica.channels)
        }


def gtids(transactions: Iterable[Transaction]) -> GtidSet:
    """Return the set of GTIDs of these transactions."""
    return GtidSet.from_intervals(
        (Tsid(UUID(int=ord(name)), tag), number, number + 1) for name, tag, number in transactions
    )
