"""Every shape replicates, on both ends of the version range."""

import time

import pytest

from compose.native import shapes
from compose.native.installation import Installation
from compose.native.load import LoadEnded, schema_of, write_load
from compose.native.server import Server, ServerFailed
from compose.native.shapes import NotCaughtUp, Pair, Topology, wait_for


def _check_pair(pair: Pair) -> None:
    pair.a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    pair.settle()
    pair.a.execute("INSERT INTO d.t VALUES (), ()")
    pair.b.execute("INSERT INTO d.t VALUES (), ()")
    pair.settle()
    assert pair.a.query("SELECT id FROM d.t ORDER BY id") == pair.b.query(
        "SELECT id FROM d.t ORDER BY id"
    )
    assert pair.a.value("COUNT(DISTINCT id % 2) FROM d.t") == 2
    assert pair.a.value("@@GLOBAL.gtid_executed") == pair.b.value("@@GLOBAL.gtid_executed")
    for server in (pair.a, pair.b):
        status = server.replica_status()
        assert status["Replica_IO_Running"] == "Yes"
        assert status["Replica_SQL_Running"] == "Yes"
        assert status["Auto_Position"] == 1


def test_pair97_and_its_write_load(pair97: Pair) -> None:
    _check_pair(pair97)
    with write_load([pair97.a, pair97.b], pause_seconds=0.002):
        time.sleep(1)
    pair97.settle()
    for writer in (pair97.a, pair97.b):
        written = f"COUNT(*) FROM {schema_of(writer)}.written"
        assert pair97.a.value(written) == pair97.b.value(written) > 20


def test_write_load_that_ends_early_is_an_error(mysql56: Server) -> None:
    load = write_load([mysql56])
    load.__enter__()
    assert mysql56.value(f"COUNT(*) FROM {schema_of(mysql56)}.written") > 0
    mysql56.execute(f"DROP DATABASE {schema_of(mysql56)}")
    deadline = time.monotonic() + 10  # the writer has to meet it first
    while not (mysql56.folder / "load.log").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(LoadEnded, match=r"Unknown database|doesn't exist"):
        load.__exit__(None, None, None)


def test_star(star97: Topology) -> None:
    star97["source"].execute("CREATE DATABASE d")
    star97.settle()
    for replica in ("replica1", "replica2"):
        assert star97[replica].query("SHOW DATABASES LIKE 'd'") == [("d",)]


def test_chain_and_unreachable_set(chain97: Topology) -> None:
    chain97["first"].execute("CREATE DATABASE d")
    chain97.settle()
    assert chain97["last"].query("SHOW DATABASES LIKE 'd'") == [("d",)]
    nowhere = "00000000-0000-0000-0000-000000000001:1"
    with pytest.raises(NotCaughtUp, match="00000000-0000-0000-0000-000000000001:1"):
        wait_for(chain97["last"], nowhere, timeout_seconds_max=0.1)


@pytest.mark.slow
def test_a_server_that_does_not_shut_down_is_killed_and_shut_down_again(
    installation97: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shapes.single(installation97) as server:
        server.execute("CREATE DATABASE kept")
        shuts_down, hangs = server._has_shut_down, [True]
        monkeypatch.setattr(
            server, "_has_shut_down", lambda: False if hangs.pop() else shuts_down()
        )
        hangs.insert(0, False)
        first = server.pid
        server.stop()
        assert (server.running, hangs) == (False, [])
        monkeypatch.undo()
        server.start()
        assert server.pid != first
        assert server.query("SHOW DATABASES LIKE 'kept'") == [("kept",)]
        monkeypatch.setattr(server, "_has_shut_down", lambda: False)
        with pytest.raises(ServerFailed, match="single did not stop"):
            server.stop()
