"""What A5 tells the operator to do about a lock, done literally on real servers.

For each kind of lock that an applier waits for: the instruction finds the session, or the prepared
transaction, that holds it. When that has ended, the applier goes on and the rows agree.
"""

import json
import re
import time
from pathlib import Path

import pytest

from compose import faults_applier
from compose.faults import commit, table_on
from compose.faults_applier import OWNED_GTID, PREPARED_XA
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, wait_for
from gtid_audit.cli import run
from repair.adapters.locks_there import read_blocking_locks
from repair.model.replication_model import Model
from repair.model.strategy_case import KnownBeside
from repair.strategies.done_by_hand import by_hand
from tests.repair.live import await_clean, examine, rows, statements_of, targets_of
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.facts.gtid_waits import owning_channel
from topology.policy import Policy

pytestmark = pytest.mark.slow  # a rare shape: make nightly

# Who holds what, as the instruction names the tables: a lock that is granted to a client's session.
HOLDER = (
    "SELECT DISTINCT t.PROCESSLIST_ID FROM performance_schema.metadata_locks AS l"
    " JOIN performance_schema.threads AS t ON t.THREAD_ID = l.OWNER_THREAD_ID"
    " WHERE l.LOCK_STATUS = 'GRANTED' AND t.NAME LIKE '%one_connection'"
    " AND t.PROCESSLIST_ID <> CONNECTION_ID() AND l.LOCK_DURATION IN ('TRANSACTION', 'EXPLICIT')"
)
HOLDER_OF_ROWS = (
    "SELECT DISTINCT t.PROCESSLIST_ID FROM performance_schema.data_locks AS l"
    " JOIN performance_schema.threads AS t ON t.THREAD_ID = l.THREAD_ID"
    " WHERE l.LOCK_STATUS = 'GRANTED' AND t.NAME LIKE '%one_connection'"
)
HOLDER_IN_INNODB = (
    "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX"
    " WHERE trx_state = 'RUNNING' AND trx_rows_locked > 0"
)
COMMAND_OF = "SELECT command FROM information_schema.processlist WHERE id = %s"
SECOND = Policy(lock_wait_seconds_max=1)


def waiting(pair: Pair) -> Finding:
    """Return what an audit reports of the applier of b, which waits for longer than a second."""
    deadline = time.monotonic() + 30
    while True:
        audit = audit_cluster(examine(pair).snapshot, SECOND)
        found = [each for each in audit.findings if each.code == "A5"]
        if found:
            assert [each.replica for each in found] == ["b"]
            return found[0]
        assert time.monotonic() < deadline, [each.code for each in audit.findings]


@pytest.mark.parametrize(
    ("lock", "query"),
    [
        ("LOCK TABLES", HOLDER),
        ("FLUSH TABLES WITH READ LOCK", HOLDER),
        pytest.param("LOCK INSTANCE FOR BACKUP", HOLDER, marks=pytest.mark.slow),
        ("row lock", HOLDER_OF_ROWS),
    ],
)
def test_the_session_that_holds_a_lock_is_killed(pair97: Pair, lock: str, query: str) -> None:
    with faults_applier.held_up(pair97, lock) as held:
        text = by_hand("kill_blocker", waiting(pair97), Model({}))
        assert "not a replication thread" in text
        [(holder,)] = held.replica.query(query)
        of_session = text.partition(". A prepared XA transaction")[0]
        held.replica.execute(*statements_of(pair97, of_session, id=holder))
        wait_for(held.replica, held.held)
    await_clean(pair97)


