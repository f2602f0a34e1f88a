"""Audits healthy servers under load for some time; nothing above info may be reported.

    python -m tests.soak.run SECONDS=600 [SEED=1] [SHAPES=pair,ring]

1. Each shape runs for its share of the time: a dual-primary pair, a ring of three, a star, a replica
   of two primaries, and a replication group of three with a replica below it.
2. Clients write to every primary. Meanwhile one thread rotates and purges logs, changes tables and
   commits large transactions, chosen by the seed: what a healthy server sees on an ordinary day.
3. The servers are audited without a pause. Every finding above info counts as a false alarm if an
   independent check then shows health: without load, all servers reach equal sets, and the tables
   have equal checksums. If they do not, the run fails as well: the servers were not healthy.
4. Exit status 1: a false alarm, or servers that were not healthy. The figures are printed by shape.
"""

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from compose.native import load, shapes
from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.provision import provision
from compose.native.server import Server
from compose.native.shapes import Link, Topology, TopologyPlan, follow_by_name, wait_for
from tests.topology.test_faults_live import targets_of
from topology.adapters.collect import collect_cluster
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Severity, Verdict
from topology.policy import Policy

_PAUSE_SECONDS = 0.002  # of each writer between two transactions: two processors carry six servers
_STAR = TopologyPlan(
    names=("source", "one", "two", "three"),
    links=tuple(Link(source="source", replica=name) for name in ("one", "two", "three")),
)
_TWO_SOURCES = TopologyPlan(names=("left", "right", "both"), links=())


@dataclass
class Soaked:
    """What the audits of one shape reported."""

    audits: int = 0
    seconds_max: float = 0.0
    alarms: Counter[str] = field(default_factory=Counter)
    unlike: list[str] = field(default_factory=list)  # what differs when everything has come to rest


Shape = tuple[Callable[[Installation], AbstractContextManager[Topology]], tuple[str, ...]]


@contextmanager
def _star(installation: Installation) -> Iterator[Topology]:
    with shapes.running(installation, _STAR) as topology:
        yield topology


@contextmanager
def _two_sources(installation: Installation) -> Iterator[Topology]:
    with shapes.running(installation, _TWO_SOURCES) as topology:
        sources = ("left", "right")
        for name in sources:
            follow_by_name(topology["both"], topology[name])
        links = tuple(Link(source=name, replica="both") for name in sources)
        yield Topology(topology.servers, links)


@contextmanager
def _group(installation: Installation) -> Iterator[Topology]:
    with group_and_replica(installation, members=("m1", "m2", "m3")) as topology:
        yield topology


# By name: what runs it, and the servers to which clients write.
SHAPES: Mapping[str, Shape] = {
    "pair": (shapes.pair, ("a", "b")),
    "ring": (shapes.ring, ("a", "b", "c")),
    "star": (_star, ("source",)),
    "two sources": (_two_sources, ("left", "right")),
    "group": (_group, ("m1",)),
}


def main(arguments: Sequence[str]) -> int:
    """Soak each shape. Return 1 if anything was reported that is not there."""
    options = dict(each.split("=", 1) for each in arguments)
    seconds, seed = float(options.get("SECONDS", "600")), int(options.get("SEED", "1"))
    names = options.get("SHAPES", ",".join(SHAPES)).split(",")
    installation = provision("9.7")
    failed = False
    for name in names:
        run, writers = SHAPES[name]
        with run(installation) as topology:
            soaked = _soak(topology, writers, seconds / len(names), random.Random(f"{seed}{name}"))
        failed |= bool(soaked.alarms or soaked.unlike)
        alarms = ", ".join(f"{code}: {count}" for code, count in sorted(soaked.alarms.items()))
        sys.stdout.write(
            f"{name}: {soaked.audits:,} audits, the slowest {soaked.seconds_max:.2f} s;"
            f" above info: {alarms or 'nothing'}"
            + (f"; unlike at rest: {', '.join(soaked.unlike)}" if soaked.unlike else "")
            + "\n"
        )
        sys.stdout.flush()
    return int(failed)


