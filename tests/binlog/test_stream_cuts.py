"""Connections that are cut, at any byte and by anybody: nothing comes twice, nothing is left out."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql
import pytest
from pymysql.constants import ER

from binlog.adapters import stream_session
from binlog.adapters.stream import ServerLogs
from binlog.adapters.stream_ledger import ledger_of_server
from binlog.adapters.stream_session import AllBut, FromPlace, Only, Wish
from binlog.errors import DumpBroken, DumpRefused
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from tests.binlog.logs_in_memory import read_transactions
from tests.binlog.material import Written, connect_arguments

TRANSACTIONS = 60


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_session, "_FIRST_WAIT_SECONDS", 0.001)


@dataclass
class Proxy:
    """Stands before a server, counts what comes back, and cuts each connection where it is told.

    `cuts` are numbers of bytes, one for each connection; where there are none left nothing is cut.
    """

    server: Server
    cuts: list[int] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    port: int = 0

    def arguments(self) -> dict[str, Any]:
        """Without TLS: of a record of TLS that is not whole nothing can be read."""
        return {"host": "127.0.0.1", "port": self.port, "user": "root", "ssl_disabled": True}

    @contextmanager
    def listening(self) -> Iterator[Proxy]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            serving = threading.Thread(target=self._serve, args=(listener,))
            serving.start()
            try:
                yield self
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                serving.join()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # the test is over
            passed, number = self.passed, len(self.passed)
            passed.append(0)
            limit = self.cuts[number] if number < len(self.cuts) else 1 << 62
            there = socket.create_connection((self.server.host, self.server.port))
            up = threading.Thread(target=_pass_on, args=(client, there))
            up.start()
            _pass_back(there, client, passed, limit)
            up.join()
            client.close()
            there.close()

    def begin(self, *cuts: int) -> None:
        """Count anew, and cut the next connections so."""
        self.cuts, self.passed = list(cuts), []


def _pass_back(there: socket.socket, client: socket.socket, passed: list[int], limit: int) -> None:
    number = len(passed) - 1
    with contextlib.suppress(OSError):
        while data := there.recv(min(65536, limit - passed[number]) or 1):
            if passed[number] == limit:
                break
            passed[number] += len(data)
            client.sendall(data)
    for end in (client, there):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def ledger(arguments: Any, wish: Wish, **options: Any) -> list[tuple[str, int]]:
    given = ledger_of_server(arguments, wish, timeout_seconds_max=10, **options)
    return [place for batch in given for place in _places(batch.rows)]


def _places(rows: Any) -> list[tuple[str, int]]:
    return [(row["file"], row["start"]) for row in rows.select(["file", "start"]).to_pylist()]


def groups(arguments: Any, wanted: GtidSet) -> list[tuple[str, int]]:
    given = ServerLogs(arguments, timeout_seconds_max=10).events_of(wanted)
    return [(each.transaction.file, each.transaction.start) for each in given]


WAYS: dict[str, Callable[[Any, Written], list[tuple[str, int]]]] = {
    "from a place": lambda way, written: ledger(way, FromPlace(written.path(1).name, 4)),
    "all but a set": lambda way, _: ledger(way, AllBut(GtidSet())),
    "only a set": lambda way, written: ledger(way, Only(written.executed)),
    "events": lambda way, written: groups(way, written.executed),
}


def in_files(written: Written) -> list[tuple[str, int]]:
    read = [each for path in written.files for each in read_transactions(path)]
    return [(each.file, each.start) for each in read]


@pytest.mark.parametrize("way", WAYS)
def test_cut_anywhere(written: Written, way: str) -> None:
    with Proxy(written.server).listening() as proxy:
        assert WAYS[way](proxy.arguments(), written) == in_files(written)
        whole, *asked_again = proxy.passed  # by place, whether the log has really ended
        for cut in range(100, whole, 499):
            proxy.begin(cut)
            assert WAYS[way](proxy.arguments(), written) == in_files(written), cut
            assert proxy.passed[0] == cut
            assert len(proxy.passed) == 2 + len(asked_again)


@pytest.mark.parametrize("way", WAYS)
def test_cut_again_and_again(written97: Written, way: str) -> None:
    """Each connection brings a few transactions more, and the count of attempts begins anew."""
    with Proxy(written97.server).listening() as proxy:
        WAYS[way](proxy.arguments(), written97)
        whole = proxy.passed[0]
        proxy.begin(*[6_000] * 20)
        assert whole > 2 * 6_000
        assert WAYS[way](proxy.arguments(), written97) == in_files(written97)
        assert 3 <= len(proxy.passed) < 20


def test_the_attempts_are_bounded(written97: Written) -> None:
    with Proxy(written97.server).listening() as proxy:
        proxy.begin(*[200] * 9)
        with pytest.raises(DumpBroken):
            ledger(proxy.arguments(), AllBut(GtidSet()), reconnects_max=2)
        assert len(proxy.passed) == 3
        proxy.begin(*[200] * 9)
        logs = ServerLogs(proxy.arguments(), timeout_seconds_max=10, reconnects_max=1)
        with pytest.raises(DumpBroken):
            list(logs.events_of(written97.executed))
        assert len(proxy.passed) == 2


# ---- cut by the server


@pytest.fixture(scope="module", params=["installation56", "installation97"])
def large(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose log is more than sockets hold: 60 transactions of 1 MB."""
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, b LONGTEXT) ENGINE=MyISAM",
            "SET binlog_format = 'ROW'",
            *[
                f"REPLACE INTO d.t VALUES (1, REPEAT('x', {1_000_000 + n}))"
                for n in range(TRANSACTIONS)
            ],
        )
        yield server


