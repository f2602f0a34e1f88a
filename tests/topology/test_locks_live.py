"""`gtid-audit locks` on real servers, with each kind of lock; and the KILL that it shows."""

import json
import time
from typing import Any

import pytest

from compose.faults_applier import LOCKS, OWNED_GTID, PREPARED_XA, HeldUp, held_up
from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.gtid_audit.build import run_cli

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
            assert (wait["blocked_by_prepared_xa"], wait["sql"]) == (True, [])
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
        if lock != OWNED_GTID:  # its session would only be replaced by a rollback at the end
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


def test_a_chain_ends_with_the_idle_session(pair97: Pair) -> None:
    with held_up(pair97, "metadata lock") as held, held.replica.connect() as reader:
        _, wait = applier_wait(held.replica)
        reader.cursor().execute("SELECT CONNECTION_ID()")
        done = run_cli("locks", held.replica.dsn)
        assert done.returncode == 1
        assert f"KILL {wait['blocked_by'][0]['session_id']};" in done.stdout
        assert "on applier.t" in done.stdout


def test_without_the_privilege_it_is_unknown(pair97: Pair) -> None:
    server = pair97.a
    server.execute("CREATE USER sees_nothing@'%' IDENTIFIED BY ''")
    done = run_cli("locks", server.dsn.replace("root@", "sees_nothing@"), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (3, "UNKNOWN")
    assert {each["fact"] for each in found["unknown"]} >= {"metadata locks", "transactions"}
