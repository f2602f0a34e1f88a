"""`gtid-audit locks` on real servers, with each kind of lock; and the KILL that it shows."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pytest

from compose.faults_applier import LOCKS, OWNED_GTID, PREPARED_XA, HeldUp, held_up
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.gtid_audit.build import run_cli
from tests.snapshots import A, B, a_channel, a_server
from topology.adapters import lock_reads, neighbours
from topology.readings.dialect import dialect_of
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

_SECONDS_MAX = 20.0
# Nothing before 5.7 shows the holder of these.
_HIDDEN_ON_5_6 = {"metadata lock", "LOCK TABLES", "FLUSH TABLES WITH READ LOCK"}
_NAMES = {
    "metadata lock": "metadata lock",
    "LOCK TABLES": "metadata lock",
    "FLUSH TABLES WITH READ LOCK": "global lock",
    "LOCK INSTANCE FOR BACKUP": "backup lock",
    "row lock": "row lock",
    PREPARED_XA: "row lock",
    OWNED_GTID: "owned GTID",
}


def locks(server: Server) -> tuple[int, dict[str, Any]]:
    done = run_cli("locks", server.dsn, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def applier_wait(server: Server) -> tuple[int, dict[str, Any]]:
    """Return the wait of the applier, as soon as there is one."""
    until = time.monotonic() + _SECONDS_MAX
    while True:
        status, found = locks(server)
        [one] = found["servers"]
        waits = [each for each in one["waits"] if each["session"]["channel"] is not None]
        if waits or time.monotonic() > until:
            [wait] = waits
            return status, wait


def kill(held: HeldUp, wait: dict[str, Any]) -> None:
    """Run what the wait shows; the applier then moves, and no session waits."""
    held.replica.execute(*wait["sql"])
    wait_for(held.replica, held.held)
    status, found = locks(held.replica)
    assert (status, found["servers"][0]["waits"]) == (0, [])


@pytest.mark.parametrize("lock", LOCKS)
def test_the_holder_of_each_lock_is_shown_on_9_7(pair97: Pair, lock: str) -> None:
    with held_up(pair97, lock) as held:
        status, wait = applier_wait(held.replica)
        assert (status, wait["lock"]) == (1, _NAMES[lock])
        assert wait["holder_is_known"]
        if lock == PREPARED_XA:
            assert (wait["blocked_without_session"], wait["sql"]) == (True, [])
            return
        [holder] = wait["blocked_by"]
        assert wait["sql"] == [f"KILL {holder['session_id']};"]
        statements, _ = LOCKS[lock]
        if statements:
            assert holder["statements"][-1].split()[0] == statements[-1].split()[0]
        assert wait["session"]["gtid"] or lock == OWNED_GTID
        if lock == "metadata lock":
            assert wait["place"] == "applier.t"
            assert wait["session"]["query"].startswith("ALTER TABLE applier.t")
            assert holder["transaction_seconds"] is not None
            assert holder["transaction_rows"] == 0
        kill(held, wait)


@pytest.mark.parametrize(
    "lock", [each for each in LOCKS if "BACKUP" not in each and each != PREPARED_XA]
)
def test_what_5_6_does_not_show_is_unknown(pair56: Pair, lock: str) -> None:
    with held_up(pair56, lock) as held:
        status, wait = applier_wait(held.replica)
        is_hidden = lock in _HIDDEN_ON_5_6
        assert (status, wait["holder_is_known"]) == (3 if is_hidden else 1, not is_hidden)
        assert len(wait["sql"]) == (0 if is_hidden else 1)


@pytest.mark.slow
def test_a_chain_ends_with_the_idle_session(pair97: Pair) -> None:
    """A SELECT waits behind the ALTER of the applier, which waits for an idle transaction."""
    with held_up(pair97, "metadata lock") as held, ThreadPoolExecutor(1) as pool:
        _, applier = applier_wait(held.replica)
        reading = pool.submit(held.replica.query, "SELECT * FROM applier.t")
        until = time.monotonic() + _SECONDS_MAX
        while len(waits := locks(held.replica)[1]["servers"][0]["waits"]) < 2:
            assert time.monotonic() < until
        [behind] = [each for each in waits if each["session"]["channel"] is None]
        holder = applier["blocked_by"][0]["session_id"]
        blocked_by = [each["session_id"] for each in behind["blocked_by"]]
        assert blocked_by == [applier["session"]["session_id"]]
        assert (behind["ends_with"], behind["sql"]) == ([holder], [f"KILL {holder};"])
        said = run_cli("locks", held.replica.dsn).stdout
        assert said.count(f"KILL {holder};") == 2
        assert "SELECT * FROM applier.t" in said
        held.replica.execute(*behind["sql"])
        assert reading.result(timeout=_SECONDS_MAX)


def test_without_the_privilege_it_is_unknown(pair97: Pair) -> None:
    server = pair97.a
    server.execute("CREATE USER sees_nothing@'%' IDENTIFIED BY ''")
    done = run_cli("locks", server.dsn.replace("root@", "sees_nothing@"), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (3, "UNKNOWN")
    assert {each["fact"] for each in found["unknown"]} >= {"metadata locks", "transactions"}


def test_an_instrument_that_is_off_is_unknown(pair97: Pair) -> None:
    server = pair97.a
    where = "WHERE NAME = 'wait/lock/metadata/sql/mdl'"
    change = f"UPDATE performance_schema.setup_instruments SET ENABLED = '{{}}' {where}"
    server.execute(change.format("NO"))
    status, found = locks(server)
    assert status == 3
    [unknown] = found["unknown"]
    assert (unknown["fact"], change.format("YES") in unknown["reason"]) == ("metadata locks", True)


class OfAProxy:
    """A connection whose every answer is of another kind than the statement asks for."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows
        self.description = [(name,) for name in rows[0]] if rows else None

    def cursor(self) -> "OfAProxy":
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, _statement: str) -> None:
        return None

    def fetchall(self) -> list[dict[str, Any]]:
        return self._rows

    def close(self) -> None:
        return None


@pytest.mark.parametrize("rows", [[], [{"Info": "OK"}], [{"version": None, "version_comment": 7}]])
def test_an_answer_of_another_kind_is_unknown(
    rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_reads, "connect", lambda *_, **__: OfAProxy(rows))
    target = ServerTarget("a", "h", 3306, "root")
    reading, [unread] = lock_reads.read_locks(target, seconds_max=1)
    assert (dict(reading.sessions), unread.fact) == ({}, "version")
    monkeypatch.setattr(neighbours, "connect", lambda *_, **__: OfAProxy(rows))
    server = a_server("a", A, "", channels=(a_channel("b", B),))
    dialect = dialect_of(ServerVersion(9, 7, 4))
    found, [unread] = neighbours.read_neighbours(target, server, dialect, seconds_max=1)
    assert ([each.server_uuid for each in found], unread.fact) == ([B], neighbours.REPLICAS)
