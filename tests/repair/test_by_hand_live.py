"""Manual instructions, run literally on real servers.

Statements are in backticks, behind the server on which to run them. A test fills in only what is in
parentheses, and does what the text asks for between statements.
"""

import re
import shlex

import pytest

from compose import faults, faults_applier, faults_filters, faults_history, faults_identity
from compose.faults import commit, table_on
from compose.native.server import Server
from compose.native.shapes import Pair, Topology, await_uptime, wait_for
from gtid_audit.cli import run
from repair import Plan
from repair.model.replication_model import Model
from repair.strategies.done_by_hand import by_hand
from tests.repair.live import (
    await_clean,
    examine,
    executed,
    rows,
    run_plan,
    statements_of,
    wait_until,
)

pytestmark = pytest.mark.slow  # a rare shape: make nightly


def _instruction(plan: Plan, code: str, strategy: str) -> str:
    [left] = [each for each in plan.not_planned if each.code == code]
    [text] = [way for way in left.by_hand if way.startswith(f"{strategy}: ")]
    return text.removeprefix(f"{strategy}: ")


def _written(text: str, server: Server, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the command of an instruction that writes a script; SERVER is a DSN."""
    [command] = re.findall("`gtid-audit ([^`]+)`", text)
    capsys.readouterr()
    assert run(shlex.split(command.replace("SERVER", server.dsn))) == 0
    return capsys.readouterr().out


def _arrives(source: Server, replica: Server, table: str) -> None:
    """A new commit arrives, and the rows agree."""
    source.execute(f"INSERT INTO {table} (note) VALUES ('afterwards')")
    wait_for(replica, executed(source))
    _await_rows(source, replica, table)


def _await_rows(source: Server, replica: Server, table: str) -> None:
    """Wait until the rows agree: 5.6 shows a GTID a moment before the rows."""
    wait_until(lambda: rows(replica, table) == rows(source, table))


def test_a_donor_serves_what_the_source_has_purged(
    star97: Topology, capsys: pytest.CaptureFixture[str]
) -> None:
    source, replica = star97["source"], star97["replica1"]
    fault = faults.purge_under_stopped_replica(star97, source="source", replica="replica1")
    wait_for(star97["replica2"], fault.purged)
    text = _instruction(examine(star97).plan(), "P1", "donor_refetch")
    assert text.startswith("on replica1 run")
    there, back = text.split("; wait until gtid_executed contains ")
    assert "host of replica2" in there
    assert "inserted into purged.t" in _written(text, star97["replica2"], capsys)
    replica.execute(*statements_of(star97, there))
    wait_for(replica, fault.purged)
    replica.execute(*statements_of(star97, back))
    await_clean(star97)
    _arrives(source, replica, "purged.t")


def test_what_no_script_can_undo_is_undone(
    star97: Topology, capsys: pytest.CaptureFixture[str]
) -> None:
    source, replica, other = (star97[name] for name in ("source", "replica1", "replica2"))
    source.execute("CREATE DATABASE keyless", "CREATE TABLE keyless.t (note VARCHAR(20))")
    source.execute("INSERT INTO keyless.t VALUES ('one')")
    for each in (replica, other):
        wait_for(each, executed(source))
    errant = commit(replica, "INSERT INTO keyless.t VALUES ('errant')")
    [left] = examine(star97).plan({"E1": "undo_on_replica"}).not_planned
    undo, use_up = left.why.partition("by hand, on replica1: ")[2].split(" Then use up each ")
    script = _written(undo, replica, capsys)
    unlogged = statements_of(star97, undo)
    assert unlogged == ["SET SESSION sql_log_bin = 0"]
    before = executed(replica)
    assert replica.client(f"{unlogged[0]};\n{script}").returncode == 0
    assert executed(replica) == before
    assert use_up.startswith("of the GTIDs on ")
    for name in ("source", "replica2"):
        assert name in use_up
        for statement in [statements_of(star97, use_up, the=errant)]:
            star97[name].execute(*statement)
    await_clean(star97)
    _arrives(source, replica, "keyless.t")
    assert rows(other, "keyless.t") == rows(source, "keyless.t")


def test_a_replica_follows_the_new_history_of_its_source(pair97: Pair) -> None:
    pair, a, b = pair97, pair97.a, pair97.b
    a.execute(a.dialect.stop_replica, a.dialect.reset_replica)
    await_uptime(a)
    faults_history.reset_history(pair, source="a", replica="b", new_count=0)
    text = _instruction(examine(pair).plan(), "E6", "rebuild_position")
    assert text.startswith("THE DATA WAS NOT CHECKED")
    assert "Only if the data of both servers is equal" in text
    [check] = re.findall(r"`gtid-audit (repair check-data) \(DSN of a\) \(DSN of b\) (.*?)`", text)
    assert run([*check[0].split(), a.dsn, b.dsn, *check[1].split()]) == 0
    assert rows(a, "forgotten.t") == rows(b, "forgotten.t")
    a.execute("CREATE DATABASE logged_once")  # gtid_purged cannot be set to an empty set
    b.execute("SET SESSION sql_log_bin = 0", "CREATE DATABASE logged_once")
    b.execute(*statements_of(pair, text))
    _arrives(a, b, "forgotten.t")
    await_clean(pair)


def test_an_unlinked_server_is_attached(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    for server in (a, b):
        server.execute(server.dialect.stop_replica, server.dialect.reset_replica)
    a.execute(
        "CREATE DATABASE joined",
        "CREATE TABLE joined.t (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(20))",
    )
    text = _instruction(examine(pair97).plan(), "J1", "attach")
    assert "compare the data" in text
    b.execute(*statements_of(pair97, text))
    _arrives(a, b, "joined.t")
    await_clean(pair97)


def test_a_copied_server_gets_a_uuid_of_its_own(pair97: Pair) -> None:
    faults_identity.duplicate_server_uuid(pair97)
    plan = examine(pair97).plan()
    assert not plan.steps
    text = _instruction(plan, "C1", "new_server_uuid")
    assert "remove auto.cnf" in text
    b = pair97.b
    b.stop()
    (b.datadir / "auto.cnf").unlink()
    b.start()
    for server in (pair97.a, b):
        faults.await_status(server, lambda status: status["Replica_IO_Running"] != "Connecting")
        server.execute(*statements_of(pair97, text))
    await_clean(pair97)
    pair97.a.execute("CREATE DATABASE arrives")
    wait_for(b, executed(pair97.a))


def test_a_session_that_blocks_is_killed(pair97: Pair) -> None:
    b = pair97.b
    with faults_applier.held_up(pair97, "metadata lock") as held:
        [waiting] = [each for each in examine(pair97).audit.findings if each.replica == "b"]
        text = by_hand("kill_blocker", waiting, Model({}))  # A5 takes ten seconds to be one
        assert "not a replication thread" in text
        [(blocking,)] = b.query(
            "SELECT DISTINCT t.PROCESSLIST_ID FROM performance_schema.metadata_locks AS l JOIN"
            " performance_schema.threads AS t ON t.THREAD_ID = l.OWNER_THREAD_ID"
            " WHERE l.OBJECT_NAME = 't' AND l.LOCK_STATUS = 'GRANTED'"
            " AND t.NAME LIKE '%one_connection' AND t.PROCESSLIST_ID <> CONNECTION_ID()"
        )
        of_session, _, of_xa = text.partition(". A prepared XA transaction")
        assert "`XA RECOVER`" in of_xa, "here a session holds the lock"
        b.execute(*statements_of(pair97, of_session, id=blocking))
        wait_for(b, held.held)


def test_gaps_of_a_parallel_applier_are_closed(pair97: Pair) -> None:
    b = pair97.b
    b.execute(b.dialect.stop_replica)
    [finding] = [each for each in examine(pair97).audit.findings if each.code == "A7"]
    b.execute(b.dialect.start_replica)
    text = by_hand("until_after_gaps", finding, Model({}))
    assert text.startswith("on b run")
    first, then = text.split("; wait until the applier has stopped by itself; ")
    with faults.tail_gap(pair97) as gap:
        worker = b.query(
            "SELECT t.PROCESSLIST_ID FROM performance_schema.threads AS t JOIN"
            " performance_schema.replication_applier_status_by_worker AS w"
            " ON t.THREAD_ID = w.THREAD_ID WHERE w.APPLYING_TRANSACTION = %s",
            [gap.held],
        )
        b.execute(f"KILL {worker[0][0]}")
        faults.await_applier_stopped(b)
        assert gap.held not in executed(b)
        b.execute(*statements_of(pair97, first))
        faults.await_applier_stopped(b)
        b.execute(*statements_of(pair97, then))
    pair97.settle()
    await_clean(pair97)


def test_a_server_id_of_its_own_brings_what_was_dropped(chain97: Topology) -> None:
    fault = faults_history.equal_server_ids(chain97)
    plan = examine(chain97).plan()
    text = _instruction(plan, "C2", "configure")
    assert text.startswith("on last run")
    chain97["last"].execute(*statements_of(chain97, text, a=9_999))
    wait_for(chain97["last"], fault.dropped)
    await_clean(chain97)


def test_ignored_servers_are_ignored_no_more(pair56: Pair) -> None:
    fault = faults_filters.ignored_transaction(pair56)
    text = _instruction(examine(pair56).plan(), "C11", "configure")
    assert text.startswith("find out why these servers are ignored")
    fault.replica.execute(*statements_of(pair56, text))
    wait_for(fault.replica, fault.gtids)
    _await_rows(fault.source, fault.replica, "ignored.t")


def test_workers_that_report_nothing_but_1756(pair56: Pair) -> None:
    """The seed's case with a parallel applier: the way of `explain 1756`, or the bypass at once."""
    a, b = pair56.a, pair56.b
    table_on(a, b, "viewed")
    b.execute(b.dialect.stop_replica, *b.dialect.parallel_applier, b.dialect.start_replica)
    statement = "CREATE VIEW viewed.v AS SELECT * FROM viewed.t"
    wait_for(b, commit(a, statement))
    b.execute("SET SESSION sql_log_bin = 0", "DROP VIEW viewed.v")
    commit(a, statement, expected_error=1050)
    faults.await_applier_stopped(b)
    a.execute("INSERT INTO viewed.t (note) VALUES ('later')")
    found = examine(pair56)
    assert found.codes == ["A3"]
    plan = found.plan()
    assert not plan.steps
    assert "slave_parallel_workers = 0" in _instruction(plan, "A3", "explain")
    plan = found.plan({"A3": "position_bypass"})
    assert [step.action for step in plan.steps] == ["MovePast", "InjectEmpty", "AutoPositionOn"]
    run_plan(pair56, plan)
    wait_for(b, executed(a))
    await_clean(pair56)
