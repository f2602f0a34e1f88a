"""Following a live server: what comes, when it ends, and who notices. And every way to log in."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import pymysql
import pytest

from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_ledger import LedgerBatch, ledger_of_server
from binlog.adapters.stream_session import SERVER_ID_BASE, AllBut, FromPlace, Wish
from binlog.errors import DumpBroken, DumpRefused, DumpTimedOut
from compose.native import shapes
from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from tests.binlog.material import Written, connect_arguments


@pytest.fixture(scope="module", params=["installation56", "installation97"])
def one_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation, settings=Settings(extra=_SEMI_SYNC[request.param])) as found:
        found.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY AUTO_INCREMENT)")
        yield found


@pytest.fixture
def server(one_server: Server) -> Server:
    """Without the dumps of the test before: a server that is quiet notices late who has gone."""
    for (number,) in dumps(one_server):
        with contextlib.suppress(pymysql.err.OperationalError):  # it may end by itself meanwhile
            one_server.execute(f"KILL {number}")
    assert wait_until(lambda: not dumps(one_server))
    return one_server


# 5.6.24 comes without its plugins.
_SEMI_SYNC: dict[str, tuple[str, ...]] = {
    "installation56": (),
    "installation97": (
        "--plugin-load-add=semisync_source.so",
        "--rpl-semi-sync-source-enabled=ON",
        "--rpl-semi-sync-source-timeout=200",
    ),
}


class Follower:
    """Follows a server in a thread of its own, as a service would."""

    def __init__(self, server: Server, wish: Wish, *, timeout_seconds_max: float = 10) -> None:
        self.batches: list[LedgerBatch] = []
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._given = ledger_of_server(
            connect_arguments(server),
            wish,
            timeout_seconds_max=timeout_seconds_max,
            follow=True,
            stopped=self._stop.is_set,
        )
        self._thread = threading.Thread(target=self._follow)

    def _follow(self) -> None:
        try:
            self.batches.extend(self._given)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)
        assert not self._thread.is_alive()

    @property
    def gtids(self) -> GtidSet:
        return GtidSet.union_of(batch.gtids for batch in self.batches)

    def has(self, wanted: GtidSet) -> bool:
        return wait_until(lambda: wanted <= self.gtids)


def wait_until(is_so: Any) -> bool:
    deadline = time.monotonic() + 20
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def executed(server: Server) -> GtidSet:
    return GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def dumps(server: Server) -> list[Any]:
    return server.query(
        "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
    )


def test_what_is_committed_comes(server: Server) -> None:
    before = executed(server)
    with Follower(server, AllBut(before)) as follower:
        for _ in range(3):
            server.execute("INSERT INTO d.t VALUES (NULL)")
            assert follower.has(executed(server) - before)
        server.execute("FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (NULL)")
        assert follower.has(executed(server) - before)
    assert follower.error is None
    assert follower.gtids == executed(server) - before
    assert len({batch.file for batch in follower.batches}) == 2


def test_from_a_place_on(server: Server) -> None:
    before = executed(server)
    file, position = server.binary_log_position()
    with Follower(server, FromPlace(file, position)) as follower:
        server.execute("INSERT INTO d.t VALUES (NULL)")
        assert follower.has(executed(server) - before)
    assert follower.gtids == executed(server) - before
    assert follower.batches[0].rows["start"][0].as_py() == position


def test_heartbeats_keep_a_quiet_server_from_being_taken_for_dead(server: Server) -> None:
    with Follower(server, AllBut(executed(server)), timeout_seconds_max=2.5) as follower:
        time.sleep(6)
        before = executed(server)
        server.execute("INSERT INTO d.t VALUES (NULL)")
        assert follower.has(executed(server) - before)
    assert follower.error is None


def test_a_frozen_server_is_noticed(server: Server) -> None:
    # A busy machine needs some of the time to connect.
    with Follower(server, AllBut(executed(server)), timeout_seconds_max=3) as follower:
        assert wait_until(lambda: dumps(server))
        server.freeze()
        try:
            assert wait_until(lambda: follower.error)
        finally:
            server.thaw()
    assert isinstance(follower.error, DumpTimedOut)


def test_a_killed_follower_goes_on(server: Server) -> None:
    before = executed(server)
    with Follower(server, AllBut(before)) as follower:
        for _ in range(3):
            server.execute("INSERT INTO d.t VALUES (NULL)")
            assert follower.has(executed(server) - before)
            [(number,)] = dumps(server)
            server.execute(f"KILL {number}")
            assert wait_until(lambda: dumps(server) not in ([], [(number,)]))  # noqa: B023
    assert follower.error is None
    rows = [gtid for batch in follower.batches for gtid in batch.gtids.gtids()]
    assert rows == list((executed(server) - before).gtids())


@pytest.mark.slow
def test_a_server_that_starts_again_is_followed_on(server: Server) -> None:
    before = executed(server)
    with Follower(server, AllBut(before)) as follower:
        server.execute("INSERT INTO d.t VALUES (NULL)")
        assert follower.has(executed(server) - before)
        for stop in (server.stop, server.kill):
            stop()
            server.start()
            server.execute("INSERT INTO d.t VALUES (NULL)")
            assert follower.has(executed(server) - before)
    assert follower.error is None
    rows = [gtid for batch in follower.batches for gtid in batch.gtids.gtids()]
    assert rows == list((executed(server) - before).gtids())


def test_it_stops_while_it_waits_for_a_server_that_is_gone(server: Server) -> None:
    """It was there: its first connection is killed, and then nothing answers."""
    opened: list[float] = []
    asked: list[float] = []

    def connect() -> Any:
        opened.append(time.monotonic())
        if len(opened) > 1:
            raise ConnectionRefusedError("gone")
        connection = pymysql.connect(**connect_arguments(server))
        number = connection.thread_id()  # type: ignore[no-untyped-call]
        server.execute(f"KILL {number}")
        return connection

    def stopped() -> bool:
        asked.append(time.monotonic())
        return len(opened) > 2

    given = ledger_of_server(
        connect, AllBut(GtidSet()), timeout_seconds_max=10, follow=True, stopped=stopped
    )
    assert list(given) == []
    assert len(opened) == 3
    assert asked[-1] - asked[0] < 5


def test_a_server_that_never_answered_is_not_waited_for(server: Server) -> None:
    arguments = connect_arguments(server) | {"port": 1}
    begun = time.monotonic()
    with pytest.raises(DumpBroken, match="no connection to the server"):
        list(ledger_of_server(arguments, AllBut(GtidSet()), timeout_seconds_max=10, follow=True))
    assert time.monotonic() - begun < 5


def test_a_server_that_goes_between_two_dumps_is_waited_for(server: Server) -> None:
    """By place the end is asked for once more; a restart in between is no wrong address."""
    opened: list[bool] = []

    def connect() -> Any:
        opened.append(True)
        if len(opened) == 2:
            raise ConnectionRefusedError("restarts")
        return pymysql.connect(**connect_arguments(server))

    [(file, *_)] = server.query("SHOW BINARY LOGS")[:1]
    given = list(ledger_of_server(connect, FromPlace(str(file), 4), timeout_seconds_max=10))
    assert GtidSet.union_of(batch.gtids for batch in given) == executed(server)
    assert len(opened) > 2


def test_nobody_takes_a_follower_for_a_replica(server: Server) -> None:
    hosts = "SHOW SLAVE HOSTS" if server.version < (8, 0, 22) else "SHOW REPLICAS"
    before = executed(server)
    with Follower(server, AllBut(before)) as one, Follower(server, AllBut(before)) as other:
        assert wait_until(lambda: len(dumps(server)) == 2)
        server.execute("INSERT INTO d.t VALUES (NULL)")
        assert one.has(executed(server) - before)
        assert other.has(executed(server) - before)
        assert server.query(hosts) == []
        assert len(dumps(server)) == 2
    assert SERVER_ID_BASE + 2**28 - 1 < 2**32


def test_a_purge_does_not_wait_for_a_follower(server: Server) -> None:
    with Follower(server, AllBut(executed(server))):
        assert wait_until(lambda: dumps(server))
        server.execute("INSERT INTO d.t VALUES (NULL)", "FLUSH BINARY LOGS")
        file, _ = server.binary_log_position()
        assert wait_until(lambda: _is_first_after_purge(server, file))


def _is_first_after_purge(server: Server, file: str) -> bool:
    """What is being read just now is not purged; a follower has gone on in a moment."""
    server.execute(f"PURGE BINARY LOGS TO '{file}'")
    return bool(server.query("SHOW BINARY LOGS")[0][0] == file)


@pytest.mark.parametrize("one_server", ["installation97"], indirect=True)
def test_a_semi_synchronous_source_does_not_count_us(server: Server) -> None:
    before = executed(server)
    server.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
    server.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
    acknowledged = _status(server, "Rpl_semi_sync_source_yes_tx")
    alone = _status(server, "Rpl_semi_sync_source_no_tx")
    with Follower(server, AllBut(before)) as follower:
        assert wait_until(lambda: dumps(server))
        server.execute("INSERT INTO d.t VALUES (NULL)")
        assert follower.has(executed(server) - before)
        assert _status(server, "Rpl_semi_sync_source_clients") == 0
    assert _status(server, "Rpl_semi_sync_source_yes_tx") == acknowledged
    assert _status(server, "Rpl_semi_sync_source_no_tx") > alone


def _status(server: Server, name: str) -> int:
    return int(server.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


def test_what_was_purged_is_refused_to_a_follower_too(server: Server) -> None:
    server.execute("INSERT INTO d.t VALUES (NULL)", "FLUSH BINARY LOGS")
    file, _ = server.binary_log_position()
    server.execute(f"PURGE BINARY LOGS TO '{file}'")
    given = ledger_of_server(
        connect_arguments(server), AllBut(GtidSet()), timeout_seconds_max=10, follow=True
    )
    with pytest.raises(DumpRefused, match="1236"):
        next(given)


# ---- ways to log in

_PLUGINS = {"mysql_native_password", "sha256_password", "caching_sha2_password"}


def test_every_plugin_with_tls_and_without(written: Written) -> None:
    """What the server does not have cannot be tried; each of the others has to work."""
    server = written.server
    is_old = server.version < (5, 7)
    active = server.query(
        "SELECT plugin_name FROM information_schema.plugins"
        " WHERE plugin_type = 'AUTHENTICATION' AND plugin_status = 'ACTIVE'"
    )
    plugins = _PLUGINS & {name for (name,) in active}
    assert plugins >= {"mysql_native_password" if is_old else "caching_sha2_password"}
    for plugin in sorted(plugins):
        with account(server, plugin) as arguments:
            if not is_old:  # 5.6 makes no certificates of its own
                check(written, arguments | tls_of(server, wanted=True), tls=True)
            # nor the key by which sha256_password hides a password from the network.
            if not (is_old and plugin == "sha256_password"):
                check(written, arguments | tls_of(server, wanted=False), tls=False)


class account:  # noqa: N801 - reads as what it is
    """An account that leaves no trace in the log."""

    def __init__(self, server: Server, plugin: str) -> None:
        self.server, self.plugin = server, plugin

    def __enter__(self) -> dict[str, Any]:
        old = self.server.version < (5, 7)
        set_password = (
            [
                f"SET old_passwords = {2 if self.plugin == 'sha256_password' else 0}",
                "SET PASSWORD FOR reader@'%' = PASSWORD('a secret')",
            ]
            if old
            else []
        )
        by = "" if old else " BY 'a secret'"
        self.server.execute(
            "SET sql_log_bin = 0",
            f"CREATE USER reader@'%' IDENTIFIED WITH {self.plugin}{by}",
            *set_password,
            "GRANT REPLICATION SLAVE ON *.* TO reader@'%'",
        )
        return connect_arguments(self.server) | {"user": "reader", "password": "a secret"}

    def __exit__(self, *_: object) -> None:
        self.server.execute("SET sql_log_bin = 0", "DROP USER reader@'%'")


def tls_of(server: Server, *, wanted: bool) -> dict[str, Any]:
    if not wanted:
        return {"ssl_disabled": True}
    return {"ssl_ca": str(server.datadir / "ca.pem"), "ssl_verify_cert": True}


def check(written: Written, arguments: dict[str, Any], *, tls: bool) -> None:
    seen: list[str] = []

    def connect() -> Any:
        connection = pymysql.connect(**arguments)
        with connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            seen.append((cursor.fetchone() or ("", ""))[1])
        return connection

    groups = list(ServerLogs(connect, timeout_seconds_max=10).events_of(written.executed))
    batches = list(ledger_of_server(connect, AllBut(GtidSet()), timeout_seconds_max=10))
    assert len(groups) == sum(batch.rows.num_rows for batch in batches)
    assert GtidSet.union_of(batch.gtids for batch in batches) == written.executed
    assert [bool(cipher) for cipher in seen] == [tls, tls]


@pytest.mark.parametrize(
    "one_server", ["installation97"], indirect=True
)  # it made its certificates
def test_large_events_through_tls(server: Server) -> None:
    """More than one record of TLS, more than one packet, more than one window."""
    before = executed(server)
    server.execute(
        "CREATE TABLE d.l (a INT, b LONGTEXT) ENGINE=MyISAM",
        "INSERT INTO d.l VALUES (1, REPEAT('x', 20000000))",
        "INSERT INTO d.l VALUES (2, 'small')",
    )
    [*batches] = ledger_of_server(
        connect_arguments(server) | tls_of(server, wanted=True),
        AllBut(before),
        timeout_seconds_max=10,
    )
    sizes = [size for batch in batches for size in batch.rows["bytes"].to_pylist()]
    assert len(sizes) == 3
    assert sizes[1] > 20_000_000
