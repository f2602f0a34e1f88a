"""Batches of empty transactions on a real server: cut off, run again, and stopped by an error."""

from __future__ import annotations

from threading import Thread

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from repair.adapters.script_runner import ScriptStopped, open_session, run_script
from repair.sql.script import empty_transactions
from tests.repair.live import targets_of, wait_until

UUID = "aaaaaaaa-0000-0000-0000-000000000000"


def script_of(gtids: GtidSet) -> str:
    lines = (*empty_transactions(gtids), "SET SESSION gtid_next = 'AUTOMATIC';", "SELECT 'done';")
    return "\n".join(("SET @go = TRUE;", *lines))


def there(server: Server, gtids: GtidSet) -> GtidSet:
    return gtids & GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))


def test_a_batch_that_is_cut_off_runs_again(pair97: Pair) -> None:
    """A session owns the GTID in the middle of the third batch, and the repair waits for it."""
    server, gtids = pair97.a, GtidSet.parse(f"{UUID}:1-120")
    before = GtidSet.parse(f"{UUID}:1-56")
    stopped: list[ScriptStopped] = []
    journal: list[str] = []
    with (
        server.connect() as owner,
        owner.cursor() as cursor,
        open_session(targets_of(pair97)["a"]) as session,
    ):
        cursor.execute(f"SET gtid_next = '{UUID}:57'")
        with session.cursor() as asking:
            asking.execute("SELECT CONNECTION_ID() AS id")
            session_id = (asking.fetchone() or {})["id"]

        def run() -> None:
            try:
                run_script(session, script_of(gtids), sending=journal.append)
            except ScriptStopped as error:
                stopped.append(error)

        repair = Thread(target=run)
        repair.start()
        wait_until(lambda: there(server, gtids) == before)
        server.execute(f"KILL {session_id}")
        repair.join()
        cursor.execute("ROLLBACK")
        cursor.execute("SET gtid_next = 'AUTOMATIC'")
    [error] = stopped
    assert error.is_lost
    assert error.statement == journal[-1]  # it was written before it was sent
    assert f"{UUID}:57'" in journal[-1]
    assert there(server, gtids) == before
    for _ in range(2):  # the second time it changes nothing
        with open_session(targets_of(pair97)["a"]) as session:
            assert run_script(session, script_of(gtids), sending=journal.append) == "done"
        assert there(server, gtids) == gtids
    assert there(server, GtidSet.parse(f"{UUID}:121-999")) == GtidSet()


def test_a_batch_stops_at_its_first_error(pair97: Pair) -> None:
    script = "SET @a = 1;\nDELIMITER /*!*/;\nSET @a = 2; SET @b = no_such; SET @a = 3\n/*!*/;\n"
    with open_session(targets_of(pair97)["a"]) as session, session.cursor() as cursor:
        with pytest.raises(ScriptStopped, match="no_such"):
            run_script(session, script, sending=lambda _: None)
        cursor.execute("SELECT @a AS a")
        assert cursor.fetchone() == {"a": 2}
    with open_session(targets_of(pair97)["a"]) as session:
        assert run_script(session, "SELECT 'still usable';", sending=lambda _: None)


def test_without_go_a_batch_changes_nothing(pair97: Pair) -> None:
    before = pair97.a.value("@@GLOBAL.gtid_executed")
    script = script_of(GtidSet.parse(f"{UUID}:1-120")).replace("TRUE", "FALSE", 1)
    with open_session(targets_of(pair97)["a"]) as session:
        assert run_script(session, script, sending=lambda _: None) == "done"
    assert pair97.a.value("@@GLOBAL.gtid_executed") == before
    assert pair97.a.client(script).returncode == 0
    assert pair97.a.value("@@GLOBAL.gtid_executed") == before
