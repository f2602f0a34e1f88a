"""Asks one server which servers replicate from it, and which are in its group.

`read_neighbours` is for discovery, which then contacts them. `read_connected` is for a plan, which
compares them with the servers of its audit: there every reader of binary logs counts.

1. `SHOW REPLICA STATUS` names a server's sources. The reading of every audit has it (mysql.py).
2. `SHOW REPLICAS` names its replicas: each with its server_uuid, its port, and the host that its
   report_host says. Without report_host the host is empty; the port is the replica's own.
3. The host of such a replica is the one from which its receiver connected. The receiver sets
   @replica_uuid on its connection, so the source shows which host is which replica (5.7 and later).
   5.6 does not show user variables: there the hosts of all receivers are candidates.
   A client that is no server (a consumer, mysqlbinlog) need not register, and need not set the
   variable. Its dump thread shows it. Those of gtid-audit itself are left out: by the name that
   its connections have, in 5.6 by its account.
4. A neighbour may have several addresses. discover.py compares the server_uuid that answers:
   behind an address translation, the host that a source sees may be another server.

Source: MySQL Reference Manual, "SHOW REPLICAS Statement"; sql/rpl_replica.cc, where the receiver
sets the variables on its connection. Seen on 9.7.4.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pymysql

from binlog.quoting import quote_string
from topology.adapters.answered_rows import FactsOfConnection, NotShown, Row, rows_of, text_of
from topology.adapters.connection import PROGRAM_NAME, Connection, connect
from topology.readings.connected_replica import ConnectedReplica
from topology.readings.dialect import REPLICA_UUID_COLUMNS, REPLICA_UUID_VARIABLES, Dialect
from topology.readings.snapshot import ServerSnapshot, UnreadFact
from topology.readings.target import ServerTarget

# The facts that discovery adds to those that were not read of a server.
REPLICAS: Final = "replicas"
HOSTS: Final = "hosts of replicas"
MEMBERS: Final = "group members"
SOURCE: Final = "its source"
REPLICA: Final = "its replica"
MEMBER: Final = "a member of its group"
_DUMP_HOSTS = (
    "SELECT t.PROCESSLIST_HOST AS host,"  # noqa: S608 - fixed text
    " v.VARIABLE_VALUE AS uuid FROM performance_schema.threads t"
    " LEFT JOIN performance_schema.user_variables_by_thread v ON v.THREAD_ID = t.THREAD_ID"
    f" AND v.VARIABLE_NAME IN ({', '.join(map(quote_string, REPLICA_UUID_VARIABLES))})"
    " LEFT JOIN performance_schema.session_connect_attrs a"
    " ON a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name'"
    " WHERE t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%'"
    f" AND COALESCE(a.ATTR_VALUE, '') <> {quote_string(PROGRAM_NAME)}"
)
_DUMP_CONNECTIONS = (
    "SELECT HOST AS host FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
    " AND USER <> SUBSTRING_INDEX(USER(), '@', 1)"
)
_SHOWS_THREADS = "SELECT @@GLOBAL.performance_schema AS shown"
_MAY_SEE_ALL = (
    "SELECT 1 AS granted FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS'"
    " AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"
)
_MEMBERS = (
    "SELECT MEMBER_ID AS uuid, MEMBER_HOST AS host, MEMBER_PORT AS port"
    " FROM performance_schema.replication_group_members WHERE MEMBER_STATE <> 'OFFLINE'"
)


@dataclass(frozen=True, slots=True, order=True)
class ServerAddress:
    """Where a server may listen, as another server names it."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether the name means the machine of the server that named it."""
        if self.host.lower() in ("localhost", "localhost.localdomain"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A server that another server names: its possible addresses, best first, and its server_uuid.

    `server_uuid` is None for a source whose receiver never connected. Then the address decides, as
    it does for the receiver.
    """

    relation: str  # of the neighbour to the server that named it: SOURCE, REPLICA or MEMBER
    addresses: tuple[ServerAddress, ...]
    server_uuid: UUID | None


def sources_of(reading: ServerSnapshot) -> Iterator[Neighbour]:
    """Return the sources of a server. Group channels have none."""
    for channel in reading.channels or ():
        if channel.source_host and channel.source_port:
            address = ServerAddress(channel.source_host, channel.source_port)
            yield Neighbour(SOURCE, (address,), channel.source_uuid)


def replicas_of(rows: Iterable[Row], hosts: Iterable[Row]) -> Iterator[Neighbour]:
    """Return the replicas that SHOW REPLICAS lists.

    `hosts` are those of the receivers that are connected now, with or without a server_uuid. A
    client that registers without a server_uuid is no server, but a reader of binary logs.
    """
    connected = [(text_of(row["host"]), text_of(row.get("uuid"))) for row in hosts]
    for row in rows:
        uuid = next((text_of(row[name]) for name in REPLICA_UUID_COLUMNS if row.get(name)), "")
        port = int(row["Port"])
        if not uuid:
            continue
        reported = text_of(row["Host"])
        seen = [host for host, of in connected if of in ("", uuid)]
        names = dict.fromkeys(name for name in (reported, *seen) if name)
        yield Neighbour(
            REPLICA, tuple(ServerAddress(name, port) for name in names if port), UUID(uuid)
        )


def members_of(rows: Iterable[Row], own_uuid: UUID | None) -> Iterator[Neighbour]:
    """Return the other members of a server's group."""
    for row in rows:
        uuid, host, port = UUID(text_of(row["uuid"])), text_of(row["host"]), row["port"]
        if uuid != own_uuid:
            addresses = (ServerAddress(host, int(port)),) if host and port else ()
            yield Neighbour(MEMBER, addresses, uuid)


def read_neighbours(
    target: ServerTarget, reading: ServerSnapshot, dialect: Dialect, *, seconds_max: float
) -> tuple[tuple[Neighbour, ...], tuple[UnreadFact, ...]]:
    """Return the neighbours of a server that was read, and what could not be read of them.

    If only the hosts of receivers cannot be read, the replicas that report their host remain.
    """
    found = [*sources_of(reading)]
    facts = FactsOfConnection(seconds_max)
    try:
        connection = facts.take(REPLICAS, lambda: connect(target, timeout_seconds_max=seconds_max))
        if connection is None:
            return tuple(found), tuple(facts.unread)
        with closing(connection):
            rows = facts.take(REPLICAS, lambda: rows_of(connection, dialect.show_replicas, "Port"))
            hosts = facts.take(HOSTS, lambda: _dump_hosts(connection, dialect)) if rows else []
            known = _of_replicas(hosts or ())
            found += facts.take(REPLICAS, lambda: [*replicas_of(rows or (), known)]) or ()
            if reading.group is not None:
                own = reading.server_uuid
                members = facts.take(
                    MEMBERS, lambda: [*members_of(rows_of(connection, _MEMBERS, "host"), own)]
                )
                found += members or ()
    except (pymysql.MySQLError, OSError):
        assert facts.unread, "a lost connection is noted"
    return tuple(found), tuple(facts.unread)


def read_connected(
    target: ServerTarget, dialect: Dialect, *, seconds_max: float
) -> tuple[tuple[ConnectedReplica, ...], tuple[UnreadFact, ...]]:
    """Return what is connected to a server as a replica now, in order, and what was not read.

    If only the dump threads cannot be read, the registered replicas remain.
    """
    facts = FactsOfConnection(seconds_max)
    found: list[ConnectedReplica] = []
    try:
        connection = facts.take(REPLICAS, lambda: connect(target, timeout_seconds_max=seconds_max))
        if connection is None:
            return (), tuple(facts.unread)
        with closing(connection):
            rows = facts.take(REPLICAS, lambda: rows_of(connection, dialect.show_replicas, "Port"))
            hosts = facts.take(HOSTS, lambda: _all_dump_hosts(connection, dialect))
            found += facts.take(REPLICAS, lambda: [*connected_of(rows, hosts)]) or ()
    except (pymysql.MySQLError, OSError):
        assert facts.unread, "a lost connection is noted"
    return tuple(sorted(set(found))), tuple(facts.unread)


def connected_of(
    rows: Iterable[Row] | None, hosts: Iterable[Row] | None
) -> Iterator[ConnectedReplica]:
    """Yield what is connected to a server as a replica; None: `rows` or `hosts` were not read.

    `rows` are those of SHOW REPLICAS, `hosts` those of the dump threads. A replica shows its
    server_uuid in one of them. The other dump threads belong to clients that are no servers. The
    process list shows no server_uuid (no `uuid` in `hosts`): there the threads are counted, and
    more of them than registered replicas are such clients, at one of the hosts. A client may also
    call itself something that is no UUID.
    """
    registered, threads = [*(rows or ())], [*(hosts or ())]
    replicas = [row for row in registered if _registered_uuid(row)]
    known = {_registered_uuid(row) for row in replicas}
    for each in replicas_of(replicas, _of_replicas(threads)):
        addresses = tuple(f"{address.host}:{address.port}" for address in each.addresses)
        yield ConnectedReplica(str(each.server_uuid), addresses)
    counted = [text_of(row["host"]) for row in threads if "uuid" not in row]
    if len(counted) > len(registered) and rows is not None:
        yield ConnectedReplica("", tuple(sorted(set(counted))))
    unnamed = False
    for row in threads if not counted else ():
        uuid = _canonical(text_of(row["uuid"]))
        unnamed = unnamed or not uuid
        if uuid not in known:
            yield ConnectedReplica(uuid, (text_of(row["host"]),))
    for row in registered if not unnamed else ():
        if row not in replicas:
            yield ConnectedReplica("", tuple(filter(None, (text_of(row["Host"]),))))


def _registered_uuid(row: Row) -> str:
    texts = (text_of(row[name]) for name in REPLICA_UUID_COLUMNS if row.get(name))
    return _canonical(next(texts, ""))


def _canonical(uuid: str) -> str:
    """Return a server_uuid in its usual form; empty if it is none."""
    try:
        return str(UUID(uuid))
    except ValueError:
        return ""


def _of_replicas(hosts: Iterable[Row]) -> list[Row]:
    """Return the dump threads that may be those of replicas.

    Clients without a server_uuid read binary logs as well, and their hosts are no candidates for
    the host of a replica. Where no server_uuid is shown, every host is one.
    """
    return [row for row in hosts if "uuid" not in row or text_of(row["uuid"])]


def _all_dump_hosts(connection: Connection, dialect: Dialect) -> list[Row]:
    """Return the dump threads. Raises NotShown if the account may see only its own.

    Without performance_schema they are in the process list. It omits those of other accounts
    without an error, unless the account has PROCESS.
    """
    if dialect.has_worker_status and rows_of(connection, _SHOWS_THREADS, "shown")[0]["shown"]:
        return rows_of(connection, _DUMP_HOSTS, "host")
    if not rows_of(connection, _MAY_SEE_ALL, "granted"):
        raise NotShown(
            "the process list shows the dump threads of other accounts only with PROCESS"
        )
    return _listed_dump_hosts(connection)


def _dump_hosts(connection: Connection, dialect: Dialect) -> list[Row]:
    if dialect.has_worker_status:
        return rows_of(connection, _DUMP_HOSTS, "host")
    return _listed_dump_hosts(connection)


def _listed_dump_hosts(connection: Connection) -> list[Row]:
    rows = rows_of(connection, _DUMP_CONNECTIONS, "host")
    hosts = [text_of(row["host"]) for row in rows]
    return [{"host": host.rpartition(":")[0] or host} for host in hosts]
