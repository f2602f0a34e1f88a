"""Finds the servers of a topology from one of them, or from some of them.

How it works
------------
Every server that answers names its neighbours (neighbours.py): its sources, its replicas and the
members of its group. A neighbour becomes a server of the audit if it answers at one of its
addresses. Then it is asked for its own neighbours, until no server names a new one. Rings end
because an address is tried once, and because a server that answers at a second address is
recognised (readings/one_server.py). A copied server_uuid alone does not make two servers one: that
is C1.

    start: db2     db2 names db1 (its source) and db3 (its replica)
                   db1 names db2 (known) and db4; db3 names no other server

Invariants:

* Nothing that a server names is dropped. A neighbour that does not answer is a server of the audit,
  which reads it again and reports why it could not. A neighbour without a usable address is in
  `unfound`. A question that a server refused is in `unread`. Each makes the verdict UNKNOWN.
* A loopback name is relative to the server that named it, so it means the host at which we reach
  that server.
* A replica is accepted only if its server_uuid is the one that its source named: the host that a
  source sees may be a gateway. A source is accepted as it answers, as its replica would.

Every server is contacted with the account and the TLS options of the server that named it. A
replica whose receiver is not connected now is named by no server. It is found only if it is a start
itself, or the source of another server.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from topology.adapters.inventory.dsn import Dsn, endpoint_of
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.mysql import MysqlReader
from topology.adapters.neighbours import SOURCE, Neighbour, ServerAddress, read_neighbours
from topology.catalogue.findings import Unknown
from topology.readings.dialect import dialect_of
from topology.readings.one_server import are_one
from topology.readings.snapshot import ServerSnapshot, UnreadFact
from topology.readings.target import ServerTarget

SERVERS_MAX: Final = 200  # more is a fleet: its clusters belong in a fleet file
_CONNECTIONS_MAX: Final = 16
_ADDRESS: Final = "address"  # the fact that is unknown of a neighbour without a usable address


@dataclass(frozen=True, slots=True)
class DiscoveredServer:
    """A server of the topology, and which server named it; the first one was named by the user."""

    target: ServerTarget
    named_by: str = ""
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The servers of a topology, in order of name, and what could not be found out."""

    servers: tuple[DiscoveredServer, ...]
    unfound: tuple[tuple[str, str], ...] = ()  # a neighbour, and why it has no usable address
    unread: tuple[tuple[str, UnreadFact], ...] = ()  # a server, and what it did not answer

    @property
    def targets(self) -> tuple[ServerTarget, ...]:
        """Return the servers to read."""
        return tuple(server.target for server in self.servers)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return how each server was found, and who is not found."""
        return (
            *(
                f"found {server.target.name}: {server.named_by} names it as {server.relation}"
                for server in self.servers
                if server.named_by
            ),
            "a replica that is not connected to its source now is not found: name it as well",
        )

    def unknown(self, cluster: str) -> tuple[Unknown, ...]:
        """Return what makes an audit of these servers UNKNOWN: they may not be all."""
        return (
            *(Unknown(cluster, name, _ADDRESS, why) for name, why in self.unfound),
            *(
                Unknown(cluster, name, fact.fact, f"{fact.reason.value}: {fact.detail}")
                for name, fact in self.unread
            ),
        )


@dataclass(frozen=True, slots=True)
class AddressAnswer:
    """What one address answered: a reading, and the neighbours that the server names."""

    target: ServerTarget
    reading: ServerSnapshot
    neighbours: tuple[Neighbour, ...] = ()
    unread: tuple[UnreadFact, ...] = ()

    @property
    def has_answered(self) -> bool:
        """Return whether a server answered, even if it cannot be audited."""
        return self.reading.server_uuid is not None or self.reading.version_text is not None


Ask = Callable[[ServerTarget], AddressAnswer]


def live_answers(seconds_max: float) -> Ask:
    """Return the function that asks a live server. It never raises for what the server does."""

    def ask(target: ServerTarget) -> AddressAnswer:
        reader = MysqlReader(target, cluster="", timeout_seconds_max=seconds_max)
        try:
            reading = reader.read(phase=1)
        finally:
            reader.close()
        if reading.version is None or reading.channels is None:
            return AddressAnswer(target, reading)  # the audit reports what it could not read
        dialect = dialect_of(reading.version)
        neighbours, unread = read_neighbours(target, reading, dialect, seconds_max=seconds_max)
        return AddressAnswer(target, reading, neighbours, unread)

    return ask


@dataclass(slots=True)
class _Walk:
    ask: Ask
    answers: dict[str, AddressAnswer] = field(default_factory=dict)  # by identity of the address
    found: dict[str, DiscoveredServer] = field(default_factory=dict)  # by name
    without_answer: list[tuple[AddressAnswer, Neighbour]] = field(default_factory=list)
    unfound: dict[str, str] = field(default_factory=dict)

    def contact(self, targets: Iterable[ServerTarget]) -> None:
        """Ask the addresses that were not asked before, at the same time."""
        new = {
            address_identity(each): each
            for each in targets
            if address_identity(each) not in self.answers
        }
        if new:
            with ThreadPoolExecutor(min(len(new), _CONNECTIONS_MAX)) as pool:
                self.answers.update(zip(new, pool.map(self.ask, new.values()), strict=True))

    def accept(self, answer: AddressAnswer, by: str, relation: str) -> bool:
        """Add a server unless it is known under another address; return whether it is new."""
        known = [
            self.answers[address_identity(each.target)].reading for each in self.found.values()
        ]
        if answer.target.name in self.found or any(are_one(answer.reading, one) for one in known):
            return False
        self.found[answer.target.name] = DiscoveredServer(answer.target, by, relation)
        if len(self.found) > SERVERS_MAX:
            raise InventoryProblem(
                f"more than {SERVERS_MAX} servers are linked: list them in a fleet file (--fleet)"
            )
        return True


def discover(starts: Sequence[ServerTarget], *, ask: Ask, say: Callable[[str], None]) -> Discovery:
    """Find the servers that replicate from some servers or to them, directly or through others.

    Raises:
        InventoryProblem: more than SERVERS_MAX servers are linked.
    """
    walk = _Walk(ask)
    walk.contact(starts)
    layer = [
        answer
        for answer in (walk.answers[address_identity(start)] for start in starts)
        if walk.accept(answer, "", "")
    ]
    while layer:
        say(f"{len(walk.found)} servers found")
        named = [(answer, neighbour) for answer in layer for neighbour in answer.neighbours]
        rounds = max((len(neighbour.addresses) for _, neighbour in named), default=0)
        for number in range(rounds):
            walk.contact(
                target_at(answer.target, neighbour.addresses[number])
                for answer, neighbour in named
                if number < len(neighbour.addresses)
                and _server_at(walk, answer.target, neighbour, neighbour.addresses[:number]) is None
            )
        layer = [new for answer, neighbour in named if (new := _added(walk, answer, neighbour))]
    for by, neighbour in walk.without_answer:
        _note(walk, by, neighbour)
    return Discovery(
        tuple(walk.found[name] for name in sorted(walk.found)),
        tuple(sorted(walk.unfound.items())),
        tuple(
            (name, fact)
            for name, server in sorted(walk.found.items())
            for fact in walk.answers[address_identity(server.target)].unread
        ),
    )


def _added(walk: _Walk, by: AddressAnswer, neighbour: Neighbour) -> AddressAnswer | None:
    """Return a neighbour that is new, after adding it."""
    answer = _server_at(walk, by.target, neighbour, neighbour.addresses)
    if answer is None:
        walk.without_answer.append((by, neighbour))
    elif walk.accept(answer, by.target.name, neighbour.relation):
        return answer
    return None


def _note(walk: _Walk, by: AddressAnswer, neighbour: Neighbour) -> None:
    """Note a neighbour that was not reached, unless another server led to it.

    It is a server of the audit if an address of it did not answer, else it has no usable address.
    """
    others = (
        walk.answers[address_identity(server.target)].reading
        for server in walk.found.values()
        if server.target.name != by.target.name
    )
    uuid = neighbour.server_uuid
    if uuid is not None and any(other.server_uuid == uuid for other in others):
        return
    answers = [
        walk.answers[address_identity(target_at(by.target, each))] for each in neighbour.addresses
    ]
    silent = [answer for answer in answers if not answer.has_answered]
    if silent:
        walk.accept(silent[0], by.target.name, neighbour.relation)
        return
    tried = ", ".join(answer.target.name for answer in answers)
    walk.unfound[f"server_uuid {uuid}"] = (
        f"{by.target.name} names it as {neighbour.relation}, "
        + (f"but another server answers at {tried}" if tried else "without an address")
        + ": set report_host on it, or name it on the command line as well"
    )


def _server_at(
    walk: _Walk, by: ServerTarget, neighbour: Neighbour, addresses: Sequence[ServerAddress]
) -> AddressAnswer | None:
    """Return the answer that is the neighbour's, from addresses that were contacted."""
    for address in addresses:
        answer = walk.answers.get(address_identity(target_at(by, address)))
        if answer is None or not answer.has_answered:
            continue
        is_source = neighbour.relation == SOURCE
        if is_source or answer.reading.server_uuid in (None, neighbour.server_uuid):
            return answer
    return None


def target_at(by: ServerTarget, address: ServerAddress) -> ServerTarget:
    """Return how to contact an address that a server named, with that server's account."""
    host = by.host if address.is_loopback else address.host
    name = endpoint_of(host=host, port=address.port, unix_socket=None)
    return replace(by, name=name, host=host, port=address.port, unix_socket=None)


def address_identity(target: ServerTarget) -> str:
    """Return the same text for all spellings of the address of a server."""
    return Dsn(target.host, target.port, None, unix_socket=target.unix_socket).identity
