"""Many empty transactions: sent in batches, in order, whole in the journal, and again if cut off."""

from __future__ import annotations

from threading import Thread

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from gtid import GtidSet
from repair.adapters.journal import _TEXT_CHARACTERS_MAX
from repair.adapters.script_runner import ScriptStopped, open_session, run_script
from repair.applying.script_reader import ScriptReader
from repair.sql.script import BATCHES_FROM, EMPTY_EACH, empty_transactions
from tests.repair.live import targets_of, wait_until

UUID = "aaaaaaaa-0000-0000-0000-000000000000"
MANY = GtidSet.parse(f"{UUID}:1-3:5-120,{UUID}:tag:1-2")
STATEMENTS = 3  # of one transaction


def sent(gtids: GtidSet) -> list[str]:
    """Return what a client sends for these transactions."""
    reader, found = ScriptReader("\n".join(empty_transactions(gtids))), []
    while (statement := reader.next(backslash_escapes=True)) is not None:
        found.append(statement)
    return found


def test_few_are_sent_one_statement_at_a_time() -> None:
    few = MANY.first(BATCHES_FROM - 1)
    assert len(sent(few)) == STATEMENTS * few.gtid_count


def test_many_are_sent_in_batches() -> None:
    batches = sent(MANY)
    assert [each.count("BEGIN;") for each in batches] == [EMPTY_EACH] * 4 + [21]
    lines = [line for each in batches for line in each.splitlines()]
    assert lines == [
        f"SET SESSION gtid_next = IF(@go, '{gtid}', 'AUTOMATIC'); BEGIN; COMMIT;"
        for gtid in MANY.gtids()
    ]


def test_the_script_shows_how_far_it_is() -> None:
    comments = [line for line in empty_transactions(MANY) if line.startswith("--")]
    assert comments[0] == f"-- {EMPTY_EACH} of {MANY.gtid_count} are executed"
    assert comments[-1] == f"-- {MANY.gtid_count} of {MANY.gtid_count} are executed"


def test_the_journal_keeps_all_of_a_batch() -> None:
    tag, last_gno = "t" * 32, (1 << 63) - 2
    last = GtidSet.parse(f"{UUID}:{tag}:{last_gno - BATCHES_FROM}-{last_gno}")
    assert max(map(len, sent(last))) <= _TEXT_CHARACTERS_MAX


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