def _soak(
    topology: Topology, writers: Sequence[str], seconds: float, dice: random.Random
) -> Soaked:
    soaked, done = Soaked(), threading.Event()
    primaries = [topology[name] for name in writers]
    for server in primaries:
        server.execute(f"CREATE DATABASE day_{server.name}")
        server.execute(f"CREATE TABLE day_{server.name}.t (id BIGINT PRIMARY KEY, n INT)")
    _settle(topology)
    until = time.monotonic() + seconds
    with (
        ThreadPoolExecutor(1) as pool,
        load.write_load(primaries, connections=1, pause_seconds=_PAUSE_SECONDS),
    ):
        day = pool.submit(_ordinary_day, topology, primaries, done, dice)
        try:
            while time.monotonic() < until and not day.done():
                begun = time.monotonic()
                audit = audit_cluster(collect_cluster("soak", targets_of(topology)), Policy())
                soaked.audits += 1
                soaked.seconds_max = max(soaked.seconds_max, time.monotonic() - begun)
                found = {one.code for one in audit.findings if one.severity is not Severity.INFO}
                if audit.verdict is Verdict.UNKNOWN:
                    found.add("UNKNOWN")
                soaked.alarms.update(found)
        finally:
            done.set()
        day.result()
    _settle(topology)
    soaked.unlike = _unlike(topology)
    return soaked


def _ordinary_day(
    topology: Topology, primaries: Sequence[Server], done: threading.Event, dice: random.Random
) -> None:
    """Rotate, purge, change tables and commit large transactions, until `done`."""
    number = 0
    while not done.wait(dice.uniform(0.05, 0.4)):
        number += 1
        server = dice.choice(list(topology.servers.values()))
        primary = dice.choice(list(primaries))
        table = f"day_{primary.name}.t"
        match dice.choice(("rotate", "purge", "ddl", "large", "create")):
            case "rotate":
                server.execute("FLUSH BINARY LOGS")
            case "purge":
                _purge_what_all_have(server, topology)
            case "ddl":
                primary.execute(f"ALTER TABLE {table} ADD COLUMN c{number} INT NULL")
                primary.execute(f"ALTER TABLE {table} DROP COLUMN c{number}")
            case "large":
                rows = ", ".join(f"({number * 10_000 + each}, 1)" for each in range(2_000))
                primary.execute(f"INSERT INTO {table} (id, n) VALUES {rows}")
                primary.execute(f"UPDATE {table} SET n = n + 1")
            case "create":
                primary.execute(f"CREATE TABLE day_{primary.name}.t{number} LIKE {table}")
                primary.execute(f"DROP TABLE day_{primary.name}.t{number}")


def _purge_what_all_have(server: Server, topology: Topology) -> None:
    """Purge all but the last two logs, when every server below has executed what they have."""
    logs = [str(row[0]) for row in server.query("SHOW BINARY LOGS")]
    before = str(server.value("@@GLOBAL.gtid_executed"))
    if len(logs) <= 2:
        return
    for name in _below(server, topology):
        wait_for(topology[name], before)
    server.execute(f"PURGE BINARY LOGS TO '{logs[-2]}'")


def _below(server: Server, topology: Topology) -> frozenset[str]:
    """Return the servers that receive from a server, over any number of hops."""
    if _is_member(server):
        return frozenset(topology.servers)
    found: set[str] = set()
    for _ in topology.servers:
        found |= {link.replica for link in topology.links if link.source in found | {server.name}}
    return frozenset(found)


def _settle(topology: Topology) -> None:
    """Wait until every server has what every other had: in a group no link says so."""
    topology.settle()
    sets = [str(server.value("@@GLOBAL.gtid_executed")) for server in topology.servers.values()]
    linked = {link.replica for link in topology.links}
    for server in topology.servers.values():
        if server.name in linked or _is_member(server):
            for each in sets:
                wait_for(server, each)


def _is_member(server: Server) -> bool:
    rows = server.query(
        "SELECT MEMBER_STATE FROM performance_schema.replication_group_members"
        " WHERE MEMBER_ID = @@GLOBAL.server_uuid"
    )
    return bool(rows)


def _unlike(topology: Topology) -> list[str]:
    """Return the tables of which two servers have different rows."""
    sums: dict[str, dict[str, int]] = {}
    for server in topology.servers.values():
        for schema, table in server.query(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA LIKE 'day%' OR TABLE_SCHEMA LIKE 'load%'"
        ):
            name = f"{schema}.{table}"
            checksum = server.query(f"CHECKSUM TABLE {name}")[0][1]
            sums.setdefault(name, {})[server.name] = int(checksum)
    return sorted(name for name, found in sums.items() if len(set(found.values())) > 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
