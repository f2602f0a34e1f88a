"""A pool of pairs, stars and chains of real servers, which tests use in turn.

1. Each test gets a topology that looks new: no GTID is executed, there is no schema and no account
   besides those of the data directory, every variable has its first value, every link replicates.
2. Statements undo what a test left behind, in a tenth of the time that new servers take. If a
   statement fails, or the servers then differ from what they were at first, the pool discards the
   topology and starts new servers. A doubt costs time and never changes the result of a test.
3. Pairs stay over files. Larger topologies end with their file: an idle server takes 1 % of a
   processor, which is more than its start.
4. The fixtures are for conftest.py files; those beside the tests select who uses the pool.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Generic, TypeAlias, TypeVar

import pymysql
import pytest
from pymysql.cursors import Cursor

from binlog.quoting import quote_identifier, quote_string
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server

Lent = TypeVar("Lent", bound=shapes.Topology)
Traits: TypeAlias = dict[tuple[str, str], str]
"""What makes a server what it is: a value by kind and name."""

WAIT_SECONDS_MAX = 10  # for a statement that waits for what a test left, such as a lock
CONNECT_SECONDS_MAX = 60  # for a receiver on a machine where other tests start servers
POLL_SECONDS = 0.02
MOVING = ("gtid_executed", "gtid_purged", "gtid_owned")  # with every transaction
QUESTIONS = {
    "variable": "SHOW GLOBAL VARIABLES",
    "schema": "SELECT schema_name, '' FROM information_schema.schemata",
    "account": "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)), '' FROM mysql.user",
    "privilege": "SELECT CONCAT(grantee, privilege_type), '' FROM information_schema.user_privileges",
    # A server of 8.0 or later shows that SET GLOBAL changed these, also where it set them back.
    "source": "SELECT '', '' FROM DUAL WHERE FALSE /*!80000 UNION SELECT VARIABLE_NAME,"
    " VARIABLE_SOURCE FROM performance_schema.variables_info"
    " WHERE VARIABLE_NAME IN ('server_id', 'gtid_mode') */",
    # RESET REPLICA ALL removes the filters of a channel, not those that every new channel gets.
    "filter": "SELECT '', '' FROM DUAL WHERE FALSE /*!80000 UNION SELECT FILTER_NAME, FILTER_RULE"
    " FROM performance_schema.replication_applier_global_filters */",
    # It shows each SET GLOBAL gtid_purged in its error log. An audit reads them: GTIDs that one test
    # set, and the next commits more than two seconds later, are E4.
    "declared": "SELECT '', '' FROM DUAL WHERE FALSE /*!80022 UNION SELECT LOGGED, DATA"
    " FROM performance_schema.error_log WHERE ERROR_CODE = 'MY-010916' */",
}


class Stock(Generic[Lent]):
    """One topology at the most, made when it is first asked for."""

    def __init__(self, shape: Callable[[], AbstractContextManager[Lent]]) -> None:
        self._shape = shape
        self._running = ExitStack()
        self._held: tuple[Lent, dict[str, Traits]] | None = None

    @contextmanager
    def lent(self) -> Iterator[Lent]:
        """Lend the topology, new or as good as new."""
        if self._held is None:
            made = self._running.enter_context(self._shape())
            assert all_connected(made), unconnected(made)
            self._held = made, {name: traits_of(each) for name, each in made.servers.items()}
        topology, at_first = self._held
        try:
            yield topology
        finally:
            if not renewed(topology, at_first):
                self.discard()

    def discard(self) -> None:
        """End the servers, if there are any."""
        self._running.close()
        self._held = None


def renewed(topology: shapes.Topology, at_first: dict[str, Traits]) -> bool:
    """Undo what was done to a topology. Return whether it is now as it was at first."""
    servers = topology.servers
    if not all(each.running for each in servers.values()):
        return False
    try:
        for each in servers.values():
            each.thaw()
            with each.connect(timeout_seconds_max=WAIT_SECONDS_MAX) as session:
                for statement in (each.dialect.stop_replica, each.dialect.reset_replica):
                    session.query(statement)
        if not all(undone(each, at_first[name]) for name, each in servers.items()):
            return False
        for link in topology.links:
            shapes.follow(servers[link.replica], servers[link.source])
    except pymysql.err.MySQLError:
        return False
    return all_connected(topology)


def all_connected(topology: shapes.Topology) -> bool:
    """Return whether every receiver has reached its source, after a while."""
    return all(is_connected(topology.servers[link.replica]) for link in topology.links)


def is_connected(replica: Server) -> bool:
    """Wait until the receiver has reached its source: START REPLICA does not."""
    deadline = time.monotonic() + CONNECT_SECONDS_MAX
    while (status := replica.replica_status())["Replica_IO_Running"] != "Yes":
        is_over = status["Replica_IO_Running"] == "No" and status["Last_IO_Errno"]
        if is_over or time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def unconnected(topology: shapes.Topology) -> str:
    """Return what each receiver of new servers that do not reach each other shows."""
    shown = ("Replica_IO_Running", "Last_IO_Errno", "Last_IO_Error", "Replica_IO_State")
    states = {link.replica: topology.servers[link.replica] for link in topology.links}
    return "new servers do not reach each other: " + "; ".join(
        f"{name} {[status.get(each) for each in shown]}"
        for name, status in ((name, each.replica_status()) for name, each in states.items())
    )


def undone(server: Server, at_first: Traits) -> bool:
    """Drop what was not there at first, set variables as they were, and forget every GTID."""
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")  # a test's PAD_CHAR_TO_FULL_LENGTH pads names
        now = traits_in(server, cursor)
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"SET SESSION lock_wait_timeout = {WAIT_SECONDS_MAX}")
        for kind, name in sorted(now.keys() - at_first.keys()):
            if kind == "schema":
                cursor.execute(f"DROP DATABASE {quote_identifier(name)}")
            elif kind == "account":
                cursor.execute(f"DROP USER {name}")
        for kind, name in sorted(now.keys() & at_first.keys()):
            value = at_first[kind, name]
            if kind == "variable" and now[kind, name] != value:
                literal = value if value.isdigit() else quote_string(value)
                cursor.execute(f"SET GLOBAL {name} = {literal}")
        cursor.execute(server.dialect.words.reset_binary_logs_and_gtids)
        cursor.execute(server.dialect.binary_log_status)
        # The statement above opens no log that was closed after an error, and reports nothing.
        is_log_open = bool(cursor.fetchall())
        return is_log_open and traits_in(server, cursor) == at_first


def traits_of(server: Server) -> Traits:
    """Return what has to be as it was."""
    with server.connect() as session, session.cursor() as cursor:
        return traits_in(server, cursor)


def traits_in(server: Server, cursor: Cursor) -> Traits:
    # Its next start has these options: no variable shows those of binary log filters.
    found: Traits = {("options", ""): repr(server.settings)}
    for kind, question in QUESTIONS.items():
        cursor.execute(question)
        found |= {
            (kind, str(name)): str(value) for name, value in cursor.fetchall() if name not in MOVING
        }
    return found


# -- fixtures -------------------------------------------------------------------------------------


def kept(shape: Callable[[], AbstractContextManager[Lent]]) -> Iterator[Stock[Lent]]:
    stock = Stock(shape)
    try:
        yield stock
    finally:
        stock.discard()


@pytest.fixture(scope="session")
def pairs97(installation97: Installation) -> Iterator[Stock[shapes.Pair]]:
    yield from kept(lambda: shapes.pair(installation97))


@pytest.fixture(scope="session")
def pairs56(installation56: Installation) -> Iterator[Stock[shapes.Pair]]:
    yield from kept(lambda: shapes.pair(installation56))


@pytest.fixture(scope="module")
def stars97(installation97: Installation) -> Iterator[Stock[shapes.Topology]]:
    yield from kept(lambda: shapes.star(installation97))


@pytest.fixture
def pair97(pairs97: Stock[shapes.Pair]) -> Iterator[shapes.Pair]:
    with pairs97.lent() as pair:
        yield pair


@pytest.fixture
def pair56(pairs56: Stock[shapes.Pair]) -> Iterator[shapes.Pair]:
    with pairs56.lent() as pair:
        yield pair


@pytest.fixture
def star97(stars97: Stock[shapes.Topology]) -> Iterator[shapes.Topology]:
    with stars97.lent() as star:
        yield star