def kill_dump(server: Server, how: str = "KILL") -> int:
    """Kill the dump that is being sent, if there is one; say how many there were.

    After a kill what was sent before is still in the sockets, and no dump runs until it is read.
    One that has ended since it was listed (error 1094) is not counted.
    """
    dumps = server.query(
        "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
    )
    killed = 0
    for (number,) in dumps:
        try:
            server.execute(f"{how} {number}")
        except pymysql.OperationalError as error:
            if error.args[0] != ER.NO_SUCH_THREAD:
                raise
        else:
            killed += 1
    return killed


# KILL shuts the socket. After KILL QUERY the server says in good order that its log ends.
KILLS = ("KILL", "KILL QUERY")


@pytest.mark.parametrize("how", KILLS)
def test_a_killed_dump_goes_on(large: Server, how: str) -> None:
    executed = GtidSet.parse(large.value("@@GLOBAL.gtid_executed"))
    gtids = []
    kills = 0
    logs = ServerLogs(connect_arguments(large), timeout_seconds_max=10)
    for number, group in enumerate(logs.events_of(executed)):
        gtids.append(group.transaction.gtid)
        if number % 4 == 3 and kills < 2:
            kills += kill_dump(large, how)
    assert kills == 2
    assert gtids == list(executed.gtids())


@pytest.mark.parametrize("how", KILLS)
@pytest.mark.parametrize("kind", [FromPlace, AllBut, Only])
def test_a_killed_ledger_goes_on(large: Server, kind: type[Wish], how: str) -> None:
    executed = GtidSet.parse(large.value("@@GLOBAL.gtid_executed"))
    wishes = (FromPlace("binlog.000001", 4), AllBut(GtidSet()), Only(executed))
    [wish] = (each for each in wishes if isinstance(each, kind))
    gnos: list[int] = []
    kills = 0
    for batch in ledger_of_server(connect_arguments(large), wish, timeout_seconds_max=10):
        gnos += batch.rows["gno"].to_pylist()
        if kills < 2:
            kills += kill_dump(large, how)
    assert kills == 2
    assert gnos == [gtid.gno for gtid in executed.gtids()]


def test_what_the_server_refuses_is_not_asked_again(large: Server) -> None:
    with Proxy(large).listening() as proxy:
        with pytest.raises(DumpRefused, match="1236"):
            ledger(proxy.arguments(), FromPlace("nowhere.000001", 4))
        assert len(proxy.passed) == 1
