"""Topologies of real servers: single, dual-primary pair, star, chain, ring.

Each is a context manager: inside the block the servers run and replicate by auto-position; at its
end they are removed. Servers start in parallel. This module does not know faults or findings.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from compose.native.cache import Progress, silent
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.provision import REPLICATION_USER, seed_data_directory
from compose.native.server import Server

_POLL_SECONDS = 0.02
_SETTLE_SECONDS_MAX = 60.0
# A session that asks for more time is replaced. On 5.6 a session that had just been killed seemed
# to stay beside the new one, with its locks (twice in four runs of the suite; the cause is a
# guess).
_CONNECTION_SECONDS_MAX = 1.0
_UPTIME_SECONDS_MIN = 5


class NotCaughtUp(Exception):
    """A server did not reach a GTID set in time; the message has what is missing, and why."""


@dataclass(frozen=True, slots=True)
class Link:
    """One channel, by server names."""

    source: str
    replica: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Running servers by name, with the channels between them."""

    servers: Mapping[str, Server]
    links: tuple[Link, ...] = ()

    def __getitem__(self, name: str) -> Server:
        return self.servers[name]

    def settle(self, *, timeout_seconds_max: float = _SETTLE_SECONDS_MAX) -> None:
        """Wait until every replica has all that its source has; without writes all are equal.

        Raises NotCaughtUp.
        """
        for _ in self.servers:  # a transaction needs at most this many hops to reach every server
            for link in self.links:
                wait_for(
                    self[link.replica],
                    self[link.source].value("@@GLOBAL.gtid_executed"),
                    timeout_seconds_max=timeout_seconds_max,
                )


@dataclass(frozen=True, slots=True)
class Pair(Topology):
    """Two servers, each the other's replica: ``a`` and ``b``."""

    @property
    def a(self) -> Server:
        """Return the first server."""
        return self["a"]

    @property
    def b(self) -> Server:
        """Return the second server."""
        return self["b"]


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """A topology without processes yet."""

    names: tuple[str, ...]
    links: tuple[Link, ...]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    def only_replicas(self) -> frozenset[str]:
        """Return the servers from which none of their sources receives: they are read-only."""
        below: dict[str, set[str]] = {name: set() for name in self.names}
        for _ in self.names:
            for link in self.links:
                below[link.source] |= {link.replica} | below[link.replica]
        return frozenset(
            link.replica for link in self.links if link.replica not in below[link.replica]
        )


_PAIR = TopologyPlan(
    names=("a", "b"),
    links=(Link(source="a", replica="b"), Link(source="b", replica="a")),
    # Both sides write: they must not generate the same keys.
    settings={
        "a": Settings(auto_increment_offset=1, auto_increment_increment=2),
        "b": Settings(auto_increment_offset=2, auto_increment_increment=2),
    },
)
_STAR = TopologyPlan(
    names=("source", "replica1", "replica2"),
    links=(
        Link(source="source", replica="replica1"),
        Link(source="source", replica="replica2"),
    ),
)
_CHAIN = TopologyPlan(
    names=("first", "middle", "last"),
    links=(Link(source="first", replica="middle"), Link(source="middle", replica="last")),
)


_RING = TopologyPlan(
    names=("a", "b", "c"),
    links=(
        Link(source="a", replica="b"),
        Link(source="b", replica="c"),
        Link(source="c", replica="a"),
    ),
)


@contextmanager
def single(
    installation: Installation, *, settings: Settings | None = None, progress: Progress = silent
) -> Iterator[Server]:
    """Run one server without a source."""
    plan = TopologyPlan(names=("single",), links=(), settings={"single": settings or Settings()})
    with running(installation, plan, progress=progress) as topology:
        yield topology["single"]


@contextmanager
def pair(
    installation: Installation, *, extra: Sequence[str] = (), progress: Progress = silent
) -> Iterator[Pair]:
    """Run a dual-primary pair. ``extra`` are additional mysqld options for both servers."""
    with running(installation, _PAIR, extra=extra, progress=progress) as topology:
        yield Pair(topology.servers, topology.links)


@contextmanager
def star(
    installation: Installation, *, extra: Sequence[str] = (), progress: Progress = silent
) -> Iterator[Topology]:
    """Run ``source`` with ``replica1`` and ``replica2``."""
    with running(installation, _STAR, extra=extra, progress=progress) as topology:
        yield topology