@pytest.mark.parametrize(
    ("shape", "lock"),
    [
        *(("pair97", lock) for lock in ("metadata lock", "LOCK TABLES", "row lock", OWNED_GTID)),
        *(("pair56", lock) for lock in ("row lock", OWNED_GTID)),
    ],
)
def test_the_kill_of_a_plan_is_run_as_it_is(
    shape: str, lock: str, request: pytest.FixtureRequest
) -> None:
    """No value is to be filled in: the plan has read who holds the lock."""
    pair: Pair = request.getfixturevalue(shape)
    pair.b.execute("SET GLOBAL wait_timeout = 20")  # see test_a_row_lock_is_found_before_8_0
    with faults_applier.held_up(pair, lock) as held:
        finding = waiting(pair)
        locks = read_blocking_locks([finding], targets_of(pair), seconds_max=20)
        text = by_hand("kill_blocker", finding, Model({}), KnownBeside((), locks))
        [kill] = statements_of(pair, text)
        assert re.fullmatch("KILL [0-9]+", kill)
        assert ("It must not commit" in text) is (lock == OWNED_GTID)
        held.replica.execute(kill)
        wait_for(held.replica, held.held)
    await_clean(pair)


def test_a_plan_counts_the_rows_that_a_kill_rolls_back(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command reads the locks itself; rows that were not committed are gone afterwards."""
    a, b = pair97.a, pair97.b
    table_on(a, b, "lost")
    wait_for(b, commit(a, "INSERT INTO lost.t VALUES (1, 'held')"))
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "policy: {lock_wait_seconds_max: 1}\nclusters:\n"
        f"  - {{name: c, servers: [{{name: a, dsn: '{a.dsn}'}}, {{name: b, dsn: '{b.dsn}'}}]}}\n"
    )
    plan = ["repair", "plan", "--fleet", str(fleet), "--cluster", "c", "--json"]
    with b.connect() as holder, holder.cursor() as cursor:
        for statement in (
            *("SET SESSION sql_log_bin = 0", "BEGIN", "UPDATE lost.t SET note = 'b' WHERE id = 1"),
            *("INSERT INTO lost.t VALUES (7, 'b')", "INSERT INTO lost.t VALUES (8, 'b')"),
        ):
            cursor.execute(statement)
        held = commit(a, "UPDATE lost.t SET note = 'a' WHERE id = 1")
        waiting(pair97)
        assert run(plan) in (0, 1)
        [left] = [
            each
            for each in json.loads(capsys.readouterr().out)["not_planned"]
            if each["code"] == "A5"
        ]
        [text] = left["by_hand"]
        assert "with 3 changed rows" in text
        cursor.execute("SELECT CONNECTION_ID()")
        assert f"session {cursor.fetchall()[0][0]}, root@" in text
        b.execute(*statements_of(pair97, text))
        wait_for(b, held)
    assert rows(b, "lost.t") == rows(a, "lost.t") == [(1, "a")]
    await_clean(pair97)


def test_a_row_lock_is_found_before_8_0(pair56: Pair) -> None:
    # Once in thousands, 5.6 closes the socket of an idle session that it kills before that session
    # waits on it: the session stays, as Killed and with its locks, until wait_timeout ends it.
    pair56.b.execute("SET GLOBAL wait_timeout = 20")
    with faults_applier.held_up(pair56, "row lock") as held:
        [finding] = [each for each in examine(pair56).audit.findings if each.replica == "b"]
        text = by_hand("kill_blocker", finding, Model({}))
        assert "INNODB_TRX" in text
        [(holder,)] = held.replica.query(HOLDER_IN_INNODB)
        of_session = text.partition(". A prepared XA transaction")[0]
        held.replica.execute(*statements_of(pair56, of_session, id=holder))
        assert held.replica.query(COMMAND_OF, [holder]) in ([], [("Killed",)])
        wait_for(held.replica, held.held)
    await_clean(pair56)


def test_a_prepared_transaction_is_rolled_back(pair97: Pair) -> None:
    with faults_applier.held_up(pair97, PREPARED_XA) as held:
        text = by_hand("kill_blocker", waiting(pair97), Model({}))
        there = held.replica
        [(thread,)] = there.query(
            "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX"
            " WHERE trx_mysql_thread_id = 0"
        )
        assert f"thread {thread}" in text
        list_them, commit, roll_back = statements_of(pair97, text.partition(" holds its")[2])
        assert (list_them, commit) == ("XA RECOVER", "XA COMMIT (xid)")
        [(_, _, _, xid)] = there.query(list_them)
        there.execute(roll_back.replace("(xid)", f"'{xid}'"))
        wait_for(there, held.held)
        assert rows(there, "applier.t") == rows(held.source, "applier.t")
    await_clean(pair97)


# On 5.6.24 the applier did not notice the end of the session, once in some hundred runs.
@pytest.mark.parametrize("shape", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_a_session_that_owns_the_gtid_is_ended(shape: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(shape)
    with faults_applier.held_up(pair, "owned GTID") as held:
        text = by_hand("kill_blocker", waiting(pair), Model({}))
        assert "It must not commit" in text
        owned, kill = statements_of(pair, text, id="(id)")
        [(listed,)] = held.replica.query(owned)
        kill = kill.replace("(id)", str(listed).partition("#")[2])
        held.replica.execute(kill)
        wait_for(held.replica, held.held)
        assert rows(held.replica, "applier.t") == rows(held.source, "applier.t")
    await_clean(pair)


def test_a_worker_of_one_of_two_channels_is_ended(star97: Topology) -> None:
    """Both bring the same transaction: it is applied once, and the stopped channel goes on."""
    source, middle, both = (star97[name] for name in ("source", "replica1", "replica2"))
    table_on(source, both, "twice")
    wait_for(both, commit(source, "INSERT INTO twice.t VALUES (1, 'held')"))
    change = both.dialect.change_source_to(
        host=middle.host, port=middle.port, user="replication", auto_position=1
    )
    both.execute(f"{change} FOR CHANNEL 'second'", "START REPLICA FOR CHANNEL 'second'")
    with both.connect() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT id FROM twice.t WHERE id = 1 FOR UPDATE")
        held = commit(source, "UPDATE twice.t SET note = 'waits' WHERE id = 1")
        wait_for(middle, held)
        [behind] = _behind_another_channel(star97)
        text = by_hand("kill_blocker", behind, Model({}))
        assert "workers of two channels" in text
        owned, kill = statements_of(star97, text, id="(id)")
        threads = re.findall("#([0-9]+)", str(both.query(owned)[0][0]))
        both.execute(kill.replace("(id)", str(min(map(int, threads)))))
        stopped = _stopped_channel(both)
        cursor.execute("ROLLBACK")
    wait_for(both, held)
    assert rows(both, "twice.t") == rows(source, "twice.t") == [(1, "waits")]
    both.execute(f"START REPLICA FOR CHANNEL '{stopped}'")
    await_clean(star97)
    wait_for(both, commit(source, "INSERT INTO twice.t VALUES (2, 'later')"))
    assert rows(both, "twice.t") == rows(source, "twice.t")


def _behind_another_channel(star: Topology) -> list[Finding]:
    """Return the waits of one channel for another one, once both have lasted a second."""
    deadline = time.monotonic() + 30
    while True:
        audit = audit_cluster(examine(star).snapshot, SECOND)
        found = [each for each in audit.findings if each.code == "A5"]
        behind = [each for each in found if owning_channel(each) is not None]
        if len(found) == 2 and behind:
            return behind
        assert time.monotonic() < deadline, [each.code for each in audit.findings]


def _stopped_channel(server: Server) -> str:
    """Return the channel whose applier stopped with the error that the instruction names."""
    asks = (
        "SELECT CHANNEL_NAME FROM performance_schema.replication_applier_status_by_worker"
        " WHERE LAST_ERROR_NUMBER = 1317"
    )
    deadline = time.monotonic() + 30
    while not (found := server.query(asks)):
        assert time.monotonic() < deadline, "no applier has stopped"
        time.sleep(0.05)
    return str(found[0][0])