@contextmanager
def chain(
    installation: Installation, *, extra: Sequence[str] = (), progress: Progress = silent
) -> Iterator[Topology]:
    """Run ``first`` → ``middle`` → ``last``."""
    with running(installation, _CHAIN, extra=extra, progress=progress) as topology:
        yield topology


@contextmanager
def ring(
    installation: Installation, *, extra: Sequence[str] = (), progress: Progress = silent
) -> Iterator[Topology]:
    """Run ``a`` → ``b`` → ``c`` → ``a``."""
    with running(installation, _RING, extra=extra, progress=progress) as topology:
        yield topology


@contextmanager
def running(
    installation: Installation,
    plan: TopologyPlan,
    *,
    extra: Sequence[str] = (),
    progress: Progress = silent,
) -> Iterator[Topology]:
    """Start every server of a plan, connect them, and discard them at the end."""
    seed_data_directory(installation, progress=progress)  # once, not in every thread
    servers: dict[str, Server] = {}
    try:
        for name in plan.names:
            settings = plan.settings.get(name, Settings())
            read_only = ("--read-only=ON",) if name in plan.only_replicas() else ()
            settings = replace(settings, extra=(*read_only, *settings.extra, *extra))
            servers[name] = Server(installation, name, settings=settings)
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            for started in [pool.submit(server.start) for server in servers.values()]:
                started.result()
        topology = Topology(servers, plan.links)
        for link in plan.links:
            follow(servers[link.replica], servers[link.source])
            progress(f"{link.replica} follows {link.source}")
        topology.settle()
        yield topology
    finally:
        for server in servers.values():
            server.discard()


def follow(replica: Server, source: Server) -> None:
    """Point a replica at its source by auto-position and start it.

    It retries every second, so that it notices quickly when a source returns. It retries for a day:
    since 8.4 a receiver gives up after ten attempts, and a busy machine starts servers slowly.
    """
    dialect = replica.dialect
    replica.execute(
        dialect.change_source_to(
            host=source.host,
            port=source.port,
            user=REPLICATION_USER,
            auto_position=1,
            connect_retry=1,
            retry_count=86_400,
        ),
        dialect.start_replica,
    )


def follow_by_name(replica: Server, source: Server) -> None:
    """Let a server replicate from one of its sources, by a channel that is named for the source."""
    channel = f"from_{source.name}"
    change = replica.dialect.change_source_to(
        host=source.host,
        port=source.port,
        user=REPLICATION_USER,
        auto_position=1,
        connect_retry=1,
        retry_count=86_400,
    )
    replica.execute(f"{change} FOR CHANNEL '{channel}'", f"START REPLICA FOR CHANNEL '{channel}'")


def wait_for(
    server: Server, gtid_text: str, *, timeout_seconds_max: float = _SETTLE_SECONDS_MAX
) -> None:
    """Wait until a server has executed a GTID set, given in MySQL's text.

    Raises NotCaughtUp with what is missing and the status of the replica threads.
    """
    deadline = time.monotonic() + timeout_seconds_max
    while missing := _missing_after(_CONNECTION_SECONDS_MAX, server, gtid_text):
        if time.monotonic() > deadline:
            break
    else:
        return
    status = server.replica_status()
    said = [status.get(name) for name in ("Last_IO_Error", "Last_SQL_Error")]
    shown = server.query(
        "SELECT id, command, time, state, info FROM information_schema.processlist"
    )
    raise NotCaughtUp(
        f"{server.name} has not executed {missing} after {timeout_seconds_max} s; "
        f"its replica threads report {[text for text in said if text]}; its sessions: {shown}"
    )


def _missing_after(seconds: float, server: Server, gtid_text: str) -> str:
    """Query in one session what is missing, until nothing is or the time is over."""
    deadline = time.monotonic() + seconds
    with server.connect() as session, session.cursor() as cursor:
        while True:
            cursor.execute("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", [gtid_text])
            (missing,) = cursor.fetchone() or ("",)
            if not missing or time.monotonic() > deadline:
                return str(missing)
            time.sleep(_POLL_SECONDS)


def await_uptime(server: Server) -> None:
    """Wait until a server's uptime makes "committed since it started" certain.

    Startup time and uptime are in whole seconds, and a busy machine may read them a second apart.
    """
    while True:
        ((_, uptime),) = server.query("SHOW GLOBAL STATUS LIKE 'Uptime'")
        if int(uptime) >= _UPTIME_SECONDS_MIN:
            return
        time.sleep(_UPTIME_SECONDS_MIN - int(uptime))
